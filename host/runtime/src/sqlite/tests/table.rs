//! Every way in which what is there and what comes back can differ, with everybody who
//! may be at work on it: done in place, or refused as busy with nothing changed.

use super::*;
use snapback_core::error::Kind;

/// Who is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Who {
    Nobody,
    Idle,
    Reading,
    Writing,
}

impl Who {
    /// Makes `app` what it is, at work on 90 rows.
    fn begins(self, app: &mut Python) {
        if self != Self::Nobody {
            app.open();
            assert_eq!(app.count(), "[(90,)]");
        }
        match self {
            Self::Nobody | Self::Idle => {}
            Self::Reading => assert_eq!(app.say("r = c.execute('SELECT a FROM t'); r.fetchone()"), "None"),
            Self::Writing => {
                app.sql("BEGIN IMMEDIATE");
                assert_eq!(app.sql("UPDATE t SET b = 'mine' WHERE a = 1"), "[]");
            }
        }
    }
}

/// Journal mode now, journal mode stored, whether pages have the same size, who.
fn outcome(now: &str, stored: &str, same_size: bool, who: Who) -> bool {
    match (now, stored, same_size, who) {
        (_, _, _, Who::Nobody) => true,
        (_, _, _, Who::Writing) => false,
        // In place: readers of a log go on with what they see.
        ("WAL", "WAL", true, _) => true,
        // Leaving the log needs the database alone.
        ("WAL", _, _, _) => false,
        // A commit waits for whoever reads.
        (_, _, _, Who::Reading) => false,
        (_, _, _, Who::Idle) => true,
    }
}

#[test]
fn in_place_or_busy() {
    for now in ["DELETE", "WAL"] {
        for stored in ["DELETE", "WAL"] {
            for same_size in [true, false] {
                for who in [Who::Nobody, Who::Idle, Who::Reading, Who::Writing] {
                    cell(now, stored, same_size, who);
                }
            }
        }
    }
}

fn cell(now: &str, stored: &str, same_size: bool, who: Who) {
    let cell = format!("{now} -> {stored}, same size {same_size}, {who:?}");
    let world = World::new();
    let size = if same_size { 4096 } else { 1024 };
    world.make(&format!("PRAGMA page_size = {size}\nPRAGMA journal_mode = {stored}"), 400);
    let image = world.capture();
    std::fs::remove_file(world.path("app.db")).unwrap();
    world.make(&format!("PRAGMA journal_mode = {now}"), 90);
    let mut app = world.python();
    who.begins(&mut app);
    let current = world.capture();
    let inode = world.files()[0].1;
    match (outcome(now, stored, same_size, who), world.restore(Some(image), Some(current))) {
        (true, Ok(())) => {
            assert_eq!(world.files()[0].1, inode, "{cell}: the same inode");
            if who == Who::Reading {
                assert_eq!(app.say("len(r.fetchall())"), "89", "{cell}: it goes on with what it began with");
            }
            if who != Who::Nobody {
                assert_eq!(app.count(), "[(400,)]", "{cell}");
                assert_eq!(app.sql("INSERT INTO t(b) VALUES(1)"), "[]", "{cell}");
                app.say("c.close()");
            }
            let mode = format!("[('{}',)]", stored.to_lowercase());
            assert_eq!(world.sql("PRAGMA journal_mode"), mode, "{cell}");
            assert_eq!(world.sql("PRAGMA page_size"), format!("[({size},)]"), "{cell}");
            let rows = if who == Who::Nobody { "[(400,)]" } else { "[(401,)]" };
            assert_eq!(world.count(), rows, "{cell}");
        }
        (false, Err(said)) => {
            assert_eq!(said.kind(), Kind::Busy, "{cell}: {said}");
            assert!(said.message().contains(&format!("python3 (pid {})", app.pid())), "{cell}: {said}");
            // Everything is as it was, also for who is at work.
            match who {
                Who::Writing => assert_eq!(app.sql("COMMIT"), "[]", "{cell}"),
                _ => assert_eq!(app.say("len(c.execute('SELECT a FROM t').fetchall())"), "90", "{cell}"),
            }
            assert_eq!(app.say("r = None; c.close()"), "None", "{cell}");
            assert_eq!(world.count(), "[(90,)]", "{cell}");
            assert_eq!(world.sql("PRAGMA journal_mode"), format!("[('{}',)]", now.to_lowercase()), "{cell}");
            if who != Who::Writing {
                assert!(world.same_state(current, world.capture()), "{cell}");
            }
        }
        (expected, done) => panic!("{cell}: expected {expected}, came to {done:?}"),
    }
    world.is_sound();
}

/// Where the snapshot has nothing, what is there goes, under the exclusive lock: in a log an idle
/// connection keeps that away, too.
#[test]
fn what_was_not_there_goes_or_is_busy() {
    for now in ["DELETE", "WAL"] {
        for who in [Who::Nobody, Who::Idle, Who::Reading, Who::Writing] {
            let cell = format!("{now} -> nothing, {who:?}");
            let world = World::new();
            world.make(&format!("PRAGMA journal_mode = {now}"), 90);
            let mut app = world.python();
            who.begins(&mut app);
            let current = world.capture();
            let done = world.restore(None, Some(current));
            if who == Who::Nobody || (now, who) == ("DELETE", Who::Idle) {
                done.unwrap_or_else(|error| panic!("{cell}: {error}"));
                assert!(world.files().is_empty(), "{cell}");
                continue;
            }
            let said = done.expect_err(&cell);
            assert_eq!(said.kind(), Kind::Busy, "{cell}: {said}");
            assert!(said.message().contains(&format!("python3 (pid {})", app.pid())), "{cell}: {said}");
            match who {
                Who::Writing => assert_eq!(app.sql("COMMIT"), "[]", "{cell}"),
                _ => assert_eq!(app.say("len(c.execute('SELECT a FROM t').fetchall())"), "90", "{cell}"),
            }
            assert_eq!(app.say("r = None; c.close()"), "None", "{cell}");
            assert_eq!(world.count(), "[(90,)]", "{cell}");
            assert_eq!(world.sql("PRAGMA journal_mode"), format!("[('{}',)]", now.to_lowercase()), "{cell}");
        }
    }
}
