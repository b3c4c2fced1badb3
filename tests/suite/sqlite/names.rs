//! Files that share a name's ending, or an inode, with a database or with what lies beside one.

use super::*;
use crate::{each_user, sandbox, there_and_back};
use std::fs;

#[test]
fn what_is_only_called_like_a_side_file_is_covered_as_any_file() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for declared in [false, true] {
            for mode in ["delete", "wal"] {
                s.sh("rm -f *.db* snapback.toml");
                if declared {
                    declare(s, &["app"]);
                }
                make(s, "app", mode, 20);
                for other in ["a", "b"] {
                    make(s, other, "delete", 5);
                }
                s.sh("mv a.db app.db-wal; mv b.db x.db-journal; echo diary > app.db-journal; echo mine > app.db-shm");
                there_and_back(s, "rm app.db-* x.db-journal");
                there_and_back(s, "cp app.db-shm app.db-journal");
            }
        }
    });
}

#[test]
fn a_file_that_became_another_name_of_something_is_its_own_again() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for mode in ["delete", "wal"] {
            for run in [
                "ln -f ../backup/app.db app.db",
                "ln -f ../backup/f app.db",
                "rm app.db; ln other.db app.db; rm b.db; ln other.db b.db",
                "ln -f f app.db",
                "ln -f app.db f",
                "mkdir -p ign; ln -f ign/x.db app.db",
            ] {
                s.sh("rm -rf *.db* f ../backup ign; mkdir ../backup ign");
                s.write("snapback.toml", "[snapshot]\nignore = [\"/ign/\"]\n");
                make(s, "../backup/app", mode, 7);
                make(s, "ign/x", mode, 9);
                make(s, "app", mode, 20);
                make(s, "b", mode, 30);
                make(s, "other", mode, 40);
                s.sh("echo precious > ../backup/f; echo text > f");
                let outside = || s.sh("ls -i ../backup ign; sha256sum ../backup/* ign/*");
                let before = outside();
                s.run(run);
                for _ in 0..2 {
                    s.ok(["undo"]);
                    assert_eq!(outside(), before, "{mode} {run}");
                    for (name, rows) in [("app", 20), ("b", 30), ("other", 40)] {
                        assert_eq!(count(s, name), format!("[({rows},)]"), "{mode} {run} {name}");
                    }
                    assert_eq!(s.read("f"), "text\n");
                    s.ok(["redo"]);
                    assert_eq!(outside(), before, "{mode} {run}");
                }
                s.ok(["undo"]);
            }
        }
    });
}

#[test]
fn one_that_has_a_name_outside_is_put_back_without_that_and_it_is_said() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.sh("rm -rf *.db ../other.db");
        make(s, "app", "delete", 20);
        s.sh("ln app.db ../other.db");
        s.run(&migrate("app", "DELETE FROM t WHERE a > 3"));
        s.ok(["undo"]).says("app.db had other names outside of what is put back, and these stay as they are");
        assert_eq!((count(s, "app").as_str(), count(s, "../other").as_str()), ("[(20,)]", "[(3,)]"));
        // Both of them are known, and open: one database, in place.
        s.sh("ln app.db b.db");
        let mut app = Python::start(s);
        app.open("b");
        let before = inode(s, "app.db");
        s.run(&migrate("app", "DELETE FROM t WHERE a > 3"));
        assert_eq!(app.count(), "[(3,)]");
        for rows in ["[(20,)]", "[(3,)]"] {
            s.ok([if rows == "[(20,)]" { "undo" } else { "redo" }]).never_says("other names");
            assert_eq!((app.count().as_str(), inode(s, "app.db"), inode(s, "b.db")), (rows, before, before));
        }
    });
}

#[test]
fn what_took_the_place_of_a_side_file_makes_room_and_comes_back() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.write("../victim", "precious\n");
        for declared in [false, true] {
            for mode in ["delete", "wal"] {
                for suffix in ["wal", "journal", "shm"] {
                    for what in
                        ["ln -s nowhere", "ln -s ../victim", "ln ../victim", "mkdir", "mkfifo", "echo junk >"]
                    {
                        s.sh("rm -rf app.db* snapback.toml");
                        if declared {
                            declare(s, &["app"]);
                        }
                        make(s, "app", mode, 20);
                        s.sh("echo old > f");
                        let name = format!("app.db-{suffix}");
                        s.run(&format!("{}; {what} {name}; echo new > f", migrate("app", "DELETE FROM t")));
                        let kind = s.sh(&format!("stat -c %F,%N {name}"));
                        s.ok(["undo"]);
                        assert!(
                            !s.has(&name) && !s.project().join(&name).is_symlink(),
                            "{mode} {what} {name}"
                        );
                        assert_eq!((count(s, "app").as_str(), s.read("f").as_str()), ("[(20,)]", "old\n"));
                        s.ok(["redo"]);
                        assert_eq!(s.sh(&format!("stat -c %F,%N {name}")), kind, "{mode} {what}");
                        s.ok(["undo"]);
                        assert_eq!(count(s, "app"), "[(20,)]");
                        assert_eq!(s.read("../victim"), "precious\n");
                    }
                }
            }
        }
    });
}

#[test]
fn a_damaged_database_with_a_left_journal_blocks_nothing() {
    if !ready() {
        return;
    }
    each_user(|s| {
        // One that promises five pages of noise.
        let header = "\\331\\325\\005\\371\\040\\241\\143\\327\\000\\000\\000\\005AAAA\\000\\000\\000\\002\\000\\000\\002\\000\\000\\000\\020\\000";
        let left = [
            "echo junk > app.db-journal".to_owned(),
            format!("printf '{header}' > app.db-journal; head -c 20000 /dev/urandom >> app.db-journal"),
        ];
        for left in &left {
            for damage in ["truncate -s 8192 app.db", "truncate -s 100 app.db", "true"] {
                if left.contains("junk") && damage == "true" {
                    // A healthy database beside which a file lies.
                    continue;
                }
                s.sh("rm -rf app.db*");
                make(s, "app", "delete", 3000);
                s.sh("echo old > f");
                s.run(&format!("{damage}; {left}; echo new > f"));
                // A restore of chosen things is a step, too: an undo brings back what was there.
                for (path, back) in [(&["undo", "--path", "app.db"][..], "undo"), (&["undo"], "redo")] {
                    s.ok(path.iter().copied());
                    s.sh("rm -f app.db-journal");
                    assert_eq!(count(s, "app"), "[(3000,)]", "{damage}; {left}");
                    is_sound(s, "app");
                    s.ok([back]);
                }
                s.ok(["undo"]);
                assert_eq!(
                    (s.read("f").as_str(), fs::metadata(s.project().join("app.db")).is_ok()),
                    ("old\n", true)
                );
                s.run("true");
            }
        }
    });
}

#[test]
fn a_target_called_like_its_database_is_named_once() {
    if !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "app", "delete", 3000);
    s.run("truncate -s 8192 app.db");
    let again = s.ok(["snap"]);
    again
        .says("snapback: app.db is not a SQLite database: it is kept as a plain file")
        .never_says("app.db: app.db");
    // Known by what it was: that it is something else now is the change.
    make(&s, "b", "delete", 10);
    s.run("echo text > b.db").never_says("b.db is not a SQLite database");
    s.ok(["undo"]).never_says("b.db is not a SQLite database");
}
