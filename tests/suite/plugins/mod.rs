//! Backends that did not come with the program: found, asked for, and held to what they
//! were given.

mod away;
mod border;
mod consent;
mod frozen;
mod made;
mod names;
mod optional;
mod programs;
mod shelf;
mod strangers;
mod swapped;

use snapback_tests::Sandbox;
use std::fs;
use std::path::PathBuf;

/// The component that tries what it is told to.
fn probe() -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/components/probe/probe.wasm");
    fs::read(path).expect("the component for tests is checked in")
}

/// Where a user's backends are.
fn folder(s: &Sandbox) -> PathBuf {
    s.dir().join("data/snapback/plugins")
}

/// Drops the probe into the user's folder of backends.
fn install(s: &Sandbox) {
    s.sh("mkdir -p \"$XDG_DATA_HOME/snapback/plugins\" ../room && echo one > ../room/state");
    fs::write(folder(s).join("probe.wasm"), probe()).unwrap();
}

/// A target of the probe, with more settings.
fn target(more: &str) -> String {
    format!("[[target]]\nbackend = \"probe\"\n{more}\n")
}

/// The digest that a refusal names.
fn digest(said: &str) -> String {
    let (_, rest) = said.split_once("trust --digest ").unwrap_or_else(|| panic!("no digest: {said}"));
    rest.chars().take_while(char::is_ascii_hexdigit).collect()
}

/// Agrees to what is asked for; returns its digest.
#[track_caller]
fn agree(s: &Sandbox) -> String {
    let refused = s.snapback(["snap"]);
    refused.exits(1);
    let digest = digest(&refused.err());
    s.ok(["trust", "--digest", &digest]);
    digest
}
