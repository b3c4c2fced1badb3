//! Stores whose files somebody tampered with: links, pipes, devices in their place,
//! records with hostile values. Nothing outside is touched, nothing hangs, nothing is
//! acted on by the terminal.

use crate::{newest, sandbox};
use serde_json::{Value, json};
use snapback_tests::{Output, Record, Sandbox};
use std::fs;

/// More than any command here takes; one that hangs is killed then, and ends with 124.
const PATIENCE: &str = "20";

/// Runs the program, unless it hangs.
fn timed(s: &Sandbox, words: &[&str]) -> Output {
    let mut timeout = s.command("timeout");
    timeout.args([PATIENCE, "sh", "-c", "exec \"$SNAPBACK\" \"$@\"", "snapback"]).args(words);
    s.finish(&mut timeout)
}

/// Asserts that a command ended by itself, and with words when it failed.
#[track_caller]
fn ended(output: &Output) {
    let code = output.code();
    assert!([0, 1, 2, 3, 125].contains(&code), "{output}");
    assert!(!output.err().contains("fault in snapback"), "{output}");
    // What is wrong is data of `verify`, and talk of all others.
    if code != 0 && code != 3 && !output.line.ends_with("verify") {
        assert!(output.err().contains("hint: "), "{output}");
    }
}

const NAMES: [&str; 15] = [
    "packs",
    "snapshots",
    "tmp",
    "cache",
    "running",
    "aside",
    "saved",
    "lock",
    "id",
    "format",
    "birth",
    "timeline",
    "index",
    "journal",
    "uncollected",
];

/// A project with two runs, and a victim beside it.
fn victim() -> Sandbox {
    let s = sandbox();
    s.write("f", "0");
    s.run("echo A > f; mkdir -p d; echo 1 > d/g");
    s.run("echo B > f");
    s.sh("mkdir -p ../victim/sub; echo mine > ../victim/sub/f; echo mine > ../victim/file");
    s
}

#[test]
fn links_and_pipes_in_place_of_the_stores_files_lead_nowhere() {
    let s = victim();
    let before = Record::take(&s.home().join("victim"));
    s.sh("cp -a . ../whole");
    for name in NAMES {
        for place in ["ln -s ../../victim", "ln -s ../../victim/file", "ln -s nowhere", "mkfifo"] {
            let command = match place {
                "mkfifo" => format!("mkfifo .snapback/{name}"),
                link => format!("{link} .snapback/{name}"),
            };
            s.sh(&format!("rm -rf .snapback/{name}; {command}"));
            for words in [&["list"][..], &["undo"], &["snap", "-m", "x"]] {
                ended(&timed(&s, words));
            }
            assert_eq!(Record::take(&s.home().join("victim")).0, before.0, "{name}: {place}");
            s.sh("rm -rf .snapback; cp -a ../whole/.snapback .; cp -a ../whole/f f");
        }
    }
    // Whole again, it works as before.
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "A\n");
}

#[test]
fn the_same_in_what_belongs_to_a_snapshot_and_in_the_place_of_the_store() {
    let s = victim();
    let before = Record::take(&s.home().join("victim"));
    let id = newest(&s);
    s.sh("cp -a . ../whole");
    let pack = s.sh("ls .snapback/packs | head -1").trim_end().to_owned();
    let places = [
        format!("snapshots/{id}"),
        format!("snapshots/{id}/meta.json"),
        format!("snapshots/{id}/end.json"),
        format!("snapshots/{id}/changes"),
        format!("packs/{pack}"),
        format!("running/{id}"),
        "cache/tick".to_owned(),
        "cache/tree-path.stat".to_owned(),
        String::new(),
    ];
    for name in &places {
        for place in ["ln -s ../../../victim/file", "ln -s ../../../victim", "mkfifo", "mkdir"] {
            let to = format!(".snapback/{name}");
            let to = to.trim_end_matches('/');
            s.sh(&format!("rm -rf {to}; mkdir -p $(dirname {to}); {place} {to}"));
            for words in [&["list"][..], &["undo"], &["snap", "-m", "x"], &["verify"]] {
                ended(&timed(&s, words));
            }
            assert_eq!(Record::take(&s.home().join("victim")).0, before.0, "{name}: {place}");
            s.sh("rm -rf .snapback; cp -a ../whole/.snapback .; cp -a ../whole/f f");
        }
    }
    s.ok(["undo"]);
}

#[test]
fn a_foreign_store_full_of_tricks_is_looked_at_without_harm() {
    let s = victim();
    let before = Record::take(&s.home().join("victim"));
    // As if it had come from elsewhere.
    s.sh("rm -rf \"$XDG_STATE_HOME\"/snapback; cp -a . ../sent; rm -rf .snapback; cp -a ../sent/.snapback .");
    s.ok(["list"]).says("is foreign");
    for name in NAMES {
        for place in ["ln -s ../../victim", "mkfifo"] {
            s.sh(&format!("rm -rf .snapback/{name}; {place} .snapback/{name}"));
            for words in
                [&["list"][..], &["show", "@0"], &["verify"], &["undo"], &["trust", "--store", "--yes"]]
            {
                ended(&timed(&s, words));
            }
            timed(&s, &["trust", "--store", "--yes"]).exits(1);
            assert_eq!(Record::take(&s.home().join("victim")).0, before.0, "{name}: {place}");
            s.sh("rm -rf .snapback; cp -a ../sent/.snapback .");
        }
    }
    s.ok(["trust", "--store", "--yes"]);
    s.ok(["undo"]);
}

/// Writes the record of `id` anew, with a right checksum.
fn reseal(s: &Sandbox, id: &str, change: impl FnOnce(&mut Value)) {
    let path = s.project().join(format!(".snapback/snapshots/{id}/meta.json"));
    let mut data = serde_json::from_slice::<Value>(&fs::read(&path).unwrap()).unwrap()["data"].take();
    change(&mut data);
    let text = serde_json::to_string(&data).unwrap();
    fs::write(s.dir().join("tmp/data"), &text).unwrap();
    let sum = s.sh("sha256sum < ../../tmp/data | cut -d' ' -f1");
    fs::remove_file(&path).unwrap();
    fs::write(&path, format!("{{\"sha256\":\"{}\",\"data\":{text}}}", sum.trim_end())).unwrap();
}

#[test]
fn what_a_record_says_does_nothing_to_the_terminal() {
    let s = victim();
    let id = newest(&s);
    let evil = "\u{1b}]0;x\u{7}\u{1b}[2J\u{9b}31m\r\u{202e}evil";
    reseal(&s, &id, |data| {
        data["message"] = json!(evil);
        data["command"] = json!(["sh", evil, {"base64": "G1sySv8="}]);
        data["root"] = json!(evil);
        data["skipped"] = json!([evil]);
        let target = &mut data["targets"][0];
        target["omitted"] = json!([[evil, evil]]);
        target["target"]["settings"] = json!({"ignore": evil, evil: evil});
        let mut second = target.clone();
        second["target"]["name"] = json!(evil);
        second["target"]["backend"] = json!(evil);
        data["targets"].as_array_mut().unwrap().push(second);
    });
    for words in [
        &["list"][..],
        &["list", "--color", "always"],
        &["show", "@0"],
        &["status"],
        &["diff", "@0"],
        &["diff", "@1", "@0"],
        &["undo", "-n"],
        &["undo"],
        &["redo"],
        &["restore", "@0"],
        &["verify"],
        &["gc", "--keep", "1", "-n"],
        &["forget", "--yes", "@0"],
    ] {
        let output = s.snapback(words);
        ended(&output);
        let text = output.out() + &output.err();
        let acts = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
        let plain = if words.contains(&"always") {
            text.replace("\u{1b}[2m", "").replace("\u{1b}[0m", "")
        } else {
            text
        };
        assert!(!plain.contains(acts), "{words:?}: {plain:?}");
    }
    s.snapback(["show", "@0"]).exits(0);
}

#[test]
fn a_target_that_points_out_of_the_project_reaches_nothing() {
    let outside = ["../victim", "/", "..", "d/../../victim", "link"];
    for value in outside {
        let s = victim();
        s.sh("ln -s ../victim link");
        let before = Record::take(&s.home().join("victim"));
        let id = newest(&s);
        reseal(&s, &id, |data| data["targets"][0]["target"]["settings"] = json!({"path": value}));
        for words in [&["undo"][..], &["restore", "@0"], &["diff", "@0"]] {
            s.snapback(words).exits(1).says("outside the project").says("you have not agreed").says("hint: ");
        }
        // No path of the project is in it.
        s.snapback(["restore", "@0", "--path", "f"]).fails(1, &["f is in no target"]);
        s.ok(["list"]);
        s.ok(["show", "@0"]);
        assert_eq!(Record::take(&s.home().join("victim")).0, before.0, "{value}");
        assert_eq!(s.read("f"), "B\n");
        // The step before it is as good as it was.
        s.ok(["restore", "@1"]);
    }
}
