//! What counts for a quota that something else in the project does not count for: directories
//! that give what is made in them to a project of its own (xfs, ext4), between which the kernel
//! moves nothing; and limits on files.

use crate::sharing::Mounted;
use crate::{PROGRAM, each_user};
use snapback_tests::{Record, Sandbox, User, assert_same, have, skip};
use std::process::Command;

/// A round of undo and redo in a project whose directories were made by `make`.
fn round(make: &str) {
    let s = Sandbox::new(PROGRAM, User::Me);
    let Some(mounted) = Mounted::under(&s, "xfs") else { return };
    if !have("chattr") || !Command::new("chattr").arg("-p").arg("7").arg(s.home()).status().unwrap().success()
    {
        return skip("files of this file system belong to no projects");
    }
    s.sh(make);
    s.sh("mkdir -p q/r; echo 1 > q/a; echo 1 > q/r/b; echo 1 > q/gone; echo 1 > c; echo 1 > q/kind; ln q/a q/r/a");
    // A database is put in its place by another way.
    s.sh("python3 -c 'import sqlite3; sqlite3.connect(\"q/app.db\").executescript(\"CREATE TABLE t(a); INSERT INTO t VALUES(1)\")'");
    let before = Record::take(&s.project());
    s.run("rm q/app.db; echo 2 > q/a; echo 2 > q/r/b; rm q/gone q/kind; mkdir q/kind; echo 2 > q/kind/new; echo 2 > c; echo 2 > q/new");
    let after = Record::take(&s.project());
    s.ok(["undo"]);
    assert!(before.is_like(&Record::take(&s.project())), "{make}");
    s.ok(["redo"]);
    assert!(after.is_like(&Record::take(&s.project())), "{make}");
    s.sh("! find . -name '.snapback~' | grep .");
    drop(mounted);
}

#[test]
fn directories_of_another_project_come_back() {
    // Only a part of the tree, only what is outside of that, all of it and the store.
    round("mkdir q; chattr -p 42 +P q");
    round("mkdir q; chattr -p 42 +P .");
    round("chattr -p 42 +P .");
}

#[test]
fn a_limit_on_the_size_of_files_is_called_that() {
    each_user(|s| {
        s.sh("head -c 90000 /dev/urandom > a");
        let before = Record::take(&s.project());
        let limited = format!("ulimit -f 8; exec {PROGRAM} run -- touch ran");
        let run = s.finish(s.command("sh").args(["-c", &limited]));
        run.fails(125, &["as large as that"]).says("ulimit -f").never_says("no space");
        assert_same(&before, &Record::take(&s.project()));
        s.run("echo x > a");
        s.ok(["undo"]);
        assert!(before.is_like(&Record::take(&s.project())));
    });
}
