//! Several databases at once: those that are in use are all named, those that are as they were are
//! in nobody's way, and what is asked of the system is not asked once for each.

use super::*;
use crate::{each_user, sandbox};

#[test]
fn all_that_are_locked_are_named() {
    if !ready() {
        return;
    }
    each_user(|s| {
        let names = ["a", "b", "c", "d"];
        declare(s, &names);
        names.iter().for_each(|name| make(s, name, "delete", 10));
        s.run("echo new > f");
        let mut apps = [Python::start(s), Python::start(s), Python::start(s)];
        for (app, name) in apps.iter_mut().zip(names) {
            app.open(name);
            app.sql("UPDATE t SET b = 'not as it was'");
            app.sql("BEGIN EXCLUSIVE");
        }
        let run = s.snapback(["run", "--", "touch", "started"]);
        run.fails(125, &["3 databases are in use"]).says("hint: end or pause");
        let who = |app: &Python, name: &str| format!("{name}.db is in use by python3 (pid {})", app.pid());
        for (app, name) in apps.iter().zip(names) {
            run.says(&who(app, name));
        }
        run.never_says("d.db");
        assert!(!s.has("started"));
        // The same for an undo: all that are written just now.
        for app in &mut apps {
            app.sql("ROLLBACK");
        }
        s.run(&names.map(|name| migrate(name, "DELETE FROM t")).join(";"));
        for app in &mut apps {
            app.sql("BEGIN IMMEDIATE");
        }
        let undo = s.snapback(["undo"]);
        undo.fails(1, &["3 databases are in use"]);
        for (app, name) in apps.iter().zip(names) {
            undo.says(&who(app, name));
        }
        for app in &mut apps {
            app.sql("ROLLBACK");
        }
        s.ok(["undo"]);
        assert_eq!(names.map(|name| count(s, name)), ["[(10,)]"; 4].map(str::to_owned));
        s.sh("rm -f *.db*");
    });
}

#[test]
fn one_that_is_as_it_was_is_not_waited_for() {
    if !ready() {
        return;
    }
    each_user(|s| {
        declare(s, &["one", "two"]);
        make(s, "one", "wal", 10);
        make(s, "two", "wal", 20);
        let mut app = Python::start(s);
        app.open("two");
        s.run(&migrate("one", "DELETE FROM t"));
        app.sql("BEGIN IMMEDIATE");
        app.sql("INSERT INTO t(b) VALUES('not committed')");
        s.ok(["undo"]);
        assert_eq!(count(s, "one"), "[(10,)]");
        assert_eq!(app.sql("COMMIT"), "[]");
        assert_eq!(app.count(), "[(21,)]");
        s.sh("rm -f *.db*");
    });
}

/// How often `words` open a file whose path ends with `end`, or for a directory of /proc any.
fn opens(s: &Sandbox, words: &[&str], of: impl Fn(&str) -> bool) -> usize {
    let trace = s.dir().join("trace");
    let mut strace = s.command("strace");
    strace.args(["-f", "-qq", "-e", "trace=openat,open", "-o"]).arg(&trace).arg(crate::PROGRAM).args(words);
    assert!(strace.output().expect("strace can be started").status.success(), "{words:?}");
    let text = std::fs::read_to_string(&trace).unwrap();
    let path = |line: &str| line.split('"').nth(1).map(str::to_owned);
    text.lines().filter(|line| !line.contains("ENOENT")).filter_map(path).filter(|path| of(path)).count()
}

#[test]
fn what_is_asked_once_is_not_asked_for_each_database() {
    if !ready() || !have("strace") {
        return;
    }
    let is_record = |path: &str| path.ends_with("meta.json");
    let is_process = |path: &str| path == "/proc/1/fd" || path == "/proc/locks";
    let counts = [4, 40].map(|many| {
        let s = sandbox();
        let change = |statement: &str| {
            s.sh(&format!(
                "python3 -c \"
import sqlite3
for n in range({many}):
    c = sqlite3.connect('%d.db' % n); c.executescript('{statement}'); c.close()\""
            ));
        };
        change("CREATE TABLE t(a)");
        s.ok(["snap", "-m", "first"]);
        let records = opens(&s, &["snap"], is_record);
        change("INSERT INTO t VALUES(1)");
        let looks = opens(&s, &["undo"], is_process);
        assert_eq!(sql(&s, "3", "SELECT count(*) FROM t"), "[(0,)]");
        (records, looks)
    });
    let [few, many] = counts;
    assert_eq!(many.0, few.0, "records of snapshots");
    assert!(many.1 < 40, "{} and {} looks at all processes", few.1, many.1);
}
