//! What makes no sense, or cannot be done, is answered with a sentence and a hint.

use crate::{each_user, newest, sandbox};
use snapback_tests::Sandbox;
use std::fs;

/// A sandbox with two snapshots.
fn with_two(s: &Sandbox) -> [String; 2] {
    s.write("f", "0");
    s.run("echo A > f");
    let first = newest(s);
    s.run("echo B > f");
    [first, newest(s)]
}

#[test]
fn no_snapshot_yet() {
    let s = sandbox();
    for command in [&["undo"][..], &["redo"], &["show", "@0"], &["restore", "@0"], &["cat", "@0", "f"]] {
        s.snapback(command).fails(1, &[]);
    }
    s.snapback(["undo"]).fails(1, &["no snapshots"]);
    assert_eq!(s.ok(["list", "--json"]).json(), serde_json::json!([]));
    assert!(!s.has(".snapback"), "looking makes no store");
}

#[test]
fn an_unknown_id() {
    let s = sandbox();
    with_two(&s);
    for id in ["zzzz", "20010101-000000-0000", "@7", "@x", "", "../../etc/passwd", "-1"] {
        for verb in ["show", "restore", "diff", "forget"] {
            let output = s.snapback([verb, "--", id]);
            let code = output.code();
            assert!(code == 1 || code == 2, "{output}");
            output.fails(code, &[]);
        }
    }
    s.snapback(["show", "zzzz"]).fails(1, &["zzzz"]);
}

#[test]
fn an_ambiguous_id() {
    let s = sandbox();
    let [a, b] = with_two(&s);
    let common: String = a.chars().zip(b.chars()).take_while(|(x, y)| x == y).map(|(x, _)| x).collect();
    assert!(common.len() >= 2, "two snapshots of one century: {a} {b}");
    let output = s.snapback(["show", &common]);
    output.fails(2, &[&common]).says(&a).says(&b);
    assert!(s.ok(["show", &a]).out().contains(&a));
    assert!(s.ok(["show", &a[16..]]).out().contains(&a), "the last four digits are enough");
}

#[test]
fn a_project_that_is_a_file() {
    let s = sandbox();
    s.write("file", "x");
    for flag in ["--root", "-C"] {
        s.snapback([flag, "file", "run", "--", "true"]).fails(125, &["file", "director"]);
        s.snapback([flag, "file", "snap"]).fails(2, &["file", "director"]);
    }
    assert_eq!(s.read("file"), "x");
}

#[test]
fn a_root_that_cannot_be_read() {
    each_user(|s| {
        if !s.user().is_ordinary() {
            return;
        }
        s.write("f", "0");
        s.sh("chmod 000 .");
        let from = s.home();
        let run = |words: &[&str]| s.finish(s.program().current_dir(&from).args(words));
        run(&["--root", "project", "run", "--", "touch", "ran"]).fails(125, &["project", "permission"]);
        run(&["--root", "project", "snap"]).fails(1, &["project", "permission"]);
        s.finish(s.command("chmod").current_dir(&from).args(["755", "project"])).exits(0);
        assert!(!s.has("ran") && !from.join("ran").exists());
    });
}

#[test]
fn a_store_that_was_made_read_only_is_only_read_until_it_may_be_written() {
    each_user(|s| {
        if !s.user().is_ordinary() {
            return;
        }
        with_two(s);
        let list = s.ok(["list"]).out();
        s.sh("find .snapback -type d -exec chmod 500 {} +");
        assert_eq!(s.ok(["list"]).out(), list, "looking needs no writing");
        s.snapback(["undo"]).fails(1, &["is read-only"]).says("chmod -R u+w");
        assert_eq!(s.read("f"), "B\n");
        s.sh("chmod -R u+w .snapback");
        s.ok(["undo"]);
        assert_eq!(s.read("f"), "A\n");
    });
}

#[test]
fn a_root_that_cannot_be_written() {
    each_user(|s| {
        if !s.user().is_ordinary() {
            return;
        }
        s.write("f", "0");
        s.sh("chmod 555 .");
        s.snapback(["run", "--", "touch", "f"]).fails(125, &["permission"]);
        s.sh("chmod 755 .");
        assert!(!s.has(".snapback"));
    });
}

#[test]
fn a_damaged_record_leaves_the_others_listed() {
    let s = sandbox();
    let [first, second] = with_two(&s);
    let meta = s.project().join(".snapback/snapshots").join(&first).join("meta.json");
    let whole = fs::read(&meta).unwrap();
    for damage in [&b""[..], b"{", b"[]", b"\0\xff", &whole[..whole.len() / 2]] {
        s.sh(&format!("chmod u+w {0:?} {1:?}", meta, meta.parent().unwrap()));
        fs::write(&meta, damage).unwrap();
        let list = s.snapback(["list"]);
        assert!(list.out().contains(&second), "{list}");
        assert!((list.out() + &list.err()).contains(&first), "the damaged one is named\n{list}");
        let json = s.snapback(["list", "--json"]).json();
        assert!(json.as_array().unwrap().iter().any(|snap| snap["id"] == *second), "{json}");
        let show = s.snapback(["show", &first]);
        show.fails(1, &[&first]);
        s.ok(["show", &second]);
    }
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "A\n", "what is whole can be gone back to");
}

#[test]
fn a_store_of_a_newer_version() {
    let s = sandbox();
    with_two(&s);
    s.sh("chmod u+w .snapback .snapback/format && sed -i 's/version .*/version 9999/' .snapback/format");
    let store = s.sh("find .snapback -type f | sort | xargs sha256sum");
    s.snapback(["run", "--", "touch", "ran"]).fails(125, &["newer"]);
    for command in [&["undo"][..], &["list"], &["gc"], &["snap"], &["verify"], &["show", "@0"]] {
        s.snapback(command).fails(1, &["newer"]);
    }
    assert!(!s.has("ran"));
    assert_eq!(s.sh("find .snapback -type f | sort | xargs sha256sum"), store, "it is left alone");
}

#[test]
fn words_that_are_not_commands() {
    let s = sandbox();
    for (words, right) in
        [(&["unod"][..], "undo"), (&["undo", "--pth", "x"], "--path"), (&["run"], "COMMAND")]
    {
        s.snapback(words).exits(2).says(right);
    }
    s.snapback(Vec::<&str>::new()).exits(2);
    s.ok(["--help"]).prints("Usage");
    s.ok(["--version"]).prints("snapback 0.");
}

#[test]
fn names_that_are_not_there() {
    let s = sandbox();
    let [first, _] = with_two(&s);
    s.snapback(["cat", &first, "nothing"]).fails(1, &["nothing"]);
    s.snapback(["restore", &first, "--path", "nothing"]).fails(1, &["nothing"]);
    s.snapback(["run", "--skip", "tre", "--", "true"]).fails(125, &["tre"]).says("tree");
    s.snapback(["undo", "--target", "tre"]).fails(1, &["tre"]).says("tree");
    s.snapback(["cat", &first, "/etc/passwd"]).exits(2);
    s.snapback(["undo", "--path", "../.."]).exits(2);
}
