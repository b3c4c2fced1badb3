//! Putting back: under open connections, over whatever stands there.

use super::*;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn an_open_connection_sees_the_stored_rows_at_its_next_query_and_goes_on() {
    for mode in ["DELETE", "WAL"] {
        let world = World::new();
        world.make(&format!("PRAGMA journal_mode = {mode}"), 500);
        let inode = || std::fs::metadata(world.path("app.db")).unwrap().ino();
        let (stored, before) = (world.capture(), inode());
        let (mut app, mut idle) = (world.python(), world.python());
        app.open();
        idle.open();
        assert_eq!(idle.count(), "[(500,)]");
        app.sql("DELETE FROM t WHERE a > 10");
        app.sql("ALTER TABLE t ADD COLUMN c DEFAULT 5");
        app.sql("CREATE TABLE more(x)");
        assert_eq!(app.sql("SELECT sum(c) FROM t"), "[(50,)]");
        let pre = world.capture();
        world.restore(Some(stored), Some(pre)).unwrap();
        assert_eq!(inode(), before);
        assert_eq!(app.count(), "[(500,)]", "{mode}");
        assert!(app.sql("SELECT c FROM t").contains("no such column"), "{mode}");
        assert_eq!(idle.count(), "[(500,)]");
        app.sql("INSERT INTO t(b) VALUES('after')");
        assert_eq!(idle.count(), "[(501,)]");
        world.is_sound();
        // And again to where it was.
        world.undo(Some(pre)).unwrap();
        assert_eq!(app.sql("SELECT sum(c), count(*) FROM t"), "[(50, 10)]");
        assert_eq!(idle.sql("SELECT count(*) FROM more"), "[(0,)]");
        assert!(world.same_state(pre, world.capture()), "{mode}");
        world.is_sound();
    }
}

#[test]
fn a_schema_that_an_idle_connection_remembers_is_never_taken_for_another() {
    let world = World::new();
    world.make("", 10);
    let stored = world.capture();
    let mut idle = world.python();
    idle.open();
    world.sql("CREATE TABLE x(a)\nINSERT INTO x VALUES(1)");
    assert_eq!(idle.sql("SELECT count(*) FROM x"), "[(1,)]");
    world.undo(Some(stored)).unwrap();
    // As many changes of the schema as before, to another one.
    world.sql("CREATE TABLE y(b)\nINSERT INTO y VALUES(2)");
    assert!(idle.sql("SELECT count(*) FROM x").contains("no such table"));
    assert_eq!(idle.sql("SELECT b FROM y"), "[(2,)]");
}

#[test]
fn leftovers_never_bring_anything_back() {
    let world = World::new();
    world.make("PRAGMA journal_mode = WAL", 10);
    let stored = world.capture();
    let mut app = world.python();
    app.open();
    app.sql("PRAGMA wal_autocheckpoint = 0");
    app.sql("INSERT INTO t SELECT a + 100, b FROM t");
    app.kill();
    world.undo(Some(stored)).unwrap();
    assert_eq!(world.count(), "[(10,)]");
    assert!(world.same_state(stored, world.capture()));

    let world = World::new();
    world.make("PRAGMA cache_size = 5", 3000);
    world.sql("DELETE FROM t WHERE a > 100");
    let stored = world.capture();
    world.make_again();
    let mut app = world.python();
    app.open();
    app.sql("PRAGMA cache_size = 5");
    app.sql("BEGIN IMMEDIATE");
    app.sql("UPDATE t SET b = hex(randomblob(50))");
    app.kill();
    assert_eq!(world.names(), ["app.db", "app.db-journal"]);
    world.undo(Some(stored)).unwrap();
    assert_eq!(world.count(), "[(100,)]");
    world.is_sound();
}

impl World {
    fn make_again(&self) {
        self.sql(
            "WITH RECURSIVE n(i) AS (SELECT 101 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) \
             INSERT INTO t SELECT i, printf('row %d ', i) || hex(zeroblob(50)) FROM n",
        );
    }
}

#[test]
fn only_pages_that_differ_are_written() {
    let world = World::new();
    world.make("PRAGMA journal_mode = WAL", 20_000);
    let stored = world.capture();
    let mut app = world.python();
    app.open();
    app.sql("UPDATE t SET b = 'x' WHERE a IN (1, 10000, 20000)");
    app.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    world.undo(Some(stored)).unwrap();
    let log = std::fs::metadata(world.path("app.db-wal")).unwrap().len();
    assert!((4 * 4096..9 * 4096).contains(&log), "{log}");
    assert_eq!(app.sql("SELECT count(*) FROM t WHERE b = 'x'"), "[(0,)]");
}

#[test]
fn automatic_vacuum_does_not_move_pages_of_what_comes_back() {
    for (now, stored) in [(1, 0), (1, 1), (1, 2), (0, 1), (2, 1), (0, 2)] {
        let world = World::new();
        world.make(&format!("PRAGMA auto_vacuum = {stored}"), 3000);
        world.sql("DELETE FROM t WHERE a % 3");
        let image = world.capture();
        std::fs::remove_file(world.path("app.db")).unwrap();
        world.make(&format!("PRAGMA auto_vacuum = {now}"), 6000);
        world.undo(Some(image)).unwrap();
        assert_eq!(world.sql("PRAGMA auto_vacuum"), format!("[({stored},)]"));
        assert_eq!(world.count(), "[(1000,)]");
        world.is_sound();
        assert!(world.same_state(image, world.capture()));
    }
}

/// Something that happens to a database, and its name.
type Spoil<'s> = (&'s str, &'s dyn Fn(&World));

#[test]
fn it_comes_back_whatever_stands_there() {
    let spoil: [Spoil<'_>; 9] = [
        ("deleted", &|w| std::fs::remove_file(w.path("app.db")).unwrap()),
        ("truncated", &|w| std::fs::write(w.path("app.db"), "").unwrap()),
        ("cut short", &|w| {
            std::fs::write(w.path("app.db"), &std::fs::read(w.path("app.db")).unwrap()[..9000]).unwrap()
        }),
        ("text", &|w| std::fs::write(w.path("app.db"), "hello\n").unwrap()),
        ("noise", &|w| std::fs::write(w.path("app.db"), [0xa5; 100_001]).unwrap()),
        ("foreign, with files beside it", &|w| {
            std::fs::write(w.path("app.db"), [3; 4096]).unwrap();
            std::fs::write(w.path("app.db-wal"), LOG).unwrap();
            std::fs::write(w.path("app.db-journal"), JOURNAL).unwrap();
        }),
        ("a link", &|w| {
            std::fs::remove_file(w.path("app.db")).unwrap();
            std::fs::write(w.path("victim"), "victim").unwrap();
            std::os::unix::fs::symlink("victim", w.path("app.db")).unwrap();
        }),
        ("only a log", &|w| {
            std::fs::remove_file(w.path("app.db")).unwrap();
            std::fs::write(w.path("app.db-wal"), LOG).unwrap();
        }),
        ("another database", &|w| {
            std::fs::remove_file(w.path("app.db")).unwrap();
            w.sql("PRAGMA page_size = 512\nCREATE TABLE other(x)");
        }),
    ];
    for (what, spoil) in spoil {
        for mode in ["DELETE", "WAL"] {
            let world = World::new();
            world.make(&format!("PRAGMA journal_mode = {mode}"), 300);
            std::fs::set_permissions(world.path("app.db"), std::fs::Permissions::from_mode(0o640)).unwrap();
            let stored = world.capture();
            spoil(&world);
            let spoilt = world.try_capture().unwrap();
            world.restore(Some(stored), spoilt).unwrap_or_else(|e| panic!("{what}: {e}"));
            let names: Vec<String> = world.names().into_iter().filter(|name| name != "victim").collect();
            assert_eq!(names, ["app.db"], "{what} {mode}");
            assert_eq!(world.count(), "[(300,)]", "{what}");
            world.is_sound();
            assert_eq!(world.sql("PRAGMA journal_mode"), format!("[('{}',)]", mode.to_lowercase()));
            assert_eq!(std::fs::metadata(world.path("app.db")).unwrap().mode() & 0o7777, 0o640, "{what}");
            assert!(world.same_state(stored, world.capture()), "{what} {mode}");
            if what == "a link" {
                assert_eq!(std::fs::read(world.path("victim")).unwrap(), b"victim");
            }
            // And back to what was there.
            let before = world.capture();
            world.restore(spoilt, Some(before)).unwrap_or_else(|e| panic!("back to {what}: {e}"));
            assert_eq!(world.try_capture().unwrap().is_none(), spoilt.is_none(), "{what}");
            if let Some(spoilt) = spoilt {
                assert!(world.same_state(spoilt, world.capture()), "{what}");
            }
        }
    }
}

#[test]
fn an_open_connection_survives_that_its_file_was_overwritten() {
    let world = World::new();
    world.make("", 300);
    let stored = world.capture();
    let mut app = world.python();
    app.open();
    assert_eq!(app.count(), "[(300,)]");
    std::fs::write(world.path("app.db"), [1; 70_000]).unwrap();
    assert!(app.count().contains("not a database"));
    world.undo(Some(stored)).unwrap();
    assert_eq!(app.count(), "[(300,)]");
    app.sql("INSERT INTO t(b) VALUES(1)");
    world.is_sound();
}

#[test]
fn a_database_that_was_empty_is_empty_again_for_those_who_have_it_open() {
    let world = World::new();
    let mut app = world.python();
    app.open();
    std::fs::write(world.path("app.db"), "").unwrap();
    let stored = world.capture();
    app.sql("CREATE TABLE t(a)");
    app.sql("INSERT INTO t VALUES(1)");
    world.undo(Some(stored)).unwrap();
    assert_eq!(std::fs::metadata(world.path("app.db")).unwrap().len(), 0);
    assert!(app.count().contains("no such table"));
    app.sql("CREATE TABLE t(b)");
    assert_eq!(app.count(), "[(0,)]");
    world.is_sound();
}

#[test]
fn its_directory_is_made_when_it_is_gone() {
    let world = World::new();
    let open = || Database::open(world.scratch.path(), "path", "data/inner/app.db", &[]).unwrap();
    std::fs::create_dir_all(world.path("data/inner")).unwrap();
    world.make("", 20);
    std::fs::rename(world.path("app.db"), world.path("data/inner/app.db")).unwrap();
    let writer = Arc::new(world.store.writer().unwrap());
    let key = open().capture(&Call { writer: Some(writer.clone()), ..world.call(None) }, None).unwrap();
    writer.seal().unwrap();
    std::fs::remove_dir_all(world.path("data")).unwrap();
    open().restore(&world.call(None), key.as_ref(), None).unwrap();
    std::fs::rename(world.path("data/inner/app.db"), world.path("app.db")).unwrap();
    assert_eq!(world.count(), "[(20,)]");
}

#[test]
fn modes_come_back_also_alone() {
    let world = World::new();
    world.make("", 20);
    let set =
        |mode| std::fs::set_permissions(world.path("app.db"), std::fs::Permissions::from_mode(mode)).unwrap();
    let mode = || std::fs::metadata(world.path("app.db")).unwrap().mode() & 0o7777;
    set(0o600);
    let stored = world.capture();
    set(0o444);
    world.undo(Some(stored)).unwrap();
    assert_eq!(mode(), 0o600);
    set(0o444);
    let read_only = world.capture();
    set(0o644);
    world.sql("DELETE FROM t");
    set(0o400);
    world.undo(Some(read_only)).unwrap();
    assert_eq!((mode(), world.count().as_str()), (0o444, "[(20,)]"));
}

#[test]
fn what_was_damaged_when_it_was_captured_comes_back_as_it_was_and_that_is_said() {
    // In the middle of a table, all but the header, and the header's own page.
    for (open, from, until) in [(true, 0.5, 0.51), (true, 0.01, 1.0), (false, 0.0, 0.01)] {
        let world = World::new();
        world.make("", 5000);
        let good = world.capture();
        let mut bytes = std::fs::read(world.path("app.db")).unwrap();
        let at = |part: f64| ((bytes.len() as f64 * part) as usize / 4096 * 4096).max(100);
        let (from, until) = (at(from), at(until).max(at(from) + 3996));
        bytes[from..until].fill(0x5a);
        std::fs::write(world.path("app.db"), &bytes).unwrap();
        let bad = world.capture();
        world.undo(Some(good)).unwrap();
        assert_eq!(world.count(), "[(5000,)]");
        let mut app = world.python();
        if open {
            app.open();
            assert_eq!(app.count(), "[(5000,)]");
        }
        let inode = || std::fs::metadata(world.path("app.db")).unwrap().ino();
        let before = inode();
        world.told.0.lock().unwrap().clear();
        world.undo(Some(bad)).unwrap();
        let now = world.capture();
        assert!(world.same_state(now, bad), "{from}..{until}");
        let told = world.told.0.lock().unwrap().join(" ");
        assert!(told.contains("app.db was damaged when it was captured: "), "{told}");
        assert_eq!(inode(), before, "{from}..{until}: in place");
        world.undo(Some(good)).unwrap();
        assert_eq!(world.count(), "[(5000,)]");
        drop(app);
        world.is_sound();
    }
}

#[test]
fn a_second_call_finds_it_done() {
    let world = World::new();
    world.make("", 50);
    let stored = world.capture();
    world.sql("DELETE FROM t");
    let current = world.capture();
    for _ in 0..3 {
        world.restore(Some(stored), Some(current)).unwrap();
        assert_eq!(world.count(), "[(50,)]");
    }
    for _ in 0..2 {
        world.restore(None, Some(stored)).unwrap();
        assert!(world.names().is_empty());
    }
    world.restore(Some(current), None).unwrap();
    world.restore(Some(current), None).unwrap();
    assert_eq!(world.count(), "[(0,)]");
}

#[test]
fn what_may_be_held_does_not_wait_for_itself() {
    for mode in ["DELETE", "WAL"] {
        let world = Arc::new(World::new());
        world.make(&format!("PRAGMA journal_mode = {mode}"), 20);
        let (current, (restored, ends)) = (world.capture(), std::sync::mpsc::channel());
        let theirs = world.clone();
        std::thread::spawn(move || {
            let call = theirs.call(Some(Arc::default()));
            restored.send(theirs.database().restore(&call, None, Some(&current)))
        });
        let done = ends.recv_timeout(std::time::Duration::from_secs(60)).expect("it ends");
        done.unwrap();
        assert!(world.names().is_empty(), "{mode}");
    }
}

#[test]
fn who_has_open_what_is_removed_is_named() {
    // What is there, and what comes back in its place.
    for (mode, text) in [("DELETE", false), ("TRUNCATE", false), ("DELETE", true)] {
        let world = World::new();
        if text {
            std::fs::write(world.path("app.db"), "text\n").unwrap();
        }
        let stored = world.try_capture().unwrap();
        let _ = std::fs::remove_file(world.path("app.db"));
        world.make(&format!("PRAGMA journal_mode = {mode}"), 20);
        let mut app = world.python();
        app.open();
        assert_eq!(app.count(), "[(20,)]");
        world.undo(stored).unwrap();
        let told = world.told.0.lock().unwrap().join("; ");
        let who = format!("python3 (pid {}) still has the removed app.db open", app.pid());
        assert!(told.contains(&who), "{mode} {text}: {told}");
    }
}

#[test]
fn one_that_was_cut_short_when_it_had_left_the_log_is_finished_and_taken_back() {
    for (size, rows) in [(4096, Some(50)), (1024, Some(50)), (4096, None)] {
        let world = World::new();
        let stored = rows.map(|rows| {
            world.make(&format!("PRAGMA page_size = {size}"), rows);
            world.capture()
        });
        let _ = std::fs::remove_file(world.path("app.db"));
        world.make("PRAGMA journal_mode = WAL", 20);
        let current = world.capture();
        for finished in [true, false] {
            assert_eq!(world.sql("PRAGMA journal_mode = DELETE"), "[('delete',)]");
            if finished {
                world.restore(stored, Some(current)).unwrap();
                assert_eq!(world.try_capture().unwrap().is_some(), stored.is_some());
                if rows.is_some() {
                    assert_eq!(world.count(), "[(50,)]");
                }
                world.restore(Some(current), stored).unwrap();
            } else {
                world.restore(Some(current), stored).unwrap();
            }
            assert_eq!(world.count(), "[(20,)]", "{size} {rows:?}");
            assert_eq!(world.sql("PRAGMA journal_mode"), "[('wal',)]", "{size} {rows:?}");
            world.is_sound();
        }
        // What somebody wrote after that is nothing that is known.
        world.sql("PRAGMA journal_mode = DELETE\nDELETE FROM t WHERE a = 1");
        assert_eq!(
            world.restore(stored, Some(current)).unwrap_err().kind(),
            snapback_core::error::Kind::Changed
        );
        assert_eq!(world.count(), "[(19,)]");
    }
}
