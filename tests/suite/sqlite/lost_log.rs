//! A run that removes the log of a database under the application that has it open.

use super::*;
use crate::each_user;

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
