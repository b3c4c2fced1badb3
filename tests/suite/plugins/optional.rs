//! What a backend may do beyond what every one does: tell what differs in its own words, and
//! let go of what its snapshots hold outside the store.

use super::{digest, folder};
use crate::{each_user, sandbox};
use snapback_tests::Sandbox;
use std::fs;

/// Copies of the room of a keeper, by absolute path, since the project is to go.
fn removed(s: &Sandbox) {
    keeper(s);
    let toml = s.read("snapback.toml").replace("../room", s.home().join("room").to_str().unwrap());
    s.write("snapback.toml", toml);
    s.ok(["trust", "--digest", &digest(&s.snapback(["snap"]).err())]);
    s.run("echo two > ../room/state");
    assert_eq!(copies(s), "copy-1 ");
}

/// What is kept of projects, so many days after their last use.
fn collect(s: &Sandbox, days: u32) -> snapback_tests::Output {
    s.finish(s.command("sh").current_dir(s.home()).args([
        "-c",
        &format!(
            "touch -d '{days} days ago' \"$XDG_STATE_HOME\"/snapback/roots/*; exec \"$SNAPBACK\" gc --all"
        ),
    ]))
}

fn left(s: &Sandbox) -> String {
    s.finish(s.command("sh").current_dir(s.home()).args(["-c", "ls room | grep copy | tr '\\n' ' '"])).out()
}

#[test]
fn what_a_removed_project_held_goes_with_its_history() {
    each_user(|s| {
        removed(s);
        std::fs::remove_dir_all(s.project()).unwrap();
        collect(s, 29).exits(0).says("dropped 0 histories");
        assert_eq!(left(s), "copy-1 ");
        collect(s, 31).exits(0).says("dropped 1 history").never_says("is not gone");
        assert_eq!(left(s), "");
    });
}

#[test]
fn what_cannot_go_keeps_the_history_of_a_removed_project_for_a_while_and_is_said() {
    let s = sandbox();
    removed(&s);
    std::fs::remove_dir_all(s.project()).unwrap();
    std::fs::write(s.home().join("room/stuck"), "").unwrap();
    let said = collect(&s, 31);
    said.exits(0)
        .says("dropped 0 histories")
        .says("what `keeper` of the removed project")
        .says("the room is stuck");
    said.says("remove `stuck`").says("and its history stays");
    // In the end it goes all the same, and what stays behind is named.
    collect(&s, 91).exits(0).says("dropped 1 history").says("and its history goes all the same");
    assert_eq!(left(&s), "copy-1 ");
}

#[test]
fn a_project_that_was_only_moved_keeps_what_it_holds() {
    let s = sandbox();
    removed(&s);
    let moved = s.home().join("moved");
    std::fs::rename(s.project(), &moved).unwrap();
    collect(&s, 91).exits(0).never_says("is not gone");
    assert_eq!(left(&s), "copy-1 ");
    std::fs::rename(&moved, s.project()).unwrap();
    s.ok(["verify"]);
}

/// A project with a target of the backend that keeps copies beside its file, agreed to.
fn keeper(s: &Sandbox) {
    s.sh("mkdir -p \"$XDG_DATA_HOME/snapback/plugins\" ../room && printf 'a\\nb\\n' > ../room/state");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/components/keeper/keeper.wasm");
    fs::copy(path, folder(s).join("keeper.wasm")).expect("the component for tests is checked in");
    s.write("f", "0\n");
    s.write("snapback.toml", "[[target]]\nbackend = \"keeper\"\nroom = \"../room\"\n");
    s.ok(["trust", "--digest", &digest(&s.snapback(["snap"]).err())]);
}

fn copies(s: &Sandbox) -> String {
    s.sh("cd ../room; ls | grep copy | tr '\\n' ' '")
}

#[test]
fn what_differs_is_told_in_the_backends_words() {
    each_user(|s| {
        keeper(s);
        let run = s.snapback(["run", "--", "sh", "-c", "printf 'a\\nc\\nd\\n' > ../room/state; echo 1 > f"]);
        run.exits(0).says("1 modified, 2 added, 1 deleted");
        let diff = s.ok(["diff"]);
        diff.prints("M f  +1 -1\n").prints("D keeper: b\nA keeper: c\nA keeper: d\n");
        assert!(!diff.out().contains("copy"), "{diff}");
        // Nothing that it says moves the cursor.
        s.ok(["diff", "-p"]).prints("A keeper: c\n  1 bytes [2J\n");
        let json = s.ok(["diff", "--json"]).json();
        let changes = json["changes"].as_array().unwrap();
        assert!(changes.iter().any(|change| change["path"] == "c" && change["kind"] == "added"), "{json}");
        let said = s.ok(["undo"]);
        said.says("A keeper: b").says("D keeper: c").says("D keeper: d");
        assert_eq!(s.read("../room/state"), "a\nb\n");
        s.ok(["diff", "@1", "@0"]).prints("D keeper: b\nA keeper: c\nA keeper: d\n");
    });
}

#[test]
fn a_backend_without_words_keeps_nobody_from_anything() {
    let s = sandbox();
    keeper(&s);
    s.run("echo unspeakable > ../room/state");
    s.ok(["diff"])
        .prints("M keeper: copy\n")
        .says("could not tell what differs")
        .says("there are no words for it");
    s.ok(["undo"]).says("M keeper: copy");
    assert_eq!(s.read("../room/state"), "a\nb\n");
}

#[test]
fn what_no_snapshot_has_is_let_go_of() {
    each_user(|s| {
        keeper(s);
        s.run("echo two > ../room/state");
        // The end of the run and a comparison looked at another state: nothing of that is kept.
        assert_eq!(copies(s), "copy-1 ");
        s.ok(["diff"]);
        s.ok(["undo", "-n"]);
        assert_eq!(copies(s), "copy-1 ");
        s.ok(["undo"]);
        assert_eq!(copies(s), "copy-1 copy-2 ");
        let id = s.ok(["snap", "-m", "another"]).out();
        assert_eq!(copies(s), "copy-1 copy-2 copy-3 ");
        // Unchanged, it is the same copy, which stays while one of its snapshots does.
        let again = s.ok(["snap", "-m", "the same"]).out();
        assert_eq!(copies(s), "copy-1 copy-2 copy-3 ");
        s.ok(["forget", "--yes", again.trim()]);
        assert_eq!(copies(s), "copy-1 copy-2 copy-3 ");
        s.ok(["forget", "--yes", id.trim()]);
        assert_eq!(copies(s), "copy-1 copy-2 ");
        s.ok(["redo"]);
        assert_eq!(s.read("../room/state"), "two\n");
        for id in s.ok(["list", "--json"]).json().as_array().unwrap() {
            s.ok(["forget", "--yes", id["id"].as_str().unwrap()]);
        }
        assert_eq!(copies(s), "");
        assert_eq!(s.ok(["status", "--json"]).json()["releases"].as_array().unwrap().len(), 0);
    });
}

#[test]
fn a_capture_that_fails_half_way_leaves_nothing_behind() {
    let s = sandbox();
    keeper(&s);
    let toml = s.read("snapback.toml");
    s.write(
        "snapback.toml",
        format!("{toml}[[target]]\nname = \"other\"\nbackend = \"keeper\"\nroom = \"../gone\"\n"),
    );
    let refused = s.snapback(["snap"]);
    s.ok(["trust", "--digest", &digest(&refused.err())]);
    s.snapback(["run", "--", "touch", "started"]).fails(125, &["could not capture `other`"]);
    assert_eq!(copies(&s), "");
}

#[test]
fn what_cannot_go_yet_is_pending_and_keeps_nobody_from_anything() {
    let s = sandbox();
    keeper(&s);
    s.run("echo two > ../room/state");
    let id = s.ok(["list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    s.sh("touch ../room/stuck");
    s.ok(["forget", "--yes", &id]).says("is not gone yet").says("the room is stuck");
    assert_eq!(copies(&s).split(' ').next(), Some("copy-1"));
    let pending = s.ok(["status", "--json"]).json();
    assert_eq!(
        (&pending["releases"][0]["target"], &pending["releases"][0]["snapshot"]),
        (&"keeper".into(), &id.clone().into())
    );
    s.ok(["status"])
        .prints(&format!("what `keeper` of the dropped snapshot {id} holds"))
        .prints("the room is stuck");
    // All else goes on, and does not ask for it again.
    let run = s.snapback(["run", "--", "sh", "-c", "echo 1 > f"]);
    run.exits(0);
    assert!(!run.err().contains("dropped snapshot"), "{run}");
    s.ok(["gc"]).says("the room is stuck");
    // Its objects are still there when it can go.
    s.sh("rm ../room/stuck");
    s.ok(["gc"]);
    assert!(!copies(&s).contains("copy-1 "), "{}", copies(&s));
    assert_eq!(s.ok(["status", "--json"]).json()["releases"].as_array().unwrap().len(), 0);
    s.ok(["verify"]);
}

#[test]
fn without_consent_nothing_is_let_go_of() {
    let s = sandbox();
    keeper(&s);
    s.run("echo two > ../room/state");
    let id = s.ok(["list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    s.ok(["trust", "--revoke"]);
    s.ok(["forget", "--yes", &id]).says("you have not agreed");
    assert_eq!(copies(&s), "copy-1 ");
}

#[test]
fn the_law_asks_for_it_and_leaves_nothing_behind() {
    let s = sandbox();
    keeper(&s);
    let file = folder(&s).join("keeper.wasm");
    let room = s.home().join("law");
    let room = room.display();
    s.write(
        "law.toml",
        format!(
            "[target]\nroom = \"{room}\"\n[test]\nsetup = \"mkdir -p {room}; echo one > {room}/state\"\n\
             change = [\"echo two > {room}/state\", \"echo three >> {room}/state\"]\n\
             probe = \"cat {room}/state\"\n"
        ),
    );
    let said = s.snapback(["backends", "test", file.to_str().unwrap(), "--settings", "law.toml"]);
    said.exits(0).prints("kept       what it holds outside the store goes, and no second time");
    // What it stored is gone; only of what was cut short nobody knows.
    let left = s.sh("ls ../law");
    let copies = left.lines().filter(|name| name.starts_with("copy-")).count();
    assert!(left.lines().any(|name| name == "state") && copies <= 10, "{left}");
}
