//! Where something else took the place of a database, or a database that of something else.

use super::*;
use crate::{each_user, newest, sandbox, there_and_back};
use snapback_tests::{Record, assert_back};
use std::fs;

/// What a run may put where a file was.
const OTHERS: [&str; 6] = [
    "mkdir app.db; echo 1 > app.db/f; mkdir -p app.db/node_modules/x; echo 2 > app.db/node_modules/x/y",
    "mkdir app.db; touch -d 2001-01-01 app.db/f; python3 -c \"import sqlite3; sqlite3.connect('app.db/in.db').execute('CREATE TABLE u(a)')\"",
    "mkfifo app.db",
    "ln -s nowhere app.db",
    "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('app.db')\"",
    "mkdir app.db; mkfifo app.db-wal; mkdir app.db-journal; echo 3 > app.db-journal/f",
];

#[test]
fn what_took_the_place_of_a_database_makes_room_for_it_and_comes_back() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for (n, other) in OTHERS.iter().enumerate() {
            for declared in [false, true] {
                s.sh("rm -rf app.db* snapback.toml");
                if declared {
                    declare(s, &["app"]);
                }
                make(s, "app", if n % 2 == 0 { "wal" } else { "delete" }, 20);
                s.sh("echo old > f");
                // What comes into a directory moves its time, and a link for a database has none.
                let timeless = ["in.db", "ln -s"].iter().any(|what| other.contains(what));
                let timeless: &[&str] = if timeless { &["app.db"] } else { &[] };
                let look = || Record::take(&s.project()).without(timeless);
                let before = Record::take(&s.project());
                s.run(&format!("rm app.db; {other}; echo new > f")).says("modified");
                let (changed, kind) = (look(), s.sh("stat -c %F,%a,%N app.db"));
                s.ok(["diff"]).prints("app.db");
                for _ in 0..2 {
                    s.ok(["undo"]);
                    assert_back(&before, &changed, &Record::take(&s.project()));
                    assert_eq!(count(s, "app"), "[(20,)]");
                    s.ok(["redo"]);
                    assert_back(&changed, &before, &look());
                    assert_eq!(s.sh("stat -c %F,%a,%N app.db"), kind);
                }
                // Only that, by its path.
                s.ok(["undo", "--path", "app.db"]);
                s.sh("rm -rf app.db-*");
                assert_eq!((count(s, "app").as_str(), s.read("f").as_str()), ("[(20,)]", "new\n"), "{other}");
                s.ok(["undo"]);
                assert_eq!(s.sh("stat -c %F,%a,%N app.db"), kind);
                s.ok(["verify"]);
            }
        }
    });
}

#[test]
fn a_database_that_took_the_place_of_something_else_makes_room_for_it() {
    if !ready() {
        return;
    }
    each_user(|s| {
        let remove = "rm -rf app.db; python3 -c \"import sqlite3; sqlite3.connect('app.db').execute('CREATE TABLE t(a)')\"";
        for other in ["mkdir app.db; echo 1 > app.db/f", "mkfifo app.db"] {
            s.sh(&format!("rm -rf app.db*; {other}"));
            there_and_back(s, remove);
            s.run(remove);
            s.ok(["undo", "--path", "app.db"]);
            assert!(s.sh("file=$(stat -c %F app.db); echo $file") != "regular file\n");
            s.ok(["undo"]);
            assert_eq!(count(s, "app"), "[(0,)]");
        }
    });
}

#[test]
fn a_link_in_the_place_of_the_directory_of_a_database_makes_room_for_it() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for declared in [false, true] {
            s.sh("rm -rf data* ../elsewhere snapback.toml; mkdir data");
            if declared {
                let target = "[[target]]\nname = \"app\"\nbackend = \"sqlite\"\npath = \"data/app.db\"\n";
                s.write("snapback.toml", target);
            }
            make(s, "data/app", "delete", 20);
            for moved in ["mv data data2; ln -s data2 data", "mv data ../elsewhere; ln -s ../elsewhere data"]
            {
                // What comes into a directory moves its time.
                let look = || Record::take(&s.project()).without(&["data", "data2"]);
                let before = look();
                s.run(moved);
                let changed = look();
                for _ in 0..2 {
                    s.ok(["undo"]);
                    assert_back(&before, &changed, &look());
                    assert!(!s.project().join("data").is_symlink());
                    assert_eq!(count(s, "data/app"), "[(20,)]");
                    s.ok(["redo"]);
                    assert_back(&changed, &before, &look());
                    assert!(s.project().join("data").is_symlink());
                }
                s.ok(["undo"]);
            }
            assert_eq!(sql(s, "../elsewhere/app", "SELECT count(*) FROM t"), "[(20,)]", "left alone");
            s.sh("rm -r ../elsewhere");
        }
    });
}

#[test]
fn what_no_target_has_in_the_place_of_a_database_is_left_and_told() {
    if !ready() {
        return;
    }
    let s = sandbox();
    declare(&s, &["app"]);
    let toml = s.read("snapback.toml");
    s.write("snapback.toml", format!("[snapshot]\nenabled = false\n{toml}"));
    make(&s, "app", "delete", 20);
    s.run("rm app.db; mkdir app.db; echo mine > app.db/f");
    s.snapback(["undo"]).fails(1, &["app.db", "no file"]);
    assert_eq!(s.read("app.db/f"), "mine\n");
    s.sh("rm -r app.db");
    s.ok(["undo"]);
    assert_eq!(count(&s, "app"), "[(20,)]");
}

#[test]
fn a_damaged_database_comes_back_as_it_was_with_all_else() {
    if !ready() {
        return;
    }
    each_user(|s| {
        make(s, "app", "delete", 2000);
        s.sh("echo old > f");
        let path = s.project().join("app.db");
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2 / 4096 * 4096;
        bytes[middle..middle + 4096].fill(0x5a);
        fs::write(&path, &bytes).unwrap();
        let mut app = Python::start(s);
        app.open("app");
        s.run("cp app.db ../damaged; rm app.db; echo new > f");
        s.ok(["undo"]).says("app.db was damaged when it was captured").says("2 paths");
        assert_eq!((fs::read(&path).unwrap() == bytes, s.read("f")), (true, "old\n".into()));
        s.ok(["redo"]);
        assert!(!s.has("app.db"));
        s.ok(["undo"]);
        // In place, under an open connection.
        app.open("app");
        s.run("python3 -c \"import sqlite3; c = sqlite3.connect('app.db'); c.execute('CREATE TABLE u(a)')\"");
        let before = inode(s, "app.db");
        s.ok(["undo"]).says("damaged when it was captured");
        assert_eq!(inode(s, "app.db"), before);
        assert_eq!(app.sql("SELECT count(*) FROM sqlite_master"), "[(1,)]");
        let now = fs::read(&path).unwrap();
        assert!(now[middle..middle + 4096] == bytes[middle..middle + 4096] && now.len() == bytes.len());
    });
}

#[test]
fn what_could_not_be_undone_is_not_counted_and_the_history_still_outlives_the_folder() {
    if !ready() {
        return;
    }
    each_user(|s| {
        declare(s, &["app"]);
        make(s, "app", "delete", 20);
        s.sh("echo old > f; echo old > g");
        s.run(&format!("echo new > f; echo new > g; {}", migrate("app", "DELETE FROM t")));
        let mut app = Python::start(s);
        app.open("app");
        app.sql("BEGIN IMMEDIATE");
        s.snapback(["undo"]).fails(1, &["app.db", "python3"]);
        // What is there has other times now, and is else in a snapshot already.
        let saved = newest(s);
        s.sh("touch -d 2001-01-01 f g");
        s.snapback(["undo"]).fails(1, &["app.db", "python3"]);
        assert_eq!(newest(s), saved, "that one was used again");
        s.ok(["status"]).prints("outlives the folder");
        let undo = s.snapback(["undo", "--partial", "--json"]);
        undo.exits(3).says("undone, 2 paths as in").says("not restored: app");
        assert_eq!(undo.json()["changes"].as_array().map(Vec::len), Some(2));
        assert_eq!((s.read("f").as_str(), s.read("g").as_str()), ("old\n", "old\n"));
    });
}

#[test]
fn who_still_has_the_removed_database_open_is_named() {
    if !ready() {
        return;
    }
    each_user(|s| {
        let word = "still has the removed d/app.db open: restart it, what it writes is lost";
        for removal in ["rm d/app.db*", "rm -r d"] {
            s.sh("rm -rf d; mkdir d");
            make(s, "d/app", "wal", 20);
            let file = fs::File::open(s.project().join("d/app.db")).unwrap();
            let mut holder = s.command("sleep").arg("600").stdin(file).spawn().unwrap();
            s.run(&format!("{removal}; echo new > f"));
            let said = s.ok(["undo"]);
            holder.kill().unwrap();
            holder.wait().unwrap();
            said.says(&format!("snapback: sleep (pid {}) {word}", holder.id()));
            assert_eq!(count(s, "d/app"), "[(20,)]");
            // Nobody has what is there now.
            s.ok(["redo"]).never_says("still has");
            s.ok(["undo"]).never_says("still has");
        }
    });
}

#[test]
fn who_has_open_what_an_undo_removes_is_named() {
    if !ready() {
        return;
    }
    each_user(|s| {
        let mut app = Python::start(s);
        for (run, opened) in [
            (migrate("app", "CREATE TABLE t(a); INSERT INTO t VALUES(1)"), "app"),
            ("mv a.db a.db.bak; cp a.db.bak a.db".to_owned(), "a"),
        ] {
            make(s, "a", "delete", 20);
            if opened == "a" {
                app.open("a");
                assert_eq!(app.count(), "[(20,)]");
            }
            s.run(&run);
            if opened == "app" {
                app.open("app");
            }
            assert!(!app.count().starts_with('!'));
            let gone = if opened == "a" { "a.db.bak" } else { "app.db" };
            let who = format!("python3 (pid {}) still has the removed {gone} open", app.pid());
            s.ok(["undo"]).says(&who);
            assert!(!s.has(gone));
            s.sh("rm -f *.db*");
        }
    });
}

#[test]
fn a_directory_beside_what_was_left_of_a_database_comes_back_with_a_redo() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for mode in ["wal", "truncate"] {
            s.sh("rm -rf app.db*");
            make(s, "app", mode, 10);
            let mut app = Python::start(s);
            app.open("app");
            app.sql(&format!("PRAGMA journal_mode = {mode}"));
            app.sql("INSERT INTO t(b) VALUES('more')");
            match mode {
                "wal" => app.kill(),
                _ => drop(app.say("c.close()")),
            }
            s.run("rm app.db; mkdir app.db; echo precious > app.db/x");
            s.ok(["undo"]);
            assert_eq!(count(s, "app"), "[(11,)]", "{mode}");
            s.ok(["redo"]);
            assert_eq!(s.read("app.db/x"), "precious\n", "{mode}");
            s.ok(["undo"]);
            assert_eq!(count(s, "app"), "[(11,)]", "{mode}");
        }
    });
}
