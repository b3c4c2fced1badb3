//! Backends as files: put on the shelf, taken off, looked at, tried against the law.

use super::{folder, install, probe};
use crate::{each_user, sandbox};
use snapback_tests::{Sandbox, Screen, have, until};
use std::fs;

/// A settings file for `backends test`.
fn settings(s: &Sandbox, target: &str, change: &str) {
    s.write(
        "law.toml",
        format!(
            "[target]\nroom = \"room\"\n{target}\n[test]\nsetup = \"mkdir room; echo one > room/state\"\n\
             change = [{change}]\nprobe = \"cat room/state\"\n"
        ),
    );
}

const CHANGES: &str = "\"echo two > room/state\", \"echo three >> room/state\"";

fn component(s: &Sandbox) {
    fs::write(s.home().join("x.wasm"), probe()).unwrap();
}

#[test]
fn a_backend_is_added_used_and_removed() {
    each_user(|s| {
        component(s);
        s.ok(["backends", "add", "../x.wasm"]).says("added probe 0.1.0").says("asks for room (dir)");
        assert_eq!(fs::read(folder(s).join("probe.wasm")).unwrap(), probe());
        let list = s.ok(["backends", "--json"]).json();
        let item = list.as_array().unwrap().iter().find(|item| item["name"] == "probe").unwrap();
        assert_eq!((&item["status"], &item["version"]), (&"ready".into(), &"0.1.0".into()));
        s.ok(["backends", "show", "probe"]).prints("careless (bool").prints("wasi:filesystem");
        s.ok(["backends", "add", "../x.wasm"]).says("replaced probe 0.1.0");
        s.ok(["backends", "remove", "probe"]).says("removed");
        s.snapback(["backends", "remove", "probe"]).fails(1, &["there is no backend `probe`"]);
        s.snapback(["backends", "remove", "tree"]).fails(2, &["came inside the program"]);
    });
}

#[test]
fn what_is_no_backend_is_not_added() {
    let s = sandbox();
    s.write("text.wasm", "no component");
    s.write("module.wasm", b"\0asm\x01\0\0\0");
    for (file, word) in [
        ("text.wasm", "no WebAssembly component"),
        ("module.wasm", "component"),
        ("gone.wasm", "no such file"),
    ] {
        let said = s.snapback(["backends", "add", file]);
        assert!(said.code() > 0, "{said}");
        said.says(word).says(file.trim_end_matches(".wasm"));
    }
    assert!(!folder(&s).exists() || fs::read_dir(folder(&s)).unwrap().next().is_none());
}

#[test]
fn a_name_that_came_with_the_program_is_nobody_elses() {
    let s = sandbox();
    s.snapback(["backends", "new", "tree", "--lang", "rust"]).fails(2, &["came with snapback"]);
    assert!(!s.has("tree"));
    let own = concat!(env!("CARGO_MANIFEST_DIR"), "/../../plugins/tree/tree.wasm");
    s.snapback(["backends", "add", own]).fails(2, &["calls itself `tree`", "would hide it"]);
    assert!(!folder(&s).join("tree.wasm").exists());
}

#[test]
fn what_each_target_was_granted_is_listed() {
    let s = sandbox();
    install(&s);
    s.write("snapback.toml", super::target("room = \"../room\""));
    let granted = || s.ok(["backends", "--json"]).json();
    let of = |list: &serde_json::Value| {
        let item = list.as_array().unwrap().iter().find(|item| item["name"] == "probe").unwrap();
        item["granted"]["probe"].to_string()
    };
    assert_eq!(of(&granted()), "[]");
    super::agree(&s);
    assert!(of(&granted()).contains("reads and writes ../room"), "{}", of(&granted()));
}

#[test]
fn all_that_there_is_to_know_is_listed_on_a_terminal_too() {
    let s = sandbox();
    install(&s);
    s.write("snapback.toml", super::target("room = \"../room\""));
    fs::write(folder(&s).join("garbage.wasm"), "no component").unwrap();
    let digest = s.sh("sha256sum < \"$XDG_DATA_HOME/snapback/plugins/probe.wasm\"");
    let list = || s.ok(["backends"]);
    list().prints("nothing before you agree to it").prints("it is no WebAssembly component");
    super::agree(&s);
    let own = "target probe: the component probe 0.1.0 from ";
    list()
        .prints(&digest[..12])
        .prints("wants file, process (leaves the sandbox), tree, wasi:filesystem, wasi:sockets, place (dir)")
        .prints(own)
        .prints("room: reads and writes ../room, outside the project by `..`");
    s.ok(["backends", "show", "probe"])
        .prints(own)
        .prints("room: reads and writes ../room")
        .prints(&digest[..64]);
    let json = s.ok(["backends", "--json"]).json();
    let of = |name: &str| json.as_array().unwrap().iter().find(|item| item["name"] == name).unwrap().clone();
    assert_eq!(of("garbage")["status"], "broken: it is no WebAssembly component");
    assert_eq!(of("garbage")["digest"].as_str().unwrap().len(), 64);
    if !have("tmux") || !have("bash") {
        return;
    }
    let t = Screen::new(&s, 60, 50);
    t.line("\"$SNAPBACK\" backends; echo code-$?");
    let shown = t.until("code-0");
    let joined: String = shown.lines().map(|line| line.trim_start().to_owned() + " ").collect();
    for text in ["wants file, process (leaves the sandbox),", "room: reads and writes ../room, outside the"] {
        assert!(joined.contains(text), "{text}\n{shown}");
    }
}

#[test]
fn who_stops_a_test_of_the_law_leaves_nothing_behind() {
    let s = sandbox();
    component(&s);
    settings(&s, "", CHANGES);
    let text = s.read("law.toml").replace("cat room/state", "cat room/state; : > ../../probed; sleep 600");
    s.write("law.toml", text);
    let mut test = s.start(["backends", "test", "../x.wasm", "--settings", "law.toml"]);
    until("the probe", || s.dir().join("tmp/probed").exists());
    assert_eq!(s.sh("ls \"$TMPDIR\" | grep -c backend-test").trim(), "1");
    rustix::process::kill_process_group(test.pid(), rustix::process::Signal::INT).unwrap();
    assert!(!test.wait().success());
    assert_eq!(s.sh("ls \"$TMPDIR\" | grep -c backend-test || true").trim(), "0");
}

#[test]
fn a_backend_that_keeps_the_law_is_told_so() {
    each_user(|s| {
        component(s);
        settings(s, "", CHANGES);
        let verdicts = s.ok(["backends", "test", "../x.wasm", "--settings", "law.toml", "--json"]).json();
        let verdicts = verdicts.as_array().unwrap();
        assert!(verdicts.len() >= 9, "{verdicts:?}");
        for verdict in verdicts {
            assert_eq!(verdict["outcome"], "kept", "{verdict}");
        }
    });
}

#[test]
fn a_broken_law_is_named_with_what_was_seen() {
    let s = sandbox();
    component(&s);
    settings(&s, "careless = true", CHANGES);
    let said = s.snapback(["backends", "test", "../x.wasm", "--settings", "law.toml"]);
    said.exits(1);
    said.prints("broken     what changed in between is left alone").prints("without a word");
    said.prints("kept       a restore brings back what was stored");
}

#[test]
fn what_cannot_be_checked_is_said() {
    let s = sandbox();
    component(&s);
    s.snapback(["backends", "test", "../x.wasm"])
        .exits(3)
        .prints("kept       it says the same")
        .prints("unchecked  a restore brings back what was stored")
        .prints("no `[test]`");
    settings(&s, "", "\"true\", \"echo two > room/state\"");
    s.snapback(["backends", "test", "../x.wasm", "--settings", "law.toml"])
        .exits(3)
        .prints("`probe` sees nothing of change 1");
    settings(&s, "careless = \"perhaps\"", CHANGES);
    s.snapback(["backends", "test", "../x.wasm", "--settings", "law.toml"])
        .fails(2, &["`careless` is true or false"]);
    settings(&s, "", "\"false\"");
    s.snapback(["backends", "test", "../x.wasm", "--settings", "law.toml"])
        .fails(1, &["the command `false` failed"]);
    s.write("law.toml", "[target]\nrom = \"room\"\n");
    s.snapback(["backends", "test", "../x.wasm", "--settings", "law.toml"]).fails(2, &["no setting `rom`"]);
    s.write("law.toml", "[tets]\n");
    s.snapback(["backends", "test", "../x.wasm", "--settings", "law.toml"]).fails(2, &["law.toml", "tets"]);
}

#[test]
fn targets_are_proposed_for_files_that_a_backend_knows_and_nothing_is_switched_on() {
    let s = sandbox();
    s.sh("mkdir -p \"$XDG_DATA_HOME/snapback/plugins\" deploy node_modules
        touch deploy/volumes.list node_modules/volumes.list
        printf 'services:\\n  db:\\n    volumes: [pgdata:/v]\\nvolumes:\\n  pgdata:\\n  far:\\n    external: true\\n    name: real\\n' > compose.yaml
        printf 'volumes: {cache: }\\n' > deploy/docker-compose.yml");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/components/holder/holder.wasm");
    std::fs::copy(path, folder(&s).join("holder.wasm")).expect("the component for tests is checked in");
    s.ok(["init"]).says("4 targets proposed");
    let text = s.read("snapback.toml");
    for (backend, name, volume) in [
        ("docker-volume", "pgdata", "pgdata"),
        ("docker-volume", "far", "real"),
        ("docker-volume", "cache", "cache"),
        ("holder", "listed", "deploy_volumes.list"),
    ] {
        let lines =
            format!("#[[target]]\n#name = \"{name}\"\n#backend = \"{backend}\"\n#volume = \"{volume}\"\n");
        assert!(text.contains(&lines), "{lines}{text}");
    }
    // Nobody was asked for anything, and no engine is needed.
    s.run("true");
    s.ok(["status"]).prints("targets   tree\n");
}

#[test]
fn what_a_backend_does_not_carry_is_shown() {
    let s = sandbox();
    let shown = s.ok(["backends", "show", "docker-volume"]);
    shown.prints("does not carry").prints("inode flags").prints("`trusted.*`").prints("`lies-in`");
    let json = s.ok(["backends", "show", "docker-volume", "--json"]).json();
    assert!(json["limits"].as_array().unwrap().len() >= 4, "{json}");
}
