//! What backends propose for a project: targets that the user may switch on, for files
//! that a backend knows by their names.
//!
//! A proposal is text for a person, who reads it before it does anything. A component makes
//! its own where it reaches nothing, and so knows the paths alone; for one that came inside
//! the program the host reads the files. What comes back is checked like what a person
//! writes: settings that the backend has, with values of their kinds.

use crate::builtin::Builtin;
use crate::component;
use crate::discover::Origin;
use crate::grant::check_value;
use crate::manifest::Manifest;
use crate::registry::Registry;
use snapback_core::backend::Backends as _;
use snapback_core::error::{Error, Kind, Result};
use std::collections::BTreeMap;
use std::path::Path;
use walkdir::{DirEntry, WalkDir};

/// How deep below the root files are looked for.
const DEPTH: usize = 3;
/// Entries that are looked at: a project that has more is no place to search in.
const LOOKED: usize = 20_000;
/// Proposals of one backend that are shown; more are no help to anybody.
const MOST: usize = 50;
/// Directories that hold what others made.
const PASSED_OVER: [&str; 3] = ["node_modules", "target", "vendor"];

/// A target, as a backend would have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// What it would be called.
    pub name: String,
    /// Its settings.
    pub settings: BTreeMap<String, String>,
}

/// What a backend proposes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The backend.
    pub backend: String,
    /// The target.
    pub target: Finding,
}

impl Registry {
    /// What all backends propose for the project at `root`, and what kept one from it.
    pub fn proposals(&self, root: &Path) -> (Vec<Proposal>, Vec<Error>) {
        let (mut proposals, mut failed) = (Vec::new(), Vec::new());
        for name in self.names() {
            match self.proposals_of(&name, root) {
                Ok(found) => proposals.extend(found),
                Err(error) => failed.push(error.context(format!("backend `{name}`"))),
            }
        }
        (proposals, failed)
    }

    fn proposals_of(&self, name: &str, root: &Path) -> Result<Vec<Proposal>> {
        let manifest = self.manifest(name)?;
        let matches = files(root, &manifest.finds);
        if matches.is_empty() {
            return Ok(Vec::new());
        }
        let found = match self.find(name)?.origin {
            Origin::Builtin(Builtin { finder: Some(finder), .. }) => finder(root, &matches),
            origin => {
                let bytes = origin.read()?;
                let (engine, component) = self.compiled(&bytes)?;
                component::discover(engine, name, &component, &matches)?
            }
        };
        let proposal = |target: Finding| {
            check(&manifest, &target)?;
            Ok(Proposal { backend: name.to_owned(), target })
        };
        found.into_iter().take(MOST).map(proposal).collect()
    }
}

/// Refuses what could not be written into snapback.toml.
fn check(manifest: &Manifest, target: &Finding) -> Result<()> {
    for (key, value) in &target.settings {
        let setting = manifest.setting(key).ok_or_else(|| {
            let key = crate::manifest::shorten(key);
            Error::new(Kind::Invalid, format!("it proposes a setting that it does not have: `{key}`"))
        })?;
        check_value(setting, value)?;
    }
    Ok(())
}

/// The files in the project at `root` that are called one of `names`, by their paths from it.
pub fn files(root: &Path, names: &[String]) -> Vec<String> {
    if names.is_empty() {
        return Vec::new();
    }
    let is_wanted = |entry: &DirEntry| {
        entry.file_type().is_file()
            && entry.file_name().to_str().is_some_and(|n| names.iter().any(|w| w == n))
    };
    WalkDir::new(root)
        .min_depth(1)
        .max_depth(DEPTH)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|entry| !is_passed_over(entry))
        .take(LOOKED)
        .flatten()
        .filter(is_wanted)
        .filter_map(|entry| Some(entry.path().strip_prefix(root).ok()?.to_str()?.to_owned()))
        .collect()
}

fn is_passed_over(entry: &DirEntry) -> bool {
    let name = entry.file_name().to_string_lossy();
    entry.file_type().is_dir() && (name.starts_with('.') || PASSED_OVER.contains(&&*name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::Setup;
    use crate::testing::{Guest, MANIFEST, Scratch};
    use std::fs;

    /// Its answer to `discover` is one target of these settings.
    fn guest(setting: &str, value: &str) -> Guest {
        // At 4096: the list; at 4104 one finding; at 4120 one setting; then the texts.
        let word = |number: usize| (number as u32).to_le_bytes().map(|b| format!("\\{b:02x}")).concat();
        let (name, text) = ("found", 4136);
        let data = [
            word(4104) + &word(1),
            word(text) + &word(name.len()) + &word(4120) + &word(1),
            word(text + 5) + &word(setting.len()) + &word(text + 5 + setting.len()) + &word(value.len()),
            format!("{name}{setting}{value}"),
        ];
        Guest {
            world: "docker-plugin",
            data: data.concat().leak(),
            extra: r#"(func (export "snapback:plugin/finder@0.1.0#discover") (param i32 i32) (result i32)
                (if (i32.ne (local.get 1) (i32.const 1)) (then unreachable))
                (i32.const 4096))"#,
            ..Guest::default()
        }
    }

    fn proposed(guest: &Guest) -> (Vec<Proposal>, Vec<Error>) {
        let scratch = Scratch::new();
        let (folder, root) = (scratch.path().join("plugins"), scratch.path().join("project"));
        fs::create_dir(&folder).unwrap();
        let manifest = MANIFEST.replacen("[[setting]]", "finds = [\"known.yaml\"]\n[[setting]]", 1);
        fs::write(folder.join("guest.wasm"), guest.build_saying(&manifest)).unwrap();
        for dir in ["a/b/c", "node_modules", ".hidden"] {
            fs::create_dir_all(root.join(dir)).unwrap();
        }
        for file in ["a/b/known.yaml", "a/b/c/known.yaml", "node_modules/known.yaml", ".hidden/known.yaml"] {
            fs::write(root.join(file), "").unwrap();
        }
        let registry = Registry::new(Setup { folders: vec![folder], ..Setup::default() });
        registry.proposals(&root)
    }

    #[test]
    fn a_component_proposes_targets_for_the_files_that_it_knows() {
        let (proposals, failed) = proposed(&guest("label", "y"));
        assert!(failed.is_empty(), "{failed:?}");
        let target = Finding { name: "found".into(), settings: [("label".into(), "y".into())].into() };
        assert_eq!(proposals, [Proposal { backend: "guest".into(), target }]);
    }

    #[test]
    fn what_it_cannot_be_given_is_no_proposal() {
        let (proposals, failed) = proposed(&guest("other", "y"));
        assert_eq!(proposals, []);
        assert!(failed[0].message().contains("a setting that it does not have: `other`"), "{failed:?}");
    }

    #[test]
    fn it_reaches_nothing_while_it_is_asked() {
        let guest = Guest {
            world: "docker-plugin",
            imports: r#"(import "snapback:plugin/store@0.1.0" "[constructor]draft" (func $draft (result i32)))"#,
            extra: r#"(func (export "snapback:plugin/finder@0.1.0#discover") (param i32 i32) (result i32)
                (drop (call $draft)) (i32.const 64))"#,
            ..Guest::default()
        };
        let (proposals, failed) = proposed(&guest);
        assert_eq!(proposals, []);
        assert!(failed[0].message().contains("it could not tell what it proposes"), "{failed:?}");
    }
}
