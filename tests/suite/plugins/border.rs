//! The border, tried from inside: a component has what its settings were given, and
//! nothing else.

use super::{agree, digest, install, target};
use crate::sandbox;
use rustix::process::Signal;
use snapback_tests::{Sandbox, until};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

/// What the probe says when it tries `what`, with these settings, agreed to.
#[track_caller]
pub fn tries(s: &Sandbox, settings: &str, what: &[&str]) -> String {
    let told: Vec<String> = what.iter().map(|told| format!("\"{told}\"")).collect();
    s.write("snapback.toml", target(&format!("{settings}\ndo = [{}]", told.join(", "))));
    agree(s);
    let said = s.finish(s.program().env("TOKEN", "token-value").env("OTHER", "x").args(["snap", "-v"]));
    said.exits(0);
    said.err()
}

#[test]
fn without_a_grant_there_is_nothing() {
    let s = sandbox();
    install(&s);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let said = tries(
        &s,
        "",
        &[
            "look",
            "env secret",
            "entries room",
            &format!("connect {port}"),
            "listen 0",
            "udp",
            "lookup localhost",
            "lookup example.org",
            "exchange address",
            "tree place",
            "program true",
            "see paper",
            "put note x",
        ],
    );
    for expected in [
        "look: dirs [] env [] args 0",
        "env secret: None",
        "entries room: ErrorKind::NotFound",
        &format!("connect {port}: ErrorKind::Other: access-denied"),
        "listen 0: ErrorKind::Other: access-denied",
        "udp: ErrorKind::Other: access-denied",
        "lookup localhost: ErrorKind::Other: access-denied",
        "lookup example.org: ErrorKind::Other: access-denied",
        "exchange address: ErrorKind::Invalid",
        "tree place: ErrorKind::Denied",
        "program true: ErrorKind::Denied",
        "see paper: ErrorKind::Denied",
        "put note x: ErrorKind::Denied",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
}

#[test]
fn a_directory_is_what_was_given_and_not_what_is_around_it() {
    let s = sandbox();
    install(&s);
    s.sh(
        "mkdir -p in/deep && echo inside > in/deep/f && ln -s ../../room/state in/link && ln -s /etc in/etc",
    );
    let said = tries(
        &s,
        "place = \"in\"\nroom = \"../room\"",
        &[
            "look",
            "entries place deep",
            "read place deep/f",
            "read place ../f",
            "read place /etc/hostname",
            "read place link",
            "read place etc/hostname",
            "write place deep/new",
            "write place deep/f",
            "write room new",
            "write room ../new",
        ],
    );
    for expected in [
        "look: dirs [/place /room]",
        "entries place deep: f",
        "read place deep/f: inside",
        "read place ../f: ErrorKind::Denied",
        "read place /etc/hostname: ErrorKind::Denied",
        "read place link: ErrorKind::",
        "read place etc/hostname: ErrorKind::Denied",
        "write place deep/new: ErrorKind::Denied",
        "write place deep/f: ErrorKind::Denied",
        "write room new: done",
        "write room ../new: ErrorKind::Denied",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    assert!(!said.contains("read place link: one"), "{said}");
    assert_eq!(s.read("../room/new"), "written\n");
    assert!(!s.has("../new") && s.read("in/deep/f") == "inside\n");
}

#[test]
fn a_file_is_what_was_given_and_nothing_beside_it() {
    let s = sandbox();
    install(&s);
    s.sh("mkdir in; echo inside > in/f; echo beside > in/g; ln -s g in/link; chmod 640 ../room/state");
    let said = tries(
        &s,
        "paper = \"in/f\"\nnote = \"../room/state\"",
        &[
            "look",
            "see paper",
            "put paper x",
            "unlink paper",
            "see note",
            "put note two",
            "see note",
            "see place",
            "tree paper",
            "program true",
        ],
    );
    for expected in [
        "look: dirs []",
        "see paper: inside",
        "put paper x: ErrorKind::Denied: the setting `paper` allows reading only",
        "unlink paper: ErrorKind::Denied",
        "see note: one",
        "put note two: done",
        "see note: two",
        "see place: ErrorKind::Denied",
        "tree paper: ErrorKind::Denied",
        "program true: ErrorKind::Denied",
    ] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    assert_eq!(s.sh("cat ../room/state; stat -c %a ../room/state; ls -A ../room"), "two640\nstate\n");
    let said = tries(
        &s,
        "paper = \"in/link\"\nnote = \"../room/new\"",
        &["see paper", "see note", "put note x", "unlink note"],
    );
    for expected in
        ["see paper: ErrorKind::Invalid", "see note: nothing", "put note x: done", "unlink note: done"]
    {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
    for own in [".snapback/index", "../../state/snapback/x", "../../data/snapback/plugins/y.wasm"] {
        s.sh("mkdir -p ../../state/snapback");
        s.write("snapback.toml", target(&format!("note = \"{own}\"\ndo = [\"put note x\"]")));
        let mut said = s.snapback(["snap", "-v"]);
        if said.err().contains("--digest") {
            s.ok(["trust", "--digest", &super::digest(&said.err())]);
            said = s.snapback(["snap", "-v"]);
        }
        said.says("reaches snapback's own files");
    }
}

#[test]
fn of_the_environment_there_is_what_a_setting_names() {
    let s = sandbox();
    install(&s);
    let said = tries(&s, "secret = \"TOKEN\"", &["look", "env secret"]);
    assert!(said.contains("env [TOKEN]") && said.contains("env secret: Some(\"token-value\")"), "{said}");
    // A value is no part of what is asked for, nor shown in it.
    s.ok(["trust", "--list"]).prints("reads the variable TOKEN");
}

#[test]
fn a_connection_goes_to_the_granted_address_and_nowhere_else() {
    let s = sandbox();
    install(&s);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let closed = other.local_addr().unwrap().port();
    let server = thread::spawn(move || {
        for _ in 0..2 {
            let (mut stream, _) = listener.accept().unwrap();
            let mut asked = String::new();
            stream.read_to_string(&mut asked).unwrap();
            stream.write_all(asked.to_uppercase().as_bytes()).unwrap();
        }
    });
    for host in ["127.0.0.1", "localhost"] {
        let said = tries(
            &s,
            &format!("address = \"{host}:{port}\""),
            &["exchange address", &format!("connect {closed}"), "listen 0", "udp", "lookup example.org"],
        );
        for expected in [
            "exchange address: HELLO".to_owned(),
            format!("connect {closed}: ErrorKind::Other: access-denied"),
            "listen 0: ErrorKind::Other: access-denied".to_owned(),
            "udp: ErrorKind::Other: access-denied".to_owned(),
            "lookup example.org: ErrorKind::Other: access-denied".to_owned(),
        ] {
            assert!(said.contains(&expected), "{expected}\n{said}");
        }
    }
    server.join().unwrap();
    other.set_nonblocking(true).unwrap();
    assert!(other.accept().is_err(), "somebody connected where nothing was granted");
}

#[test]
fn what_the_host_captures_for_it_is_what_was_given_too() {
    let s = sandbox();
    install(&s);
    s.sh("mkdir -p in ../outside && echo 1 > in/f && ln -s ../outside in/way");
    let said = tries(&s, "place = \"in\"\nroom = \"../room\"", &["tree place", "tree room", "tree do"]);
    for expected in ["tree place: opened", "tree room: opened", "tree do: ErrorKind::Denied"] {
        assert!(said.contains(expected), "{expected}\n{said}");
    }
}

#[test]
fn one_that_waits_for_the_other_end_of_a_fifo_ends_when_asked_to() {
    let s = sandbox();
    install(&s);
    s.sh("mkfifo ../room/fifo");
    s.write("snapback.toml", target("room = \"../room\"\ndo = [\"read room fifo\"]"));
    let digest = digest(&s.snapback(["snap"]).err());
    s.ok(["trust", "--digest", &digest]);
    let mut run = s.start(["run", "--", "touch", "started"]);
    let tasks = format!("/proc/{}/task", run.pid().as_raw_nonzero());
    let waits = |task: std::fs::DirEntry| {
        std::fs::read_to_string(task.path().join("wchan")).is_ok_and(|on| on.contains("wait_for_partner"))
    };
    until("it waits", || std::fs::read_dir(&tasks).is_ok_and(|all| all.flatten().any(waits)));
    run.signal(Signal::INT);
    assert_eq!(run.wait().code(), Some(125));
    assert!(!s.has("started"));
}
