//! The tree and its databases are one step.

use super::*;
use crate::{each_user, newest, sandbox};
use std::time::Duration;

#[test]
fn one_undo_takes_back_the_tree_and_two_databases() {
    if !ready() {
        return;
    }
    each_user(|s| {
        declare(s, &["one", "two"]);
        make(s, "one", "wal", 10);
        make(s, "two", "delete", 20);
        s.sh("mkdir src; echo old > src/f");
        s.run(&format!(
            "echo new > src/f; {}; {}",
            migrate("one", "DELETE FROM t"),
            migrate("two", "DROP TABLE t")
        ));
        s.ok(["undo"]).says("3 to change back");
        assert_eq!(
            (s.read("src/f").as_str(), count(s, "one").as_str(), count(s, "two").as_str()),
            ("old\n", "[(10,)]", "[(20,)]")
        );
        s.ok(["redo"]);
        assert_eq!((s.read("src/f").as_str(), count(s, "one").as_str()), ("new\n", "[(0,)]"));
        assert_eq!(sql(s, "two", "SELECT count(*) FROM sqlite_master"), "[(0,)]");
        s.ok(["undo"]);
        assert_eq!(count(s, "two"), "[(20,)]");
    });
}

#[test]
fn what_fails_takes_back_all_others() {
    if !ready() {
        return;
    }
    each_user(|s| {
        declare(s, &["one", "two"]);
        make(s, "one", "wal", 10);
        make(s, "two", "delete", 20);
        s.sh("echo old > f");
        s.run(&format!(
            "echo new > f; {}; {}",
            migrate("one", "DELETE FROM t"),
            migrate("two", "DELETE FROM t")
        ));
        let mut app = Python::start(s);
        app.open("two");
        app.say("r = c.execute('SELECT * FROM sqlite_master'); r.fetchone()");
        app.sql("BEGIN");
        app.count();
        s.snapback(["undo"]).fails(1, &["two.db", "python3"]);
        assert_eq!((s.read("f").as_str(), count(s, "one").as_str()), ("new\n", "[(0,)]"));
        s.ok(["status"]).prints("takes back");
        assert!(!s.ok(["status"]).out().contains("pending"));
        // Without the one that cannot be.
        let undo = s.snapback(["undo", "--partial"]);
        undo.exits(3).says("two").says("tries the rest again");
        let said = undo.err();
        let rest = said.split('`').find(|words| words.starts_with("snapback restore")).expect("how to go on");
        assert_eq!((s.read("f").as_str(), count(s, "one").as_str()), ("old\n", "[(10,)]"));
        app.sql("COMMIT");
        assert_eq!(app.count(), "[(0,)]");
        // An undo would go one step further; this does the rest of this one.
        s.ok(rest.split(' ').skip(1));
        assert_eq!(app.count(), "[(20,)]");
    });
}

#[test]
fn a_path_or_a_target_is_taken_back_alone() {
    if !ready() {
        return;
    }
    let s = sandbox();
    s.sh("mkdir data");
    s.write("snapback.toml", "[[target]]\nname = \"app\"\nbackend = \"sqlite\"\npath = \"./data//app.db\"\n");
    make(&s, "data/app", "wal", 10);
    s.sh("echo old > f; echo old > data/g");
    s.run(&format!("echo new > f; echo new > data/g; {}", migrate("data/app", "DELETE FROM t")));
    let state = || (s.read("f"), s.read("data/g"), count(&s, "data/app"));
    let is = |f: &str, g: &str, rows: &str| (format!("{f}\n"), format!("{g}\n"), format!("[({rows},)]"));
    let start = newest(&s);
    s.ok(["undo", "--path", "f"]);
    assert_eq!(state(), is("old", "new", "0"));
    s.ok(["undo", "--path", "data/app.db"]);
    assert_eq!(state(), is("old", "new", "10"));
    s.ok(["undo"]);
    s.ok(["undo"]);
    assert_eq!(state(), is("new", "new", "0"));
    s.ok(["restore", &start, "--path", "data"]);
    assert_eq!(state(), is("new", "old", "10"));
    s.ok(["undo"]);
    s.ok(["restore", &start, "--target", "app"]);
    assert_eq!(state(), is("new", "new", "10"));
    s.ok(["undo"]);
    s.ok(["restore", &start, "--path", "data/app.db", "--path", "f"]);
    assert_eq!(state(), is("old", "new", "10"));
    s.snapback(["undo", "--path", "data/none.db"]).fails(1, &["data/none.db"]);
}

#[test]
fn a_database_that_was_made_goes_and_one_that_was_removed_comes() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.write("snapback.toml", "[[target]]\nname = \"app\"\nbackend = \"sqlite\"\npath = \"new/app.db\"\n");
        s.run(&format!(
            "mkdir new; echo x > new/f; {}",
            migrate("new/app", "CREATE TABLE t(a); INSERT INTO t VALUES(1)")
        ));
        s.ok(["undo"]);
        assert!(!s.has("new"));
        s.ok(["redo"]);
        assert_eq!(count(s, "new/app"), "[(1,)]");
        assert_eq!(s.read("new/f"), "x\n");
        s.run("rm -r new");
        s.ok(["undo"]);
        assert_eq!(count(s, "new/app"), "[(1,)]");
        s.run("rm new/app.db; ln -s /etc/passwd new/app.db");
        s.ok(["undo"]);
        assert_eq!(count(s, "new/app"), "[(1,)]");
        s.run("cp new/f new/app.db");
        s.ok(["undo"]);
        assert_eq!(count(s, "new/app"), "[(1,)]");
    });
}

#[test]
fn an_undo_that_is_killed_is_finished_by_the_next_command() {
    if !ready() {
        return;
    }
    // With targets of their own, and found.
    for declared in [true, false] {
        killed_undos(declared);
    }
}

fn killed_undos(declared: bool) {
    let s = sandbox();
    if declared {
        declare(&s, &["one", "two"]);
    }
    make(&s, "one", "wal", 5000);
    make(&s, "two", "delete", 5000);
    s.sh("for f in $(seq 50); do echo old > f$f; done");
    let mut cut_short = 0;
    for at in 0..12 {
        s.run(&format!(
            "for f in $(seq 50); do echo new > f$f; done; {}; {}",
            migrate("one", "UPDATE t SET b = hex(randomblob(100)); DELETE FROM t WHERE a > 4000"),
            migrate("two", "DELETE FROM t WHERE a > 10")
        ));
        let hit = s.cut_short(&["undo"], Duration::from_millis(at * 5));
        // Whoever opens it meanwhile finds a sound database.
        is_sound(&s, "one");
        is_sound(&s, "two");
        if hit {
            cut_short += 1;
            s.ok(["undo", "--resume"]);
        }
        assert_eq!(
            (count(&s, "one"), count(&s, "two")),
            ("[(5000,)]".into(), "[(5000,)]".into()),
            "killed at {at}"
        );
        assert_eq!(s.read("f50"), "old\n");
        is_sound(&s, "one");
    }
    assert!(cut_short > 0, "none was hit in its middle");
}
