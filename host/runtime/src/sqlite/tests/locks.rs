//! The law of locks: nothing here lets go of a lock that a connection of ours holds.

use super::super::claim::Claim;
use super::super::image;
use super::super::lock::Locked;
use super::super::open::{Access, At, Opened};
use super::super::route;
use super::*;
use snapback_core::database::Seen;
use snapback_core::disk::Dir;
use std::time::Duration;

#[test]
fn nobody_writes_while_a_capture_reads() {
    let world = World::new();
    world.make("", 5000);
    let dir = Dir::open(world.scratch.path()).unwrap();
    let (database, cancel) = (world.database(), Cancel::default());
    let at = At { place: &database.place, dir: &dir, timeout: Duration::ZERO, cancel: &cancel };
    let mut app = world.python();
    app.say("c = sqlite3.connect('app.db', isolation_level=None, timeout=0)");
    for access in [Access::Read, Access::Write] {
        // What is done before: found out how it is read, with descriptors of our own.
        let seen = Seen::look(&world.store, &dir, b"app.db").unwrap();
        assert_eq!(route::of(at, &seen).unwrap(), route::Route::Live);
        let opened = Opened::open(at, access, Claim::of(at.id().unwrap())).unwrap();
        let locked = match access {
            Access::Read => {
                opened.connection.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema").unwrap();
                Locked { opened, wal: false }
            }
            Access::Write => Locked::new(opened).unwrap(),
        };
        // What is done meanwhile: reading all of it, looking at what is there.
        let writer = world.store.scratch(true);
        let mut lane = writer.lane();
        image::read(at, &locked.opened.connection, &locked.opened.file, &mut lane).unwrap().unwrap();
        Seen::look(&world.store, &dir, b"app.db").unwrap();
        let settled = snapback_core::database::file_entry(
            &dir,
            b"app.db",
            Key::of(snapback_core::object::ObjectKind::Blob, b""),
            0,
        );
        let entry = settled.unwrap();
        snapback_core::database::settle(&world.call(None), &dir, &entry, &dir.join(&entry.name)).unwrap();
        assert!(app.sql("UPDATE t SET b = 1 WHERE a = 1").contains("locked"), "{access:?}");
        drop(locked);
        assert_eq!(app.sql("UPDATE t SET b = 1 WHERE a = 1"), "[]", "{access:?}");
    }
}

#[test]
fn who_opens_it_finds_the_file_that_was_looked_at() {
    let world = World::new();
    world.make("", 5);
    let dir = Dir::open(world.scratch.path()).unwrap();
    let (database, cancel) = (world.database(), Cancel::default());
    let at = At { place: &database.place, dir: &dir, timeout: Duration::ZERO, cancel: &cancel };
    let claim = Claim::of(at.id().unwrap());
    std::fs::rename(world.path("app.db"), world.path("old.db")).unwrap();
    world.make("", 7);
    let said = Opened::open(at, Access::Read, claim).err().unwrap();
    assert_eq!(said.message(), "app.db was replaced while it was opened");
    std::fs::remove_file(world.path("app.db")).unwrap();
    std::os::unix::fs::symlink("old.db", world.path("app.db")).unwrap();
    let id = std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(world.path("old.db")).unwrap());
    let claim = Claim::of((at.id().unwrap().0, id));
    assert!(Opened::open(at, Access::Read, claim).is_err(), "no link is followed");
}
