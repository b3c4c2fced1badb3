//! The program as people use it: real commands in a hermetic sandbox, looked at with
//! other people's tools. A file for each theme; nothing here knows what is inside.

mod agents;
mod alone;
mod asked;
mod attributes;
mod bad_input;
mod configuration;
mod crafted;
mod damage;
mod displaced;
mod docker;
mod empty;
mod ends;
mod examples;
mod foreign;
mod full_disk;
mod git;
mod habits;
mod history;
mod in_part;
mod interrupted;
mod interval;
mod json;
mod kills;
mod kinds;
mod lazy;
mod main_job;
mod moving;
mod network;
mod never_destroy;
mod not_covered;
mod odd_store;
mod outlives;
mod plugins;
mod pty;
mod quota;
mod reading;
mod replaced;
mod retention;
mod review;
mod selection;
mod servers;
mod sharing;
mod signals;
mod sqlite;
mod status;
mod store;
mod terminal;
mod times;
mod together;
mod uncovered;
mod wrapped;

use snapback_tests::{Record, Sandbox, User, assert_back, users};

/// The program that cargo built for this test.
const PROGRAM: &str = env!("CARGO_BIN_EXE_snapback");

/// A sandbox of the user who runs the tests.
fn sandbox() -> Sandbox {
    Sandbox::new(PROGRAM, User::Me)
}

/// Runs `test` in a sandbox of its own for every user that it can be run as.
fn each_user(test: impl Fn(&Sandbox)) {
    for user in users() {
        test(&Sandbox::new(PROGRAM, user));
    }
}

/// The ID of the newest snapshot, as `list --json` has it.
#[track_caller]
fn newest(sandbox: &Sandbox) -> String {
    let list = sandbox.ok(["list", "--json"]).json();
    list[0]["id"].as_str().expect("a snapshot has an ID").to_owned()
}

/// A run of `change`, which an undo takes back, and a redo does again. Returns what was
/// there after the first undo.
#[track_caller]
fn there_and_back(s: &Sandbox, change: &str) -> Record {
    let before = Record::take(&s.project());
    s.run(change);
    let changed = Record::take(&s.project());
    s.ok(["undo"]);
    let undone = Record::take(&s.project());
    assert_back(&before, &changed, &undone);
    s.ok(["redo"]);
    assert_back(&changed, &undone, &Record::take(&s.project()));
    s.ok(["undo"]);
    assert_back(&before, &changed, &Record::take(&s.project()));
    undone
}
