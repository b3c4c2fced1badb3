//! Redis and Postgres, with the components that anybody could have shipped: added as files,
//! agreed to, and driven against real servers, which the tests start on loopback.

mod laws;
mod postgres;
mod reach;
pub mod redis;
mod together;
mod versions;

use crate::sandbox;
use snapback_tests::{Running, Sandbox, User, is_root, until};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Where the component `name` is checked in.
pub fn component(name: &str) -> String {
    format!("{}/../../plugins/{name}/{name}.wasm", env!("CARGO_MANIFEST_DIR"))
}

/// A sandbox with the component `name` added.
fn with(name: &str) -> Sandbox {
    let s = sandbox();
    s.ok(["backends", "add", &component(name)]);
    s
}

/// A sandbox with the component `name`, one file and the target that `settings` are, agreed to.
fn project(name: &str, settings: String) -> Sandbox {
    let s = with(name);
    s.write("f", "0\n");
    s.write("snapback.toml", settings);
    agree(&s);
    s
}

/// That a run fails with these words, and its command does not start.
#[track_caller]
fn refused(s: &Sandbox, words: &[&str]) {
    let said = s.snapback(["run", "--", "touch", "started"]);
    said.exits(125);
    for word in words {
        said.says(word);
    }
    assert!(!s.has("started"));
}

/// A run of `change`, which an undo takes back, and a redo does again: on a server whose
/// content `record` tells, and in the file `f`, which the run writes 1 to.
#[track_caller]
fn there_and_back(s: &Sandbox, change: &str, record: impl Fn() -> String) {
    let before = record();
    s.run(&format!("echo 1 > f; {change}"));
    let after = record();
    assert_ne!(before, after);
    s.ok(["undo"]);
    assert_eq!((record(), s.read("f")), (before.clone(), "0\n".to_owned()));
    s.ok(["redo"]);
    assert_eq!((record(), s.read("f")), (after, "1\n".to_owned()));
    s.ok(["undo"]);
    assert_eq!(record(), before);
}

/// An undo that is killed: in every other `round` a `moment` after its start, in the others that
/// long after its journal says what it is about to do.
fn killed(s: &Sandbox, round: u64, moment: Duration) {
    if round % 2 == 1 {
        s.cut_short(&["undo"], moment / 8);
        return;
    }
    let mut undo = s.start(["undo"]);
    std::thread::sleep(moment);
    undo.signal(rustix::process::Signal::KILL);
    undo.wait();
}

/// Agrees to what is asked for.
#[track_caller]
fn agree(s: &Sandbox) {
    let said = s.snapback(["trust"]).err();
    let (_, rest) = said.split_once("trust --digest ").unwrap_or_else(|| panic!("no digest: {said}"));
    let digest: String = rest.chars().take_while(char::is_ascii_hexdigit).collect();
    s.ok(["trust", "--digest", &digest]);
}

/// A port that nobody listens at.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|l| l.local_addr()).expect("there is a port").port()
}

/// A directory of its own for a server, which never runs as root.
fn place(s: &Sandbox, name: &str) -> PathBuf {
    let dir = s.dir().join(name);
    std::fs::create_dir(&dir).expect("it can be made");
    server_user().own(&dir);
    dir
}

fn server_user() -> User {
    if is_root() { User::Nobody } else { User::Me }
}

/// Starts a server in `dir`.
fn start(program: &Path, arguments: &[&str], dir: &Path) -> Running {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(dir)
        .env_clear()
        .env("LC_ALL", "C.UTF-8")
        .env("PATH", "/usr/bin:/bin");
    server_user().become_in(&mut command);
    Running::of(&mut command)
}
