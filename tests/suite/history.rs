//! Undo works like in an editor: what one step is, where it goes, what ends a redo.

use crate::{each_user, newest};
use snapback_tests::{Record, Sandbox, assert_back};

/// What the file `f` of the project says.
fn state(s: &Sandbox) -> String {
    s.read("f").trim_end().to_owned()
}

#[test]
fn runs_are_taken_back_and_done_again_one_by_one() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        s.run("echo B > f");
        for (verb, after) in [("undo", "A"), ("undo", "0"), ("redo", "A"), ("redo", "B"), ("undo", "A")] {
            s.ok([verb]);
            assert_eq!(state(s), after, "{verb}");
        }
        s.ok(["redo"]);
        s.snapback(["redo"]).fails(1, &["nothing to redo"]);
        s.ok(["undo"]);
        s.ok(["undo"]);
        s.snapback(["undo"]).fails(1, &["nothing to undo"]);
        assert_eq!(state(s), "0");
    });
}

#[test]
fn a_new_run_ends_the_redo_branch_and_its_snapshots_stay() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        s.ok(["undo"]);
        let listed = s.ok(["list", "--json"]).json().as_array().unwrap().len();
        s.run("echo C > f");
        s.snapback(["redo"]).fails(1, &["nothing to redo"]);
        assert_eq!(state(s), "C");
        let list = s.ok(["list", "--json"]).json();
        assert!(list.as_array().unwrap().len() >= listed, "{list}");
        let pre = list.as_array().unwrap().iter().find(|snap| snap["kind"] == "pre-undo").unwrap();
        s.ok(["restore", pre["id"].as_str().unwrap()]);
        assert_eq!(state(s), "A", "the ended branch can still be gone to by name");
    });
}

#[test]
fn an_undo_that_would_change_nothing_says_so_and_names_the_next() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        s.run("true");
        let before = Record::take(&s.project());
        let undo = s.snapback(["undo"]);
        undo.exits(0).says("echo A");
        assert_back(&before, &before, &Record::take(&s.project()));
        s.ok(["undo"]);
        assert_eq!(state(s), "0");
    });
}

#[test]
fn edits_since_a_manual_snapshot_are_one_step() {
    each_user(|s| {
        s.write("f", "0");
        let id = s.ok(["snap", "-m", "as it was"]).out();
        assert_eq!(id.trim_end(), newest(s), "snap prints the ID and nothing else");
        s.write("f", "by hand");
        s.write("g", "by hand");
        s.ok(["undo"]);
        assert_eq!(state(s), "0");
        assert!(!s.has("g"));
        s.ok(["redo"]);
        assert_eq!((state(s), s.read("g")), ("by hand".to_owned(), "by hand".to_owned()));
    });
}

#[test]
fn restore_and_undo_of_a_path_are_steps_that_undo_takes_back() {
    each_user(|s| {
        s.write("f", "0");
        s.write("d/a", "0");
        s.write("d/b", "0");
        s.run("echo A > f; echo A > d/a; rm d/b");
        let run = newest(s);
        s.ok(["undo", "--path", "d"]);
        assert_eq!((state(s), s.read("d/a"), s.has("d/b")), ("A".to_owned(), "0".to_owned(), true));
        s.ok(["undo"]);
        assert_eq!((s.read("d/a"), s.has("d/b")), ("A\n".to_owned(), false));
        s.ok(["restore", &run, "--path", "d/b"]);
        assert_eq!((state(s), s.read("d/b")), ("A".to_owned(), "0".to_owned()));
        s.ok(["undo"]);
        assert!(!s.has("d/b"));
        s.ok(["undo"]);
        assert_eq!((state(s), s.read("d/a")), ("0".to_owned(), "0".to_owned()));
    });
}

#[test]
fn snapshots_inside_a_run_belong_to_it() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo half > f; \"$SNAPBACK\" snap -m half >id; echo whole > f");
        let list = s.ok(["list", "--json"]).json();
        let inner = list.as_array().unwrap().iter().find(|snap| snap["message"] == "half").unwrap();
        let run = list.as_array().unwrap().iter().find(|snap| snap["kind"] == "run").unwrap();
        assert_eq!(inner["run"], run["id"]);
        assert_eq!(inner["id"], s.read("id").trim_end());
        s.ok(["undo", "--step"]);
        assert_eq!(state(s), "half");
        s.ok(["undo"]);
        assert_eq!(state(s), "whole");
        s.ok(["undo"]);
        assert_eq!((state(s), s.has("id")), ("0".to_owned(), false));
    });
}

#[test]
fn a_dry_run_says_it_and_does_nothing() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f; touch new");
        let before = Record::take(&s.project());
        let list = s.ok(["list", "--json"]).json();
        let dry = s.ok(["undo", "-n"]);
        assert!((dry.out() + &dry.err()).contains("new"), "it names what it would do\n{dry}");
        s.ok(["restore", "@0", "-n"]);
        assert_back(&before, &before, &Record::take(&s.project()));
        assert_eq!(s.ok(["list", "--json"]).json(), list);
    });
}

#[test]
fn a_failing_command_is_undone_when_that_was_asked_for() {
    each_user(|s| {
        s.write("f", "0");
        s.snapback(["run", "--undo-on-failure", "--", "sh", "-c", "echo A > f; exit 9"]).exits(9);
        assert_eq!(state(s), "0");
        s.ok(["redo"]);
        assert_eq!(state(s), "A");
        s.ok(["run", "--undo-on-failure", "--", "sh", "-c", "echo B > f"]);
        assert_eq!(state(s), "B");
    });
}

#[test]
fn the_root_is_recorded_found_from_inside_and_named() {
    each_user(|s| {
        s.write("f", "0");
        s.write("sub/deep/f", "0");
        s.sh("git init -q . 2>/dev/null || mkdir .git");
        let sub = s.project().join("sub/deep");
        let inside = |arguments: &[&str]| s.finish(s.program().current_dir(&sub).args(arguments));
        inside(&["run", "--", "sh", "-c", "pwd > ../../where; echo A > f"]).exits(0);
        assert_eq!(
            s.read("where").trim_end(),
            sub.to_string_lossy(),
            "the command runs where it was started"
        );
        assert!(s.has(".snapback") && !s.has("sub/deep/.snapback"));
        inside(&["undo"]).exits(0).says(&s.project().to_string_lossy());
        assert_eq!(s.read("sub/deep/f"), "0");
        assert!(!s.has("where"));
        // Paths are meant from where one stands.
        s.run("echo A > f; echo A > sub/deep/f");
        inside(&["undo", "--path", "f"]).exits(0);
        assert_eq!((state(s), s.read("sub/deep/f")), ("A".to_owned(), "0".to_owned()));
        inside(&["cat", "@0", "f"]).exits(0);
    });
}

#[test]
fn looking_back_shows_what_was() {
    each_user(|s| {
        s.write("f", "0\n");
        s.write("gone", "x\n");
        s.run("echo A > f; rm gone; touch new");
        let run = newest(s);
        assert_eq!(s.ok(["cat", &run, "f"]).stdout, b"0\n");
        s.ok(["show", &run]).prints(&run);
        let diff = s.ok(["diff"]);
        for path in ["f", "gone", "new"] {
            diff.prints(path);
        }
        s.snapback(["diff", "--exit-code"]).exits(1);
        s.ok(["diff", "-p"]).prints("-0").prints("+A");
        s.ok(["undo"]);
        s.snapback(["diff", "--exit-code", &run]).exits(0);
        s.ok(["status"]);
    });
}
