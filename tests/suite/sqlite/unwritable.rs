//! Databases that this user may read, and not write: told before anything is touched.

use super::*;
use crate::PROGRAM;
use snapback_tests::{User, is_root};
use std::os::unix::fs::MetadataExt;
use std::process::Command;

/// What root does in the project.
fn as_root(s: &Sandbox, script: &str) {
    let done = Command::new("sh").args(["-ec", script]).current_dir(s.project()).status();
    assert!(done.is_ok_and(|status| status.success()), "{script}");
}

const MAKE: &str =
    "PRAGMA user_version = 1; CREATE TABLE t(a); INSERT INTO t VALUES(1); INSERT INTO t VALUES(2)";

/// A database of root's in a directory of the user's, which all may write, and the process of root's that
/// has it open.
fn roots(s: &Sandbox, mode: &str) -> Python {
    as_root(s, "rm -rf d; mkdir d; chown 65534 d");
    let mut app = Python::start_as_root(s);
    app.open("d/app");
    app.sql(&format!("PRAGMA journal_mode = {mode}"));
    app.say(&format!("c.executescript({MAKE:?})"));
    as_root(s, "chmod 666 d/app.db*");
    app
}

#[test]
fn one_of_somebody_else_is_told_before_anything_is_touched() {
    if !ready() || !is_root() {
        return;
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    for declared in [false, true] {
        s.sh("rm -f app.db* snapback.toml; echo old > f");
        if declared {
            declare(&s, &["app"]);
        }
        as_root(&s, &format!("{}; chmod 644 app.db", migrate("app", MAKE)));
        s.run("echo new > f");
        as_root(&s, &migrate("app", "DELETE FROM t"));
        let why = "it belongs to somebody else, and may not be written by this user (mend it: sudo chown";
        s.snapback(["undo", "-n"]).exits(3).says(&format!("cannot be put back: app.db ({why}"));
        s.snapback(["undo"]).fails(1, &["nothing was touched"]).says(&format!("app.db: {why}"));
        assert_eq!((s.read("f").as_str(), count(&s, "app").as_str()), ("new\n", "[(0,)]"));
        s.ok(["status"]).never_says("unfinished");
        s.ok(["undo", "--path", "f"]);
        assert_eq!(s.read("f"), "old\n");
        s.ok(["undo"]);
        s.snapback(["undo", "--partial"]).exits(3).says("not restored: app");
        assert_eq!((s.read("f").as_str(), count(&s, "app").as_str()), ("old\n", "[(0,)]"));
        s.run("true");
    }
}

/// How a database in `d` comes to be in the way of this user: its journal mode, what root does to it,
/// and what has to be given to the user then.
const BARS: [(&str, &str, &str); 7] = [
    ("delete", "chmod 644 app.db", "app.db"),
    ("delete", "chown 0 .; chmod 755 .; chmod 666 app.db", "."),
    ("delete", "chown 0 .; chmod 755 .; chmod 644 app.db", "app.db ."),
    ("persist", "chmod 666 app.db; chmod 644 app.db-journal", "app.db-journal"),
    ("wal", "chmod 666 app.db; chmod 644 app.db-wal app.db-shm", "app.db-wal app.db-shm"),
    ("wal", "chmod 644 app.db*; chown 0 .; chmod 755 .", "app.db app.db-wal app.db-shm"),
    ("wal", "chown 65534 app.db*; chmod 444 app.db*; chown 0 .; chmod 755 .", ""),
];

/// The command that is named between `before` and `after`, as root gives it.
fn named(said: &str, before: &str, after: char) -> Option<String> {
    let (_, rest) = said.split_once(before)?;
    Some(rest.split(after).next()?.replace("sudo ", ""))
}

#[test]
fn the_command_that_is_named_mends_all_that_is_in_the_way() {
    if !ready() || !is_root() {
        return;
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    for (mode, bar, in_the_way) in BARS {
        let mut app = roots(&s, mode);
        s.run("true");
        app.sql("DELETE FROM t");
        as_root(&s, &format!("cd d; {bar}"));
        let look = s.snapback(["undo", "-n"]);
        let mend = named(&look.err(), "mend it: ", ')');
        let paths: Vec<String> = in_the_way
            .split_whitespace()
            .map(|path| s.project().join("d").join(path).display().to_string().replace("/.", ""))
            .collect();
        match &mend {
            None => assert_eq!(in_the_way, "", "{bar}: {look}"),
            Some(mend) => {
                look.exits(3);
                s.snapback(["undo"])
                    .fails(1, &["nothing was touched"])
                    .says("may not be written by this user");
                assert!(mend.ends_with(&paths.join(" ")), "{bar}: {mend}");
                as_root(&s, mend);
            }
        }
        let given = std::fs::metadata(s.project().join("d/app.db")).unwrap().uid() != 0;
        let undo = s.snapback(["undo"]);
        if given {
            // The owner that it had is the other one's to give.
            let path = s.project().join("d/app.db").display().to_string();
            undo.exits(3).says("not restored in full: d/app.db").says(&format!("sudo chown 0:0 {path}`"));
        } else {
            undo.exits(0);
        }
        assert_eq!(app.sql("SELECT count(*) FROM t"), "[(2,)]", "{bar}");
        if mode == "wal" {
            // Nobody asked for what lies beside it to be opened up for good.
            let bits =
                |name: &str| std::fs::metadata(s.project().join("d").join(name)).unwrap().mode() & 0o777;
            let want = if bar.contains("444") { 0o444 } else { 0o644 };
            assert_eq!((bits("app.db-wal"), bits("app.db-shm")), (want, want), "{bar}");
        }
    }
}

#[test]
fn what_may_not_be_read_names_the_command_as_well() {
    if !ready() || !is_root() {
        return;
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    for (mode, bar, in_the_way) in [
        ("persist", "chmod 600 d/app.db-journal", "d/app.db-journal"),
        ("delete", "chmod 600 d/app.db", "d/app.db"),
        ("persist", "chmod 600 d/app.db*", "d/app.db d/app.db-journal"),
    ] {
        // One that may not be read is known to be a database only by who declares it.
        if in_the_way.starts_with("d/app.db") && !in_the_way.starts_with("d/app.db-") {
            s.write(
                "snapback.toml",
                "[[target]]\nname = \"app\"\nbackend = \"sqlite\"\npath = \"d/app.db\"\n",
            );
        }
        let mut app = roots(&s, mode);
        s.run("true");
        app.sql("DELETE FROM t");
        as_root(&s, bar);
        let paths = in_the_way.split(' ').map(|path| s.project().join(path).display().to_string());
        let mend = format!("sudo chown 65534 {}", paths.collect::<Vec<_>>().join(" "));
        s.snapback(["run", "--", "true"]).fails(125, &["app.db"]).says(&mend);
        let undo = s.snapback(["undo"]);
        undo.fails(1, &["app.db"]).says(&mend);
        as_root(&s, &named(&undo.err(), "hint: `", '`').expect("a command is named"));
        s.snapback(["undo"]).says("undone");
        assert_eq!(app.sql("SELECT count(*) FROM t"), "[(2,)]", "{bar}");
    }
}

#[test]
fn what_only_turns_out_when_it_is_put_back_names_the_command_as_well() {
    if !ready() || !is_root() {
        return;
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    // What a killed process left is moved with the database; that it was left is known only by then.
    as_root(&s, &format!("mkdir d; {}; chmod 666 d/app.db", migrate("d/app", MAKE)));
    s.run("echo new > f");
    let mut app = Python::start_as_root(&s);
    app.open("d/app");
    app.sql("PRAGMA journal_mode = wal");
    app.sql("DELETE FROM t");
    app.kill();
    as_root(&s, "chmod 666 d/app.db*");
    let undo = s.snapback(["undo"]);
    undo.fails(1, &["app.db"]).never_says("could not be taken back");
    assert_eq!(s.read("f"), "new\n");
    as_root(&s, &named(&undo.err(), "hint: `", '`').expect("a command is named"));
    s.snapback(["undo"]).exits(3).says("not restored in full: d (its owner").never_says("not restored: ");
    assert_eq!((s.has("f"), count(&s, "d/app")), (false, "[(2,)]".to_owned()));
}

#[test]
fn a_directory_in_which_no_journal_can_be_made_is_told_before_anything_is_touched() {
    if !ready() || !is_root() {
        return;
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    // The file may be written, and no journal be made beside it.
    s.sh("echo old > f");
    as_root(&s, &format!("mkdir d; {}; chmod 666 d/app.db", migrate("d/app", MAKE)));
    s.run("echo new > f");
    as_root(&s, &migrate("d/app", "DELETE FROM t"));
    s.snapback(["undo"])
        .fails(1, &["nothing was touched"])
        .says("app.db: its directory belongs to somebody else");
    assert_eq!((s.read("f").as_str(), s.has(".snapback")), ("new\n", true));
    s.ok(["status"]).never_says("unfinished");
    s.run("echo newer > f");
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "new\n");
}
