//! The form of a captured database, its identity, and what is remembered of it.

use super::*;
use crate::backend::{Call, Target};
use crate::disk::{Dir, Disk, Hook, Op, OpKind};
use crate::error::{Kind, Result};
use crate::report::Silent;
use crate::store::{BLOCK, Store, content};
use crate::testing::TempDir;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

struct World {
    temp: TempDir,
    call: Call,
}

impl World {
    fn new() -> Self {
        Self::with(Disk::default().with_sync(false))
    }

    fn with(disk: Disk) -> Self {
        let temp = TempDir::new();
        let store = Store::create(&temp.path().join("store"), disk).unwrap();
        let target = Target { name: "app".into(), backend: "sqlite".into(), settings: Default::default() };
        let call = Call {
            writer: Some(Arc::new(store.writer().unwrap())),
            ..Call::about(temp.path().to_owned(), target, Some(store), Arc::new(Silent))
        };
        Self { temp, call }
    }

    fn dir(&self) -> Dir {
        Dir::open(self.temp.path()).unwrap()
    }

    fn put(&self, bytes: &[u8]) -> Key {
        let writer = self.call.writer.as_ref().unwrap();
        let mut lane = writer.lane();
        let (key, _) = content::store_bytes(&mut lane, bytes, &self.call.cancel).unwrap();
        lane.publish().unwrap();
        key
    }

    fn state(&self, bytes: &[u8]) -> [u8; 32] {
        let key = self.put(bytes);
        state(&**self.call.writer.as_ref().unwrap(), &key, bytes.len() as u64).unwrap()
    }

    fn look(&self) -> Seen {
        Seen::look(self.call.store().unwrap(), &self.dir(), b"app.db").unwrap()
    }
}

fn file(name: &[u8], content: Key, size: u64) -> Entry {
    let node = Node::File { content, size, sparse: false };
    Entry { name: name.to_vec(), mode: 0o640, uid: 1, gid: 2, xattrs: vec![], link: None, node }
}

fn of(found: Found) -> Database {
    Database { path: b"data/app.db".to_vec(), found }
}

fn blob() -> Key {
    Key::of(ObjectKind::Blob, b"x")
}

#[test]
fn both_forms_come_back_as_they_were() {
    let link = Entry { node: Node::Symlink(b"/etc/passwd".to_vec()), ..file(b"app.db", blob(), 0) };
    let image = of(Found::Image { file: file(b"app.db", blob(), 1), state: [7; 32] });
    let files = of(Found::Files(vec![link, file(b"app.db-wal", blob(), 1)]));
    for database in [&image, &files, &of(Found::Files(vec![]))] {
        let bytes = database.encode();
        assert_eq!(&Database::decode(&bytes).unwrap(), database);
        for cut in 0..bytes.len() {
            assert!(Database::decode(&bytes[..cut]).is_err(), "cut at {cut}");
        }
    }
    assert_eq!((image.bytes(), files.bytes(), files.found.entries().len()), (1, 1, 2));
    assert_eq!(files.file().unwrap().name, b"app.db");
}

#[test]
fn hostile_forms_are_refused() {
    let entry = |name: &[u8], node: Node| Entry { node, ..file(name, blob(), 1) };
    let dir = Node::Dir(Key::of(ObjectKind::Tree, b"t"));
    for bad in [
        Found::Files(vec![entry(b"../app.db", Node::Symlink(b"x".to_vec()))]),
        Found::Files(vec![entry(b"app.db", Node::Fifo)]),
        Found::Files(vec![entry(b"app.db", dir)]),
        Found::Files(vec![file(b"app.db-wal", blob(), 1), file(b"app.db", blob(), 1)]),
        Found::Files(vec![Entry { link: Some(1), ..file(b"app.db", blob(), 1) }]),
        Found::Files(vec![file(b"other.db", blob(), 1)]),
        Found::Files(vec![file(b"app.db-shm", blob(), 1)]),
        Found::Image { file: entry(b"app.db", Node::Symlink(b"x".to_vec())), state: [0; 32] },
        Found::Image { file: file(b"app.db-wal", blob(), 1), state: [0; 32] },
        Found::Image { file: file(b"", blob(), 1), state: [0; 32] },
    ] {
        assert!(Database::decode(&of(bad.clone()).encode()).is_err(), "{bad:?}");
    }
    for path in ["", "/app.db", "../app.db", "a//b", "a/"] {
        let bad = Database { path: path.into(), found: Found::Files(vec![]) };
        assert!(Database::decode(&bad.encode()).is_err(), "{path}");
    }
    assert!(
        Database::load(&**World::new().call.store().unwrap(), &blob()).is_err(),
        "no bytes pass for a database"
    );
}

#[test]
fn what_counts_commits_is_no_state_and_all_else_is() {
    let world = World::new();
    for size in [512, BLOCK, BLOCK + 4096, 200 * BLOCK] {
        let image: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
        let state = world.state(&image);
        let with = |at: usize| {
            let mut other = image.clone();
            other[at] ^= 0x55;
            world.state(&other)
        };
        for at in [24, 27, 40, 43, 92, 95, 96, 99] {
            assert_eq!(with(at), state, "byte {at} of {size}");
        }
        for at in [18, 19, 23, 28, 39, 44, 60, 91, 100, size - 1] {
            assert_ne!(with(at), state, "byte {at} of {size}");
        }
    }
    let (a, mut b) = (vec![1; 5000], vec![1; 5000]);
    b[18..20].fill(2);
    let (key, source) = (world.put(&b), world.call.writer.as_ref().unwrap());
    assert_eq!(state_like(&**source, &key, 5000, &a[..100]).unwrap(), world.state(&a));
    assert_ne!(world.state(&b), world.state(&a));
    assert_eq!(world.state(b""), *Key::of(ObjectKind::Blob, b"").hash());
}

#[test]
fn attributes_are_state_and_where_the_bytes_lie_is_not() {
    let image = |file: Entry, state: u8| Found::Image { file, state: [state; 32] };
    let (a, b) = (file(b"d", blob(), 1), file(b"d", Key::of(ObjectKind::Blob, b"y"), 1));
    assert!(image(a.clone(), 1).same_state(&image(b, 1)));
    assert!(!image(a.clone(), 1).same_state(&image(a.clone(), 2)));
    assert!(!image(a.clone(), 1).same_state(&image(Entry { mode: 0o600, ..a.clone() }, 1)));
    assert!(!image(a.clone(), 1).same_state(&Found::Files(vec![a])));
}

#[test]
fn what_nobody_wrote_to_is_remembered_once_it_is_clearly_past() {
    let world = World::new();
    let at = |name: &str| world.temp.path().join(name);
    std::fs::write(at("app.db"), "database").unwrap();
    let young = world.look();
    assert!(!young.is_settled() && !young.still(&world.look()));
    young.remember(&world.call, "path", &blob());
    assert_eq!(world.look().recall(&world.call, "path"), None, "it may yet change unseen");
    std::thread::sleep(std::time::Duration::from_millis(60));
    let seen = world.look();
    assert!(seen.is_settled() && seen.still(&world.look()));
    seen.remember(&world.call, "path", &blob());
    assert_eq!(world.look().recall(&world.call, "path"), Some(blob()));
    assert_eq!(world.look().recall(&world.call, "other"), None);
    // An empty log is none; one with something in it, and a journal, are looked at.
    std::fs::write(at("app.db-wal"), "").unwrap();
    std::fs::write(at("app.db-shm"), "index").unwrap();
    // So is what is only called like one.
    std::fs::write(at("app.db-journal"), "notes").unwrap();
    assert_eq!(world.look().recall(&world.call, "path"), Some(blob()));
    let journal = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
    for (side, bytes) in [("app.db-wal", &[0x37, 0x7f, 0x06, 0x83][..]), ("app.db-journal", &journal)] {
        std::fs::write(at(side), bytes).unwrap();
        assert_eq!(world.look().recall(&world.call, "path"), None, "{side}");
        std::fs::remove_file(at(side)).unwrap();
        assert_eq!(world.look().recall(&world.call, "path"), Some(blob()));
    }
    std::fs::write(at("app.db"), "database").unwrap();
    assert_eq!(world.look().recall(&world.call, "path"), None, "written to");
    let cache = std::fs::read_dir(at("store/cache")).unwrap().map(|e| e.unwrap().path());
    for path in cache.filter(|path| path.to_str().unwrap().ends_with(".seen")) {
        std::fs::write(&path, "damaged").unwrap();
    }
    assert_eq!(world.look().recall(&world.call, "path"), None);
}

#[test]
fn files_and_links_are_kept_as_they_are_and_nothing_else() {
    let world = World::new();
    let writer = world.call.writer.clone().unwrap();
    let capture =
        |name: &str| capture_file(&mut writer.lane(), &world.dir(), name.as_bytes(), &world.call.cancel);
    std::fs::write(world.temp.path().join("f"), "hello\n").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", world.temp.path().join("l")).unwrap();
    let file = capture("f").unwrap().unwrap();
    assert_eq!(
        file.node,
        Node::File { content: Key::of(ObjectKind::Blob, b"hello\n"), size: 6, sparse: false }
    );
    assert_eq!(capture("l").unwrap().unwrap().node, Node::Symlink(b"/etc/passwd".to_vec()));
    assert_eq!(capture("none").unwrap(), None);
    assert_eq!(capture("store").unwrap(), None, "a directory is the tree's");
}

#[test]
fn a_file_is_made_aside_and_takes_its_place_whole() {
    let world = World::new();
    let content = world.put(&vec![3; 2 * BLOCK + 5]);
    std::fs::create_dir(world.temp.path().join("d")).unwrap();
    let dir = Dir::open(&world.temp.path().join("d")).unwrap();
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let entry = Entry { uid, gid, ..file(b"app.db", content, 2 * BLOCK as u64 + 5) };
    let source = world.call.writer.clone().unwrap();
    let stage = Stage::open(&world.call, &dir, b"app.db").unwrap();
    stage.make(&world.call, &*source, &entry).unwrap();
    assert!(dir.names().unwrap().is_empty(), "nothing stands there yet");
    stage.place(&world.call, &entry, &dir, None).unwrap();
    assert_eq!(std::fs::read(world.temp.path().join("d/app.db")).unwrap(), vec![3; 2 * BLOCK + 5]);
    // What is there is moved aside only if it is what was captured.
    let other = Entry { node: Node::Symlink(b"x".to_vec()), ..entry.clone() };
    stage.make(&world.call, &*source, &other).unwrap();
    for expected in [None, Some(&other)] {
        assert_eq!(stage.place(&world.call, &other, &dir, expected).unwrap_err().kind(), Kind::Changed);
    }
    assert_eq!(stage.take_out(&world.call, &dir, &other).unwrap_err().kind(), Kind::Changed);
    stage.place(&world.call, &other, &dir, Some(&entry)).unwrap();
    assert_eq!(std::fs::read_link(world.temp.path().join("d/app.db")).unwrap().to_str(), Some("x"));
    stage.make(&world.call, &*source, &entry).unwrap();
    stage.place(&world.call, &entry, &dir, Some(&other)).unwrap();
    stage.finish().unwrap();
    assert_eq!(std::fs::read(world.temp.path().join("d/app.db")).unwrap(), vec![3; 2 * BLOCK + 5]);
    let made = file_entry(&dir, b"app.db", content, 2 * BLOCK as u64 + 5).unwrap();
    assert_eq!(made, entry);
    let left = std::fs::read_dir(world.temp.path().join("store/tmp")).unwrap();
    assert!(left.map(|e| e.unwrap().file_type().unwrap()).all(|kind| kind.is_file()));
    let stage = Stage::open(&world.call, &dir, b"app.db").unwrap();
    stage.take_out(&world.call, &dir, &entry).unwrap();
    assert!(dir.names().unwrap().is_empty());
}

/// Somebody who acts just before the `nth` operation of its kind.
struct Slip {
    kind: OpKind,
    nth: AtomicU32,
    deed: Box<dyn Fn() + Send + Sync>,
}

impl Hook for Slip {
    fn before(&self, op: &Op<'_>) -> std::io::Result<()> {
        if op.kind == self.kind && self.nth.fetch_sub(1, Ordering::SeqCst) == 1 {
            (self.deed)();
        }
        Ok(())
    }
}

/// What stands in the place of `app.db`, and what was kept, once `act` was done where that is what
/// was captured last, while somebody did `deed` before the `nth` operation of `kind`.
fn slipped(
    (kind, nth): (OpKind, u32),
    deed: impl Fn(&Path) + Send + Sync + 'static,
    act: impl Fn(&World, &Stage, &Dir, [&Entry; 2]),
) -> (String, Vec<String>) {
    let place = TempDir::new();
    let (d, file_path) = (Dir::open(place.path()).unwrap(), place.path().join("app.db"));
    let path = file_path.clone();
    let slip = Slip { kind, nth: AtomicU32::new(nth), deed: Box::new(move || deed(&path)) };
    let world = World::with(Disk::default().with_sync(false).with_hook(Arc::new(slip)));
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    let [stored, captured] = [b"stored", b"captur"].map(|bytes| {
        let content = world.put(bytes);
        Entry { uid, gid, ..file(b"app.db", content, 6) }
    });
    let stage = Stage::open(&world.call, &d, b"app.db").unwrap();
    let source = world.call.writer.clone().unwrap();
    stage.make(&world.call, &*source, &stored).unwrap();
    act(&world, &stage, &d, [&stored, &captured]);
    drop(stage);
    let kept = std::fs::read_dir(world.temp.path().join("store/saved")).into_iter().flatten();
    let mut kept: Vec<String> = kept.map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap()).collect();
    kept.sort();
    (std::fs::read_to_string(file_path).unwrap(), kept)
}

#[test]
fn what_somebody_put_there_in_between_is_never_lost() {
    let write = |text: &'static str| move |path: &Path| std::fs::write(path, text).unwrap();
    let replace = |text: &'static str| {
        move |path: &Path| {
            std::fs::write(path.with_extension("new"), text).unwrap();
            std::fs::rename(path.with_extension("new"), path).unwrap();
        }
    };
    let changed = |done: Result<()>| assert_eq!(done.unwrap_err().kind(), Kind::Changed);
    let theirs = |d: &Dir| std::fs::write(d.path().join("app.db"), "theirs").unwrap();
    // Taken out, it was not what was captured; by then the name is taken.
    let take = |w: &World, s: &Stage, d: &Dir, [_, captured]: [&Entry; 2]| {
        theirs(d);
        changed(s.take_out(&w.call, d, captured));
    };
    let none = Vec::<String>::new();
    assert_eq!(slipped((OpKind::Rename, u32::MAX), |_| {}, take), ("theirs".into(), none.clone()));
    let got = slipped((OpKind::RenameNoReplace, 1), write("newer"), take);
    assert_eq!(got, ("newer".into(), vec!["theirs".into()]));
    // The same when it was exchanged: whoever is newest is not overwritten either.
    let place = |w: &World, s: &Stage, d: &Dir, [stored, captured]: [&Entry; 2]| {
        theirs(d);
        changed(s.place(&w.call, stored, d, Some(captured)));
    };
    assert_eq!(slipped((OpKind::Exchange, u32::MAX), |_| {}, place), ("theirs".into(), none.clone()));
    let got = slipped((OpKind::Exchange, 2), replace("newer"), place);
    assert_eq!(got, ("theirs".into(), vec!["newer".into()]));
    let gone = slipped((OpKind::Exchange, 2), |path| std::fs::remove_file(path).unwrap(), place);
    assert_eq!(gone, ("theirs".into(), none.clone()));
    // What was placed is taken back: what replaced it since is not what was placed.
    let back = |w: &World, s: &Stage, d: &Dir, [stored, captured]: [&Entry; 2]| {
        std::fs::write(d.path().join("app.db"), "captur").unwrap();
        s.place(&w.call, stored, d, Some(captured)).unwrap();
        s.back(&w.call, d, b"app.db", Some(stored)).unwrap();
    };
    assert_eq!(slipped((OpKind::Exchange, u32::MAX), |_| {}, back), ("captur".into(), none));
    let got = slipped((OpKind::Exchange, 2), replace("theirs"), back);
    assert_eq!(got, ("captur".into(), vec!["theirs".into()]));
}
