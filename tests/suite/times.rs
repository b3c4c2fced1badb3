//! Times: what did not change keeps them, what was written is newer than any build.

use crate::{each_user, sandbox};
use snapback_tests::{Record, have};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

#[test]
fn only_what_differs_is_touched() {
    each_user(|s| {
        s.sh("mkdir d; for f in $(seq 500); do echo $f > d/f$f; done; touch -d 2001-01-01 d/* d");
        let before = Record::take(&s.project());
        s.run("echo A > d/f77");
        s.ok(["undo"]);
        let after = Record::take(&s.project());
        for (path, entry) in &before.0 {
            if path != b"d/f77" && !path.is_empty() {
                assert_eq!(after.0.get(path), Some(entry), "{}", path.escape_ascii());
            }
        }
        let age = SystemTime::now()
            .duration_since(fs::metadata(s.project().join("d/f77")).unwrap().modified().unwrap());
        assert!(age.is_ok_and(|age| age < Duration::from_secs(60)), "what was written has the present time");
    });
}

#[test]
fn stored_times_are_exact_when_that_was_asked_for() {
    each_user(|s| {
        s.write("snapback.toml", "[snapshot]\ntimes = \"stored\"\n");
        s.sh("mkdir d; echo 0 > d/f; touch -d '2001-02-03 04:05:06.789' d/f; touch -d 2002-01-01 d");
        let before = Record::take(&s.project());
        s.run("echo A > d/f; rm -r d/f; mkdir d/g");
        s.ok(["undo"]);
        let after = Record::take(&s.project());
        for path in ["d", "d/f"] {
            assert_eq!(before.entry(path).mtime, after.entry(path).mtime, "{path}");
        }
    });
}

#[test]
fn a_build_sees_what_was_restored() {
    if !have("make") {
        return;
    }
    let s = sandbox();
    s.write("Makefile", "target/out: src\n\tmkdir -p target\n\tcp src target/out\n");
    s.write(".gitignore", "target\n");
    s.sh("mkdir .git; echo ref > .git/HEAD");
    s.write("src", "old\n");
    s.write("snapback.toml", "[snapshot]\nignore = [\"target\"]\n");
    s.sh("make -s; touch -d 2001-01-01 src");
    s.run("echo new > src; sleep 0.02; make -s; grep -q new target/out");
    s.ok(["undo"]);
    assert_eq!(s.read("target/out"), "new\n", "build output is not covered");
    s.sh("make -s");
    assert_eq!(s.read("target/out"), "old\n");
}

#[test]
fn a_change_that_hides_behind_size_and_time_is_seen() {
    each_user(|s| {
        s.sh("echo 1111 > f; touch -d 2001-01-01 f; touch -r f stamp; sleep 0.05");
        s.ok(["snap"]);
        s.run("echo 2222 > f; touch -r stamp f");
        s.ok(["undo"]);
        assert_eq!(s.read("f"), "1111\n");
        s.ok(["redo"]);
        assert_eq!(s.read("f"), "2222\n");
    });
}

#[test]
fn a_write_in_the_tick_of_the_snapshot_is_seen() {
    let s = sandbox();
    for round in 0..10 {
        s.run(&format!(
            "printf '%04d' {round} > f; \"$SNAPBACK\" snap -q >/dev/null; printf '%04d' {} > f",
            round + 5000
        ));
        s.ok(["undo", "--step"]);
        assert_eq!(s.read("f"), format!("{round:04}"));
    }
}

#[test]
fn a_touch_is_no_change_but_directories_keep_their_times() {
    let s = sandbox();
    s.sh("mkdir -p d/e; echo 0 > d/f; touch -d 2001-01-01 d/f d/e d .");
    s.run("touch d/f d/e d .");
    s.snapback(["diff", "--exit-code"]).exits(0);
    s.run("echo A > d/new; rm -r d/e");
    s.ok(["undo"]);
    let dir = |path: &str| fs::metadata(s.project().join(path)).unwrap().mtime();
    s.sh("touch -d 2001-01-01 d/f d/e d .");
    s.ok(["snap"]);
    s.run("touch top; mkdir d/sub; rm -r d/e");
    s.ok(["undo"]);
    assert_eq!((dir("d"), dir("d/e"), dir(".")), (978_307_200, 978_307_200, 978_307_200));
}

#[test]
fn what_is_put_back_is_what_is_there_with_its_times() {
    each_user(|s| {
        s.sh("mkdir d; echo 1 > d/f; echo 1 > d/g");
        let first = s.ok(["snap"]).out();
        s.sh("echo 2 > d/f; touch -d 2001-01-01 d d/g");
        s.ok(["snap"]);
        // The same state, at other times: it is stored already.
        s.sh("touch -d 2002-02-02 d d/g");
        let before = Record::take(&s.project());
        let said = s.ok(["restore", first.trim(), "--path", "d/f"]).err();
        assert!(said.contains("already"), "{said}");
        let after = Record::take(&s.project());
        assert_eq!(s.read("d/f"), "1\n");
        for path in ["d", "d/g"] {
            assert_eq!(before.entry(path).mtime, after.entry(path).mtime, "{path}");
        }
    });
}
