//! Databases that nobody declared: found by their first bytes, each a target of its own.

use super::*;
use crate::{each_user, newest, sandbox};
use snapback_tests::Record;
use std::fs;

#[test]
fn without_any_configuration_an_open_database_is_undone() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for mode in ["delete", "wal"] {
            let name = mode;
            make(s, name, mode, 100);
            let mut app = Python::start(s);
            app.open(name);
            assert_eq!(app.count(), "[(100,)]");
            let before = inode(s, &format!("{name}.db"));
            s.sh("echo old > f");
            s.run(&format!(
                "echo new > f; {}",
                migrate(name, "DELETE FROM t WHERE a > 3; CREATE TABLE more(x)")
            ));
            assert_eq!(app.count(), "[(3,)]");
            s.ok(["undo"]).says("2 to change back");
            assert_eq!((inode(s, &format!("{name}.db")), s.read("f")), (before, "old\n".into()));
            assert_eq!(app.count(), "[(100,)]", "{mode}: at its next query");
            assert_eq!(app.sql("INSERT INTO t(b) VALUES('mine')"), "[]", "and it goes on");
            app.sql("DELETE FROM t WHERE b = 'mine'");
            s.ok(["redo"]);
            assert_eq!((app.count(), s.read("f")), ("[(3,)]".into(), "new\n".into()));
            s.ok(["undo"]).never_says("after the run");
            assert_eq!(app.count(), "[(100,)]");
            drop(app);
            is_sound(s, name);
            assert_eq!(sql(s, name, "PRAGMA journal_mode"), format!("[('{mode}',)]"));
        }
    });
}

#[test]
fn what_is_found_is_a_target_called_by_its_path_and_its_side_files_go_with_it() {
    if !ready() {
        return;
    }
    let s = sandbox();
    s.sh("mkdir -p data/deep");
    make(&s, "data/deep/app", "wal", 50);
    s.write("notes-wal", "no database is beside this one");
    s.write("text.db", "SQLite format 3 is not what this is");
    let mut app = Python::start(&s);
    app.open("data/deep/app");
    app.sql("PRAGMA wal_autocheckpoint = 0");
    app.sql("INSERT INTO t(b) VALUES('in the log')");
    assert!(s.has("data/deep/app.db-wal") && s.has("data/deep/app.db-shm"));
    s.ok(["snap"]);
    let shown = s.ok(["list", "--json"]).json();
    let targets: Vec<&str> =
        shown[0]["targets"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(targets, ["tree", "data/deep/app.db"]);
    assert_eq!(shown[0]["targets"][1]["backend"], "sqlite");
    assert_eq!(shown[0]["excluded"].as_array().map(Vec::len), Some(0), "{shown}");
    s.snapback(["cat", "@0", "data/deep/app.db-wal"]).fails(1, &["data/deep/app.db-wal"]);
    assert_eq!(s.ok(["cat", "@0", "notes-wal"]).out(), "no database is beside this one");
    s.ok(["cat", "@0", "text.db"]);
    // The image has what was in the log.
    let cat = s.ok(["cat", "@0", "data/deep/app.db"]).stdout;
    fs::write(s.project().join("copy.db"), cat).unwrap();
    assert_eq!(count(&s, "copy"), "[(51,)]");
    s.sh("rm copy.db");
    // Nothing changed: nothing new.
    let before = newest(&s);
    s.ok(["snap"]);
    assert_eq!(newest(&s), before);
}

#[test]
fn a_snapshot_leaves_found_databases_as_they_were() {
    if !ready() {
        return;
    }
    each_user(|s| {
        make(s, "a", "wal", 50);
        make(s, "b", "delete", 50);
        let before = Record::take(&s.project());
        s.ok(["snap"]);
        let after = Record::take(&s.project());
        for path in ["a.db", "b.db"] {
            assert_eq!(before.entry(path), after.entry(path), "{path}");
        }
        for side in ["a.db-wal", "a.db-shm", "b.db-journal"] {
            assert!(!s.has(side), "{side}");
        }
    });
}

#[test]
fn what_the_run_made_is_only_in_what_the_undo_saved() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.sh("echo old > f");
        s.run(&format!(
            "mkdir new; echo new > f; {}",
            migrate("new/app", "PRAGMA journal_mode = WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1)")
        ))
        .says("added");
        s.ok(["diff"]).prints("A new/app.db");
        s.ok(["undo"]).says("to remove");
        assert!(!s.has("new") && s.read("f") == "old\n");
        s.ok(["redo"]);
        assert_eq!((count(s, "new/app"), s.read("f")), ("[(1,)]".into(), "new\n".into()));
        s.ok(["undo", "--path", "new/app.db"]);
        assert!(s.has("new") && !s.has("new/app.db"));
        assert_eq!(s.read("f"), "new\n");
        s.ok(["undo"]);
        assert_eq!(count(s, "new/app"), "[(1,)]");
        s.ok(["undo"]);
        assert!(!s.has("new"));
        s.ok(["redo"]);
        s.run("rm -r new");
        s.ok(["undo"]);
        assert_eq!(count(s, "new/app"), "[(1,)]");
    });
}

#[test]
fn the_tree_never_renames_over_a_database() {
    if !ready() {
        return;
    }
    each_user(|s| {
        // Captured as a file, since it was none, then since that was asked for.
        s.write("app.db", "not yet\n");
        s.ok(["snap"]);
        let text = newest(s);
        s.sh("rm app.db");
        s.write("snapback.toml", "[snapshot]\nsqlite = false\n");
        make(s, "app", "delete", 10);
        s.ok(["snap"]);
        let plain = newest(s);
        assert_eq!(s.ok(["list", "--json"]).json()[0]["targets"].as_array().unwrap().len(), 1);
        // By its own target since then.
        s.write(
            "snapback.toml",
            "[[target]]\nname = \"mine\"\nbackend = \"sqlite\"\npath = \"app.db\"\nbusy-timeout = \"1s\"\n",
        );
        let mut app = Python::start(s);
        app.open("app");
        app.sql("DELETE FROM t WHERE a > 4");
        let before = inode(s, "app.db");
        s.ok(["restore", &plain, "--path", "app.db"]);
        assert_eq!((app.count(), inode(s, "app.db")), ("[(10,)]".into(), before));
        s.ok(["undo"]);
        assert_eq!((app.count(), inode(s, "app.db")), ("[(4,)]".into(), before));
        // In use, it is not replaced by something else either.
        app.sql("BEGIN IMMEDIATE");
        s.snapback(["restore", &text, "--path", "app.db"]).fails(1, &["app.db", "python3"]);
        app.sql("COMMIT");
        assert_eq!((app.count(), inode(s, "app.db")), ("[(4,)]".into(), before));
        drop(app);
        s.ok(["restore", &text, "--path", "app.db"]);
        assert_eq!(s.read("app.db"), "not yet\n");
        s.ok(["undo"]);
        assert_eq!(count(s, "app"), "[(4,)]");
    });
}

#[test]
fn one_that_was_stored_as_a_file_with_its_log_comes_back_in_place() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for (left, mode) in [("wal", "wal"), ("journal", "delete")] {
            let (log, db) = (format!("app.db-{left}"), "app.db");
            s.sh("rm -f app.db*");
            s.write("snapback.toml", "[snapshot]\nsqlite = false\n");
            make(s, "app", mode, 10);
            // What a killed process leaves: rows that are only in the log, or an open change.
            let mut app = Python::start(s);
            app.open("app");
            app.sql("PRAGMA cache_size = 1");
            app.sql("PRAGMA wal_autocheckpoint = 0");
            if left == "journal" {
                app.sql("BEGIN");
            }
            app.sql("WITH RECURSIVE n(i) AS (SELECT 11 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) INSERT INTO t SELECT i, hex(zeroblob(50)) FROM n");
            app.kill();
            assert!(s.has(&log), "{log}");
            s.ok(["snap"]);
            let plain = newest(s);
            s.ok(["cat", &plain, &log]);
            let stored = if left == "wal" { "[(3000,)]" } else { "[(10,)]" };
            assert_eq!(count(s, "app"), stored);
            s.write("snapback.toml", "[[target]]\nname = \"mine\"\nbackend = \"sqlite\"\npath = \"app.db\"\nbusy-timeout = \"1s\"\n");
            let mut app = Python::start(s);
            app.open("app");
            app.sql("DELETE FROM t WHERE a > 4");
            let before = inode(s, db);
            s.ok(["restore", &plain, "--path", db]);
            assert_eq!((app.count(), inode(s, db)), (stored.into(), before), "{mode}");
            app.sql("INSERT INTO t(b) VALUES('mine')");
            drop(app);
            is_sound(s, "app");
            s.ok(["undo"]);
            assert_eq!(count(s, "app"), "[(4,)]", "{mode}");
            // Where it is gone, it comes back as it was.
            s.sh("rm -f app.db*");
            s.ok(["restore", &plain, "--path", db]);
            assert_eq!(count(s, "app"), stored);
            s.sh("rm snapback.toml");
        }
    });
}

#[test]
fn who_holds_a_found_one_is_named_and_it_can_be_skipped() {
    if !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "app", "delete", 10);
    s.sh("echo old > f");
    let mut app = Python::start(&s);
    app.open("app");
    app.sql("BEGIN EXCLUSIVE");
    let who = format!("python3 (pid {})", app.pid());
    s.snapback(["run", "--", "touch", "started"]).fails(125, &["app.db", &who]);
    assert!(!s.has("started"), "what could not be captured is not covered by the tree either");
    s.ok(["run", "--skip", "app.db", "--", "sh", "-c", "echo new > f"]);
    let list = s.ok(["list", "--json"]).json();
    assert_eq!(list[0]["targets"].as_array().unwrap().len(), 1);
    app.sql("COMMIT");
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "old\n");
    assert_eq!(app.count(), "[(10,)]", "it was not captured, so it is not touched");
    s.snapback(["run", "--skip", "ap.db", "--", "true"]).fails(125, &["no target `ap.db`"]);
    s.ok(["run", "--only", "app.db", "--", "sh", "-c", &migrate("app", "DELETE FROM t")]);
    let list = s.ok(["list", "--json"]).json();
    assert_eq!(list[0]["targets"][0]["name"], "app.db");
    s.ok(["undo"]);
    assert_eq!(app.count(), "[(10,)]");
}

#[test]
fn many_databases_and_rules_about_them() {
    if !ready() {
        return;
    }
    let s = sandbox();
    s.sh(
        "python3 -c \"
import sqlite3
for n in range(60):
    c = sqlite3.connect(f'n{n}.db'); c.execute('create table t(a)'); c.execute('insert into t values(1)'); c.commit()\"
mkdir node_modules ign; cp n1.db node_modules/x.db; cp n1.db ign/x.db; ln n2.db hard.db; ln -s n3.db link.db",
    );
    s.write("snapback.toml", "[snapshot]\nignore = [\"/ign/\", \"n4.db\"]\n");
    s.run("for n in $(seq 0 59); do rm n$n.db; done; echo gone > node_modules/x.db; echo gone > ign/x.db");
    s.ok(["undo"]);
    assert!(!s.has("n4.db"), "it was ignored");
    for n in (0..60).filter(|n| *n != 4) {
        assert_eq!(count(&s, &format!("n{n}")), "[(1,)]", "{n}");
    }
    assert_eq!((s.read("node_modules/x.db"), s.read("ign/x.db")), ("gone\n".into(), "gone\n".into()));
    assert_eq!(fs::read_link(s.project().join("link.db")).unwrap().to_str(), Some("n3.db"));
}

#[test]
fn names_of_any_kind() {
    if !ready() {
        return;
    }
    let s = sandbox();
    s.sh("python3 -c \"
import sqlite3, os
for n in [' a b', 'q\\'uote', 'per%41', 'new\\nline', 'tree', 'x?mode=ro', '-dash', 'ä']:
    c = sqlite3.connect('./' + n); c.execute('create table t(a)'); c.execute('insert into t values(1)'); c.commit()
c = sqlite3.connect('odd.db'); c.execute('create table t(a)'); c.commit(); c.close()
os.rename(b'odd.db', b'\\xff.db')\"");
    s.run("rm -f -- *");
    s.ok(["undo"]);
    s.sh("python3 -c \"
import sqlite3
for n in [' a b', 'q\\'uote', 'per%41', 'new\\nline', 'tree', 'x?mode=ro', '-dash', 'ä']:
    assert sqlite3.connect('./' + n).execute('select count(*) from t').fetchall() == [(1,)], n
import os; assert os.path.getsize(b'\\xff.db') == 8192\"");
    let list = s.ok(["list", "--json"]).json();
    let targets = list[1]["targets"].as_array().unwrap();
    for name in ["./tree", "\"new\\nline\"", "\"\\xff.db\"", "q'uote"] {
        assert!(targets.iter().any(|t| t["name"] == name), "{name}: {list}");
    }
}

#[test]
fn one_whose_name_is_no_text_is_never_renamed_over_either() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.sh("mkdir d");
        let mut app = Python::start(s);
        for (at, name) in ["b'd/\\xff.db'", "'d/new\\nline'"].into_iter().enumerate() {
            app.say(&format!("c = sqlite3.connect({name}, isolation_level=None, timeout=10)"));
            app.sql("CREATE TABLE t(a INTEGER PRIMARY KEY)");
            app.sql("INSERT INTO t VALUES(1), (2)");
            app.say(&format!("before = os.stat({name}).st_ino"));
            let delete = format!(
                "import sqlite3; c = sqlite3.connect({name}); c.execute('DELETE FROM t'); c.commit()"
            );
            s.ok(["run", "--", "python3", "-c", &delete]);
            assert_eq!(app.count(), "[(0,)]");
            let diff = s.ok(["diff", "--json"]).json();
            let key = ["path_b64", "path"][at];
            assert_eq!(diff["changes"][0][key], ["ZC//LmRi", "d/new\nline"][at], "{diff}");
            s.ok(["undo"]);
            assert_eq!(
                (app.count(), app.say(&format!("before == os.stat({name}).st_ino"))),
                ("[(2,)]".into(), "True".into())
            );
            // By the name that it is shown by, and by its path.
            let shown = ["\"d/\\xff.db\"", "\"d/new\\nline\""][at];
            s.ok(["show", "@0"]).prints(&format!("target {shown} (backend sqlite)"));
            s.ok(["run", "--skip", shown, "--", "python3", "-c", &delete]);
            s.ok(["undo"]);
            assert_eq!(app.count(), "[(0,)]", "it was skipped");
            s.ok(["redo"]);
            app.sql("INSERT INTO t VALUES(3)");
            s.ok(["run", "--only", shown, "--", "python3", "-c", &delete]);
            let path: &[u8] = [&b"d/\xff.db"[..], b"d/new\nline"][at];
            s.ok([
                std::ffi::OsStr::new("undo"),
                "--path".as_ref(),
                std::os::unix::ffi::OsStrExt::from_bytes(path),
            ]);
            assert_eq!(app.count(), "[(1,)]");
            // Declared by the same words.
            s.write(
                "snapback.toml",
                format!("[[target]]\nname = \"app\"\nbackend = \"sqlite\"\npath = '{shown}'\n"),
            );
            s.ok(["run", "--", "python3", "-c", &delete]);
            s.ok(["show", "@0"]).prints("target app (backend sqlite)");
            s.ok(["undo"]);
            assert_eq!(
                (app.count(), app.say(&format!("before == os.stat({name}).st_ino"))),
                ("[(1,)]".into(), "True".into())
            );
            s.sh("rm snapback.toml");
        }
    });
}

#[test]
fn one_that_sqlite_cannot_open_at_its_path_is_a_file() {
    if !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "app", "delete", 10);
    let names = "n=$(printf 'd%.0s' $(seq 200))";
    s.sh(&format!("{names}; mkdir -p $n/$n/$n; mv app.db $n/$n/$n"));
    s.run(&format!("{names}; echo spoilt > $n/$n/$n/app.db"));
    s.ok(["undo"]);
    s.sh(&format!("{names}; mv $n/$n/$n/app.db ."));
    assert_eq!(count(&s, "app"), "[(10,)]");
}

#[test]
fn one_that_was_empty_is_not_told_as_changed_by_somebody() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.sh("rm -f app.db*; : > app.db");
        s.run(&migrate("app", "CREATE TABLE t(a); INSERT INTO t VALUES(1)"));
        for _ in 0..2 {
            s.ok(["undo"]).never_says("changed after");
            assert_eq!(s.read("app.db"), "");
            s.ok(["redo"]).says("M app.db").never_says("changed after");
            assert_eq!(count(s, "app"), "[(1,)]");
        }
    });
}
