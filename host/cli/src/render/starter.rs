//! A snapback.toml to begin with: every key with what it does, and what was found here.
//!
//! Invariant: as it is, it asks for what is so without it; and with all of its proposals
//! switched on it is still a snapback.toml.

use super::left_out;
use super::words::count;
use snapback_core::backend::Adopter;
use snapback_core::database::to_setting;
use snapback_core::error::show_bytes;
use snapback_core::project::config::TREE;
use snapback_core::project::units::human;
use snapback_core::tree::Survey;
use snapback_runtime::propose::Proposal;
use std::collections::{BTreeMap, BTreeSet};

/// Things of one kind that are named.
const NAMED: usize = 12;
/// Width of the keys with their values, before what is said of them.
const WIDTH: usize = 28;

/// What there is in a project.
pub struct Found<'a> {
    /// What its trees hold and leave out, by target.
    pub surveys: &'a [(String, Survey)],
    /// The backends that can be used.
    pub backends: Vec<String>,
    /// Who takes in the databases that are found; none when nobody does.
    pub adopter: Option<Adopter>,
    /// What backends would cover as well.
    pub proposals: Vec<Proposal>,
}

/// The keys of `[snapshot]` with their defaults and what they do.
const KEYS: [(&str, &str); 12] = [
    ("enabled = true", "capture the files at all"),
    ("paths = [\".\"]", "what of the project is captured"),
    ("ignore = []", "patterns as in .gitignore: left out"),
    ("include = []", "captured whatever another rule says"),
    ("skip-regenerable = true", "leave out what can be made again: node_modules, target ..."),
    ("max-files-per-dir = 10000", "a directory with more of its own is left out; 0: no limit"),
    ("cross-mounts = false", "go into other file systems"),
    ("git = false", "cover all of .git, so that commits are taken back as well"),
    ("sqlite = true", "find SQLite databases: each is a target of its own"),
    ("strategy = \"auto\"", "or \"copy\", \"reflink\": whether large files share their blocks"),
    ("times = \"now\"", "or \"stored\": files get back their old times, too"),
    ("interval = \"0s\"", "\"30s\": snapshots during a run, when something changed"),
];

/// The text.
pub fn text(found: &Found<'_>) -> String {
    let mut lines = vec![
        "# What snapback captures of this project, and how. Nothing of it is needed: a line that".to_owned(),
        "# begins with `#` is a default, or a proposal. `snapback status` shows what it comes to.".to_owned(),
        String::new(),
        "[snapshot]".to_owned(),
    ];
    lines.extend(KEYS.iter().map(|(key, what)| format!("#{key:WIDTH$} # {what}")));
    for (target, survey) in found.surveys {
        let whose = if target == "tree" { String::new() } else { format!("`{target}`: ") };
        lines.push(String::new());
        lines.push(format!(
            "# Found here: {whose}{}, {}.",
            count(survey.holds.files, "file"),
            human(survey.holds.bytes)
        ));
        let left = left_out::surveyed(survey);
        if !left.is_empty() {
            lines.push("# Left out:".to_owned());
            lines.extend(left.into_iter().take(NAMED).map(|line| format!("#   {line}")));
        }
        if !survey.precious.is_empty() {
            lines.push("# Ignored by git, and captured all the same:".to_owned());
            let paths = survey.precious.iter().map(|item| show_bytes(&item.path));
            lines.extend(paths.take(NAMED).map(|line| format!("#   {line}")));
        }
    }
    let mut names = Names::default();
    for path in databases(found.surveys).take(NAMED) {
        let Some(adopter) = &found.adopter else { break };
        lines.extend([
            String::new(),
            "# A database. It is captured without this, and called by its path; with it there is a"
                .to_owned(),
            "# name for it, and it may be in the snapshots during a run.".to_owned(),
        ]);
        let settings = [(adopter.setting.clone(), to_setting(path))].into();
        lines.extend(target(&names.of(path), &adopter.backend, &settings));
        lines.push("#every-interval = true".to_owned());
    }
    for Proposal { backend, target: proposed } in found.proposals.iter().take(NAMED) {
        lines.extend([
            String::new(),
            format!(
                "# Proposed by the backend {backend}. It is not captured without this, and wants your yes"
            ),
            "# (`snapback trust`).".to_owned(),
        ]);
        lines.extend(target(&names.of(proposed.name.as_bytes()), backend, &proposed.settings));
    }
    lines.extend([
        String::new(),
        format!("# Backends that can be used in a [[target]]: {}.", found.backends.join(", ")),
        "# `snapback backends show NAME` tells the settings of one.".to_owned(),
    ]);
    lines.join("\n") + "\n"
}

/// The paths of the databases that were found.
pub fn databases(surveys: &[(String, Survey)]) -> impl Iterator<Item = &[u8]> {
    surveys.iter().flat_map(|(_, survey)| &survey.databases).map(Vec::as_slice)
}

/// A proposal for a target.
fn target(name: &str, backend: &str, settings: &BTreeMap<String, String>) -> Vec<String> {
    let mut lines = vec!["#[[target]]".to_owned()];
    let pairs = [("name", name), ("backend", backend)].into_iter();
    let pairs = pairs.chain(settings.iter().map(|(key, value)| (&**key, &**value)));
    lines.extend(pairs.map(|(key, value)| format!("#{key} = {}", toml(value.to_owned()))));
    lines
}

/// `text` as a value.
fn toml(text: String) -> String {
    toml::Value::String(text).to_string()
}

/// Names of targets, each given once.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    /// One for what is at `path`, that nothing else has.
    fn of(&mut self, path: &[u8]) -> String {
        let plain = name_of(path);
        let numbered = (2..).map(|number| format!("{plain}-{number}"));
        let mut all = std::iter::once(plain.clone()).chain(numbered);
        let free = all.find(|name| name != TREE && !self.0.contains(name)).unwrap_or_default();
        self.0.insert(free.clone());
        free
    }
}

/// A name that a target may have: that of the file, without its ending.
fn name_of(path: &[u8]) -> String {
    let path = String::from_utf8_lossy(path);
    let file = path.rsplit('/').next().unwrap_or(&path);
    let stem = file.split('.').find(|part| !part.is_empty()).unwrap_or("database");
    stem.chars().map(|c| if c.is_ascii_alphanumeric() || "-_".contains(c) { c } else { '-' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::survey::tests::left;
    use snapback_core::database::of_setting;
    use snapback_core::project::config::Config;
    use snapback_core::tree::root::Why;
    use snapback_core::tree::{Measure, Precious};
    use snapback_runtime::propose::Finding;

    fn found() -> Vec<(String, Survey)> {
        let survey = Survey {
            holds: Measure { files: 1200, bytes: 2048, complete: true, ..Measure::default() },
            left_out: vec![left("node_modules", Why::Regenerable, Some(60_000))],
            ignored: vec![],
            precious: vec![Precious { path: b".env".to_vec(), directory: false, files: 1 }],
            git: None,
            databases: vec![b"data/app.db".to_vec()],
        };
        vec![("tree".into(), survey)]
    }

    fn with<'a>(surveys: &'a [(String, Survey)], backends: &[&str]) -> Found<'a> {
        let [backend, setting, part] = ["sqlite", "path", "database"].map(str::to_owned);
        let volume = |(name, volume): (&str, &str)| Proposal {
            backend: "docker-volume".into(),
            target: Finding { name: name.into(), settings: [("volume".into(), volume.into())].into() },
        };
        Found {
            surveys,
            backends: backends.iter().map(|&name| name.to_owned()).collect(),
            adopter: Some(Adopter { backend, setting, part }),
            proposals: [("app", "app"), ("tree", "tree"), ("app", "b_app")].map(volume).to_vec(),
        }
    }

    #[test]
    fn as_it_is_it_asks_for_what_is_so_without_it() {
        let surveys = found();
        let text = text(&with(&surveys, &["sqlite", "tree"]));
        assert_eq!(Config::parse(&text).unwrap(), Config::default());
        for line in [
            "# Found here: 1,200 files, 2.0 kB.",
            "#   node_modules  regenerable, 60,000 files",
            "#   .env",
            "#path = \"data/app.db\"",
            "# Backends that can be used in a [[target]]: sqlite, tree.",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
        assert!(text.lines().all(|line| line.len() <= 100), "{text}");
    }

    #[test]
    fn with_all_of_it_switched_on_it_is_a_configuration_still() {
        let surveys = found();
        let text = text(&with(&surveys, &[]));
        let on: Vec<&str> =
            text.lines().map(|l| l.strip_prefix('#').filter(|l| !l.starts_with(' ')).unwrap_or(l)).collect();
        let config = Config::parse(&on.join("\n")).unwrap();
        assert_eq!(config.targets.len(), 5);
        assert_eq!((&*config.targets[1].target.name, config.targets[1].every_interval), ("app", true));
        let names = config.targets[2..].iter().map(|c| (&*c.target.name, &*c.target.settings["volume"]));
        assert_eq!(names.collect::<Vec<_>>(), [("app-2", "app"), ("tree-2", "tree"), ("app-3", "b_app")]);
        let keys: Vec<&str> = KEYS.iter().filter_map(|(key, _)| key.split(' ').next()).collect();
        let defaults = config.targets[0].target.settings.len();
        assert_eq!(defaults + 2, keys.len(), "every key stands there: {keys:?}");
    }

    #[test]
    fn databases_of_any_name_are_proposed_as_they_can_be_written() {
        let names = ["z\u{200b}b.db".as_bytes(), b"y\xff.db", b"x\n'\"\\.db"];
        let mut surveys = found();
        surveys[0].1.databases = names.map(<[u8]>::to_vec).to_vec();
        let text = text(&with(&surveys, &[]));
        let proposed = text.lines().filter_map(|line| line.strip_prefix('#'));
        let on: Vec<&str> =
            proposed.skip_while(|line| *line != "[[target]]").filter(|l| !l.starts_with(' ')).collect();
        let config = Config::parse(&on.join("\n")).unwrap();
        let paths = config.targets.iter().filter_map(|c| c.target.settings.get("path"));
        let paths: Vec<_> = paths.map(|value| of_setting(value).into_owned()).collect();
        for name in names {
            assert!(paths.iter().any(|path| path == name), "{}", show_bytes(name));
        }
    }

    #[test]
    fn names_are_those_that_a_target_may_have() {
        assert_eq!(name_of(b"data/app.db"), "app");
        assert_eq!(name_of(b".hidden.db"), "hidden");
        assert_eq!(name_of(b"a b.db"), "a-b");
    }
}
