//! What was sealed is read by everybody, and equal objects are stored once.

use super::*;
use crate::disk::Counter;

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
    for writer in [store.writer().unwrap(), store.scratch(true)] {
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
fn a_floor_of_free_space_is_kept() {
    let scratch = Scratch::new("floor");
    let store = scratch.store();
    let writer = store.writer().unwrap();
    // More than any disk has: others write to and remove from the same one meanwhile.
    writer.keep_free(1 << 60);
    let said = writer.lane().put(ObjectKind::Blob, &noise(1, 300_000)).unwrap_err();
    assert!(said.kind() == Kind::NoSpace && said.message().contains("are to stay free"), "{said}");
    assert_eq!(writer.seal().unwrap_err().kind(), Kind::NoSpace);
    drop(writer);
    assert!(scratch.names("packs").is_empty() && scratch.names("tmp").is_empty());
}

#[test]
fn who_takes_the_lock_sees_what_others_removed() {
    let scratch = Scratch::new("others");
    let store = scratch.store();
    let (root, _) = snapshot(&store, &[("a", noise(1, 100_000))]).unwrap();
    assert!(store.contains(&root).unwrap());
    // Another process cleans while this one waits for the lock.
    let other = scratch.reopen();
    let plan = gc::plan(&other, &[], gc::Sweep::Worthwhile, &Cancel::default()).unwrap();
    plan.apply(&other, &Cancel::default(), &Silent).unwrap();
    let _lock = store.lock(&mut || {}).unwrap();
    let (again, added) = snapshot(&store, &[("a", noise(1, 100_000))]).unwrap();
    assert!(added > 100_000 && again == root && is_whole(&scratch.reopen(), &root));
}

#[test]
fn directories_have_frames_of_their_own() {
    let scratch = Scratch::new("apart");
    let store = scratch.store();
    let writer = store.writer().unwrap();
    let mut lane = writer.lane();
    for i in 0..400 {
        lane.put(ObjectKind::Blob, &noise(i, 4000)).unwrap();
        lane.put(ObjectKind::Tree, &noise(i, 200)).unwrap();
        lane.put(ObjectKind::Times, &noise(i, 50)).unwrap();
    }
    lane.flush().unwrap();
    writer.seal().unwrap();
    let name = scratch.names("packs").pop_first().unwrap();
    let file = File::open(scratch.0.join("store/packs").join(&name)).unwrap();
    let table = pack::Table::read(&file, PackName::parse(name.as_bytes()).unwrap()).unwrap();
    let mixed = table.frames.iter().filter(|frame| {
        let blobs = frame.objects.iter().filter(|(key, _)| key.kind() == ObjectKind::Blob).count();
        blobs > 0 && blobs < frame.objects.len()
    });
    assert_eq!(mixed.count(), 0);
    let others = table.frames.iter().filter(|frame| frame.objects[0].0.kind() != ObjectKind::Blob);
    assert_eq!(others.count(), 1, "a hundred kilobytes are one frame");
}

#[test]
fn what_was_published_is_read_while_others_go_on() {
    let scratch = Scratch::new("published");
    let store = scratch.store();
    let writer = store.writer().unwrap();
    let mut lane = writer.lane();
    let key = lane.put(ObjectKind::Root, b"looked at next").unwrap();
    lane.publish().unwrap();
    // This one goes on with what the other had gathered.
    let mut other = writer.lane();
    let later = other.put(ObjectKind::Tree, b"not yet").unwrap();
    assert_eq!(writer.read(&key).unwrap(), b"looked at next");
    assert_eq!(writer.read(&later).unwrap_err().kind(), Kind::Busy);
    other.flush().unwrap();
    assert_eq!(writer.read(&later).unwrap(), b"not yet");
}
