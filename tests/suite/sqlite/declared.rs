//! A database with a target of its own.

use super::*;
use crate::{each_user, sandbox};
use snapback_tests::Record;
use std::fs;

#[test]
fn an_application_sees_the_stored_rows_at_its_next_query() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for mode in ["delete", "wal"] {
            let name = mode;
            declare(s, &[name]);
            make(s, name, mode, 100);
            let mut app = Python::start(s);
            app.open(name);
            assert_eq!(app.count(), "[(100,)]");
            let before = inode(s, &format!("{name}.db"));
            s.run(&migrate(
                name,
                "DELETE FROM t WHERE a > 3; ALTER TABLE t ADD COLUMN c; CREATE TABLE more(x)",
            ));
            assert_eq!(app.sql("SELECT count(c), count(*) FROM t"), "[(0, 3)]");
            s.ok(["undo"]).says("1 to change back");
            assert_eq!(inode(s, &format!("{name}.db")), before);
            assert_eq!(app.count(), "[(100,)]", "{mode}");
            assert_eq!(app.sql("INSERT INTO t(b) VALUES('mine')"), "[]");
            app.sql("DELETE FROM t WHERE b = 'mine'");
            s.ok(["redo"]);
            assert_eq!(app.sql("SELECT count(c), count(*) FROM t"), "[(0, 3)]");
            s.ok(["undo"]);
            assert_eq!(app.count(), "[(100,)]");
            is_sound(s, name);
            assert_eq!(sql(s, name, "PRAGMA journal_mode"), format!("[('{mode}',)]"));
            // Once more there is nothing to do.
            s.ok(["snap"]);
            s.snapback(["diff", "--exit-code", "@0"]).exits(0);
        }
    });
}

#[test]
fn a_snapshot_leaves_everything_as_it_was() {
    if !ready() {
        return;
    }
    each_user(|s| {
        declare(s, &["a", "b"]);
        make(s, "a", "wal", 50);
        make(s, "b", "delete", 50);
        let before = Record::take(&s.project());
        s.ok(["snap"]);
        let after = Record::take(&s.project());
        for path in ["a.db", "b.db", "snapback.toml"] {
            assert_eq!(before.entry(path), after.entry(path), "{path}");
        }
        for side in ["a.db-wal", "a.db-shm", "b.db-journal"] {
            assert!(!s.has(side), "{side}");
        }
        let cat = s.ok(["cat", "@0", "a.db"]).stdout;
        assert_eq!(cat, fs::read(s.project().join("a.db")).unwrap());
    });
}

#[test]
fn it_is_shown_like_everything_else() {
    if !ready() {
        return;
    }
    let s = sandbox();
    declare(&s, &["app"]);
    make(&s, "app", "delete", 50);
    s.ok(["backends"]).prints("sqlite");
    s.ok(["backends", "show", "sqlite"]).prints("busy-timeout");
    s.run(&migrate("app", "DELETE FROM t"));
    s.ok(["status"]).prints("tree, app (sqlite)").prints("nothing left out");
    let list = s.ok(["list", "--json"]).json();
    assert_eq!(list[0]["targets"][1]["name"], "app");
    assert_eq!(list[0]["targets"][1]["bytes"], fs::metadata(s.project().join("app.db")).unwrap().len());
    assert_eq!(list[0]["excluded"].as_array().map(Vec::len), Some(0), "{list}");
    s.ok(["diff"]).prints("M app.db");
    let diff = s.ok(["diff", "--json"]).json();
    assert_eq!(diff["changes"][0]["target"], "app");
    assert_eq!(diff["changes"][0]["path"], "app.db");
    assert_eq!(diff["changes"][0]["by"], "run");
    make(&s, "other", "delete", 1);
    sql(&s, "app", "INSERT INTO t(b) VALUES('later')");
    assert_eq!(s.ok(["diff", "--json"]).json()["changes"][0]["by"], "later");
    s.ok(["diff", "--path", "app.db"]).prints("app.db");
    assert_eq!(s.ok(["diff", "--path", "snapback.toml"]).out(), "");
    s.ok(["show", "@0"]).prints("target app (backend sqlite): 1 file");
}

#[test]
fn who_holds_it_beyond_the_timeout_is_named_and_the_command_does_not_start() {
    if !ready() {
        return;
    }
    each_user(|s| {
        declare(s, &["app"]);
        make(s, "app", "delete", 10);
        let mut app = Python::start(s);
        app.open("app");
        app.sql("BEGIN EXCLUSIVE");
        let who = format!("python3 (pid {})", app.pid());
        s.snapback(["run", "--", "touch", "started"]).fails(125, &["app.db", &who]);
        assert!(!s.has("started"));
        s.ok(["run", "--skip", "app", "--", "touch", "started"]);
        app.sql("ROLLBACK");
        s.run(&migrate("app", "DELETE FROM t"));
        app.sql("BEGIN EXCLUSIVE");
        s.snapback(["undo"]).fails(1, &["app.db", &who]);
        app.sql("COMMIT");
        s.ok(["undo"]);
        assert_eq!(app.count(), "[(10,)]");
    });
}

#[test]
fn a_path_that_leads_out_is_asked_for_and_nonsense_refused() {
    let s = sandbox();
    fs::write(s.home().join("other.db"), "").unwrap();
    for (path, word) in [("../other.db", "by `..`"), ("/etc/passwd", "by an absolute path")] {
        s.write("snapback.toml", format!("[[target]]\nbackend = \"sqlite\"\npath = \"{path}\"\n"));
        s.snapback(["run", "--", "true"]).fails(125, &[word]);
    }
    s.write("snapback.toml", "[[target]]\nbackend = \"sqlite\"\n");
    s.snapback(["snap"]).fails(2, &["`path` is missing"]);
    s.write("snapback.toml", "[[target]]\nbackend = \"sqlite\"\npath = \"a.db\"\nbusy-timeout = \"soon\"\n");
    s.snapback(["snap"]).fails(2, &["busy-timeout"]);
    s.write("snapback.toml", "[[target]]\nbackend = \"sqlite\"\npath = \"link/a.db\"\n");
    s.sh("mkdir d; ln -s d link");
    s.snapback(["snap"]).fails(1, &["behind a link"]);
}

#[test]
fn what_is_no_database_is_covered_all_the_same() {
    if !ready() {
        return;
    }
    each_user(|s| {
        declare(s, &["app"]);
        s.write("app.db", "secret, encrypted\n");
        s.run("echo new > app.db").says("not a SQLite database");
        s.ok(["undo"]);
        assert_eq!(s.read("app.db"), "secret, encrypted\n");
        s.ok(["redo"]);
        assert_eq!(s.read("app.db"), "new\n");
    });
}

#[test]
fn a_directory_that_may_not_be_written_does_not_keep_it_from_being_captured() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.write("snapback.toml", "[[target]]\nname = \"a\"\nbackend = \"sqlite\"\npath = \"d/a.db\"\n");
        for mode in ["wal", "delete"] {
            s.sh("mkdir -p d");
            make(s, "d/a", mode, 10);
            s.sh("chmod 444 d/a.db; chmod 555 d");
            s.ok(["snap"]);
            s.sh("chmod 755 d; rm -r d");
            s.ok(["restore", "@0"]);
            assert_eq!(s.sh("stat -c %a d/a.db d").trim(), "444\n555");
            s.sh("chmod 755 d; chmod 644 d/a.db");
            assert_eq!(count(s, "d/a"), "[(10,)]", "{mode}");
            s.sh("rm -r d");
        }
    });
}

#[test]
fn one_outside_that_was_agreed_to_comes_back_under_its_connection() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for mode in ["wal", "delete"] {
            make(s, "../out", mode, 20);
            let toml = "[[target]]\nname = \"out\"\nbackend = \"sqlite\"\npath = \"../out.db\"\n";
            s.write("snapback.toml", toml);
            let refused = s.snapback(["snap"]);
            // Agreed to once, it is agreed to.
            if mode == "wal" {
                refused.exits(1);
                let said = refused.err();
                let digest =
                    said.split("--digest ").nth(1).and_then(|rest| rest.split(['`', ' ', '\n']).next());
                s.ok(["trust", "--digest", digest.expect("the way to agree is named")]);
            }
            let mut app = Python::start(s);
            app.open("../out");
            let before = inode(s, "../out.db");
            s.run(&migrate("../out", "DELETE FROM t WHERE a > 3"));
            assert_eq!(app.count(), "[(3,)]");
            for (step, rows) in [("undo", "[(20,)]"), ("redo", "[(3,)]"), ("undo", "[(20,)]")] {
                s.ok([step]);
                assert_eq!((app.count().as_str(), inode(s, "../out.db")), (rows, before), "{mode} {step}");
            }
            drop(app);
            is_sound(s, "../out");
            s.sh("rm ../out.db*");
        }
    });
}

#[test]
fn one_that_is_checked_when_it_is_captured_keeps_the_command_from_starting_when_it_is_damaged() {
    if !ready() {
        return;
    }
    let s = sandbox();
    for verify in [true, false] {
        s.sh("rm -f app.db* started");
        let target = "[[target]]\nname = \"app\"\nbackend = \"sqlite\"\npath = \"app.db\"\n";
        s.write("snapback.toml", format!("{target}verify = {verify}\n"));
        make(&s, "app", "delete", 2000);
        s.ok(["snap"]);
        let path = s.project().join("app.db");
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2 / 4096 * 4096;
        bytes[middle..middle + 4096].fill(0x5a);
        fs::write(&path, &bytes).unwrap();
        let run = s.snapback(["run", "--", "touch", "started"]);
        if verify {
            run.fails(125, &["app.db", "damaged"]);
        } else {
            run.exits(0);
        }
        assert_eq!(s.has("started"), !verify);
    }
}
