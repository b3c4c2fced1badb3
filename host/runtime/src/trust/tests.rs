//! What needs consent, and what is another question.

use super::*;
use crate::grant::{self, Limits};
use crate::manifest::Manifest;
use crate::reach::volume::{Looked, Volume};
use crate::reach::{Reach, Surroundings};
use crate::testing::Scratch;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::symlink;

const MANIFEST: &str = r#"
    name = "x"
    version = "1"
    [[setting]]
    key = "place"
    kind = "dir"
    default = "."
    [[setting]]
    key = "address"
    kind = "address"
    [[setting]]
    key = "label"
    kind = "text"
"#;

struct World {
    scratch: Scratch,
    /// What each name of a volume means.
    volumes: Arc<Mutex<Looked>>,
}

impl World {
    fn new() -> Self {
        let scratch = Scratch::new();
        for dir in ["project/src", "other", "state"] {
            fs::create_dir_all(scratch.path().join(dir)).unwrap();
        }
        Self { scratch, volumes: Arc::default() }
    }

    fn root(&self) -> PathBuf {
        self.scratch.path().join("project")
    }

    fn trust(&self, digests: &[&str]) -> Trust {
        let digests = digests.iter().map(|&d| d.to_owned()).collect();
        Trust::new(Some(self.scratch.path().join("state")), digests)
    }

    fn question(&self, store: &str, component: Option<&str>, settings: &[(&str, &str)]) -> Question {
        self.question_of("t", MANIFEST, store, component, settings)
    }

    fn question_of(
        &self,
        target: &str,
        manifest: &str,
        store: &str,
        component: Option<&str>,
        settings: &[(&str, &str)],
    ) -> Question {
        let manifest = Manifest::parse(manifest).unwrap();
        let given: BTreeMap<_, _> =
            settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let grants = grant::effective(&manifest, &given, Limits::default()).unwrap();
        let volumes = self.volumes.clone();
        let around = Surroundings {
            programs: OsString::new(),
            volumes: Arc::new(move |_| Ok(volumes.lock().unwrap().clone())),
            ..Surroundings::default()
        };
        let reach = Reach::of(&grants, &self.root(), BTreeMap::new(), &around).unwrap();
        let asker = Asker {
            name: manifest.name.clone(),
            version: manifest.version,
            origin: "a file".into(),
            digest: component.map(|c| c.repeat(64)),
            interfaces: vec!["tree".into()],
        };
        Question::new(target, asker, Some(store.to_owned()), &grants, &reach)
    }

    fn agree(&self, question: &Question) {
        // That the file is there is the consent.
        let consents = self.scratch.path().join("state/consents");
        fs::create_dir_all(&consents).unwrap();
        fs::write(consents.join(self.trust(&[]).key(question).unwrap()), "").unwrap();
    }
}

#[test]
fn what_stays_inside_needs_no_consent_when_it_came_with_the_program() {
    let world = World::new();
    for (component, settings, needed) in [
        (None, &[][..], false),
        (None, &[("place", "src"), ("label", "/etc")], false),
        (None, &[("place", "../other")], true),
        (None, &[("place", "/")], true),
        (None, &[("address", "127.0.0.1:1")], true),
        (Some("a"), &[], true),
        (Some("a"), &[("place", "src")], true),
    ] {
        let question = world.question("s", component, settings);
        assert_eq!(!world.trust(&[]).agrees(&question), needed, "{settings:?}");
        assert_eq!(question.is_nothing(), !needed);
    }
}

#[test]
fn a_consent_is_for_one_project_component_settings_and_what_they_lead_to() {
    let world = World::new();
    let link = world.root().join("link");
    symlink("../other", &link).unwrap();
    let settings = [("place", "link"), ("address", "127.0.0.1:5432"), ("label", "x")];
    let agreed = world.question("s", Some("a"), &settings);
    world.agree(&agreed);
    let agrees = |question: &Question| world.trust(&[]).agrees(question);
    assert!(agrees(&agreed));

    // What is no part of it.
    let renamed = world.question_of("another", MANIFEST, "s", Some("a"), &settings);
    assert!(agrees(&renamed), "the name of a target is no part of what it reaches");

    for (what, question) in [
        ("another project", world.question("s2", Some("a"), &settings)),
        ("another component", world.question("s", Some("b"), &settings)),
        ("a setting that reaches nothing", world.question("s", Some("a"), &[settings[0], settings[1]])),
        (
            "another port",
            world.question("s", Some("a"), &[settings[0], ("address", "127.0.0.1:5433"), settings[2]]),
        ),
        ("more", world.question("s", Some("a"), &[("place", ".."), settings[1], settings[2]])),
        (
            "writing where it was reading",
            world.question_of(
                "t",
                &MANIFEST.replacen("kind = \"dir\"", "kind = \"dir\"\naccess = \"write\"", 1),
                "s",
                Some("a"),
                &settings,
            ),
        ),
    ] {
        assert!(!agrees(&question), "{what}");
    }
    // The same words, and another directory.
    fs::create_dir(world.scratch.path().join("third")).unwrap();
    fs::remove_file(&link).unwrap();
    symlink("../third", &link).unwrap();
    assert!(!agrees(&world.question("s", Some("a"), &settings)));
}

#[test]
fn a_consent_to_a_volume_is_for_what_its_name_means() {
    const VOLUME: &str = "name = \"x\"\nversion = \"1\"\n[[setting]]\nkey = \"volume\"\nkind = \"volume\"\naccess = \"write\"\n";
    let world = World::new();
    let looked = |engine: &str, name: &str, driver: &str, options: &[(&str, &str)]| {
        let options = options.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let volume = Volume { name: name.into(), driver: driver.into(), options };
        Looked { engine: engine.into(), volume: (!name.is_empty()).then_some(volume) }
    };
    let bind = [("type", "none"), ("o", "bind"), ("device", "/victim")];
    let kinds = || {
        [
            ("there", looked("e", "shop_data", "local", &[])),
            ("another of that name", looked("e", "bank_data", "local", &[])),
            ("the one of that very name", looked("e", "data", "local", &[])),
            ("a directory", looked("e", "shop_data", "local", &bind)),
            ("a driver", looked("e", "shop_data", "nfs", &[])),
            ("an engine", looked("e2", "shop_data", "local", &[])),
        ]
    };
    let ask = |found: &Looked| {
        *world.volumes.lock().unwrap() = found.clone();
        world.question_of("t", VOLUME, "s", None, &[("volume", "data")])
    };
    let agrees = |found: &Looked| world.trust(&[]).agrees(&ask(found));
    let gone = looked("e", "", "", &[]);
    assert!(!agrees(&gone), "nobody agreed to anything yet");
    for (at, (what, agreed)) in kinds().iter().enumerate() {
        std::fs::remove_dir_all(world.scratch.path().join("state/consents")).unwrap_or_default();
        world.agree(&ask(agreed));
        for (other_at, (other, found)) in kinds().iter().enumerate() {
            assert_eq!(agrees(found), at == other_at, "agreed to {what}, found {other}");
        }
        assert!(agrees(&gone), "{what}: who agreed to it may have it made again");
        let elsewhere = world.question_of("t", VOLUME, "s2", None, &[("volume", "data")]);
        assert!(!world.trust(&[]).agrees(&elsewhere), "{what}: in another project");
    }
    assert_eq!(ask(&kinds()[0].1).reaches(), ["volume: uses the volume data, which is shop_data"]);
    assert!(ask(&kinds()[3].1).reaches()[0].contains("another name for /victim"));
    assert_ne!(ask(&kinds()[0].1).digest(), ask(&kinds()[1].1).digest());
    assert_eq!(ask(&kinds()[0].1).digest(), ask(&kinds()[5].1).digest(), "an engine is a machine's own");
    // To one that is not there yet: to the very one of that name, and to none that is more.
    std::fs::remove_dir_all(world.scratch.path().join("state/consents")).unwrap();
    world.agree(&ask(&gone));
    let agreed: Vec<bool> = kinds().iter().map(|(_, found)| agrees(found)).collect();
    assert_eq!(agreed, [false, false, true, false, false, false]);
}

#[test]
fn all_that_makes_it_another_question_is_shown() {
    let world = World::new();
    let shown = |settings: &[(&str, &str)]| world.question("s", Some("a"), settings).reaches()[1..].to_vec();
    assert_eq!(shown(&[]), ["place: reads ."]);
    assert_eq!(shown(&[("label", "a b\n\u{1b}[2J")]), ["place: reads .", "label: is a b, \"\\x1b[2J\""]);
    assert_eq!(shown(&[("label", "")])[1], "label: is \"\"");
    assert!(!world.question("s", Some("a"), &[]).is_outside());
    assert!(world.question("s", Some("a"), &[("place", "..")]).is_outside());
}

#[test]
fn a_default_is_asked_for_like_a_value() {
    let world = World::new();
    let greedy = MANIFEST.replace("default = \".\"", "default = \"/\"");
    let question = world.question_of("t", &greedy, "s", None, &[]);
    assert!(!world.trust(&[]).agrees(&question));
    assert_eq!(question.reaches(), ["place: reads /, outside the project by an absolute path"]);
}

#[test]
fn a_digest_is_the_same_everywhere_and_agrees_for_once() {
    let world = World::new();
    let settings = [("place", "../other")];
    let question = world.question("s", Some("a"), &settings);
    let elsewhere = World::new().question("s2", Some("a"), &settings);
    assert_eq!(question.digest(), elsewhere.digest());
    assert_eq!(question.digest().len(), 32);
    assert!(world.trust(&[&question.digest()]).agrees(&question));
    assert!(!world.trust(&[&question.digest()[..31]]).agrees(&question));
    assert!(!world.trust(&[]).agrees(&question), "it was not kept");
    assert_ne!(question.digest(), world.question("s", Some("b"), &settings).digest());
}

#[test]
fn a_digest_is_of_where_links_lead() {
    let turned = |to: &str| {
        let world = World::new();
        fs::create_dir(world.scratch.path().join("third")).unwrap();
        symlink(to, world.root().join("link")).unwrap();
        world.question("s", Some("a"), &[("place", "link")])
    };
    let (other, third) = (turned("../other"), turned("../third"));
    assert_eq!(
        other.reaches()[1],
        "place: reads link, which is ../other, outside the project through a link"
    );
    assert_ne!(other.digest(), third.digest());
    assert_eq!(other.digest(), turned("../other").digest(), "the same in every copy of the project");
    assert_ne!(turned("src").digest(), turned(".").digest(), "inside the project as well");
}

#[test]
fn a_refusal_says_what_is_reached_and_what_to_do() {
    let world = World::new();
    let question = world.question("s", Some("a"), &[("address", "127.0.0.1:5432")]);
    let error = world.trust(&[]).check(&question).unwrap_err();
    assert_eq!(error.kind(), Kind::Denied);
    assert!(error.message().contains("the target `t` reaches: the component x 1 from a file (aaaaaaaaaaaa, asking for tree); address: connects to 127.0.0.1:5432 (this machine)"), "{error}");
    assert!(error.hint_text().unwrap().contains(&question.digest()));
    let trust = world.trust(&[]);
    trust.check(&question).unwrap_err();
    trust.check(&question).unwrap_err();
    assert_eq!(trust.take_refused().len(), 1);
    assert_eq!(trust.take_refused().len(), 0);
}
