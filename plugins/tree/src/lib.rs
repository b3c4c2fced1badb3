//! The tree backend: files and directories.
//!
//! Here is the policy: which settings there are, which of them become options of the
//! host's capture, and what can be made again and is left out. The host does the
//! work behind the handle. Imports no WASI and holds no state: the snapshot records
//! what was selected, and a restore goes by that record.

mod regenerable;

use snapback_sdk::tree::Directory;
use snapback_sdk::{Backend, Error, Options, Part, Result, Target, take_part};

/// The one setting that carries authority.
const PATH: &str = "path";
/// The one part of a snapshot.
const PART: &str = "tree";

struct Tree;

impl Backend for Tree {
    const MANIFEST: &'static str = include_str!("../manifest.toml");

    fn snapshot(target: &Target, previous: Vec<Part>) -> Result<Vec<Part>> {
        let directory = open(target)?;
        let previous = previous.into_iter().find(|part| part.name == PART).map(|part| part.content);
        let content = directory.capture(previous.as_ref())?;
        Ok(vec![Part { name: PART.into(), content }])
    }

    fn restore(target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()> {
        let (stored, current) = (take_part(parts, PART)?, take_part(current, PART)?);
        open(target)?.restore(&stored, &current)
    }
}

fn open(target: &Target) -> Result<Directory> {
    let mut options = Options::new();
    for key in [
        "paths",
        "ignore",
        "include",
        "max-files-per-dir",
        "cross-mounts",
        "git",
        "sqlite",
        "strategy",
        "times",
    ] {
        options.pass(target, key);
    }
    if flag(target, "skip-regenerable")? {
        options.push("regenerable", regenerable::RULES);
    }
    Directory::open(target, PATH, options.as_slice())
}

fn flag(target: &Target, key: &str) -> Result<bool> {
    match target.setting(key).as_deref() {
        Some("true") => Ok(true),
        Some("false") | None => Ok(false),
        Some(other) => Err(Error::invalid(format!("`{key}` is true or false, not `{other}`"))),
    }
}

snapback_sdk::export!(Tree);
