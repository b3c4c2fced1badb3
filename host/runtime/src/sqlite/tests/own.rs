//! What SQLite is not let at: files with other names, what is not its own beside a database,
//! what it makes no sense of.

use super::super::open::At;
use super::super::own::is_left;
use super::*;
use snapback_core::disk::{Dir, FailAt};
use snapback_core::error::Kind;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, symlink};
use std::time::Duration;

impl World {
    fn inode(&self, name: &str) -> u64 {
        fs::symlink_metadata(self.path(name)).unwrap().ino()
    }

    /// Another database with so many rows.
    fn make_other(&self, name: &str, pragmas: &str, rows: u32) {
        let aside = ["app.db", "app.db-wal", "app.db-shm"]
            .map(|name| (self.path(name), self.path(&format!("x{name}"))));
        aside.iter().for_each(|(from, to)| drop(fs::rename(from, to)));
        self.make(pragmas, rows);
        fs::rename(self.path("app.db"), self.path(name)).unwrap();
        aside.iter().for_each(|(from, to)| drop(fs::rename(to, from)));
    }

    fn link_over(&self, from: &str, to: &str) {
        let _ = fs::remove_file(self.path(to));
        fs::hard_link(self.path(from), self.path(to)).unwrap();
    }

    fn told(&self) -> String {
        std::mem::take(&mut *self.told.0.lock().unwrap()).join("; ")
    }
}

#[test]
fn a_file_with_other_names_is_never_written() {
    for mode in ["DELETE", "WAL"] {
        for plain in [false, true] {
            let world = World::new();
            world.make(&format!("PRAGMA journal_mode = {mode}"), 50);
            let stored = world.capture();
            match plain {
                true => fs::write(world.path("backup"), "text\n").unwrap(),
                false => world.make_other("backup", &format!("PRAGMA journal_mode = {mode}"), 7),
            }
            let (bytes, inode) = (fs::read(world.path("backup")).unwrap(), world.inode("backup"));
            let untouched = || {
                assert_eq!(fs::read(world.path("backup")).unwrap(), bytes, "{mode} {plain}");
                assert_eq!(world.inode("backup"), inode);
            };
            world.link_over("backup", "app.db");
            let linked = world.capture();
            world.restore(Some(stored), Some(linked)).unwrap();
            assert!(world.told().contains("app.db had other names outside of what is put back"), "{mode}");
            untouched();
            assert_eq!(world.count(), "[(50,)]");
            assert_ne!(world.inode("app.db"), inode);
            // A redo brings back what it held, the other name is still nobody's.
            world.undo(Some(linked)).unwrap();
            untouched();
            assert!(world.same_state(linked, world.capture()));
            // It was not there before.
            world.link_over("backup", "app.db");
            let linked = world.capture();
            world.restore(None, Some(linked)).unwrap();
            untouched();
            assert!(!world.path("app.db").exists());
        }
    }
}

#[test]
fn who_has_a_file_with_other_names_open_goes_on_with_it_and_is_named() {
    for mode in ["DELETE", "WAL"] {
        let world = World::new();
        world.make(&format!("PRAGMA journal_mode = {mode}"), 50);
        let stored = world.capture();
        world.make_other("backup", &format!("PRAGMA journal_mode = {mode}"), 7);
        let mut app = world.python();
        app.say("c = sqlite3.connect('backup', isolation_level=None, timeout=5)");
        assert_eq!(app.count(), "[(7,)]");
        world.link_over("backup", "app.db");
        app.sql("BEGIN IMMEDIATE");
        app.sql("INSERT INTO t(b) VALUES(8)");
        let linked = world.capture();
        let made = ["app.db-wal", "app.db-shm"].into_iter().any(|name| world.path(name).exists());
        assert!(!made, "{mode}: its log is called otherwise");
        let (before, done) = (world.inode("backup"), world.restore(Some(stored), Some(linked)));
        // A log is beside the other name, and nothing of that is moved.
        match mode {
            "WAL" => done.unwrap(),
            _ => assert_eq!((done.unwrap_err().kind(), world.inode("app.db")), (Kind::Busy, before)),
        }
        assert_eq!(app.sql("COMMIT"), "[]");
        world.undo(Some(stored)).unwrap();
        let told = world.told();
        let who = format!("python3 (pid {}) had open what was in the place of app.db", app.pid());
        assert!(told.contains(&who), "{told}");
        app.sql("INSERT INTO t(b) VALUES(9)");
        assert_eq!((app.count(), world.count()), ("[(9,)]".into(), "[(50,)]".into()), "{mode}");
        assert_eq!(world.inode("backup"), before);
    }
}

#[test]
fn two_names_that_were_one_database_stay_one_and_others_come_apart() {
    let mut world = World::new();
    world.known = &["app.db", "b.db", "c.db"];
    world.make("", 50);
    world.link_over("app.db", "b.db");
    let stored = world.capture();
    let mut app = world.python();
    app.open();
    app.sql("DELETE FROM t");
    let inode = world.inode("app.db");
    world.undo(Some(stored)).unwrap();
    assert_eq!((app.count(), world.inode("app.db"), world.inode("b.db")), ("[(50,)]".into(), inode, inode));
    // The same state, not by itself: a third name is another group.
    app.sql("DELETE FROM t WHERE a > 3");
    world.link_over("app.db", "c.db");
    world.undo(Some(stored)).unwrap();
    assert_eq!((world.count().as_str(), app.count().as_str()), ("[(50,)]", "[(3,)]"));
    assert!(world.inode("app.db") != inode && world.inode("c.db") == inode);
    assert!(!world.told().contains("outside"), "all names are known");
}

#[test]
fn what_lies_beside_it_and_has_another_name_is_never_written() {
    let index = 3_007_000_u32.to_ne_bytes();
    for mode in ["DELETE", "WAL"] {
        for (suffix, magic) in [("-journal", &JOURNAL[..]), ("-wal", &LOG), ("-shm", &index)] {
            for own in [true, false] {
                for held in [true, false] {
                    let what = format!("{mode} {suffix} {own} {held}");
                    let world = World::new();
                    world.make(&format!("PRAGMA journal_mode = {mode}"), 50);
                    let stored = world.capture();
                    world.sql("DELETE FROM t WHERE a > 5");
                    let mut app = world.python();
                    if held && suffix == "-shm" {
                        // Its index is the one that was there, whatever is called so now.
                        app.open();
                        app.sql("SELECT 1 FROM t");
                    }
                    let victim = [if own { magic } else { b"precious" }, &[0x5a; 40_000]].concat();
                    fs::write(world.path("victim"), &victim).unwrap();
                    world.link_over("victim", &format!("app.db{suffix}"));
                    let intact = || assert_eq!(fs::read(world.path("victim")).unwrap(), victim, "{what}");
                    let current = world.try_capture().unwrap();
                    intact();
                    match world.restore(Some(stored), current) {
                        Ok(()) => {}
                        Err(said) => {
                            assert!(held && mode == "WAL" && said.kind() == Kind::Busy, "{what}: {said}");
                            intact();
                            continue;
                        }
                    }
                    intact();
                    assert_eq!(
                        world.path(&format!("app.db{suffix}")).exists(),
                        !own,
                        "{what}: only SQLite's goes"
                    );
                    let _ = fs::remove_file(world.path(&format!("app.db{suffix}")));
                    assert_eq!(world.count(), "[(50,)]", "{what}");
                    world.is_sound();
                }
            }
        }
    }
}

#[test]
fn what_is_no_file_beside_it_refuses_nothing_and_is_left() {
    for mode in ["DELETE", "WAL"] {
        for suffix in ["-journal", "-wal", "-shm"] {
            for kind in ["link", "directory", "socket"] {
                let world = World::new();
                world.make(&format!("PRAGMA journal_mode = {mode}"), 50);
                let stored = world.capture();
                world.sql("DELETE FROM t");
                let path = world.path(&format!("app.db{suffix}"));
                match kind {
                    "link" => symlink("nowhere", &path).unwrap(),
                    "directory" => fs::create_dir(&path).unwrap(),
                    _ => drop(std::os::unix::net::UnixListener::bind(&path).unwrap()),
                }
                let what = format!("{mode} {suffix} {kind}");
                world.undo(Some(stored)).unwrap_or_else(|e| panic!("{what}: {e}"));
                let there = fs::symlink_metadata(&path).unwrap().file_type();
                assert!(there.is_symlink() || there.is_dir() || there.is_socket(), "{what}");
                let _ = fs::remove_file(&path).or_else(|_| fs::remove_dir(&path));
                assert_eq!(world.count(), "[(50,)]", "{what}");
            }
        }
    }
}

/// Damage, and what was left beside it.
const DAMAGE: [(usize, usize); 4] = [(8192, 0), (100, 0), (usize::MAX, 4096), (usize::MAX, 100)];

#[test]
fn a_damaged_database_with_something_left_beside_it_makes_room_and_comes_back() {
    for mode in ["DELETE", "WAL"] {
        for (length, from) in DAMAGE {
            for (suffix, magic) in [("-journal", JOURNAL), ("-wal", LOG)] {
                let world = World::new();
                world.make(&format!("PRAGMA journal_mode = {mode}"), 1000);
                let stored = world.capture();
                let mut bytes = fs::read(world.path("app.db")).unwrap();
                bytes.truncate(length);
                if from > 0 {
                    let until = bytes.len().min(from + 60_000);
                    bytes[from..until].fill(0xa7);
                }
                fs::write(world.path("app.db"), &bytes).unwrap();
                // A header that promises pages, and noise for them.
                let head = [0, 0, 0, 5, 65, 65, 65, 65, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0, 16, 0];
                let left = [&magic[..], &head, &[0x3b; 20_000]].concat();
                fs::write(world.path(&format!("app.db{suffix}")), &left).unwrap();
                let what = format!("{mode} {length} {from} {suffix}");
                let spoilt = world.capture();
                world.restore(Some(stored), Some(spoilt)).unwrap_or_else(|e| panic!("{what}: {e}"));
                assert_eq!(
                    (world.count().as_str(), world.names()),
                    ("[(1000,)]", vec!["app.db".into()]),
                    "{what}"
                );
                world.is_sound();
                world.undo(Some(spoilt)).unwrap_or_else(|e| panic!("back, {what}: {e}"));
                assert!(world.same_state(spoilt, world.capture()), "{what}");
                world.undo(Some(stored)).unwrap_or_else(|e| panic!("again, {what}: {e}"));
                assert_eq!(world.count(), "[(1000,)]", "{what}");
            }
        }
    }
}

#[test]
fn what_was_spoilt_under_an_open_log_is_busy_and_untouched() {
    let spoils: [&[u8]; 4] = [b"", b"text\n", &[0x5a; 20_000], b"SQLite format 3\0"];
    for spoil in spoils {
        let world = World::new();
        world.make("PRAGMA journal_mode = WAL", 50);
        let stored = world.capture();
        let mut app = world.python();
        app.open();
        app.sql("INSERT INTO t(b) VALUES('held')");
        fs::write(world.path("app.db"), spoil).unwrap();
        let spoilt = world.capture();
        let before = world.files();
        let said = world.restore(Some(stored), Some(spoilt)).unwrap_err();
        assert_eq!(said.kind(), Kind::Busy, "{said}");
        assert!(said.message().contains(&format!("python3 (pid {})", app.pid())), "{said}");
        assert_eq!(world.files(), before, "what lies beside it, too");
        // Once it is ended.
        app.kill();
        world.undo(Some(stored)).unwrap();
        assert_eq!((world.count().as_str(), world.names()), ("[(50,)]", vec!["app.db".into()]));
    }
}

#[test]
fn what_fails_anywhere_leaves_all_as_it_was() {
    let mut world = World::new();
    world.make("", 100);
    let stored = world.capture();
    let mut failed = 0;
    for at in 0.. {
        fs::write(world.path("app.db"), "text\n").unwrap();
        fs::write(world.path("app.db-journal"), [&JOURNAL[..], &[0x3b; 5000]].concat()).unwrap();
        fs::write(world.path("app.db-wal"), LOG).unwrap();
        world.store = Store::open(&world.path(".store"), Disk::default().with_sync(false)).unwrap();
        let (spoilt, before) = (world.capture(), world.files());
        let hook = Arc::new(FailAt::new(at, rustix::io::Errno::IO.raw_os_error(), false));
        let disk = Disk::default().with_sync(false).with_hook(hook.clone());
        world.store = Store::open(&world.path(".store"), disk).unwrap();
        match world.restore(Some(stored), Some(spoilt)) {
            // What gives it its attributes comes when it is there.
            Err(_) if world.names() != ["app.db"] => {
                failed += 1;
                assert_eq!(world.files(), before, "operation {at}");
            }
            done => {
                assert_eq!(world.names(), ["app.db"], "operation {at}: {done:?}");
                assert!(done.is_ok() || hook.reached(), "{done:?}");
            }
        }
        if !hook.reached() {
            break;
        }
    }
    assert!(failed > 5, "{failed}");
}

#[test]
fn what_somebody_is_at_work_with_is_never_taken_for_what_was_left() {
    for mode in ["DELETE", "TRUNCATE", "PERSIST"] {
        let world = World::new();
        world.make("", 100);
        let dir = Dir::open(world.scratch.path()).unwrap();
        let (database, cancel) = (world.database(), Cancel::default());
        let at = At { place: &database.place, dir: &dir, timeout: Duration::ZERO, cancel: &cancel };
        let mut app = world.python();
        app.open();
        app.sql("PRAGMA synchronous = OFF");
        app.sql(&format!("PRAGMA journal_mode = {mode}"));
        app.begin(
            "[c.executescript('BEGIN IMMEDIATE; UPDATE t SET b = b WHERE a < 9; COMMIT') for _ in range(10**9)]",
        );
        for n in 0..3000 {
            assert!(!is_left(at, &world.store).unwrap(), "{mode}, look {n}");
        }
        app.kill();
        // In the middle of a transaction, it is.
        let mut app = world.python();
        app.open();
        app.sql("PRAGMA cache_size = 1");
        app.sql("BEGIN IMMEDIATE");
        app.sql("UPDATE t SET b = hex(randomblob(2000))");
        assert!(!is_left(at, &world.store).unwrap(), "{mode}: at work");
        app.kill();
        assert!(is_left(at, &world.store).unwrap(), "{mode}: left");
    }
}
