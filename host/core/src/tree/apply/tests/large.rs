//! Large files: what is read of them, and that all threads together write them right.

use super::world::World;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

/// Bytes that `act` reads, all of it on one thread.
fn read_by(act: impl FnOnce() + Send) -> u64 {
    let read = || {
        let text = std::fs::read_to_string("/proc/thread-self/io").unwrap();
        text.lines().find_map(|line| line.strip_prefix("rchar: ")).unwrap().parse::<u64>().unwrap()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| {
        let before = read();
        act();
        read() - before
    })
}

#[test]
fn holes_are_not_read_whatever_is_done() {
    let world = World::new("holes");
    let sparse = |text: &[u8], at: u64| {
        let _ = std::fs::remove_file(world.path("sparse"));
        let file = File::create_new(world.path("sparse")).unwrap();
        file.set_len(20 << 30).unwrap();
        file.write_all_at(text, at).unwrap();
    };
    let stored = std::sync::Mutex::new(Vec::new());
    let read = read_by(|| {
        sparse(b"the first", 7 << 30);
        let first = world.capture(&[], None);
        sparse(b"the second", 11 << 30);
        let second = world.capture(&[], Some(first));
        let (outcome, told) = world.put_back(&[], &first, &second, &[]).unwrap();
        assert!(outcome.modified == 1 && told.is_empty(), "{outcome:?} {told:?}");
        *stored.lock().unwrap() = vec![first, second];
    });
    assert!(read < 4 << 20, "{read} bytes were read");
    let file = File::open(world.path("sparse")).unwrap();
    let mut text = [0; 10];
    file.read_exact_at(&mut text, 7 << 30).unwrap();
    assert_eq!(&text, b"the first\0");
    file.read_exact_at(&mut text, 11 << 30).unwrap();
    assert_eq!(text, [0; 10]);
    let is = file.metadata().unwrap();
    assert!(is.len() == 20 << 30 && is.blocks() < 1000, "{is:?}");
    // What lies where a hole should be is seen.
    let stored = stored.into_inner().unwrap();
    let file = File::options().write(true).open(world.path("sparse")).unwrap();
    file.write_all_at(b"x", 13 << 30).unwrap();
    let (outcome, told) = world.put_back(&[], &stored[1], &stored[0], &[]).unwrap();
    assert_eq!((outcome.modified, told.len()), (0, 1), "{outcome:?} {told:?}");
}

#[test]
fn a_large_file_is_written_whole_by_all_threads() {
    let world = World::new("large");
    let bytes: Vec<u8> = (0..(20 << 20) + 12_345u32).flat_map(|i| (i / 7).to_le_bytes()).step_by(4).collect();
    world.write("large", &bytes);
    let before = world.capture(&[], None);
    let mut other = bytes.clone();
    other[9 << 20] ^= 1;
    other.truncate(15 << 20);
    world.write("large", &other);
    let after = world.capture(&[], Some(before));
    for (to, from, expected) in [(before, after, &bytes), (after, before, &other)] {
        let (outcome, told) = world.put_back(&[], &to, &from, &[]).unwrap();
        assert!(outcome.modified == 1 && told.is_empty(), "{outcome:?} {told:?}");
        assert!(world.read("large") == *expected);
    }
}
