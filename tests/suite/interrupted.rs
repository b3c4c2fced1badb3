//! An undo that was killed: reading goes on, and one command ends it, as people expect.

use crate::each_user;
use snapback_tests::{Record, Restores, Sandbox, assert_same};
use std::time::Duration;

/// Files that a restore has to write, so that it takes a while.
const FILES: usize = 1500;

/// A project after three runs: what it was before each, and now.
fn three_runs(s: &Sandbox) -> [Record; 4] {
    s.sh(&format!("for f in $(seq {FILES}); do echo 0 > f$f; done"));
    let mut records = vec![Record::take(&s.project())];
    for run in ["A", "B", "C"] {
        s.run(&format!("touch {run}; for f in $(seq {FILES}); do echo {run} > f$f; done"));
        records.push(Record::take(&s.project()));
    }
    records.try_into().expect("there are four")
}

/// Kills an `undo` or a `redo` in its middle; when it was done before that, goes back and
/// tries again.
fn cut_short(s: &Sandbox, verb: &str) {
    let back = if verb == "undo" { "redo" } else { "undo" };
    for _ in 0..50 {
        if s.cut_short(&[verb], Duration::ZERO) {
            return;
        }
        s.ok([back]);
    }
    panic!("it was never hit in its middle");
}

/// Asserts that all is as in `want`, the times of what was written aside.
fn assert_is(s: &Sandbox, want: &Record) {
    Restores::default().assert_back(want, &Record::default(), &Record::take(&s.project()));
}

#[test]
fn undo_given_again_finishes_that_one_and_stops_there() {
    each_user(|s| {
        let [first, a, b, c] = three_runs(s);
        cut_short(s, "undo");
        let undo = s.ok(["undo"]);
        undo.says("finished the undo that was cut short").says("touch B");
        assert_is(s, &b);
        s.ok(["undo"]).never_says("cut short");
        assert_is(s, &a);
        cut_short(s, "redo");
        s.ok(["redo"]).says("finished the redo that was cut short").says("touch C");
        assert_is(s, &b);
        s.ok(["redo"]);
        assert_is(s, &c);
        // Another command is done after it.
        cut_short(s, "undo");
        s.ok(["redo"]).says("finished the undo that was cut short");
        assert_is(s, &c);
        for want in [&b, &a, &first] {
            s.ok(["undo"]);
            assert_is(s, want);
        }
    });
}

#[test]
fn looking_goes_on_while_a_step_is_unfinished() {
    each_user(|s| {
        three_runs(s);
        let ids: Vec<String> = ids(s);
        cut_short(s, "undo");
        let half = Record::take(&s.project());
        s.ok(["list"]).prints(&ids[0]);
        s.ok(["list", "--json"]);
        s.ok(["status"]).prints("pending").prints("--take-back");
        s.ok(["show", &ids[1]]);
        s.ok(["cat", &ids[0], "f1"]).prints("B");
        s.ok(["diff", "--stat"]);
        s.ok(["diff", &ids[2], &ids[1]]).prints("f1");
        s.ok(["verify"]);
        for verb in ["undo", "redo"] {
            s.ok([verb, "-n"]).says("cut short");
        }
        s.ok(["gc", "-n", "--keep", "1"]);
        s.ok(["gc", "--keep", "1"]);
        s.snapback(["forget", "@0", "--yes"]).fails(1, &["cut short"]);
        assert_same(&half, &Record::take(&s.project()));
        assert!(s.ok(["status", "--json"]).json()["pending"].is_object(), "looking has finished it");
        s.ok(["undo"]);
        s.ok(["verify"]);
    });
}

#[test]
fn an_unfinished_step_is_resumed_taken_back_or_abandoned() {
    each_user(|s| {
        let [_, a, b, c] = three_runs(s);
        cut_short(s, "undo");
        s.ok(["undo", "--resume"]).says("finished");
        assert_is(s, &b);
        cut_short(s, "undo");
        s.ok(["undo", "--take-back"]).says("taken back");
        assert_is(s, &b);
        cut_short(s, "redo");
        s.ok(["undo", "--take-back"]);
        assert_is(s, &b);
        s.ok(["redo"]);
        assert_is(s, &c);
        cut_short(s, "undo");
        s.snapback(["undo", "--abandon", "other"]).fails(1, &["other"]).says("tree");
        let half = Record::take(&s.project());
        s.ok(["undo", "--abandon", "tree"]).says("without `tree`");
        assert_same(&half, &Record::take(&s.project()));
        // It counts as taken back; what was there before it is one redo away.
        s.ok(["redo"]);
        assert_is(s, &c);
        s.ok(["undo"]);
        s.ok(["undo"]);
        assert_is(s, &a);
        for words in [&["--resume"][..], &["--take-back"], &["--abandon", "tree"]] {
            s.snapback([&["undo"], words].concat()).fails(1, &["no step"]);
        }
    });
}

#[test]
fn the_next_snapshot_finishes_it_first() {
    each_user(|s| {
        let [.., b, _] = three_runs(s);
        cut_short(s, "undo");
        let run = s.run("echo D > f1");
        run.says("finished the undo that was cut short");
        s.ok(["undo"]);
        assert_is(s, &b);
        cut_short(s, "undo");
        s.ok(["snap"]).says("finished the undo");
        s.ok(["verify"]);
    });
}

fn ids(s: &Sandbox) -> Vec<String> {
    let list = s.ok(["list", "--json"]).json();
    list.as_array().unwrap().iter().map(|snap| snap["id"].as_str().unwrap().to_owned()).collect()
}
