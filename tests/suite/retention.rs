//! The history is bounded after each snapshot, and what the next steps need is never
//! dropped, whoever asks for it.

use crate::{each_user, newest, sandbox};
use snapback_tests::{Record, Sandbox};
use std::fs;

fn configured(text: &str) -> Sandbox {
    let s = sandbox();
    fs::create_dir_all(s.config().parent().unwrap()).unwrap();
    fs::write(s.config(), text).unwrap();
    s
}

fn ids(s: &Sandbox) -> Vec<String> {
    let list = s.ok(["list", "--json"]).json();
    list.as_array().unwrap().iter().map(|snap| snap["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn after_each_snapshot_the_history_is_within_its_bounds() {
    let s = configured("[retention]\nkeep = 4\n");
    s.write("f", "0");
    let pinned = s.ok(["snap", "--pin"]).out().trim_end().to_owned();
    let mut records = Vec::new();
    for n in 0..12 {
        records.push(Record::take(&s.project()));
        s.run(&format!("echo {n} > f; head -c 20000 /dev/urandom > g{n}"));
        let now = ids(&s);
        assert!(now.len() <= 5, "{} snapshots after run {n}", now.len());
        assert!(now.contains(&pinned));
        assert!(n < 3 || now.len() == 5, "no more is dropped than has to be");
    }
    // What the first undo replaces is one snapshot more, for which the oldest goes.
    for record in records.iter().rev().take(3) {
        s.ok(["undo"]);
        assert!(record.is_like(&Record::take(&s.project())));
    }
    s.ok(["verify"]);
}

#[test]
fn what_the_next_undo_and_redo_need_is_never_dropped() {
    let s = configured("[retention]\nkeep = 1\nkeep-within = \"0\"\nmax-size = \"1B\"\n");
    s.write("f", "0");
    s.run("echo A > f");
    s.run("echo B > f");
    let [a, b] = ["A\n", "B\n"];
    for _ in 0..2 {
        s.ok(["gc", "--keep", "0", "--keep-within", "0", "--max-size", "1B"]);
        s.ok(["undo"]);
        assert_eq!(s.read("f"), a);
        s.ok(["gc", "--keep", "0", "--keep-within", "0", "--max-size", "1B"]);
        s.ok(["redo"]);
        assert_eq!(s.read("f"), b);
        s.ok(["verify"]);
    }
    let list = s.ok(["list", "--json"]).json();
    assert!(
        list.as_array().unwrap().iter().any(|snap| snap["kind"] == "run"),
        "the newest run stays: {list}"
    );
}

#[test]
fn runs_that_change_nothing_push_nothing_out() {
    let s = configured("[retention]\nkeep = 4\n");
    s.write("d/f", "0");
    s.write("g", "0");
    let record = Record::take(&s.project());
    s.run("rm -r d");
    s.run("echo A > g");
    for n in 0..8 {
        s.run("true");
        assert!(ids(&s).len() <= 4, "{n}");
    }
    // Each undo takes back one of the steps that are left.
    let undone = (0..4).find(|_| {
        s.ok(["undo"]);
        s.project().join("d/f").exists()
    });
    assert!(undone.is_some(), "what was removed cannot be brought back");
    assert!(record.is_like(&Record::take(&s.project())));
    s.ok(["verify"]);
}

#[test]
fn what_is_taken_during_a_run_pushes_out_nothing_from_before_it() {
    let s = configured("[retention]\nkeep = 4\n");
    s.write("f", "0");
    let record = Record::take(&s.project());
    s.run("echo A > f");
    let before = ids(&s);
    s.run("for n in 1 2 3 4 5 6 7 8; do echo $n > f; \"$SNAPBACK\" snap -q; done");
    let now = ids(&s);
    assert!(before.iter().all(|id| now.contains(id)), "{before:?} {now:?}");
    assert_eq!(now.len(), 2 + 4, "of those that it took, so many as of others");
    s.ok(["undo"]);
    s.ok(["undo"]);
    assert!(record.is_like(&Record::take(&s.project())));
    // Once the run goes, they go as well.
    for n in 0..5 {
        s.run(&format!("echo {n} > g"));
    }
    assert!(ids(&s).len() <= 4, "{:?}", ids(&s));
    s.ok(["verify"]);
}

#[test]
fn a_run_cannot_shorten_the_history_through_the_project() {
    let s = configured("[retention]\nkeep = 20\n");
    s.write("f", "0");
    for n in 0..6 {
        s.run(&format!("echo {n} > f"));
    }
    let before = ids(&s);
    s.run("printf '[retention]\\nkeep = 0\\nmax-size = \"1B\"\\n' > snapback.toml; echo evil > f");
    s.snapback(["snap"]);
    s.snapback(["gc"]);
    let now = ids(&s);
    assert!(before.iter().all(|id| now.contains(id)), "{before:?} {now:?}");
    s.snapback([
        "run",
        "--",
        "sh",
        "-c",
        "\"$SNAPBACK\" gc --keep 0; \"$SNAPBACK\" forget --yes @1; rm -f snapback.toml",
    ]);
    let now = ids(&s);
    assert!(before.iter().all(|id| now.contains(id)), "{before:?} {now:?}");
    s.ok(["restore", &before[0]]);
    assert_eq!(s.read("f"), "4\n");
}

#[test]
fn a_snapshot_that_cannot_be_read_does_not_stop_the_others() {
    let s = configured("[retention]\nkeep = 2\n[store]\ntwin = false\n");
    s.write("f", "0");
    s.run("echo A > f");
    let meta = s.project().join(".snapback/snapshots").join(newest(&s)).join("meta.json");
    s.sh(&format!("chmod u+w {meta:?}; echo damaged > {meta:?}"));
    // Many more than it takes until space is given back.
    for n in 0..16 {
        s.run(&format!("echo {n} > f"));
    }
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "14\n");
    s.snapback(["gc"]).fails(1, &["damaged"]).says("snapback forget");
    let id = meta.parent().unwrap().file_name().unwrap().to_str().unwrap();
    s.ok(["forget", "--yes", id]);
    s.ok(["gc"]);
    s.ok(["verify"]);
}

#[test]
fn forgetting_that_was_killed_is_completed() {
    let s = sandbox();
    s.sh("head -c 3000000 /dev/urandom > secret; for f in $(seq 50); do echo $f > f$f; done");
    s.ok(["snap"]);
    let id = newest(&s);
    s.sh("rm secret");
    s.ok(["snap"]);
    let marker = s.project().join(".snapback/forgetting");
    let mut killed = 0;
    for _ in 0..20 {
        let mut child = s.start(["forget", "--yes", &id]);
        while !marker.exists() && ids(&s).contains(&id) {}
        child.signal(rustix::process::Signal::KILL);
        killed += usize::from(!child.wait().success());
        if marker.exists() || !ids(&s).contains(&id) {
            break;
        }
    }
    // Whatever is done next completes it.
    let size = || s.sh("du -sb .snapback | cut -f1").trim().parse::<u64>().unwrap();
    s.ok(["snap", "-m", "next"]);
    assert!(!marker.exists() && !ids(&s).contains(&id), "killed {killed} times");
    assert!(size() < 2_000_000, "{} bytes are left", size());
    s.ok(["verify"]);
}

#[test]
fn what_an_undo_kept_of_a_file_that_somebody_has_open_is_told_and_goes_with_its_snapshot() {
    each_user(|s| {
        s.write("a", "0");
        s.run("echo 1 > a; echo token > log");
        let open = std::fs::File::options().append(true).open(s.project().join("log")).unwrap();
        // All is as it was: nothing is called not restored.
        s.ok(["undo"]).says("log: somebody has the file that stood there open for writing; it is kept as ");
        assert!(!s.has("log"));
        let tokens = || s.sh("grep -rl token .snapback/saved || true").lines().count();
        let saved = || s.ok(["status", "--json"]).json()["saved"]["files"].clone();
        s.ok(["status"]).prints("1 file, 6 B, that an undo replaced");
        // While somebody can write to it, what is written is in no snapshot.
        s.ok(["gc"]).says("stay in .snapback/saved");
        assert_eq!((tokens(), saved()), (1, 1.into()));
        drop(open);
        let holder = s.ok(["list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
        s.ok(["forget", "--yes", &holder]).never_says("stay in");
        assert_eq!((tokens(), saved()), (0, 0.into()));
        // What was written since is in no snapshot, and stays until somebody removes it.
        s.run("echo token > log");
        let mut open = std::fs::File::options().append(true).open(s.project().join("log")).unwrap();
        s.ok(["undo"]);
        std::io::Write::write_all(&mut open, b"more\n").unwrap();
        drop(open);
        s.ok(["gc"]).says("1 file, 11 B");
        assert_eq!(tokens(), 1);
    });
}
