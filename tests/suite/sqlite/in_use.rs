//! Several databases at once: those that are in use are all named, those that are as they were are
//! in nobody's way, and what is asked of the system is not asked once for each.

use super::*;
use crate::{each_user, sandbox};
use snapback_tests::is_root;

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
fn who_is_in_another_container_is_named_or_told_as_that() {
    if !ready() || !is_root() {
        return;
    }
    let s = sandbox();
    declare(&s, &["app"]);
    for mode in ["delete", "wal"] {
        s.sh("rm -f app.db*");
        make(&s, "app", mode, 10);
        s.run(&migrate("app", "DELETE FROM t"));
        // In it: all of its processes are seen from here, by other numbers than it has for them.
        let mut app = Python::start_apart(&s);
        app.open("app");
        assert_eq!(app.sql("BEGIN IMMEDIATE"), "[]");
        let inner = std::fs::read_to_string(format!("/proc/{0}/task/{0}/children", app.pid())).unwrap();
        let who = format!("app.db is in use by python3 (pid {})", inner.trim());
        assert_eq!(app.say("os.getpid()"), "1");
        s.snapback(["undo"]).fails(1, &[&who]).says("hint: end or pause python3");
        drop(app);
        // From it: only that somebody is there.
        let mut app = Python::start(&s);
        app.open("app");
        assert_eq!(app.sql("BEGIN IMMEDIATE"), "[]");
        let mut inside = s.command("unshare");
        inside.args(["--pid", "--fork", "--mount-proc", crate::PROGRAM, "undo"]);
        let said = s.finish(&mut inside);
        said.fails(1, &["app.db is locked by another process"]).says("in another container perhaps");
        assert_eq!(app.sql("ROLLBACK"), "[]");
        assert_eq!(app.count(), "[(0,)]", "{mode}");
        s.ok(["undo"]);
        assert_eq!(app.count(), "[(10,)]", "{mode}");
    }
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
        // There are newer records than those that these go to.
        let back = [&["redo"][..], &["undo"], &["restore", "@1"]].map(|words| opens(&s, words, is_record));
        (records, looks, back)
    });
    let [few, many] = counts;
    assert_eq!((many.0, many.2), (few.0, few.2), "records of snapshots");
    assert!(few.2.iter().all(|opens| *opens > 0), "{few:?}: the trace sees what is read");
    assert!(many.1 < 40, "{} and {} looks at all processes", few.1, many.1);
}
