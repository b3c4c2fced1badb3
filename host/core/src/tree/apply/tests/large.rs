//! Large files: what is read of them, and that all threads together write them right.

use super::world::World;
use crate::disk::{Disk, Hook, Op, OpKind};
use crate::error::Kind;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

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

/// Counts the bytes that are written, and what is copied inside the system.
#[derive(Default)]
struct Written {
    bytes: AtomicU64,
    copies: AtomicU64,
}

impl Hook for Written {
    fn before(&self, op: &Op<'_>) -> std::io::Result<()> {
        self.bytes.fetch_add(op.data.len() as u64, Ordering::Relaxed);
        self.copies.fetch_add(u64::from(op.kind == OpKind::CopyRange), Ordering::Relaxed);
        Ok(())
    }
}

#[test]
fn what_was_shared_is_shared_again_and_checked() {
    let written = Arc::new(Written::default());
    let disk = Disk::default().with_sync(false).with_copies_as_clones().with_hook(written.clone());
    let world = World::with(disk, "shared");
    let mut bytes: Vec<u8> =
        (0..(9 << 18) + 77u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect();
    bytes[1 << 20..2 << 20].fill(0);
    world.write("large", &bytes);
    let with = world.capture(&[], None);
    std::fs::remove_file(world.path("large")).unwrap();
    let without = world.capture(&[], Some(with));
    let put_back = |options: &[(&str, &str)], stored, current| {
        let before = [&written.bytes, &written.copies].map(|n| n.load(Ordering::Relaxed));
        let (outcome, told) = world.put_back(options, stored, current, &[])?;
        assert!(outcome.added + outcome.deleted == 1 && told.is_empty(), "{outcome:?} {told:?}");
        let after = [&written.bytes, &written.copies].map(|n| n.load(Ordering::Relaxed));
        Ok([after[0] - before[0], after[1] - before[1]])
    };
    let [wrote, copies] = put_back(&[], &with, &without).unwrap();
    assert!(world.read("large") == bytes);
    // The zeros, and the rest that is no whole block.
    assert!(wrote < (1 << 20) + 100_000 && copies > 0, "{wrote} {copies}");
    put_back(&[], &without, &with).unwrap();
    let [wrote, copies] = put_back(&[("strategy", "copy")], &with, &without).unwrap();
    assert!(wrote > 9 << 20 && copies == 0 && world.read("large") == bytes, "{wrote} {copies}");
    put_back(&[], &without, &with).unwrap();
    // What is damaged by now is not put in place.
    for pack in std::fs::read_dir(world.store.path().join("packs")).unwrap() {
        let path = pack.unwrap().path();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let file = File::options().read(true).write(true).open(path).unwrap();
        if file.metadata().unwrap().len() > 8 << 20 {
            file.write_all_at(b"damaged", 4 << 20).unwrap();
        }
    }
    let error: crate::error::Error = put_back(&[], &with, &without).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    assert!(!world.path("large").exists() && world.leftovers() == [""; 0]);
}
