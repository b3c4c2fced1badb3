//! The documents that programs read: one each, with the keys that were promised.

use crate::{newest, sandbox};
use serde_json::Value;
use snapback_tests::Output;
use std::collections::BTreeSet;

fn keys(value: &Value) -> BTreeSet<&str> {
    value.as_object().expect("an object").keys().map(String::as_str).collect()
}

#[track_caller]
fn has_keys(value: &Value, wanted: &[&str]) {
    for key in wanted {
        assert!(keys(value).contains(key), "no {key} in {value:#}");
    }
}

#[test]
fn list_is_an_array_newest_first() {
    let s = sandbox();
    s.write("f", "0");
    s.sh("mkdir node_modules; touch node_modules/x");
    s.snapback(["run", "-m", "why", "--", "sh", "-c", "echo A > f; exit 3"]).exits(3);
    s.ok(["snap", "-m", "by hand"]);
    s.write("f", "edited");
    s.ok(["undo"]);
    let list = s.ok(["list", "--json"]).json();
    let list = list.as_array().unwrap();
    let kinds: Vec<&str> = list.iter().map(|snap| snap["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["pre-undo", "manual", "run"]);
    let promised = [
        "id",
        "kind",
        "run",
        "state",
        "created",
        "ended",
        "message",
        "command",
        "exit_code",
        "root",
        "targets",
        "excluded",
        "bytes_added",
    ];
    for snap in list {
        has_keys(snap, &promised);
        for key in keys(snap) {
            assert!(key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{key}");
        }
    }
    let run = &list[2];
    assert_eq!(run["command"], serde_json::json!(["sh", "-c", "echo A > f; exit 3"]));
    assert_eq!(
        (&run["message"], &run["exit_code"], &run["state"]),
        (&"why".into(), &3.into(), &"ended".into())
    );
    assert_eq!(run["root"], s.project().to_string_lossy().as_ref());
    assert!(run["ended"].as_str().unwrap() >= run["created"].as_str().unwrap());
    assert!(run["bytes_added"].as_u64().unwrap() > 0);
    has_keys(&run["targets"][0], &["name", "backend", "bytes"]);
    has_keys(&run["excluded"][0], &["target", "path", "reason", "files"]);
    assert_eq!(
        (&run["excluded"][0]["path"], &run["excluded"][0]["reason"]),
        (&"node_modules".into(), &"regenerable".into())
    );
    assert!(list[1]["command"].is_null() && list[1]["exit_code"].is_null());
}

#[test]
fn diff_undo_redo_restore_and_backends() {
    let s = sandbox();
    s.write("same", "0");
    s.write("changed", "0");
    s.write("gone", "0");
    s.run("echo A > changed; rm gone; echo A > new");
    let run = newest(&s);
    let diff = s.ok(["diff", "--json"]).json();
    has_keys(&diff, &["from", "to", "changes"]);
    assert_eq!(diff["from"], run.as_str());
    let mut changes: Vec<(&str, &str)> = diff["changes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|c| {
            assert_eq!(c["target"], "tree");
            (c["path"].as_str().unwrap(), c["kind"].as_str().unwrap())
        })
        .collect();
    changes.sort_unstable();
    assert_eq!(changes, [("changed", "modified"), ("gone", "deleted"), ("new", "added")]);
    s.snapback(["diff", "--json", "--exit-code"]).exits(1).json();

    for (verb, to) in [("undo", Some(run.as_str())), ("redo", None)] {
        let done = s.ok([verb, "--json"]).json();
        has_keys(&done, &["restored_to", "saved_as", "changes", "not_restored"]);
        if let Some(to) = to {
            assert_eq!(done["restored_to"], to);
        }
        assert!(done["saved_as"].is_string(), "{done}");
        assert_eq!(done["not_restored"], serde_json::json!([]));
    }
    let done = s.ok(["restore", &run, "--path", "gone", "--json"]).json();
    has_keys(&done, &["restored_to", "saved_as", "changes", "not_restored"]);

    let backends = s.ok(["backends", "--json"]).json();
    let tree = backends.as_array().unwrap().iter().find(|b| b["name"] == "tree").unwrap();
    has_keys(tree, &["name", "version", "origin", "digest", "wants", "granted", "targets", "status"]);
    assert_eq!(s.ok(["backends", "list", "--json"]).json(), backends);
    s.ok(["backends", "show", "tree"]);
}

#[test]
fn every_reporting_command_prints_one_document() {
    let s = sandbox();
    s.write("f", "0");
    s.run("echo A > f");
    let id = newest(&s);
    for words in [
        &["status", "--json"][..],
        &["show", &id, "--json"],
        &["verify", "--json"],
        &["gc", "-n", "--json"],
        &["gc", "--json"],
        &["snap", "--json"],
        &["undo", "-n", "--json"],
        &["undo", "--json"],
        &["redo", "-n", "--json"],
        &["redo", "--json"],
        &["restore", &id, "-n", "--json"],
        &["forget", "--yes", &id, "--json"],
    ] {
        let output = s.ok(words);
        let document = output.json();
        assert!(document.is_object() || document.is_array(), "{output}");
    }
}

/// The error that `output` ends with, and its exit code; standard output stays empty.
#[track_caller]
fn error(output: &Output, code: i32) -> Value {
    output.exits(code);
    assert!(output.stdout.is_empty(), "{output}");
    let said = output.err();
    let line = said.lines().last().unwrap_or_default();
    let document: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("not JSON: {e}\n{output}"));
    assert_eq!(keys(&document), ["error"].into());
    assert_eq!(keys(&document["error"]), ["hint", "kind", "message"].into());
    document["error"].clone()
}

#[test]
fn an_error_is_a_line_of_json_on_standard_error() {
    let s = sandbox();
    let told = error(&s.snapback(["undo", "--json"]), 1);
    assert_eq!(told["kind"], "not-found");
    assert!(told["message"].as_str().unwrap().contains("no snapshots"), "{told}");
    assert!(told["hint"].as_str().unwrap().contains("snapback snap"), "{told}");
    s.run("echo A > f");
    assert_eq!(error(&s.snapback(["show", "zzzz", "--json"]), 1)["kind"], "not-found");
    assert_eq!(error(&s.snapback(["diff", "zzzz", "--json", "--exit-code"]), 2)["kind"], "not-found");
    // What makes no sense, to the parser or after it.
    for words in [&["--json", "unod"][..], &["list", "--json", "--al"], &["gc", "--keep", "x", "--json"]] {
        let told = error(&s.snapback(words), 2);
        assert_eq!(told["kind"], "invalid", "{told}");
    }
    assert!(error(&s.snapback(["--json", "unod"]), 2)["hint"].as_str().unwrap().contains("undo"));
    assert_eq!(error(&s.snapback(["run", "--json", "--", "true"]), 125)["kind"], "invalid");
    // What is the command's own is no wish of the user's.
    s.snapback(["run", "--al", "--", "x", "--json"]).exits(2).says("snapback: ");
    s.write("snapback.toml", "[snapshot]\nignor = []\n");
    assert_eq!(error(&s.snapback(["snap", "--json"]), 2)["hint"], "did you mean `ignore`?");
}

#[test]
fn the_report_of_a_run_says_why_the_command_was_not_started() {
    let s = sandbox();
    let report = || -> Value { serde_json::from_str(&s.read("../report")).unwrap() };
    let run = |words: &[&str], code| {
        s.sh("rm -f ../report");
        s.snapback([&["run", "--report", "../report"], words].concat()).exits(code);
        let told = report();
        assert_eq!(told["exit_code"], code, "{told}");
        told
    };
    assert!(run(&["--", "true"], 0)["error"].is_null());
    let told = run(&["--", "no-such-command-here"], 127);
    assert!(told["error"]["message"].as_str().unwrap().contains("no-such-command-here"), "{told}");
    assert!(told["id"].is_null() && told["snapshot"].is_null() && told["changes"].is_null(), "{told}");
    s.sh("printf '#!/no/such/interpreter\\n' > script; chmod +x script");
    let told = run(&["--", "./script"], 127);
    assert!(told["error"]["message"].as_str().unwrap().contains("first line"), "{told}");
    assert_eq!(told["id"], newest(&s).as_str());
    s.write("snapback.toml", "[snapshot]\nignor = []\n");
    let told = run(&["--", "touch", "ran"], 125);
    assert_eq!((&told["error"]["kind"], s.has("ran")), (&"invalid".into(), false), "{told}");
    assert_eq!(told["error"]["hint"], "did you mean `ignore`?");
}

#[test]
fn init_says_what_it_wrote() {
    let s = sandbox();
    let told = s.ok(["init", "--json"]).json();
    let path = s.project().join("snapback.toml");
    assert_eq!(told, serde_json::json!({"path": path.to_str().unwrap(), "databases": 0, "proposed": 0}));
    assert_eq!(error(&s.snapback(["init", "--json"]), 2)["kind"], "invalid");
}

#[test]
fn what_was_edited_after_the_run_is_told_apart() {
    let s = sandbox();
    s.write("by-run", "0");
    s.write("by-both", "0");
    s.write("by-hand", "0");
    s.run("echo A > by-run; echo A > by-both; touch made");
    s.write("by-both", "edited");
    s.write("by-hand", "edited");
    let of = |report: &Value| -> Vec<String> {
        let changes = report["changes"].as_array().unwrap().iter();
        changes.map(|c| format!("{} {}", c["path"].as_str().unwrap(), c["by"].as_str().unwrap())).collect()
    };
    let told = ["by-both later", "by-hand later", "by-run run", "made run"];
    assert_eq!(of(&s.ok(["diff", "--json"]).json()), told);
    assert_eq!(of(&s.ok(["undo", "--path", "by-hand", "-n", "--json"]).json()), ["by-hand later"]);
    s.ok(["diff"]).prints("M by-hand (changed after the run)  +1 -1\nM by-run  +1 -1\n");
    assert_eq!(of(&s.ok(["undo", "--json"]).json()), told);
    // Between two snapshots there is no present to tell apart.
    let between = s.ok(["diff", &newest(&s), "@1", "--json"]).json();
    assert!(between["changes"].as_array().unwrap().iter().all(|c| c["by"].is_null()));
}

#[test]
fn the_report_of_a_run_has_the_same_keys_whatever_became_of_it() {
    let s = sandbox();
    let report = |words: &[&str], code| -> Value {
        s.sh("rm -f ../report");
        s.snapback([&["run", "--report", "../report"], words].concat()).exits(code);
        serde_json::from_str(&s.read("../report")).unwrap()
    };
    let keys = |report: &Value| report.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let usual = report(&["--", "true"], 0);
    let failed = report(&["--undo-on-failure", "--", "sh", "-c", "echo 1 > f; exit 7"], 7);
    let missing = report(&["--", "nosuch"], 127);
    assert!(!s.has("f"));
    for other in [&failed, &missing] {
        assert_eq!(keys(&usual), keys(other));
    }
    assert_eq!(
        (&usual["undone"], &failed["undone"], &missing["git"]),
        (&Value::Null, &true.into(), &Value::Null)
    );
    let docs = include_str!("../../docs/USE.md");
    for key in keys(&usual) {
        assert!(docs.contains(&format!("`{key}`")), "{key} is documented");
    }
}
