//! What the tests of the whole program stand on.
//!
//! `Sandbox` is a user with a home and a project of their own, and the real program;
//! `Record` is what a directory holds, told by other people's tools (find, sha256sum,
//! getfattr, getfacl), so that a fault of ours cannot hide itself; `corpus` is real
//! input. Nothing here knows how the program works inside.

mod base;
mod chance;
mod corpus;
mod fetched;
mod output;
mod patience;
mod record;
mod running;
mod sandbox;
mod screen;
mod user;

pub use base::scratch;
pub use chance::{Chance, times};
pub use corpus::corpus;
pub use fetched::fetched;
pub use output::Output;
pub use patience::{PATIENCE, until};
pub use record::{Entry, Record, Restores, assert_back, assert_same};
pub use running::Running;
pub use sandbox::Sandbox;
pub use screen::Screen;
pub use user::{User, is_root, users};

use std::io::Write;

/// Whether the program `name` is there. Where it is not, a test that needs it says so
/// and is skipped; with CI=true a skip is a failure.
pub fn have(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|dir| dir.join(name).is_file());
    if !found {
        skip(&format!("{name} is not installed"));
    }
    found
}

/// Says what a test found out, past what catches the output of tests: figures are shown of each run.
pub fn say(what: &str) {
    let _ = writeln!(std::io::stderr(), "{what}");
}

/// Says that a test is skipped and why.
///
/// # Panics
/// With CI=true: there, everything must be tested.
#[allow(clippy::print_stderr, reason = "the one place where a test says that it was skipped")]
pub fn skip(why: &str) {
    assert!(std::env::var_os("CI").is_none_or(|v| v != "true"), "skipped under CI: {why}");
    eprintln!("skipped: {why}");
}
