//! What was changed on the disk is found, and what is whole stays readable.

use super::*;
use std::os::unix::fs::{FileExt, PermissionsExt};

fn files(seed: u64) -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("a", noise(seed, 1000)),
        ("b", noise(seed + 1, 500_000)),
        ("c", vec![seed as u8; 100_000]),
        ("d", noise(seed + 2, 3000)),
    ]
}

/// Changes a file that is sealed.
fn damage(path: &std::path::Path, change: impl FnOnce(&File, u64)) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = std::fs::OpenOptions::new().read(true).write(true).open(path).unwrap();
    change(&file, file.metadata().unwrap().len());
}

fn flip(file: &File, at: u64) {
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

fn all_of(store: &Store, files: &[(&str, Vec<u8>)]) -> usize {
    let keys = files
        .iter()
        .flat_map(|(_, bytes)| bytes.chunks(BLOCK))
        .map(|block| (Key::of(ObjectKind::Blob, block), block));
    keys.filter(|(key, block)| match store.read(key) {
        Ok(bytes) => {
            assert_eq!(bytes, *block, "wrong bytes were returned");
            true
        }
        Err(e) => {
            assert!(matches!(e.kind(), Kind::Corrupt | Kind::NotFound), "{e}");
            false
        }
    })
    .count()
}

#[test]
fn an_index_that_is_missing_damaged_or_stale_loses_nothing() {
    let scratch = Scratch::new("index");
    let store = scratch.store();
    let index = scratch.0.join("store/index");
    let old = files(1);
    snapshot(&store, &old).unwrap();
    store.catalog().unwrap().write_index(&store.disk, &store.dir).unwrap();
    let stale = std::fs::read(&index).unwrap();
    let new = files(100);
    let (root, _) = snapshot(&scratch.reopen(), &new).unwrap();
    scratch.reopen().catalog().unwrap().write_index(&store.disk, &store.dir).unwrap();
    let good = std::fs::read(&index).unwrap();
    let count = all_of(&scratch.reopen(), &new);
    assert_eq!(count, 12);

    let mut cases: Vec<Vec<u8>> =
        vec![stale, vec![], good[..good.len() / 2].to_vec(), vec![0; good.len()], good[..10].to_vec()];
    for at in (0..good.len()).step_by(97) {
        let mut flipped = good.clone();
        flipped[at] ^= 4;
        cases.push(flipped);
    }
    for case in cases {
        std::fs::write(&index, case).unwrap();
        let store = scratch.reopen();
        assert_eq!((all_of(&store, &old), all_of(&store, &new)), (count, count));
        let store = scratch.reopen();
        for (_, bytes) in &new {
            assert!(store.contains(&Key::of(ObjectKind::Blob, &bytes[..bytes.len().min(BLOCK)])).unwrap());
        }
    }
    std::fs::remove_file(&index).unwrap();
    assert!(is_whole(&scratch.reopen(), &root));
    // A damaged one is made again by the next writer.
    std::fs::write(&index, vec![0; 5000]).unwrap();
    snapshot(&scratch.reopen(), &files(200)).unwrap();
    let store = scratch.reopen();
    assert!(store.catalog().unwrap().index_problem.is_none());
    assert_eq!(all_of(&store, &new), count);
}

#[test]
fn a_flipped_bit_in_a_pack_is_found_and_named_and_the_rest_is_read() {
    let scratch = Scratch::new("bits");
    let store = scratch.store();
    let (first, second) = (files(1), files(100));
    let (root, _) = snapshot(&store, &first).unwrap();
    let pack = scratch.0.join("store/packs").join(scratch.names("packs").first().unwrap());
    let name = scratch.names("packs").pop_first().unwrap();
    let (other, _) = snapshot(&store, &second).unwrap();
    let size = pack.metadata().unwrap().len();
    let all = all_of(&store, &first);
    let whole = std::fs::read(&pack).unwrap();
    for at in (0..size).step_by(997).chain(size - 70..size) {
        damage(&pack, |file, _| flip(file, at));
        let store = scratch.reopen();
        let mut verified = verify::packs(&store, &Cancel::default(), &Silent).unwrap();
        let mut lost = Vec::new();
        // Nothing that is stored stands before the first frame.
        let nobodys = at < 16;
        assert!(!verified.is_whole(), "byte {at} of {size}");
        assert_eq!(verified.root(&store, &root, &mut lost, 5, &Cancel::default()).unwrap(), lost.is_empty());
        assert_eq!(lost.is_empty(), nobodys, "byte {at}");
        assert!(verified.root(&store, &other, &mut Vec::new(), 5, &Cancel::default()).unwrap());
        assert_eq!(verified.damaged_packs()[0].to_string(), name);
        assert!(verified.problems[0].1.message().contains(&name), "{}", verified.problems[0].1);
        assert!(all_of(&store, &first) <= all);
        assert_eq!(all_of(&store, &second), all);
        damage(&pack, |file, _| file.write_all_at(&whole, 0).unwrap());
    }
    assert!(is_whole(&scratch.reopen(), &root));
}

#[test]
fn a_pack_that_was_cut_off_or_is_missing_spoils_no_other() {
    let scratch = Scratch::new("cut");
    let store = scratch.store();
    let (first, second) = (files(1), files(100));
    let (root, _) = snapshot(&store, &first).unwrap();
    let pack = scratch.0.join("store/packs").join(scratch.names("packs").first().unwrap());
    let (other, _) = snapshot(&store, &second).unwrap();
    for indexed in [false, true] {
        if indexed {
            scratch.reopen().catalog().unwrap().write_index(&store.disk, &store.dir).unwrap();
        }
        let whole = std::fs::read(&pack).unwrap();
        for length in [0, 10, whole.len() * 3 / 4, whole.len() - 1] {
            damage(&pack, |file, _| file.set_len(length as u64).unwrap());
            let store = scratch.reopen();
            // An index knows what is in the part that is left: without the end of the
            // table that is everything.
            let known = indexed && length == whole.len() - 1;
            assert_eq!(is_whole(&store, &root), known, "cut at {length}");
            assert!(is_whole(&store, &other), "cut at {length}");
            let read = all_of(&store, &first);
            assert_eq!(read > 0, indexed && length > 100, "{read} at {length}");
            // What is in doubt is stored again, and read again.
            let (again, added) = snapshot(&store, &first).unwrap();
            assert!(added > 0 && again == root && is_whole(&scratch.reopen(), &root), "cut at {length}");
            for name in
                scratch.names("packs").iter().filter(|name| scratch.0.join("store/packs").join(name) != pack)
            {
                let path = scratch.0.join("store/packs").join(name);
                if !is_pack_of(&path, &second) {
                    std::fs::remove_file(path).unwrap();
                }
            }
            damage(&pack, |file, _| file.write_all_at(&whole, 0).unwrap());
        }
        assert!(is_whole(&scratch.reopen(), &root));
    }
    std::fs::remove_file(&pack).unwrap();
    let store = scratch.reopen();
    assert!(!is_whole(&store, &root) && is_whole(&store, &other));
    snapshot(&store, &first).unwrap();
    assert!(is_whole(&scratch.reopen(), &root));
}

fn is_pack_of(path: &std::path::Path, files: &[(&str, Vec<u8>)]) -> bool {
    let name = PackName::parse(path.file_name().unwrap().as_encoded_bytes()).unwrap();
    let table = pack::Table::read(&File::open(path).unwrap(), name).unwrap();
    let key = Key::of(ObjectKind::Blob, &files[0].1);
    table.frames.iter().any(|frame| frame.objects.iter().any(|(k, _)| *k == key))
}

#[test]
fn marked_packs_are_read_but_not_relied_on() {
    let scratch = Scratch::new("marked");
    let store = scratch.store();
    let first = files(1);
    let (root, _) = snapshot(&store, &first).unwrap();
    let pack = scratch.0.join("store/packs").join(scratch.names("packs").first().unwrap());
    damage(&pack, |file, _| flip(file, 2000));
    let store = scratch.reopen();
    let verified = verify::packs(&store, &Cancel::default(), &Silent).unwrap();
    store.mark(&verified.damaged_packs()).unwrap();
    assert!(scratch.names("packs").first().unwrap().ends_with(".damaged"));
    let read = all_of(&store, &first);
    assert!(read > 0);
    assert!(!store.contains(&Key::of(ObjectKind::Blob, &first[3].1)).unwrap());
    let (_, added) = snapshot(&store, &first).unwrap();
    assert!(added > 500_000);
    assert!(is_whole(&scratch.reopen(), &root));
    // What is in doubt is of no use any more: it goes.
    let store = scratch.reopen();
    let plan = gc::plan(&store, &[root], gc::Sweep::Worthwhile, &Cancel::default()).unwrap();
    plan.apply(&store, &Cancel::default(), &Silent).unwrap();
    assert_eq!(scratch.names("packs").len(), 1);
    assert!(is_whole(&scratch.reopen(), &root));
}

#[test]
fn an_index_that_lies_is_found_out() {
    use index::{Draft, Place};
    use pack::{Encoding, Frame};
    let scratch = Scratch::new("lies");
    let store = scratch.store();
    let files = files(1);
    snapshot(&store, &files).unwrap();
    let count = all_of(&scratch.reopen(), &files);
    let pack = store.catalog().unwrap().packs[0].clone();
    let key = Key::of(ObjectKind::Blob, &files[0].1);
    let raw = u32::MAX;
    for (frame, start, len) in [
        // Beyond the file; larger than any memory; not what it says; outside of its frame.
        (Frame { offset: raw - 9, stored: 9, raw: 9, encoding: Encoding::Raw }, 0, 9),
        (Frame { offset: 16, stored: raw, raw, encoding: Encoding::Raw }, 0, 9),
        (Frame { offset: 16, stored: 9, raw, encoding: Encoding::Zstd }, 0, 9),
        (Frame { offset: 16, stored: 500 << 20, raw: 500 << 20, encoding: Encoding::Raw }, 0, 9),
        (Frame { offset: 16, stored: 9, raw: 1000, encoding: Encoding::Zstd }, 0, 1000),
        (Frame { offset: 16, stored: 9, raw: 9, encoding: Encoding::Raw }, raw, raw),
        (Frame { offset: 4096, stored: 9, raw: 9, encoding: Encoding::Aligned }, 0, 9),
        (Frame { offset: 4096, stored: 9, raw: 9, encoding: Encoding::Aligned }, raw, raw),
    ] {
        for number in [0, 7, raw] {
            let mut draft = Draft::begin(&store.disk, &store.dir).unwrap();
            draft.add(&key, &Place { pack: number, frame, start, len }).unwrap();
            draft.finish(&[(pack.name, pack.size)]).unwrap();
            assert_eq!(all_of(&scratch.reopen(), &files), count, "{frame:?} of pack {number}");
            assert!(scratch.reopen().read(&key).is_ok(), "{frame:?} of pack {number}");
        }
    }
}

#[test]
fn a_frame_that_becomes_more_than_it_says_is_refused() {
    use pack::{Encoding, Frame, FrameTable, HEAD, Table};
    let scratch = Scratch::new("bomb");
    drop(scratch.store());
    let bomb = zstd::bulk::compress(&vec![0; 64 << 20], 1).unwrap();
    let key = Key::of(ObjectKind::Blob, b"x");
    for raw in [bomb.len() as u32, 1 << 20, 64 << 20] {
        let frame = Frame { offset: 16, stored: bomb.len() as u32, raw, encoding: Encoding::Zstd };
        let end = 16 + bomb.len() as u64;
        let (table, name) = Table::encode(&[FrameTable { frame, objects: vec![(key, raw)] }], end);
        let bytes = [&HEAD[..], &bomb, &table].concat();
        std::fs::write(scratch.0.join("store/packs").join(name.to_string()), bytes).unwrap();
        let error = scratch.reopen().read(&key).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
        assert!(!verify::packs(&scratch.reopen(), &Cancel::default(), &Silent).unwrap().is_whole());
    }
}

#[test]
fn a_hostile_table_is_refused() {
    use pack::{Encoding, Frame, FrameTable, Table};
    let scratch = Scratch::new("hostile");
    let key = Key::of(ObjectKind::Blob, b"x");
    let frame = |offset, stored, raw, encoding| Frame { offset, stored, raw, encoding };
    let table = |frame, objects| vec![FrameTable { frame, objects }];
    let read = |frames: &[FrameTable], end: u64| {
        let (bytes, name) = Table::encode(frames, end);
        let path = scratch.0.join("pack");
        let file = File::create(&path).unwrap();
        file.write_all_at(&bytes, end).unwrap();
        Table::read(&File::open(&path).unwrap(), name)
    };
    assert!(read(&table(frame(16, 1, 1, Encoding::Raw), vec![(key, 1)]), 17).is_ok());
    for (bad, end) in [
        (table(frame(16, 2, 1, Encoding::Raw), vec![(key, 1)]), 18),
        (table(frame(15, 1, 1, Encoding::Raw), vec![(key, 1)]), 17),
        (table(frame(16, 2, 2, Encoding::Raw), vec![(key, 2)]), 17),
        (table(frame(16, 1, 1, Encoding::Raw), vec![(key, 2)]), 17),
        (table(frame(16, 1, 1, Encoding::Raw), vec![]), 17),
        (table(frame(16, 0, 1, Encoding::Zstd), vec![(key, 1)]), 17),
        (table(frame(16, 1, 1, Encoding::Aligned), vec![(key, 1)]), 17),
        (table(frame(16, 9, u32::MAX, Encoding::Zstd), vec![(key, u32::MAX)]), 99),
        (table(frame(16, 9, 8, Encoding::Zstd), vec![(key, 8)]), 99),
        (
            [
                table(frame(16, 2, 2, Encoding::Raw), vec![(key, 2)]),
                table(frame(17, 2, 2, Encoding::Raw), vec![(key, 2)]),
            ]
            .concat(),
            99,
        ),
    ] {
        assert_eq!(read(&bad, end).unwrap_err().kind(), Kind::Corrupt, "{bad:?}");
    }
}

#[test]
fn every_byte_of_a_pack_is_verified() {
    let scratch = Scratch::new("every-byte");
    let files = [("a", b"text ".repeat(60)), ("b", noise(2, 300))];
    let (root, _) = snapshot(&scratch.store(), &files).unwrap();
    let path = scratch.0.join("store/packs").join(scratch.names("packs").pop_first().unwrap());
    let size = path.metadata().unwrap().len();
    let mut unseen = 0;
    for at in 0..size {
        damage(&path, |file, _| flip(file, at));
        let store = scratch.reopen();
        let mut verified = verify::packs(&store, &Cancel::default(), &Silent).unwrap();
        let whole = verified.root(&store, &root, &mut Vec::new(), 1, &Cancel::default()).unwrap();
        if verified.is_whole() {
            // A bit that the compression has no use for: all is what was written.
            assert!(whole && all_of(&store, &files) == files.len(), "byte {at} of {size}");
            unseen += 1;
        } else {
            assert_eq!(verified.damaged_packs().len(), 1, "byte {at} of {size}");
        }
        damage(&path, |file, _| flip(file, at));
    }
    assert!(unseen <= 4, "{unseen} of {size} bytes");
}
