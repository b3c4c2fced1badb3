//! Databases that a snapshot leaves out: they go on as they are, with what lies beside them.

use super::*;
use crate::each_user;

/// What an application does around a run that changes a file: before the run, between it and
/// the undo, and how it ends before the undo.
struct Story {
    mode: &'static str,
    before: &'static [&'static str],
    after: &'static [&'static str],
    end: End,
}

#[derive(PartialEq, Clone, Copy)]
enum End {
    Close,
    Kill,
    Open,
}

const CHANGE: &str = "UPDATE t SET b = b || '1234567890' WHERE a < 2900";

const STORIES: [Story; 5] = [
    // A log that was there goes away: it must not come back.
    Story {
        mode: "wal",
        before: &["UPDATE t SET b = 'in the log' WHERE a % 7 = 0"],
        after: &["DELETE FROM t WHERE a > 1000", "INSERT INTO t(b) VALUES('precious')", "VACUUM"],
        end: End::Close,
    },
    // A journal that was there goes away.
    Story {
        mode: "delete",
        before: &["PRAGMA cache_size = 2", "BEGIN IMMEDIATE", CHANGE],
        after: &["COMMIT", "DELETE FROM t WHERE a > 1500", "INSERT INTO t(b) VALUES('precious')", "VACUUM"],
        end: End::Close,
    },
    // A log that came later must not go.
    Story { mode: "wal", before: &[], after: &["INSERT INTO t(b) VALUES('precious')"], end: End::Kill },
    Story { mode: "wal", before: &[], after: &["INSERT INTO t(b) VALUES('precious')"], end: End::Open },
    // A journal neither: without it, what it began would stay.
    Story {
        mode: "delete",
        before: &[],
        after: &["INSERT INTO t(b) VALUES('precious')", "PRAGMA cache_size = 2", "BEGIN IMMEDIATE", CHANGE],
        end: End::Kill,
    },
];

/// All that a database says, to somebody who does not change a thing.
fn rows(s: &Sandbox) -> String {
    s.sh("rm -rf ../look; mkdir ../look; cp app.db* ../look");
    let rows = "SELECT count(*), sum(b = 'precious'), sum(length(b)) FROM t";
    let told = sql(s, "../look/app", rows);
    is_sound(s, "../look/app");
    told
}

#[test]
fn one_that_is_ignored_keeps_its_log_and_its_journal() {
    if !ready() {
        return;
    }
    each_user(|s| {
        for ignore in ["app.db", "*.db"] {
            for (n, story) in STORIES.iter().enumerate() {
                s.sh("rm -f app.db*; echo old > f");
                s.write("snapback.toml", format!("[snapshot]\nignore = [\"{ignore}\"]\n"));
                make(s, "app", story.mode, 3000);
                let mut app = Python::start(s);
                if !story.before.is_empty() {
                    app.open("app");
                }
                for line in story.before {
                    assert!(!app.sql(line).starts_with('!'), "{n}: {line}");
                }
                s.run("echo new > f");
                if story.before.is_empty() {
                    app.open("app");
                }
                for line in story.after {
                    assert!(!app.sql(line).starts_with('!'), "{n}: {line}");
                }
                let app = match story.end {
                    End::Close => {
                        app.say("c.close()");
                        None
                    }
                    End::Kill => {
                        app.kill();
                        None
                    }
                    End::Open => Some(app),
                };
                let (files, before) = (s.sh("ls -i app.db*"), rows(s));
                assert!(before.contains(", 1, "), "{n}: {before}");
                for (step, f) in [("undo", "old\n"), ("redo", "new\n"), ("undo", "old\n")] {
                    s.ok([step]).never_says("app.db");
                    assert_eq!(
                        (s.sh("ls -i app.db*"), rows(s)),
                        (files.clone(), before.clone()),
                        "{n} {step}"
                    );
                    assert_eq!(s.read("f"), f);
                }
                drop(app);
                assert_eq!(rows(s), before, "{n}: {ignore}");
            }
        }
    });
}
