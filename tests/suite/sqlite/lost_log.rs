//! A run that removes the log of a database under the application that has it open.

use super::*;
use crate::{PROGRAM, each_user};
use snapback_tests::{User, is_root};

#[test]
fn an_undo_waits_for_the_application_to_be_ended() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for remove in ["rm app.db-wal app.db-shm", "rm app.db-wal", ": > app.db-wal"] {
            s.sh("rm -f app.db*; echo old > f");
            declare(s, &["app"]);
            make(s, "app", "wal", 5000);
            let mut app = Python::start(s);
            app.open("app");
            app.sql("UPDATE t SET b = 'log' WHERE a % 50 = 0");
            let both = remove.contains("shm");
            let change =
                if both { migrate("app", "DELETE FROM t WHERE a > 100; VACUUM") } else { "true".to_owned() };
            // Somebody beside it who locks and lets go all the time.
            let mut other = Python::start(s);
            other.say("import fcntl");
            other.begin(
                "f = open('other', 'w'); [fcntl.lockf(f, fcntl.LOCK_UN if n % 2 else fcntl.LOCK_EX) for n in range(10**9)]",
            );
            s.run(&format!("{remove}; {change}; echo new > f"));
            let who = format!("python3 (pid {})", app.pid());
            s.snapback(["undo"])
                .fails(1, &["app.db is in use by", &who, "its log was removed"])
                .says(&format!("hint: end {who}"))
                .never_says("what it writes is lost");
            assert_eq!(s.read("f"), "new\n", "{remove}: nothing was done");
            app.say("c.close()");
            drop(app);
            s.ok(["undo"]);
            assert_eq!(s.read("f"), "old\n");
            let rows = || sql(s, "app", "SELECT count(*), sum(b = 'log') FROM t");
            assert_eq!(rows(), "[(5000, 100)]", "{remove}");
            sql(s, "app", "INSERT INTO t(b) VALUES('later')");
            assert_eq!(rows(), "[(5001, 100)]", "{remove}");
            is_sound(s, "app");
        }
    });
}

#[test]
fn an_application_of_somebody_else_is_waited_for_as_well() {
    if !ready() || !is_root() {
        return;
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    for remove in ["rm app.db-wal app.db-shm", "mv new.db app.db"] {
        s.sh("rm -f app.db*; echo old > f");
        declare(&s, &["app"]);
        make(&s, "app", "wal", 20);
        s.sh("cp app.db new.db; rm app.db; chmod 777 .");
        make(&s, "app", "wal", 500);
        s.sh("chmod 666 app.db");
        let mut app = Python::start_as_root(&s);
        app.open("app");
        app.sql("UPDATE t SET b = 'log' WHERE a % 50 = 0");
        let change = match remove {
            "mv new.db app.db" => "true".to_owned(),
            _ => migrate("app", "DELETE FROM t WHERE a > 100"),
        };
        s.run(&format!("{remove}; {change}; echo new > f")).says("is not captured");
        let who = format!("python3 (pid {})", app.pid());
        s.snapback(["undo"]).fails(1, &["app.db", &who]).says(&format!("hint: end {who}"));
        assert_eq!(s.read("f"), "new\n", "{remove}: nothing was done");
        app.say("c.close()");
        drop(app);
        s.ok(["undo"]);
        assert_eq!((s.read("f").as_str(), count(&s, "app").as_str()), ("old\n", "[(500,)]"), "{remove}");
        is_sound(&s, "app");
    }
}

#[test]
fn what_a_snapshot_lacks_of_a_lost_log_is_said_then_and_at_the_undo() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.sh("rm -f app.db*");
        make(s, "app", "wal", 50);
        let mut app = Python::start(s);
        app.open("app");
        app.sql("INSERT INTO t(b) VALUES('in the log')");
        s.sh("rm app.db-wal app.db-shm");
        let who = format!("app.db-wal: removed or moved away under python3 (pid {})", app.pid());
        s.ok(["snap"]).says(&who);
        s.ok(["show", "@0"]).prints("app.db-wal").prints("is not captured");
        app.say("c.close()");
        drop(app);
        // By now it is in the database, and was in no snapshot.
        assert_eq!(count(s, "app"), "[(51,)]");
        let lacking = crate::newest(s);
        sql(s, "app", "DELETE FROM t WHERE a < 10");
        s.snapback(["restore", &lacking]).exits(3).says("app.db-wal").says("not in the snapshot");
        assert_eq!(count(s, "app"), "[(50,)]");
    });
}

#[test]
fn locks_that_sqlite_does_not_see_are_nobodys() {
    if !ready() {
        return;
    }
    each_user(|s| {
        s.sh("rm -f app.db*");
        make(s, "app", "wal", 50);
        s.run(&migrate("app", "DELETE FROM t"));
        let mut script = Python::start(s);
        script.say("import fcntl");
        assert_eq!(script.say("f = open('app.db'); fcntl.flock(f, fcntl.LOCK_EX)"), "None");
        s.ok(["undo"]);
        assert_eq!(count(s, "app"), "[(50,)]");
    });
}
