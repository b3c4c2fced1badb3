//! Content of every length goes into blocks and comes back.

use super::*;
use crate::store::content::{Piece, differing, load, load_range, pieces, store_file};

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

#[test]
fn runs_of_zeros_inside_a_block_are_found() {
    let mut bytes = noise(3, 4096 * 4 + 100);
    bytes[4096..4096 * 3].fill(0);
    bytes[4096 * 4..].fill(0);
    let found: Vec<_> = pieces(&bytes, 4096)
        .map(|(at, piece)| (at, piece.length(), matches!(piece, Piece::Zeros(_))))
        .collect();
    // What is left of a grain is no hole.
    assert_eq!(found, [(0, 4096, false), (4096, 8192, true), (12_288, 4196, false)]);
    assert_eq!(pieces(&[], 4096).count(), 0);
}

#[test]
fn a_part_of_content_is_that_part() {
    let scratch = Scratch::new("range");
    let store = scratch.store();
    let mut bytes = noise(5, 9_000_000);
    bytes[3_000_000..4_000_000].fill(0);
    let writer = store.writer().unwrap();
    let (key, size) = store_bytes(&mut writer.lane(), &bytes[..], &Cancel::default()).unwrap();
    let (empty, _) = store_bytes(&mut writer.lane(), &[][..], &Cancel::default()).unwrap();
    writer.seal().unwrap();
    let part = |key, size, range| {
        let mut out = Vec::new();
        load_range(&*store, key, size, range, &mut |_, piece| {
            match piece {
                Piece::Bytes(bytes) => out.extend_from_slice(bytes),
                Piece::Zeros(n) => out.resize(out.len() + n as usize, 0),
            }
            Ok(())
        })
        .unwrap();
        out
    };
    for range in
        [0..1, 65_535..65_537, 2_999_999..3_500_000, 8_999_990..size, 0..size, 5..5, 8_388_607..8_388_609]
    {
        assert_eq!(
            part(&key, size, range.clone()),
            bytes[range.start as usize..range.end as usize],
            "{range:?}"
        );
    }
    assert_eq!(part(&key, size, size - 3..size + 100), bytes[size as usize - 3..]);
    assert!(part(&key, size, size + 1..size + 9).is_empty() && part(&empty, 0, 0..9).is_empty());
}

#[test]
fn differences_are_found_without_reading_what_is_shared() {
    struct Counting<'a>(&'a Store, std::sync::atomic::AtomicU64);
    impl Source for Counting<'_> {
        fn view(&self, key: &Key, f: Viewer<'_>) -> Result<()> {
            assert_eq!(key.kind(), ObjectKind::List, "no block is read");
            self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            self.0.view(key, f)
        }
    }
    let scratch = Scratch::new("differing");
    let store = scratch.store();
    let block = BLOCK as u64;
    let old = noise(1, 600 * BLOCK + 5);
    let changed = |at: &[u64]| {
        let mut new = old.clone();
        at.iter().for_each(|&at| new[at as usize] ^= 1);
        new
    };
    // What is new, the ranges that differ, how many lists may be read to find them.
    type Case = (Vec<u8>, Vec<(u64, u64)>, u64);
    let cases: Vec<Case> = vec![
        (old.clone(), vec![], 0),
        (changed(&[300 * block + 9]), vec![(300 * block, block)], 4),
        (changed(&[0, 600 * block]), vec![(0, block), (600 * block, 5)], 6),
        (old[..10].to_vec(), vec![(0, 10)], 20),
        (old[..300 * BLOCK].to_vec(), vec![], 20),
        (old[..300 * BLOCK + 1].to_vec(), vec![(300 * block, 1)], 20),
        ([&old[..], &[1; 70_000]].concat(), vec![(600 * block, block), (601 * block, 70_005 - block)], 20),
        (vec![], vec![], 20),
    ];
    let writer = store.writer().unwrap();
    let keep = |bytes: &[u8]| store_bytes(&mut writer.lane(), bytes, &Cancel::default()).unwrap();
    let (old_key, old_size) = keep(&old);
    let keys: Vec<_> = cases.iter().map(|case| keep(&case.0)).collect();
    writer.seal().unwrap();
    for ((_, expected, reads), (key, size)) in cases.iter().zip(&keys) {
        let source = Counting(&store, 0.into());
        let mut found = Vec::new();
        differing(&source, (&old_key, old_size), (key, *size), &mut |at, n| {
            found.push((at, n));
            Ok(())
        })
        .unwrap();
        assert_eq!(found, *expected);
        assert!(source.1.into_inner() <= *reads);
    }
    // From little to much: all that is new is told.
    let mut sum = 0;
    let count = &mut |_, n| {
        sum += n;
        Ok(())
    };
    differing(&*store, (&keys[3].0, 10), (&old_key, old_size), count).unwrap();
    assert_eq!(sum, old_size);
}
