//! Undo works like in an editor: what one step is, where it goes, what ends a redo.

use crate::{each_user, newest, sandbox};
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
fn a_failing_command_that_has_undone_itself_ends_with_its_own_code() {
    for before in [false, true] {
        let s = sandbox();
        s.write("f", "0");
        if before {
            s.run("echo A > f");
        }
        let was = s.read("f");
        let script = "echo B > f; \"$SNAPBACK\" undo -q --yes; exit 9";
        s.snapback(["run", "--undo-on-failure", "--", "sh", "-c", script]).exits(9);
        assert_eq!(s.read("f"), was);
    }
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

#[test]
fn a_step_goes_one_snapshot_back_with_and_without_a_run() {
    each_user(|s| {
        s.snapback(["undo", "--step"]).fails(1, &["no snapshots"]);
        s.write("f", "0");
        s.run("echo A > f");
        // As an agent's hook takes them, outside of any run.
        for content in ["1", "2", "1"] {
            s.ok(["snap", "-m", content]);
            s.write("f", content);
        }
        for wanted in ["2", "1", "A", "0"] {
            s.ok(["undo", "--step"]);
            assert_eq!(state(s), wanted);
        }
        s.ok(["undo", "--step"]).says("nothing to restore");
        // Each was a step of its own.
        for wanted in ["A", "1", "2", "1"] {
            s.ok(["undo"]);
            assert_eq!(state(s), wanted);
        }
        // What was undone is no longer on the way.
        s.ok(["undo"]);
        assert_eq!(state(s), "2");
        s.ok(["undo", "--step"]);
        assert_eq!(state(s), "1");
    });
}

#[test]
fn a_step_without_any_run_goes_back_from_snapshot_to_snapshot() {
    let s = crate::sandbox();
    for content in ["0", "1", "2"] {
        s.write("f", content);
        s.ok(["snap"]);
    }
    s.write("f", "3");
    for wanted in ["2", "1", "0"] {
        s.ok(["undo", "--step"]);
        assert_eq!(state(&s), wanted);
    }
    // Also where they were taken by other rules.
    let s = crate::sandbox();
    s.write("f", "0");
    s.ok(["snap"]);
    s.write("snapback.toml", "[snapshot]\nignore = [\"x\"]\n");
    s.write("f", "1");
    s.ok(["snap"]);
    s.write("snapback.toml", "[snapshot]\nignore = [\"y\"]\n");
    s.ok(["snap"]);
    s.write("f", "2");
    for wanted in ["1", "1", "0"] {
        s.ok(["undo", "--step"]);
        assert_eq!(state(&s), wanted);
    }
}

#[test]
fn a_step_that_did_nothing_does_nothing_again() {
    each_user(|s| {
        s.write("f", "0");
        s.run("true");
        s.ok(["undo"]);
        s.write("f", "edited");
        s.write("new", "mine");
        s.ok(["redo", "-n"]);
        s.ok(["redo"]).says("nothing to redo");
        assert_eq!((state(s).as_str(), s.read("new").as_str()), ("edited", "mine"));
        s.snapback(["redo"]).fails(1, &["nothing to redo"]);
        s.ok(["undo"]).says("nothing");
        assert_eq!((state(s).as_str(), s.read("new").as_str()), ("edited", "mine"));
    });
}

#[test]
fn a_redo_names_what_was_edited_since_the_undo_and_keeps_it() {
    each_user(|s| {
        s.write("f", "0");
        s.write("other", "0");
        s.run("echo A > f");
        s.ok(["undo"]);
        s.ok(["redo", "-n"]).never_says("after the undo");
        s.write("other", "edited");
        let edited = Record::take(&s.project());
        let dry = s.ok(["redo", "-n", "--json"]);
        dry.says("M other (changed after the undo)").never_says("M f (changed");
        let changes = dry.json()["changes"].clone();
        let by = |path: &str| {
            let change = changes.as_array().unwrap().iter().find(|c| c["path"] == path);
            change.unwrap()["by"].clone()
        };
        assert_eq!((by("other"), by("f")), ("later".into(), serde_json::Value::Null), "{changes}");
        s.ok(["redo"]).says("M other (changed after the undo)").says("kept as");
        assert_eq!((state(s), s.read("other")), ("A".into(), "0".into()));
        s.ok(["undo"]);
        assert_back(&edited, &Record::default(), &Record::take(&s.project()));
    });
}
