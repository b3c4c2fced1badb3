//! Components that were built for version 0.1 of the contract, once and for all: they run.

use super::{agree, digest, folder, target};
use crate::sandbox;
use snapback_tests::Sandbox;
use std::fs;

fn install(s: &Sandbox, name: &str) {
    s.sh("mkdir -p \"$XDG_DATA_HOME/snapback/plugins\" ../room && printf 'one\\n' > ../room/state");
    let frozen = format!("{}/../../tests/components/frozen/{name}-0.1.wasm", env!("CARGO_MANIFEST_DIR"));
    fs::copy(frozen, folder(s).join(format!("{name}.wasm"))).expect("frozen components are checked in");
}

#[test]
fn a_frozen_component_reaches_what_it_was_given() {
    let s = sandbox();
    install(&s, "probe");
    s.sh("mkdir in; echo inside > in/f");
    let settings = "place = \"in\"\nnote = \"../room/state\"\nprogram = \"/bin/sh\"\nsecret = \"TOKEN\"\n\
        do = [\"look\", \"read place f\", \"tree place\", \"put note two\", \"see note\", \"env secret\", \"listen 0\"]";
    s.write("snapback.toml", target(settings));
    agree(&s);
    let said = s.finish(s.program().env("TOKEN", "token-value").args(["snap", "-v"]));
    said.exits(0);
    for expected in [
        "look: dirs [/place] env [TOKEN]",
        "read place f: inside",
        "tree place: opened",
        "put note two: done",
        "see note: two",
        "env secret: Some(\"token-value\")",
        "listen 0: ErrorKind::Other: access-denied",
    ] {
        said.says(expected);
    }
}

#[test]
fn a_frozen_component_tells_puts_back_and_lets_go() {
    let s = sandbox();
    install(&s, "keeper");
    s.write("snapback.toml", "[[target]]\nbackend = \"keeper\"\nroom = \"../room\"\n");
    s.ok(["trust", "--digest", &digest(&s.snapback(["snap"]).err())]);
    s.run("echo two > ../room/state");
    s.ok(["diff"]).prints("D keeper: one\nA keeper: two\n");
    s.ok(["undo"]);
    assert_eq!(s.read("../room/state"), "one\n");
    for id in s.ok(["list", "--json"]).json().as_array().unwrap() {
        s.ok(["forget", "--yes", id["id"].as_str().unwrap()]);
    }
    assert_eq!(s.sh("ls ../room"), "state\n");
}
