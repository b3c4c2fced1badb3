use super::content::{Piece, load, store_bytes, store_file};
use super::*;
use crate::backend::Cancel;
use crate::disk::{Counter, OpKind};
use crate::object::ObjectKind;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A directory that goes when it is dropped.
pub(super) struct Scratch(pub PathBuf);

impl Scratch {
    pub fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("snapback-store-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn store(&self) -> Arc<Store> {
        Store::create(&self.0.join("store"), Disk::default().with_sync(false)).unwrap()
    }

    pub fn reopen(&self) -> Arc<Store> {
        Store::open(&self.0.join("store"), Disk::default().with_sync(false)).unwrap()
    }

    pub fn names(&self, dir: &str) -> BTreeSet<String> {
        let dir = std::fs::read_dir(self.0.join("store").join(dir)).unwrap();
        dir.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Bytes without a pattern, the same for the same seed.
pub(super) fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

pub(super) fn put_all(store: &Arc<Store>, objects: &[Vec<u8>]) -> Vec<Key> {
    let writer = store.writer().unwrap();
    let mut lane = writer.lane();
    let keys = objects.iter().map(|bytes| lane.put(ObjectKind::Blob, bytes).unwrap()).collect();
    lane.flush().unwrap();
    writer.seal().unwrap();
    keys
}

#[test]
fn what_was_sealed_is_read_by_everybody() {
    let scratch = Scratch::new("round");
    let store = scratch.store();
    let objects: Vec<Vec<u8>> =
        (0..500).map(|i| if i % 3 == 0 { noise(i, 5000) } else { vec![i as u8; i as usize * 40] }).collect();
    let keys = put_all(&store, &objects);
    for store in [store, scratch.reopen()] {
        for (key, bytes) in keys.iter().zip(&objects) {
            assert!(store.contains(key).unwrap());
            assert_eq!(store.read(key).unwrap(), *bytes);
        }
        let missing = Key::of(ObjectKind::Tree, b"missing");
        assert!(!store.contains(&missing).unwrap());
        assert_eq!(store.read(&missing).unwrap_err().kind(), Kind::NotFound);
        // The same bytes as another kind are another object.
        assert!(!store.contains(&Key::of(ObjectKind::Tree, &objects[1])).unwrap());
    }
    assert!(scratch.names("tmp").is_empty());
    assert_eq!(scratch.names("packs").len(), 1);
}

#[test]
fn equal_objects_are_stored_once() {
    let scratch = Scratch::new("dedup");
    let counter = Arc::new(Counter::default());
    let store = Store::create(&scratch.0.join("store"), Disk::default().with_hook(counter.clone())).unwrap();
    let writer = store.writer().unwrap();
    let mut lane = writer.lane();
    for _ in 0..10 {
        lane.put(ObjectKind::Blob, &noise(1, 100_000)).unwrap();
    }
    lane.flush().unwrap();
    let before = counter.syncs();
    let added = writer.seal().unwrap();
    assert!(added < 110_000, "{added}");
    assert_eq!(counter.syncs() - before, 2, "one for the pack, one for its directory");

    // A second time nothing is new: no file, no sync.
    let before = counter.all();
    let writer = store.writer().unwrap();
    writer.lane().put(ObjectKind::Blob, &noise(1, 100_000)).unwrap();
    assert_eq!(writer.seal().unwrap(), 0);
    drop(writer);
    assert_eq!(counter.all(), before);
}

#[test]
fn lanes_of_many_threads_store_the_same_set() {
    let scratch = Scratch::new("lanes");
    let store = scratch.store();
    let writer = store.writer().unwrap();
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let writer = &writer;
            scope.spawn(move || {
                for round in 0..20 {
                    let mut lane = writer.lane();
                    for i in 0..50 {
                        // Half of it is everybody's.
                        let seed = if i % 2 == 0 { i } else { thread * 1000 + round * 50 + i };
                        lane.put(ObjectKind::Blob, &noise(seed, 3000)).unwrap();
                    }
                    lane.flush().unwrap();
                }
            });
        }
    });
    let early = Key::of(ObjectKind::Blob, &noise(0, 3000));
    assert_eq!(writer.read(&early).unwrap(), noise(0, 3000));
    let added = writer.seal().unwrap();
    let distinct = 25 + 8 * 20 * 25;
    assert!(added < distinct * 3100, "{added}");
    let store = scratch.reopen();
    for seed in (0..8 * 1000).filter(|s| s % 2 == 1 && (s % 1000) < 1000) {
        let bytes = noise(seed, 3000);
        let key = Key::of(ObjectKind::Blob, &bytes);
        if store.contains(&key).unwrap() {
            assert_eq!(store.read(&key).unwrap(), bytes);
        }
    }
}

#[test]
fn a_writer_reads_what_it_has_not_sealed() {
    let scratch = Scratch::new("unsealed");
    let store = scratch.store();
    let old = put_all(&store, &[b"old".to_vec()]);
    for writer in [store.writer().unwrap(), store.scratch()] {
        let mut lane = writer.lane();
        let small = lane.put(ObjectKind::Tree, b"small").unwrap();
        let large = lane.put(ObjectKind::Blob, &noise(7, 900_000)).unwrap();
        assert_eq!(writer.read(&large).unwrap(), noise(7, 900_000));
        lane.flush().unwrap();
        assert_eq!(writer.read(&small).unwrap(), b"small");
        assert_eq!(writer.read(&old[0]).unwrap(), b"old");
        assert!(writer.contains(&small).unwrap() && !store.contains(&small).unwrap());
    }
    // Neither was sealed: nothing is left of them.
    assert!(scratch.names("tmp").is_empty());
    assert_eq!(scratch.names("packs").len(), 1);
}

#[test]
fn what_a_killed_writer_left_goes_but_not_what_is_being_written() {
    let scratch = Scratch::new("leftovers");
    let store = scratch.store();
    std::fs::write(scratch.0.join("store/tmp/dead"), "half a pack").unwrap();
    let first = store.writer().unwrap();
    assert!(scratch.names("tmp").is_empty());
    first.lane().put(ObjectKind::Blob, &noise(1, 1_000_000)).unwrap();
    assert_eq!(scratch.names("tmp").len(), 1);
    let second = scratch.reopen().writer().unwrap();
    assert_eq!(scratch.names("tmp").len(), 1);
    drop(second);
    first.seal().unwrap();
    assert!(scratch.reopen().contains(&Key::of(ObjectKind::Blob, &noise(1, 1_000_000))).unwrap());
}

#[test]
fn a_new_store_is_private_and_passed_over() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("private");
    let counter = Arc::new(Counter::default());
    let store = Store::create(&scratch.0.join("store"), Disk::default().with_hook(counter.clone())).unwrap();
    let mode =
        |name: &str| scratch.0.join("store").join(name).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(""), mode("packs"), mode("format"), mode("id")), (0o700, 0o700, 0o400, 0o400));
    assert_eq!(std::fs::read_to_string(scratch.0.join("store/.gitignore")).unwrap(), "*\n");
    assert!(
        std::fs::read(scratch.0.join("store/CACHEDIR.TAG"))
            .unwrap()
            .starts_with(b"Signature: 8a477f597d28d172789f06886806bc55")
    );
    assert_eq!(store.id().unwrap().len(), 32);
    assert_eq!(scratch.reopen().id().unwrap(), store.id().unwrap());
    assert_ne!(store.id().unwrap(), store.renew_id().unwrap());
    put_all(&store, &[b"x".to_vec()]);
    let pack = scratch.names("packs").pop_first().unwrap();
    assert_eq!(mode(&format!("packs/{pack}")), 0o400);
    assert!(counter.of(OpKind::SyncFile) > 0);
}

#[test]
fn what_is_no_store_is_told_from_a_newer_one() {
    let scratch = Scratch::new("kinds");
    let path = scratch.0.join("store");
    assert_eq!(Store::open(&path, Disk::default()).err().unwrap().kind(), Kind::NotFound);
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("thesis.txt"), "mine").unwrap();
    let said = Store::create(&path, Disk::default()).err().unwrap();
    assert!(said.kind() == Kind::Invalid && said.message().contains("thesis.txt"), "{said}");
    std::fs::remove_file(path.join("thesis.txt")).unwrap();
    std::fs::create_dir(path.join("packs")).unwrap();
    assert_eq!(Store::open(&path, Disk::default()).err().unwrap().kind(), Kind::NotFound);
    let _ = scratch.store();
    assert_eq!(Store::create(&path, Disk::default()).err().unwrap().kind(), Kind::Invalid);
    let format = |text: &str| {
        std::fs::remove_file(path.join("format")).unwrap();
        std::fs::write(path.join("format"), text).unwrap();
        Store::open(&path, Disk::default()).err().unwrap()
    };
    let newer = format("snapback store\nversion 2\nwhatever comes then\n");
    assert!(newer.kind() == Kind::Incompatible && newer.hint_text().is_some());
    assert_eq!(format("").kind(), Kind::Corrupt);
    assert_eq!(format("snapback store\nversion x\n").kind(), Kind::Corrupt);
    std::fs::remove_file(path.join("format")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path.join("format")).unwrap();
    assert!(Store::open(&path, Disk::default()).is_err());
}

#[test]
fn one_holds_the_lock_and_a_replaced_file_is_noticed() {
    let scratch = Scratch::new("lock");
    let (store, other) = (scratch.store(), scratch.reopen());
    let held = store.lock(&mut || panic!("nobody holds it")).unwrap();
    assert!(other.try_lock().unwrap().is_none());
    // Removed by a command that cleans up: what is held is worth nothing now.
    std::fs::remove_file(scratch.0.join("store/lock")).unwrap();
    assert!(!held.is_current(store.dir()).unwrap());
    let second = other.try_lock().unwrap().unwrap();
    drop(held);
    let waiting = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let mut told = 0;
        let lock = store.lock(&mut || {
            told += 1;
            waiting.0.send(()).unwrap();
        });
        (lock.is_ok(), told)
    });
    waiting.1.recv().unwrap();
    drop(second);
    assert_eq!(waiter.join().unwrap(), (true, 1));
}

fn loaded(source: &dyn Source, key: &Key, size: u64) -> (Vec<u8>, u64) {
    let (mut out, mut zeros) = (Vec::new(), 0);
    load(source, key, size, &mut |at, piece| {
        assert_eq!(at, out.len() as u64);
        match piece {
            Piece::Bytes(bytes) => out.extend_from_slice(bytes),
            Piece::Zeros(n) => {
                zeros += n;
                out.resize(out.len() + n as usize, 0);
            }
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(out.len() as u64, size);
    (out, zeros)
}

#[test]
fn content_of_every_length_comes_back() {
    let scratch = Scratch::new("content");
    let store = scratch.store();
    let writer = store.writer().unwrap();
    let block = BLOCK as u64;
    for size in [0, 1, block - 1, block, block + 1, 2 * block, 128 * block, 128 * block + 1, 300 * block + 77]
    {
        let bytes = noise(size, size as usize);
        let path = scratch.0.join("file");
        std::fs::write(&path, &bytes).unwrap();
        let file = File::open(&path).unwrap();
        let mut lane = writer.lane();
        let cancel = Cancel::default();
        let stored = store_file(&mut lane, &file, size, false, &cancel).unwrap();
        assert_eq!(stored, store_file(&mut lane, &file, size, true, &cancel).unwrap());
        assert_eq!(stored, store_bytes(&mut lane, &bytes[..], &cancel).unwrap());
        assert_eq!(stored.1, size);
        assert_eq!(stored.0.kind() == ObjectKind::Blob, size <= block);
        // A file that became shorter: what was there.
        let longer = store_file(&mut lane, &file, size + 5 * block, false, &cancel).unwrap();
        assert_eq!(longer, stored);
        assert_eq!(store_file(&mut lane, &file, size + 5 * block, true, &cancel).unwrap(), stored);
        lane.flush().unwrap();
        assert_eq!(loaded(&writer, &stored.0, size).0, bytes);
        assert!(load(&writer, &stored.0, size + 1, &mut |_, _| Ok(())).is_err());
    }
}

#[test]
fn holes_cost_nothing_and_come_back_as_zeros() {
    use std::os::unix::fs::FileExt;
    let scratch = Scratch::new("sparse");
    let store = scratch.store();
    let path = scratch.0.join("file");
    let file = std::fs::OpenOptions::new().read(true).write(true).create_new(true).open(&path).unwrap();
    let size = (20 << 30) + 12_345u64;
    file.set_len(size).unwrap();
    let places = [5u64, 70_000, (9 << 30) + 4096 * 3, (20 << 30) - 100];
    for at in places {
        file.write_all_at(b"data", at).unwrap();
    }
    let writer = store.writer().unwrap();
    let mut lane = writer.lane();
    let (key, n) = store_file(&mut lane, &file, size, true, &Cancel::default()).unwrap();
    lane.flush().unwrap();
    assert_eq!(n, size);
    let added = writer.seal().unwrap();
    assert!(added < 200_000, "{added}");
    let mut found = Vec::new();
    let mut end = 0;
    load(&*store, &key, size, &mut |at, piece| {
        assert_eq!(at, end);
        end += piece.length();
        if let Piece::Bytes(bytes) = piece {
            found.extend(
                bytes.windows(4).enumerate().filter(|(_, w)| *w == b"data").map(|(i, _)| at + i as u64),
            );
        }
        Ok(())
    })
    .unwrap();
    assert_eq!(end, size);
    assert_eq!(found, places);
}

#[test]
fn zeros_are_the_same_whether_read_or_skipped() {
    let scratch = Scratch::new("zeros");
    let store = scratch.store();
    let path = scratch.0.join("file");
    let writer = store.writer().unwrap();
    for blocks in [1u64, 2, 127, 128, 129, 256, 128 * 128, 128 * 128 + 130] {
        for tail in [0, 1, 4096] {
            let size = blocks * BLOCK as u64 + tail;
            let file = File::create_new(&path).unwrap();
            file.set_len(size).unwrap();
            let file = File::open(&path).unwrap();
            let mut lane = writer.lane();
            let cancel = Cancel::default();
            let skipped = store_file(&mut lane, &file, size, true, &cancel).unwrap();
            let read = store_file(&mut lane, &file, size, false, &cancel).unwrap();
            assert_eq!(skipped, read, "{blocks} blocks and {tail}");
            lane.flush().unwrap();
            let mut zeros = 0;
            load(&writer, &read.0, size, &mut |_, piece| {
                assert!(matches!(piece, Piece::Zeros(_)));
                zeros += piece.length();
                Ok(())
            })
            .unwrap();
            assert_eq!(zeros, size);
            std::fs::remove_file(&path).unwrap();
        }
    }
}

#[test]
fn a_small_change_in_large_content_stores_little() {
    let scratch = Scratch::new("change");
    let store = scratch.store();
    let mut bytes = noise(1, 40 << 20);
    let store_it = |bytes: &[u8]| {
        let writer = store.writer().unwrap();
        let mut lane = writer.lane();
        let key = store_bytes(&mut lane, bytes, &Cancel::default()).unwrap().0;
        lane.flush().unwrap();
        (key, writer.seal().unwrap())
    };
    let (old, _) = store_it(&bytes);
    bytes[20 << 20..][..4096].copy_from_slice(&noise(2, 4096));
    let (new, added) = store_it(&bytes);
    assert!(added < BLOCK as u64 * 12 / 10, "{added}");
    assert_eq!(loaded(&*scratch.reopen(), &new, 40 << 20).0, bytes);
    assert_ne!(old, new);
}
