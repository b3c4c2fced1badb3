//! Databases are left to targets of their own, with what lies beside them.

use super::*;
use crate::backend::Elsewhere;

/// The first page of an empty database.
fn header() -> Vec<u8> {
    let mut page = vec![0; 4096];
    page[..24].copy_from_slice(b"SQLite format 3\0\x10\x00\x01\x01\x00\x40\x20\x20");
    page
}

/// How SQLite begins what it makes beside a database.
const LOG: [u8; 8] = [0x37, 0x7f, 0x06, 0x82, 0, 0x2d, 0xe2, 0x18];
const JOURNAL: [u8; 8] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
const INDEX: u32 = 3_007_000;

fn left(root: &Root) -> Vec<(String, String)> {
    let items = root.left_out.iter().filter(|item| item.why == Why::Elsewhere);
    items.map(|item| (String::from_utf8_lossy(&item.path).into_owned(), item.detail.clone())).collect()
}

fn names(taken: &Taken) -> Vec<&str> {
    taken.entries.keys().map(String::as_str).filter(|name| !name.is_empty()).collect()
}

#[test]
fn one_is_known_by_its_first_bytes_and_goes_with_its_side_files() {
    let mut world = World::new();
    world.options = vec![("sqlite", "true".into())];
    world.write("a/data", header());
    world.write("a/data-wal", LOG);
    world.write("a/data-shm", INDEX.to_ne_bytes());
    world.write("a/data-other", "a file");
    world.write("b/alone.db", header());
    world.write("b/short.db", &header()[..99]);
    world.write("b/text.db", "SQLite format 3\0 and no more");
    world.write("b/text.db-wal", "log");
    world.write("c/new\nline", header());
    let far = ["d".repeat(250), "d".repeat(250)].join("/");
    world.write(&far, header());
    world.settle();
    let taken = world.capture();
    let want = ["a/data", "a/data-shm", "a/data-wal", "b/alone.db", "c/new\nline"];
    assert_eq!(left(&taken.root), want.map(|path| (path.to_owned(), String::new())));
    let kept = ["a", "a/data-other", "b", "b/short.db", "b/text.db", "b/text.db-wal", "c", &far[..250], &far];
    assert_eq!(names(&taken), kept, "what SQLite cannot open is a file");
    // What did not change is known, though one file is looked into each time.
    let again = world.capture();
    assert_eq!((again.counts.encoded, left(&again.root)), (0, left(&taken.root)));
    // Files like others, where that is asked for: what is cached of the one is not taken
    // for the other.
    world.options = vec![("sqlite", "false".into())];
    let plain = world.capture();
    assert!(left(&plain.root).is_empty() && names(&plain).contains(&"a/data-wal"));
    world.options = vec![("sqlite", "true".into())];
    assert_eq!(left(&world.capture().root), left(&taken.root));
}

#[test]
fn rules_come_first_and_declared_ones_are_left_to_their_targets() {
    let mut world = World::new();
    world.options = vec![("sqlite", "true".into()), ("ignore", "*.log\n/off/".into())];
    world.write("x.log", header());
    world.write("off/y", header());
    world.write("mine", "no database at all");
    world.write("mine-journal", JOURNAL);
    world.elsewhere = vec![Elsewhere { path: b"p/mine".to_vec(), target: "app".into() }];
    let taken = world.capture();
    assert_eq!(left(&taken.root), [("mine".into(), "app".into()), ("mine-journal".into(), "app".into())]);
    assert!(names(&taken).is_empty(), "{:?}", names(&taken));
}

#[test]
fn what_lies_beside_one_that_comes_to_be_while_names_are_read_is_left_as_well() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let mut world = World::new();
    world.options = vec![("sqlite", "true".into())];
    let stop = AtomicBool::new(false);
    // Made as SQLite makes one: empty and with a journal, then a header and no journal.
    std::thread::scope(|scope| {
        let (db, journal) = (world.path("app.db"), world.path("app.db-journal"));
        let stop = &stop;
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::fs::write(&db, "").unwrap();
                std::fs::write(&journal, JOURNAL).unwrap();
                std::fs::write(&db, header()).unwrap();
                std::fs::remove_file(&journal).unwrap();
            }
        });
        for _ in 0..200 {
            let taken = world.try_capture(false).unwrap();
            let database = left(&taken.root).iter().any(|(path, _)| path == "app.db");
            assert!(!(database && names(&taken).contains(&"app.db-journal")), "{:?}", left(&taken.root));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

#[test]
fn what_is_only_called_like_a_side_file_is_the_trees() {
    let mut world = World::new();
    world.options = vec![("sqlite", "true".into())];
    for base in ["a.db", "mine"] {
        world.write(base, header());
        world.write(&format!("{base}-journal"), "notes\n");
        world.write(&format!("{base}-wal"), header());
        std::os::unix::fs::symlink("nowhere", world.path(&format!("{base}-shm"))).unwrap();
    }
    world.write("b.db", header());
    world.write("b.db-journal", JOURNAL);
    world.elsewhere = vec![Elsewhere { path: b"p/mine".to_vec(), target: "app".into() }];
    let taken = world.capture();
    let targets = ["a.db", "a.db-wal", "b.db", "b.db-journal", "mine", "mine-wal"];
    let mut found: Vec<String> = left(&taken.root).into_iter().map(|(path, _)| path).collect();
    found.sort();
    assert_eq!(found, targets, "a database of its own has any name");
    assert_eq!(names(&taken), ["a.db-journal", "a.db-shm", "mine-journal", "mine-shm"]);
}

#[test]
fn what_sqlite_made_beside_a_file_that_is_left_out_is_left_out_with_it() {
    for sqlite in ["true", "false"] {
        let mut world = World::new();
        world.options = vec![("sqlite", sqlite.into()), ("ignore", "app.db\n/sealed\n".into())];
        world.write("app.db", header());
        // Nobody but its owner knows that it is a database.
        world.write("sealed", [7; 4096]);
        for (path, magic) in [("app.db-wal", LOG), ("app.db-journal", JOURNAL), ("d/x.db-wal", LOG)] {
            world.write(path, magic);
        }
        world.write("app.db-shm", INDEX.to_ne_bytes());
        world.write("sealed-journal", "");
        world.write("app.db-wal-notes", "mine");
        world.settle();
        let taken = world.capture();
        assert_eq!(taken.root.ignored, [("app.db".to_owned(), 4), ("/sealed".to_owned(), 2)], "{sqlite}");
        assert_eq!(taken.left_out(), [], "{sqlite}: as the file itself");
        assert_eq!(names(&taken), ["app.db-wal-notes", "d", "d/x.db-wal"], "{sqlite}");
        // What is only called so is the user's.
        world.write("app.db-journal", "notes\n");
        assert!(names(&world.capture()).contains(&"app.db-journal"), "{sqlite}");
    }
}

#[test]
fn what_sqlite_made_beside_a_file_that_cannot_be_read_is_a_hole_like_that() {
    use std::os::unix::fs::PermissionsExt;
    let mut world = World::new();
    world.options = vec![("sqlite", "true".into())];
    world.write("app.db", header());
    world.write("app.db-wal", LOG);
    std::fs::set_permissions(world.path("app.db"), std::fs::Permissions::from_mode(0o000)).unwrap();
    let taken = as_nobody(&world, || world.try_capture(true).unwrap());
    let holes = taken.left_out();
    let holes: Vec<_> = holes.iter().map(|(path, why, _)| (path.as_str(), *why)).collect();
    assert_eq!(holes, [("app.db", Why::Unreadable), ("app.db-wal", Why::Unreadable)]);
    assert!(names(&taken).is_empty());
}

#[test]
fn what_a_snapshot_has_beside_nothing_does_not_come_back_beside_a_file_that_is_left_out() {
    let mut world = World::new();
    world.options = vec![("sqlite", "true".into()), ("ignore", "*.db".into())];
    for (path, bytes) in [("a.db-wal", &LOG[..]), ("b.db-journal", &JOURNAL), ("c.db-wal", b"notes\n")] {
        world.write(path, bytes);
    }
    let before = world.capture();
    assert_eq!(names(&before), ["a.db-wal", "b.db-journal", "c.db-wal"], "no file is beside them");
    for base in ["a.db", "b.db", "c.db"] {
        world.write(base, header());
    }
    for name in ["b.db-journal", "c.db-wal"] {
        std::fs::remove_file(world.path(name)).unwrap();
    }
    world.cover = vec![Part { name: "tree".into(), content: before.key }];
    let now = world.capture();
    let want = ["a.db-wal", "b.db-journal"].map(|path| (path.to_owned(), Why::Ignored, "*.db"));
    assert_eq!(now.left_out(), want, "there or gone, a restore leaves it as it is");
    assert!(names(&now).is_empty());
}

#[test]
fn what_comes_and_goes_beside_one_of_another_target_is_never_captured() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let mut world = World::new();
    world.options = vec![("sqlite", "true".into())];
    world.write("app.db", header());
    world.elsewhere = vec![Elsewhere { path: b"p/app.db".to_vec(), target: "app".into() }];
    // As an undo looks, which covers what it goes to.
    world.cover = vec![Part { name: "tree".into(), content: world.capture().key }];
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (journal, stop) = (world.path("app.db-journal"), &stop);
        scope.spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::fs::write(&journal, JOURNAL).unwrap();
                std::fs::remove_file(&journal).unwrap();
            }
        });
        for _ in 0..1000 {
            let taken = world.try_capture(false).unwrap();
            assert!(names(&taken).is_empty(), "{:?}", names(&taken));
            assert!(left(&taken.root).iter().all(|(_, target)| target == "app"), "{:?}", left(&taken.root));
        }
        stop.store(true, Ordering::Relaxed);
    });
}
