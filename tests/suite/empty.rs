//! A folder that holds nothing but the store is an empty one to the command that runs in it.

use crate::{PROGRAM, each_user, newest};
use rustix::process::Signal;
use serde_json::Value;
use snapback_tests::{Sandbox, until};
use std::fs;

/// Fails where the folder is not empty, as git and what makes new projects do.
const EMPTY: &str = "[ -z \"$(ls -A)\" ] || { echo 'not empty'; ls -A; exit 9; } >&2";

/// Where the store of the sandbox's project withdraws to, if it has.
fn withdrawn(s: &Sandbox) -> bool {
    let entries = fs::read_dir(s.state().join("snapback")).unwrap().flatten();
    entries.filter(|entry| entry.path().join("withdrawn/format").exists()).count() == 1
}

#[test]
fn git_clones_into_an_empty_folder() {
    each_user(|s| {
        s.sh("git init -q ../from; cd ../from; git config user.name t; git config user.email t@t
              echo 1 > f; git add f; git commit -qm one");
        let run = s.ok(["run", "--", "git", "clone", "-q", "../from", "."]);
        run.says("1 added").never_says("history");
        assert!(s.has("f") && s.has(".snapback/format") && !withdrawn(s));
        s.ok(["undo"]).never_says("history");
        assert!(!s.has("f"));
        s.ok(["redo"]);
        assert_eq!(s.read("f"), "1\n");
        s.ok(["verify"]);
    });
}

#[test]
fn the_folder_is_empty_to_a_second_try_and_after_a_snapshot_inside() {
    each_user(|s| {
        s.snapback(["run", "--", "sh", "-c", &format!("{EMPTY}; exit 3")]).exits(3).says("nothing changed");
        assert!(s.has(".snapback/format"));
        let inside = format!(
            "{EMPTY}; {PROGRAM} snap -q -m a >/dev/null; {EMPTY}; {PROGRAM} list >/dev/null; {EMPTY}; echo 1 > f; {PROGRAM} snap -q -m b > /dev/null; [ -e .snapback ]; echo 2 > f"
        );
        let run = s.ok(["run", "--", "sh", "-ec", &inside]);
        run.never_says("history");
        let list = s.ok(["list", "--json"]).json();
        let inner =
            |item: &&Value| item["kind"] == "manual" && item["run"] != item["id"] && !item["run"].is_null();
        let within = list.as_array().unwrap().iter().filter(inner).count();
        assert_eq!(within, 2, "they belong to the run: {list}");
        s.ok(["undo"]);
        assert!(!s.has("f"));
    });
}

#[test]
fn what_runs_in_it_is_seen_from_elsewhere_and_survives_a_kill() {
    each_user(|s| {
        let mut run = s.start(["run", "--", "sh", "-c", "touch ../started; exec sleep 600"]);
        until("its start", || s.home().join("started").exists());
        assert!(!s.has(".snapback") && withdrawn(s));
        let list = s.ok(["list", "--json"]);
        list.never_says("history");
        assert_eq!(list.json()[0]["state"], "running");
        s.ok(["status"]).never_says("history");
        s.write("f", "1");
        run.signal(Signal::KILL);
        run.wait();
        s.ok(["undo"]).never_says("history");
        assert!(!s.has("f") && s.has(".snapback/format") && !withdrawn(s));
        s.ok(["redo"]);
        assert_eq!(s.read("f"), "1");
    });
}

#[test]
fn a_folder_that_is_removed_meanwhile_has_its_whole_history() {
    each_user(|s| {
        s.write("f", "1");
        s.run("rm f");
        let kept = newest(s);
        s.run(&format!("{EMPTY}; rmdir \"$PWD\"")).says("is gone");
        assert!(!s.project().exists());
        let home = |words: &[&str]| s.finish(s.program().current_dir(s.home()).args(words));
        home(&["-C", "project", "forget", "--yes", "--force", &kept]);
        home(&["-C", "project", "undo"]).exits(0);
        assert!(s.has(".snapback/format") && !withdrawn(s));
        s.ok(["verify"]);
    });
}

#[test]
fn another_store_that_the_command_makes_there_is_moved_aside() {
    each_user(|s| {
        s.sh("mkdir ../other; cd ../other; echo 1 > g");
        s.finish(s.program().current_dir(s.home().join("other")).arg("snap")).exits(0);
        s.run("cp -a ../other/. .").says("another history stood in its place");
        assert_eq!(s.read("g"), "1\n");
        s.ok(["undo"]);
        assert!(!s.has("g") && s.has(".snapback/format") && !withdrawn(s));
    });
}

#[test]
fn a_store_that_stands_aside_belongs_to_a_project_that_is_there() {
    each_user(|s| {
        let script = "touch ../started; until [ -e ../go ]; do sleep 0.05; done";
        let mut run = s.start(["run", "--", "sh", "-c", script]);
        until("its start", || s.home().join("started").exists());
        assert!(withdrawn(s));
        // As after a month of it: what nobody has used for so long goes when its project is gone.
        s.sh("touch -d '40 days ago' \"$XDG_STATE_HOME\"/snapback/roots/*");
        let at_home = |words: &[&str]| s.finish(s.program().current_dir(s.home()).args(words));
        let list = at_home(&["list", "--all", "--json"]).json();
        assert_eq!((&list[0]["project"], &list[0]["snapshots"]), (&"there".into(), &1.into()), "{list}");
        at_home(&["gc", "--all"]).exits(0);
        s.write("../go", "");
        assert!(run.wait().success());
        assert_eq!(s.ok(["list", "--json"]).json().as_array().map(Vec::len), Some(1));
        s.sh("rm ../go ../started");
    });
}

#[test]
fn what_others_do_there_meanwhile_leaves_its_end_known() {
    each_user(|s| {
        for what in ["gc", "snap", "undo"] {
            let script = "touch ../started; until [ -e ../go ]; do sleep 0.05; done; echo 1 > f";
            let mut run = s.start(["run", "--report", "../report", "--", "sh", "-c", script]);
            until("its start", || s.home().join("started").exists());
            s.snapback(["--yes", what]).exits(0);
            s.write("../go", "");
            assert!(run.wait().success(), "{what}");
            let report = fs::read_to_string(s.home().join("report")).unwrap();
            let report: Value = serde_json::from_str(&report).unwrap();
            assert_eq!(report["changes"].as_array().map(Vec::len), Some(1), "{what}: {report}");
            // What was undone while it went on is done with: what came later is no step.
            if what != "undo" {
                s.ok(["undo", "--yes"]);
                assert!(!s.has("f"), "{what}");
            }
            s.sh("rm -f f ../go ../started ../report");
        }
    });
}

#[test]
fn what_is_refused_inside_a_run_is_refused_there_whatever_the_environment_says() {
    each_user(|s| {
        for what in ["gc", "forget @0", "trust"] {
            let inside = format!("{EMPTY}; exec env -u SNAPBACK_RUN_ID -u SNAPBACK_ROOT {PROGRAM} {what}");
            s.snapback(["run", "--", "sh", "-c", &inside]).exits(1).says("refused inside a run");
        }
    });
}

#[test]
fn beside_anything_else_it_stays() {
    each_user(|s| {
        s.write("f", "1");
        s.run("[ -e .snapback/format ] || exit 9");
        s.sh("rm f");
        // No run goes on.
        s.ok(["snap"]);
        assert!(s.has(".snapback/format") && !withdrawn(s));
    });
}
