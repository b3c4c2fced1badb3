//! Applications that write all the time, through snapshot, run and undo.

use super::*;
use crate::{each_user, sandbox};
use std::thread::sleep;
use std::time::Duration;

/// Rows of the two tables that every commit writes both of.
fn pairs(s: &Sandbox, name: &str) -> (u64, u64) {
    let rows = sql(s, name, "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM u)");
    let mut numbers = rows.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn a_steady_writer_goes_on_through_snapshot_run_and_undo() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for mode in ["wal", "delete"] {
            let name = mode;
            s.write(
                "snapback.toml",
                format!("[[target]]\nname = \"app\"\nbackend = \"sqlite\"\npath = \"{name}.db\"\nbusy-timeout = \"60s\"\n"),
            );
            make(s, name, mode, 1000);
            let mut app = Python::start(s);
            app.open(name);
            app.write_without_end();
            sleep(Duration::from_millis(100));
            s.ok(["run", "--", "sleep", "0.2"]);
            sleep(Duration::from_millis(100));
            s.ok(["undo"]);
            sleep(Duration::from_millis(200));
            app.kill();
            is_sound(s, name);
            let (t, u) = pairs(s, name);
            assert_eq!(t, u + 1000, "{mode}: whole commits");
            // What the undo replaced is kept: whole commits up to the last one before it.
            s.ok(["redo"]);
            is_sound(s, name);
            let (late, u) = pairs(s, name);
            assert_eq!(late, u + 1000, "{mode}");
        }
    });
}

#[test]
fn a_reader_in_the_middle_of_its_rows_goes_on() {
    if !ready() {
        return;
    }
    let s = sandbox();
    declare(&s, &["app"]);
    make(&s, "app", "wal", 500);
    s.run(&migrate("app", "DELETE FROM t WHERE a > 400"));
    let mut app = Python::start(&s);
    app.open("app");
    app.say("r = c.execute('SELECT a FROM t'); r.fetchone()");
    s.ok(["undo"]);
    assert_eq!(app.say("len(r.fetchall())"), "399");
    assert_eq!(app.count(), "[(500,)]");
}

#[test]
fn attached_databases_are_committed_together_and_come_back_together() {
    if !ready() {
        return;
    }
    let s = sandbox();
    declare(&s, &["one", "two"]);
    make(&s, "one", "delete", 10);
    make(&s, "two", "delete", 10);
    let mut app = Python::start(&s);
    app.open("one");
    app.sql("ATTACH 'two.db' AS two");
    s.ok(["snap"]);
    app.say("c.executescript('BEGIN; DELETE FROM main.t; DELETE FROM two.t; COMMIT')");
    s.ok(["undo"]);
    assert_eq!(app.sql("SELECT (SELECT count(*) FROM main.t), (SELECT count(*) FROM two.t)"), "[(10, 10)]");
}

#[test]
fn many_undos_under_steady_writers_leave_one_file_that_all_of_them_go_on_with() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for mode in ["delete", "persist", "truncate", "wal"] {
            let file = format!("{mode}.db");
            make(s, mode, mode, 1000);
            let before = inode(s, &file);
            let mut apps = [Python::start(s), Python::start(s), Python::start(s)];
            for app in &mut apps {
                assert_eq!(
                    app.say(&format!("c = sqlite3.connect({file:?}, isolation_level=None, timeout=60)")),
                    "None"
                );
                assert_eq!(app.sql(&format!("PRAGMA journal_mode = {mode}")), format!("[('{mode}',)]"));
                app.write_without_end_and("FULL");
            }
            for n in 0..6 {
                s.run("echo new > f");
                s.ok(["undo"]).never_says("had open").never_says("still has");
                assert_eq!(inode(s, &file), before, "{mode}, undo {n}");
            }
            apps.into_iter().for_each(Python::kill);
            is_sound(s, mode);
            let (t, u) = pairs(s, mode);
            assert_eq!(t, u + 1000, "{mode}: whole commits");
            s.sh(&format!("rm {file}*"));
        }
    });
}

#[test]
fn what_was_begun_over_two_databases_and_killed_is_in_neither() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for mode in ["delete", "wal"] {
            s.sh("rm -f one.db* two.db*");
            make(s, "one", mode, 2000);
            make(s, "two", mode, 2000);
            let mut app = Python::start(s);
            app.open("one");
            app.sql("ATTACH 'two.db' AS two");
            for pragma in ["main.cache_size = 2", "two.cache_size = 2"] {
                app.sql(&format!("PRAGMA {pragma}"));
            }
            app.sql("BEGIN IMMEDIATE");
            for of in ["main", "two"] {
                assert_eq!(app.sql(&format!("UPDATE {of}.t SET b = b || hex(zeroblob(200))")), "[]");
            }
            app.kill();
            s.run(&[migrate("one", "DELETE FROM t"), migrate("two", "DELETE FROM t")].join(";"));
            s.ok(["undo"]);
            for name in ["one", "two"] {
                let rows = "SELECT count(*), sum(length(b)) < 20000 FROM t";
                assert_eq!(sql(s, name, rows), "[(2000, 1)]", "{mode} {name}");
                is_sound(s, name);
            }
        }
    });
}

#[test]
fn a_connection_for_each_request_keeps_nothing_from_being_captured_or_put_back() {
    if !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "app", "wal", 100);
    let mut apps = [Python::start(&s), Python::start(&s)];
    for app in &mut apps {
        app.say("o = lambda: sqlite3.connect('app.db', isolation_level=None, timeout=60)");
        app.say("r = lambda c: (c.execute('INSERT INTO t(b) VALUES(1)'), c.close(), time.sleep(0.005))");
        app.begin("[r(o()) for _ in range(10**9)]");
    }
    for n in 0..3 {
        s.run("echo new > f");
        s.ok(["undo"]).never_says("replaced again");
        assert!(!s.has("f"), "undo {n}");
    }
    apps.into_iter().for_each(Python::kill);
    is_sound(&s, "app");
}
