//! Each law is broken by a component made for that, and the suite names it; the others, but for
//! those that say more of the same, are kept.

use super::{Outcome, Trial, Verdict, World, check};
use crate::reach::Surroundings;
use crate::testing::{Guest, MANIFEST, Scratch};
use snapback_core::error::Result;
use std::fs;
use std::path::{Path, PathBuf};

const SAME: &str = "it says the same about itself each time";
const LEAVES: &str = "a snapshot leaves the state as it was";
const RESTORES: &str = "a restore brings back what was stored";
const TWICE: &str = "a second restore changes nothing";
const OLDER: &str = "older states come back after newer ones";
const CHANGED: &str = "what changed in between is left alone";
const CUT: &str = "a restore that was cut short is completed by the next";
const CUT_SNAPSHOT: &str = "a snapshot that was cut short leaves the state as it was";
const DENIED: &str = "without a setting that opens something it fails, and does nothing worse";
const LETS_GO: &str = "what it holds outside the store goes, and no second time";

/// One file, as the components for tests keep it.
struct Room {
    root: PathBuf,
    /// How often it was set up, and how often it may be.
    set_up: (usize, usize),
}

impl Room {
    fn file(&self) -> PathBuf {
        self.root.join("room/state")
    }
}

impl World for Room {
    fn set_up(&mut self) -> Result<()> {
        self.set_up.0 += 1;
        if self.set_up.0 > self.set_up.1 {
            return Err(snapback_core::Error::new(snapback_core::error::Kind::Other, "no more"));
        }
        let _ = fs::remove_dir_all(self.root.join("room"));
        fs::create_dir(self.root.join("room")).unwrap();
        fs::write(self.file(), "one\n").unwrap();
        Ok(())
    }

    fn changes(&self) -> usize {
        2
    }

    fn change(&mut self, which: usize) -> Result<()> {
        let text = if which == 0 { String::new() } else { fs::read_to_string(self.file()).unwrap() };
        fs::write(self.file(), text + ["two\n", "three\n"][which]).unwrap();
        Ok(())
    }

    fn probe(&mut self) -> Result<String> {
        Ok(fs::read_to_string(self.file()).unwrap_or_else(|_| "nothing".into()))
    }
}

fn verdicts_of(bytes: &[u8], settings: &[(&str, &str)], times: usize) -> (Vec<Verdict>, usize) {
    let scratch = Scratch::new();
    let root = scratch.path().join("project");
    fs::create_dir(&root).unwrap();
    let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
    let trial =
        Trial::new(bytes, &root, &scratch.path().join("store"), settings, Surroundings::default()).unwrap();
    let mut room = Room { root, set_up: (0, times) };
    let verdicts = check(&trial, Some(&mut room)).unwrap();
    (verdicts, room.set_up.0)
}

fn component(name: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/components");
    fs::read(folder.join(format!("{name}/{name}.wasm"))).expect("the component for tests is checked in")
}

fn not_kept(verdicts: &[Verdict]) -> Vec<&'static str> {
    let broken = verdicts.iter().filter(|verdict| verdict.outcome != Outcome::Kept);
    broken.map(|verdict| verdict.law).collect()
}

#[test]
fn who_breaks_a_law_is_told_which() {
    for (setting, value, laws) in [
        ("careless", "false", &[][..]),
        ("breaks", "leaves", &[LEAVES]),
        // What does not come back at all does not come back in any other way.
        ("breaks", "restores", &[RESTORES, TWICE, OLDER, CHANGED, CUT]),
        // Nor is what was done before it could be cut short done a second time.
        ("breaks", "twice", &[TWICE, CUT]),
        ("breaks", "older", &[OLDER]),
        ("careless", "true", &[CHANGED]),
        ("breaks", "cut", &[CUT]),
        ("breaks", "cut-snapshot", &[CUT_SNAPSHOT]),
        ("breaks", "denied", &[DENIED]),
    ] {
        let (verdicts, set_up) = verdicts_of(&component("probe"), &[("room", "room"), (setting, value)], 9);
        assert_eq!(not_kept(&verdicts), laws, "{setting} {value}: {verdicts:?}");
        assert!(verdicts.iter().all(|v| !matches!(v.outcome, Outcome::Unchecked(_))), "{verdicts:?}");
        let about_the_state = laws.iter().filter(|law| **law != DENIED).count();
        assert_eq!(set_up, 1 + about_the_state, "the state is set up again after each");
    }
    for (value, laws) in [("true", &[][..]), ("false", &[LETS_GO])] {
        let (verdicts, _) = verdicts_of(&component("keeper"), &[("room", "room"), ("forgets", value)], 1);
        assert_eq!(not_kept(&verdicts), laws, "{verdicts:?}");
    }
}

/// Says of itself another thing each time, by numbers that nobody can know before.
#[test]
fn who_says_another_thing_each_time_is_told_so() {
    let at = 1024 + MANIFEST.find("For tests").unwrap();
    let guest = Guest {
        world: "wasi-plugin",
        imports: r#"
            (import "wasi:cli/environment@0.2.12" "get-environment" (func $environment (param i32)))
            (import "wasi:random/random@0.2.12" "get-random-u64" (func $random (result i64)))"#,
        manifest: format!(
            "(call $environment (i32.const 5000))
            (i64.store (i32.const {at}) (i64.or (i64.const 0x4040404040404040)
                (i64.and (i64.const 0x0f0f0f0f0f0f0f0f) (call $random))))
            (i32.const 48)"
        )
        .leak(),
        ..Guest::default()
    };
    let (verdicts, _) = verdicts_of(&guest.build(), &[], 9);
    let broken = verdicts.iter().filter(|verdict| matches!(verdict.outcome, Outcome::Broken(_)));
    assert_eq!(broken.map(|verdict| verdict.law).collect::<Vec<_>>()[0], SAME, "{verdicts:?}");
}

#[test]
fn what_is_over_before_it_can_be_stopped_is_not_called_kept() {
    // It stores nothing and restores nothing: no call of the host to be stopped at.
    let (verdicts, _) = verdicts_of(&Guest::default().build(), &[], 9);
    let of = |law: &str| verdicts.iter().find(|verdict| verdict.law == law).unwrap().outcome.clone();
    let Outcome::Unchecked(why) = of(CUT_SNAPSHOT) else { panic!("{verdicts:?}") };
    assert!(why.contains("no snapshot could be cut short"), "{why}");
    assert!(matches!(of(RESTORES), Outcome::Broken(_)) && matches!(of(CUT), Outcome::Broken(_)));
}

#[test]
fn a_state_that_cannot_be_set_up_again_is_told_and_blames_nobody() {
    let (verdicts, _) = verdicts_of(&component("probe"), &[("room", "room"), ("breaks", "leaves")], 1);
    for verdict in &verdicts {
        match verdict.law {
            LEAVES => assert!(matches!(verdict.outcome, Outcome::Broken(_))),
            SAME | DENIED => assert_eq!(verdict.outcome, Outcome::Kept),
            _ => assert_eq!(
                verdict.outcome,
                Outcome::Unchecked("the state could not be set up again: no more".into())
            ),
        }
    }
    assert_eq!(verdicts.len(), 9);
}
