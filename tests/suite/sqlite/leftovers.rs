//! What killed processes leave beside a database never brings anything back.

use super::*;
use crate::each_user;
use snapback_tests::Record;

#[test]
fn a_killed_writer_leaves_a_log() {
    if !ready() {
        return;
    }
    each_user(|s| {
        declare(s, &["app"]);
        make(s, "app", "wal", 10);
        s.ok(["snap"]);
        let mut app = Python::start(s);
        app.open("app");
        app.sql("PRAGMA wal_autocheckpoint = 0");
        app.sql("DELETE FROM t WHERE a > 5");
        app.kill();
        assert!(s.has("app.db-wal"));
        let before = Record::take(&s.project());
        s.ok(["snap"]);
        let after = Record::take(&s.project());
        for path in ["app.db", "app.db-wal", "app.db-shm"] {
            assert_eq!(before.entry(path), after.entry(path), "{path}");
        }
        s.ok(["undo"]);
        assert_eq!(count(s, "app"), "[(5,)]", "the log's rows are in the second snapshot");
        s.ok(["undo"]);
        assert_eq!(count(s, "app"), "[(10,)]");
        is_sound(s, "app");
    });
}

#[test]
fn a_killed_writer_leaves_a_hot_journal() {
    if !ready() {
        return;
    }
    each_user(|s| {
        declare(s, &["app"]);
        make(s, "app", "delete", 3000);
        let killed = "python3 -c \"
import sqlite3, os
c = sqlite3.connect('app.db', isolation_level=None)
c.execute('PRAGMA cache_size = 5')
c.execute('BEGIN IMMEDIATE')
c.execute('DELETE FROM t WHERE a % 2')
os.kill(os.getpid(), 9)\" || true; test -s app.db-journal";
        s.run(killed);
        let before = Record::take(&s.project());
        s.ok(["snap"]);
        assert_eq!(before.entry("app.db-journal"), Record::take(&s.project()).entry("app.db-journal"));
        s.ok(["undo"]);
        assert_eq!(count(s, "app"), "[(3000,)]");
        s.run(killed);
        s.run(&migrate("app", "DELETE FROM t WHERE a > 7"));
        s.run(killed);
        s.ok(["restore", "@1"]);
        assert_eq!(count(s, "app"), "[(3000,)]", "before the rows were deleted");
        is_sound(s, "app");
    });
}

#[test]
fn a_log_of_many_megabytes_is_read_and_left() {
    if !ready() {
        return;
    }
    let s = crate::sandbox();
    declare(&s, &["app"]);
    make(&s, "app", "wal", 100);
    let mut app = Python::start(&s);
    app.open("app");
    app.sql("PRAGMA wal_autocheckpoint = 0");
    app.sql("PRAGMA synchronous = OFF");
    for _ in 0..11 {
        app.sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
             INSERT INTO t(b) SELECT randomblob(10000) FROM n",
        );
    }
    let size = |path: &str| std::fs::metadata(s.project().join(path)).unwrap().len();
    let log = size("app.db-wal");
    assert!(log > 100 << 20, "{log}");
    s.ok(["snap"]);
    assert_eq!(size("app.db-wal"), log);
    app.sql("DELETE FROM t WHERE a > 100");
    s.ok(["undo"]);
    assert_eq!(app.count(), "[(11100,)]");
    app.kill();
    s.run("true");
    assert_eq!(count(&s, "app"), "[(11100,)]");
}

#[test]
fn a_removed_database_is_gone_whatever_lies_beside_it() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.sh("rm -f app.db*");
        make(s, "app", "wal", 10);
        let mut app = Python::start(s);
        app.open("app");
        app.sql("INSERT INTO t(b) VALUES('in the log')");
        app.kill();
        assert!(s.has("app.db-wal"));
        s.run("rm app.db").says("1 deleted");
        s.ok(["diff"]).prints("D app.db");
        s.ok(["undo"]).says("A app.db");
        assert_eq!(count(s, "app"), "[(11,)]");
        s.ok(["redo"]).says("D app.db");
        assert!(!s.has("app.db") && s.has("app.db-wal"));
        s.ok(["undo"]);
        assert_eq!(count(s, "app"), "[(11,)]");
    });
}

#[test]
fn a_journal_of_another_database_brings_nothing_in_and_comes_back_with_the_file() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.sh("rm -f *.db*");
        make(s, "other", "delete", 9000);
        sql(s, "other", "UPDATE t SET b = b || hex(zeroblob(300))");
        make(s, "app", "delete", 3000);
        sql(s, "app", "CREATE TABLE only_here(a)");
        s.sh("python3 -c \"
import sqlite3, os
c = sqlite3.connect('other.db', isolation_level=None)
c.execute('PRAGMA cache_size = 5')
c.execute('BEGIN IMMEDIATE')
c.execute('UPDATE t SET b = 1 WHERE a % 2')
os.kill(os.getpid(), 9)\" || true; mv other.db-journal app.db-journal; rm other.db");
        let before = Record::take(&s.project());
        s.run("rm app.db-journal; echo new > f");
        s.ok(["undo"]);
        let after = Record::take(&s.project());
        for path in ["app.db", "app.db-journal"] {
            assert_eq!(before.entry(path).hash, after.entry(path).hash, "{path}");
        }
        // What the run makes of the database is taken back, with the journal beside it.
        s.run(&format!("rm app.db-journal; {}", migrate("app", "DELETE FROM t; DROP TABLE only_here")));
        s.ok(["undo"]);
        let after = Record::take(&s.project());
        for path in ["app.db", "app.db-journal"] {
            assert_eq!(before.entry(path).hash, after.entry(path).hash, "{path}");
        }
        s.ok(["redo"]);
        assert!(!s.has("app.db-journal"));
        assert_eq!(sql(s, "app", "SELECT count(*) FROM sqlite_master"), "[(1,)]");
        is_sound(s, "app");
    });
}
