//! What a capture stores, and that it leaves everything as it was.

use super::*;
use snapback_core::error::Kind;

/// Bytes that differ between two images, what counts commits aside.
fn differing(a: &[u8], b: &[u8]) -> usize {
    let counts = |at: &usize| (24..28).contains(at) || (40..44).contains(at) || (92..100).contains(at);
    assert_eq!(a.len(), b.len());
    (0..a.len()).filter(|at| !counts(at) && a[*at] != b[*at]).count()
}

#[test]
fn a_quiet_database_is_stored_as_its_file_is_and_nothing_is_touched() {
    for mode in ["DELETE", "WAL", "TRUNCATE", "PERSIST"] {
        let world = World::new();
        world.make(&format!("PRAGMA journal_mode = {mode}"), 3000);
        let before = world.files();
        let key = world.capture();
        assert_eq!(world.files(), before, "{mode}");
        let file = &before.iter().find(|(name, ..)| name == "app.db").unwrap().2;
        assert_eq!(&world.bytes(key), file, "{mode}");
        assert!(world.told.0.lock().unwrap().is_empty());
    }
}

#[test]
fn an_open_database_is_stored_as_a_checkpoint_would_leave_it() {
    for mode in ["DELETE", "WAL"] {
        let world = World::new();
        world.make(&format!("PRAGMA journal_mode = {mode}"), 3000);
        let mut app = world.python();
        app.open();
        app.sql("PRAGMA wal_autocheckpoint = 0");
        app.sql("UPDATE t SET b = 'new' WHERE a % 7 = 0");
        app.sql("DELETE FROM t WHERE a > 2000");
        let before = world.files();
        let key = world.capture();
        // The index of the log has places for readers to sign.
        let steady = |files: Vec<(String, u64, Vec<u8>)>| -> Vec<_> {
            files.into_iter().filter(|(name, ..)| !name.ends_with("-shm")).collect()
        };
        assert_eq!(steady(world.files()), steady(before), "{mode}");
        app.sql("PRAGMA wal_checkpoint(TRUNCATE)");
        app.say("c.close()");
        assert_eq!(differing(&world.bytes(key), &std::fs::read(world.path("app.db")).unwrap()), 0, "{mode}");
    }
}

#[test]
fn what_is_not_committed_is_not_captured_and_not_waited_for() {
    for mode in ["DELETE", "WAL"] {
        let world = World::new();
        world.make(&format!("PRAGMA journal_mode = {mode}"), 100);
        let mut app = world.python();
        app.open();
        app.sql("BEGIN IMMEDIATE");
        app.sql("DELETE FROM t");
        let key = world.capture();
        app.sql("ROLLBACK");
        app.say("c.close()");
        assert!(world.same_state(key, world.capture()), "{mode}");
    }
}

#[test]
fn what_a_killed_writer_left_is_recovered_in_a_copy_only() {
    let world = World::new();
    world.make("PRAGMA journal_mode = WAL", 100);
    let mut app = world.python();
    app.open();
    app.sql("PRAGMA wal_autocheckpoint = 0");
    app.sql("INSERT INTO t SELECT a + 1000, b FROM t");
    app.kill();
    for index in [true, false] {
        if !index {
            std::fs::remove_file(world.path("app.db-shm")).unwrap();
        }
        let before = world.files();
        let key = world.capture();
        assert_eq!(world.files(), before);
        let copy = World::new();
        std::fs::write(copy.path("app.db"), world.bytes(key)).unwrap();
        assert_eq!(copy.count(), "[(200,)]");
    }
    assert_eq!(world.count(), "[(200,)]", "its rows are still there for the application");

    let world = World::new();
    world.make("PRAGMA cache_size = 5", 3000);
    let good = world.capture();
    let mut app = world.python();
    app.open();
    app.sql("PRAGMA cache_size = 5");
    app.sql("BEGIN IMMEDIATE");
    app.sql("DELETE FROM t WHERE a % 2");
    app.kill();
    assert_eq!(world.names(), ["app.db", "app.db-journal"], "a hot journal");
    let before = world.files();
    assert!(world.same_state(good, world.capture()), "rolled back");
    assert_eq!(world.files(), before);
}

#[test]
fn an_unchanged_database_is_not_read_again_and_a_changed_one_is() {
    let world = World::new();
    world.make("", 2000);
    std::thread::sleep(std::time::Duration::from_millis(60));
    let first = world.capture();
    // Not to be opened, though everything that stat says is the same.
    let blocked = |world: &World| {
        let mut app = world.python();
        app.open();
        app.sql("BEGIN EXCLUSIVE");
        app
    };
    let app = blocked(&world);
    assert_eq!(world.capture(), first);
    drop(app);
    world.sql("UPDATE t SET b = 'other' WHERE a = 1");
    let app = blocked(&world);
    assert_eq!(world.try_capture().unwrap_err().kind(), Kind::Busy, "it has to be read");
    drop(app);
    assert!(!world.same_state(first, world.capture()));
}

#[test]
fn one_with_a_log_is_remembered_as_well_though_root_touches_the_log() {
    let world = World::new();
    world.make("PRAGMA journal_mode = WAL", 100);
    let mut app = world.python();
    app.open();
    app.sql("INSERT INTO t(b) VALUES('in the log')");
    std::thread::sleep(std::time::Duration::from_millis(60));
    let recall = || {
        let dir = snapback_core::disk::Dir::open(world.scratch.path()).unwrap();
        let seen = snapback_core::database::Seen::look(&world.store, &dir, b"app.db").unwrap();
        seen.recall(&world.call(None), "path")
    };
    let first = world.capture();
    assert_eq!(recall(), Some(first));
    app.sql("INSERT INTO t(b) VALUES('more')");
    assert_eq!(recall(), None);
}

#[test]
fn growth_is_that_of_the_changed_blocks() {
    let world = World::new();
    world.make("", 100_000);
    world.capture();
    let packs = || -> u64 {
        let packs = std::fs::read_dir(world.path(".store/packs")).unwrap();
        packs.map(|entry| entry.unwrap().metadata().unwrap().len()).sum()
    };
    let before = packs();
    world.sql("UPDATE t SET b = hex(randomblob(50)) WHERE a = 50000");
    world.capture();
    let size = std::fs::metadata(world.path("app.db")).unwrap().len();
    // One block with the row, one with the first page, the lists over them.
    assert!(size > 100 << 16 && packs() - before < 3 << 16, "{} of {size}", packs() - before);
}

#[test]
fn who_locks_it_is_named_after_the_timeout() {
    let world = World::new();
    world.make("", 10);
    let mut app = world.python();
    app.open();
    app.sql("BEGIN EXCLUSIVE");
    let said = world.try_capture().unwrap_err();
    assert_eq!(said.kind(), Kind::Busy);
    assert_eq!(said.message(), format!("app.db is in use by python3 (pid {})", app.pid()));
    assert!(said.hint_text().unwrap().contains("busy-timeout"), "{said}");
    // In time, it is only waited for.
    let world = World { timeout: "20s", ..world };
    app.begin("time.sleep(0.5); c.execute('COMMIT'); 1");
    world.capture();
}

#[test]
fn a_steady_writer_does_not_starve_a_capture() {
    // With a log that is emptied after each commit, it is read from the file at times.
    let kinds = [("DELETE", ""), ("WAL", ""), ("WAL", "; PRAGMA wal_checkpoint(TRUNCATE)")];
    for (mode, then) in kinds {
        let world = World { timeout: "20s", ..World::new() };
        world.make(&format!("PRAGMA journal_mode = {mode}"), 1000);
        let mut app = world.python();
        app.open();
        // A row in two tables, in one transaction each: whoever sees one sees both.
        app.sql("CREATE TABLE u(a INTEGER PRIMARY KEY)");
        app.sql("PRAGMA synchronous = OFF");
        let commit = "BEGIN; INSERT INTO t(b) VALUES(1); INSERT INTO u VALUES(NULL); COMMIT";
        app.begin(&format!("[c.executescript('{commit}{then}') for _ in range(10**9)]"));
        for _ in 0..8 {
            let key = world.capture();
            let copy = World::new();
            std::fs::write(copy.path("app.db"), world.bytes(key)).unwrap();
            assert_eq!(copy.sql("SELECT (SELECT count(*) FROM t) - (SELECT count(*) FROM u)"), "[(1000,)]");
            copy.is_sound();
        }
        app.kill();
    }
}

#[test]
fn what_is_no_database_is_kept_as_it_is_and_that_is_said() {
    let world = World::new();
    assert_eq!(world.try_capture().unwrap(), None);
    std::fs::write(world.path("app.db"), "").unwrap();
    assert!(matches!(world.captured(world.capture()), Found::Image { .. }), "an empty database");
    for bytes in [&b"hello\n"[..], b"SQLite format 3\0", &[7; 5000]] {
        std::fs::write(world.path("app.db"), bytes).unwrap();
        std::fs::write(world.path("app.db-wal"), LOG).unwrap();
        std::fs::write(world.path("app.db-journal"), "notes, and the tree's").unwrap();
        let key = world.capture();
        assert_eq!(world.bytes(key), bytes);
        assert_eq!(world.captured(key).entries().len(), 2);
        assert_eq!(
            world.told.0.lock().unwrap().pop().as_deref(),
            Some("warn: app.db is not a SQLite database: it is kept as a plain file")
        );
    }
    std::fs::remove_file(world.path("app.db")).unwrap();
    assert_eq!(world.captured(world.capture()).entries()[0].name, b"app.db-wal");
    std::fs::remove_file(world.path("app.db-journal")).unwrap();
    std::fs::create_dir(world.path("app.db")).unwrap();
    assert_eq!(world.captured(world.capture()).entries()[0].name, b"app.db-wal", "a directory is the tree's");
    let text = "warn: app.db is no file, and so no database: this target has nothing of it";
    assert_eq!(world.told.0.lock().unwrap().pop().as_deref(), Some(text));
    std::fs::remove_file(world.path("app.db-wal")).unwrap();
    assert_eq!(world.try_capture().unwrap(), None);
}

#[test]
fn kinds_of_tables_come_through() {
    let world = World::new();
    world.sql(
        "PRAGMA page_size = 1024
         PRAGMA encoding = 'UTF-16le'
         PRAGMA user_version = 77
         PRAGMA application_id = 88
         CREATE TABLE w(a TEXT PRIMARY KEY, b BLOB) WITHOUT ROWID
         CREATE TABLE g(a, b AS (a * 2) STORED)
         CREATE VIRTUAL TABLE f USING fts5(x)
         CREATE TRIGGER tr AFTER INSERT ON g BEGIN INSERT OR IGNORE INTO w VALUES(new.a, zeroblob(5000)); END
         CREATE VIEW v AS SELECT a FROM g
         INSERT INTO g(a) VALUES(1), (2)
         INSERT INTO f VALUES('some words')",
    );
    let key = world.capture();
    let copy = World::new();
    std::fs::write(copy.path("app.db"), world.bytes(key)).unwrap();
    copy.is_sound();
    let sum = "SELECT (SELECT sum(b) FROM g), (SELECT sum(length(b)) FROM w), (SELECT x FROM f), \
               (SELECT count(*) FROM v)";
    assert_eq!(copy.sql(sum), "[(6, 10000, 'some words', 2)]");
    assert_eq!(copy.sql("PRAGMA user_version"), "[(77,)]");
}
