//! Databases that this user may read, and not write: told before anything is touched.

use super::*;
use crate::PROGRAM;
use snapback_tests::{User, is_root};
use std::process::Command;

/// What root does in the project.
fn as_root(s: &Sandbox, script: &str) {
    let done = Command::new("sh").args(["-ec", script]).current_dir(s.project()).status();
    assert!(done.is_ok_and(|status| status.success()), "{script}");
}

const MAKE: &str =
    "PRAGMA user_version = 1; CREATE TABLE t(a); INSERT INTO t VALUES(1); INSERT INTO t VALUES(2)";

#[test]
fn one_of_somebody_else_is_told_before_anything_is_touched() {
    if !ready() || !is_root() {
        return;
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    for declared in [false, true] {
        s.sh("rm -f app.db* snapback.toml; echo old > f");
        if declared {
            declare(&s, &["app"]);
        }
        as_root(&s, &format!("{}; chmod 644 app.db", migrate("app", MAKE)));
        s.run("echo new > f");
        as_root(&s, &migrate("app", "DELETE FROM t"));
        let why = "it belongs to somebody else, and may not be written by this user (mend it: sudo chown";
        s.snapback(["undo", "-n"]).exits(3).says(&format!("cannot be put back: app.db ({why}"));
        s.snapback(["undo"]).fails(1, &["nothing was touched"]).says(&format!("app.db: {why}"));
        assert_eq!((s.read("f").as_str(), count(&s, "app").as_str()), ("new\n", "[(0,)]"));
        s.ok(["status"]).never_says("unfinished");
        s.ok(["undo", "--path", "f"]);
        assert_eq!(s.read("f"), "old\n");
        s.ok(["undo"]);
        s.snapback(["undo", "--partial"]).exits(3).says("not restored: app");
        assert_eq!((s.read("f").as_str(), count(&s, "app").as_str()), ("old\n", "[(0,)]"));
        s.run("true");
    }
}

#[test]
fn what_turns_out_not_to_be_writable_is_taken_back_with_all_else() {
    if !ready() || !is_root() {
        return;
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    // The file may be written, and no journal be made beside it.
    s.sh("echo old > f");
    as_root(&s, &format!("mkdir d; {}; chmod 666 d/app.db", migrate("d/app", MAKE)));
    s.run("echo new > f");
    as_root(&s, &migrate("d/app", "DELETE FROM t"));
    s.snapback(["undo"]).fails(1, &["app.db"]).never_says("could not be taken back");
    assert_eq!((s.read("f").as_str(), s.has(".snapback")), ("new\n", true));
    s.ok(["status"]).never_says("unfinished");
    s.run("echo newer > f");
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "new\n");
}
