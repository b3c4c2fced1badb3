//! The sqlite backend: a database that applications may hold open.
//!
//! Here is the policy: one database a target, which settings there are, and what a
//! missing part means: the file is not there. The host does the work behind the handle.
//! Imports no WASI and holds no state.

use snapback_sdk::sqlite::Database;
use snapback_sdk::{Backend, Object, Options, Part, Result, Target};

/// The one setting that carries authority.
const PATH: &str = "path";
/// The one part of a snapshot.
const PART: &str = "database";

struct Sqlite;

impl Backend for Sqlite {
    const MANIFEST: &'static str = include_str!("../manifest.toml");

    fn snapshot(target: &Target, previous: Vec<Part>) -> Result<Vec<Part>> {
        let content = open(target)?.capture(only(previous).as_ref())?;
        Ok(content.map(|content| Part { name: PART.into(), content }).into_iter().collect())
    }

    fn restore(target: &Target, parts: Vec<Part>, current: Vec<Part>) -> Result<()> {
        open(target)?.restore(only(parts).as_ref(), only(current).as_ref())
    }
}

/// What a snapshot holds: nothing when there was no file.
fn only(parts: Vec<Part>) -> Option<Object> {
    parts.into_iter().find(|part| part.name == PART).map(|part| part.content)
}

fn open(target: &Target) -> Result<Database> {
    let mut options = Options::new();
    for key in ["busy-timeout", "verify"] {
        options.pass(target, key);
    }
    Database::open(target, PATH, options.as_slice())
}

snapback_sdk::export!(Sqlite);
