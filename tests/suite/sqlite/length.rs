//! Databases whose files are longer than their pages: room that was set aside, or a few bytes.

use super::*;
use crate::{each_user, newest};

#[test]
fn one_that_is_longer_than_its_pages_comes_and_goes_like_any_other() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for mode in ["wal", "delete"] {
            for length in ["+10", "1M"] {
                s.sh("rm -f app.db* snapback.toml; echo old > f");
                make(s, "app", mode, 100);
                s.sh(&format!("truncate -s {length} app.db"));
                let delete = migrate("app", "DELETE FROM t WHERE a > 10");
                s.run(&format!("echo new > f; {delete}")).never_says("not a SQLite database");
                let before = inode(s, "app.db");
                s.ok(["undo"]).never_says("not a SQLite database");
                assert_eq!((count(s, "app"), inode(s, "app.db")), ("[(100,)]".into(), before), "{mode}");
                assert_eq!(s.read("f"), "old\n");
                s.run("rm app.db");
                s.ok(["undo"]);
                assert_eq!(count(s, "app"), "[(100,)]", "{mode} {length}");
                // A run makes it.
                s.sh("mv app.db ../kept.db");
                s.run(&format!("mv ../kept.db app.db; truncate -s {length} app.db; echo new > f"));
                s.ok(["undo"]);
                assert_eq!((s.has("app.db"), s.read("f")), (false, "old\n".into()), "{mode} {length}");
                s.ok(["redo"]);
                assert_eq!(count(s, "app"), "[(100,)]");
                // Stored as a file, it comes back in place.
                s.write("snapback.toml", "[snapshot]\nsqlite = false\n");
                s.sh(&format!("truncate -s {length} app.db"));
                s.ok(["snap"]);
                let plain = newest(s);
                declare(s, &["app"]);
                s.sh(&delete);
                let before = inode(s, "app.db");
                s.ok(["restore", &plain, "--path", "app.db"]);
                assert_eq!((count(s, "app"), inode(s, "app.db")), ("[(100,)]".into(), before), "{mode}");
            }
        }
    });
}
