//! A log that is not beside its database any more, under the connection that uses it.

use super::*;
use snapback_core::error::Kind;

/// What becomes of the files beside it; whether others can write to it then.
const DEEDS: [(&str, bool); 5] = [
    ("for n in ('wal', 'shm'): os.remove(f'app.db-{n}')", true),
    ("for n in ('wal', 'shm'): os.rename(f'app.db-{n}', f'x-{n}')", true),
    ("os.remove('app.db-shm')", true),
    ("os.remove('app.db-wal')", false),
    ("open('app.db-wal', 'w').close()", false),
];

#[test]
fn whoever_goes_on_with_it_keeps_all_as_it_is_and_is_named() {
    for (deed, writable) in DEEDS {
        let world = World::new();
        world.make("PRAGMA journal_mode = WAL", 500);
        let mut app = world.python();
        app.open();
        app.sql("UPDATE t SET b = 'in the log' WHERE a % 50 = 0");
        let stored = world.capture();
        assert_eq!(world.python().say(deed), "None", "{deed}");
        if writable {
            world.sql("DELETE FROM t WHERE a > 100");
        }
        let (before, current) = (world.files(), world.try_capture().unwrap());
        let said = world.restore(Some(stored), current).unwrap_err();
        assert_eq!(said.kind(), Kind::Busy, "{deed}: {said}");
        let who = format!("app.db is in use by python3 (pid {}), and its log was removed", app.pid());
        assert!(said.message().contains(&who), "{deed}: {said}");
        let bytes =
            |files: Vec<(String, u64, Vec<u8>)>| files.into_iter().find(|(name, ..)| name == "app.db");
        assert_eq!(bytes(world.files()), bytes(before), "{deed}");
        // Once it has ended, as it is told to, nothing of it comes later.
        app.say("c.close()");
        drop(app);
        world.undo(Some(stored)).unwrap_or_else(|e| panic!("{deed}: {e}"));
        assert_eq!(world.count(), "[(500,)]", "{deed}");
        world.sql("INSERT INTO t(b) VALUES('later')");
        assert_eq!(world.sql("SELECT count(*), sum(b = 'in the log') FROM t"), "[(501, 10)]", "{deed}");
        world.is_sound();
    }
}

#[test]
fn whoever_has_what_is_as_it_was_stored_is_in_nobodys_way() {
    let world = World::new();
    world.make("PRAGMA journal_mode = WAL", 50);
    let stored = world.capture();
    let mut app = world.python();
    app.open();
    assert_eq!(app.count(), "[(50,)]");
    assert_eq!(world.python().say(DEEDS[0].0), "None");
    world.undo(Some(stored)).unwrap();
    let told = world.told.0.lock().unwrap().join("; ");
    assert!(!told.contains("the removed"), "the database is there: {told}");
}

#[test]
fn one_that_was_moved_under_a_connection_gets_no_second_log() {
    let world = World::new();
    world.make("PRAGMA journal_mode = WAL", 50);
    std::fs::rename(world.path("app.db"), world.path("old.db")).unwrap();
    let mut app = world.python();
    app.say("c = sqlite3.connect('old.db', isolation_level=None)");
    assert_eq!(app.count(), "[(50,)]");
    std::fs::rename(world.path("old.db"), world.path("app.db")).unwrap();
    world.capture();
    assert_eq!(world.names(), ["app.db", "old.db-shm", "old.db-wal"]);
    // What lies at the new name already is no log of it.
    app.sql("INSERT INTO t(b) VALUES('in the other log')");
    std::fs::write(world.path("app.db-shm"), [0; 32768]).unwrap();
    let before = world.files();
    world.capture();
    assert_eq!(world.files(), before);
}

#[test]
fn what_is_in_a_log_that_is_not_there_is_told_with_who_has_it() {
    for (deed, _) in &DEEDS[..4] {
        let world = World::new();
        world.make("PRAGMA journal_mode = WAL", 50);
        let mut app = world.python();
        app.open();
        app.sql("INSERT INTO t(b) VALUES('in the log')");
        world.capture();
        let told = || std::mem::take(&mut *world.told.0.lock().unwrap()).join("; ");
        assert!(!told().contains("omitted"), "all is as it should be");
        assert_eq!(world.python().say(deed), "None", "{deed}");
        let before = world.files();
        // Each time, not only when it was not captured before.
        for _ in 0..2 {
            world.capture();
            let who = format!("omitted: app.db-wal: removed or moved away under python3 (pid {})", app.pid());
            let told = told();
            assert!(told.contains(&who), "{deed}: {told}");
        }
        assert_eq!(world.files(), before, "{deed}: nothing is made or changed");
    }
}

/// What takes the place of the database, as the log that was beside it stays.
const REPLACED: [&str; 2] = ["PRAGMA journal_mode = WAL", "PRAGMA journal_mode = DELETE"];

#[test]
fn one_that_was_replaced_under_its_log_waits_for_who_has_that() {
    for mode in REPLACED {
        let world = World::new();
        world.make(mode, 20);
        std::fs::rename(world.path("app.db"), world.path("new.db")).unwrap();
        world.make("PRAGMA journal_mode = WAL", 500);
        let stored = world.capture();
        let mut app = world.python();
        app.open();
        assert_eq!(app.count(), "[(500,)]");
        std::fs::rename(world.path("new.db"), world.path("app.db")).unwrap();
        let current = world.try_capture().unwrap();
        let told = std::mem::take(&mut *world.told.0.lock().unwrap()).join("; ");
        let who = format!("in use by python3 (pid {}) for a file that was replaced", app.pid());
        assert!(told.contains(&who), "{mode}: {told}");
        let said = world.restore(Some(stored), current).unwrap_err();
        let who = format!("app.db was replaced while python3 (pid {}) had it open", app.pid());
        assert!(said.kind() == Kind::Busy && said.message().contains(&who), "{mode}: {said}");
        app.sql("INSERT INTO t(b) VALUES('to the file that is gone')");
        app.say("c.close()");
        drop(app);
        assert_eq!(world.count(), "[(20,)]", "{mode}");
        world.undo(Some(stored)).unwrap();
        assert_eq!(world.count(), "[(500,)]", "{mode}");
        world.sql("INSERT INTO t(b) VALUES('later')");
        assert_eq!(world.count(), "[(501,)]", "{mode}");
        world.is_sound();
    }
}
