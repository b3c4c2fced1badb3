//! The stat cache knows what it may trust, and survives anything that stands in it.

use super::*;
use crate::object::{Key, ObjectKind};
use crate::tree::node::{Entry, EntryTime, Node, Time};
use crate::tree::scan::Stat;

fn stat(ino: u64) -> Stat {
    Stat {
        mode: 0o100_644,
        uid: 1,
        gid: 2,
        nlink: 1,
        dev: 77,
        ino,
        size: 5,
        mtime: Time { sec: -3, nsec: 4 },
        ctime: Time { sec: 5, nsec: 6 },
        born: None,
        rdev: (0, 0),
        allocated: 4096,
        mount: 1,
        attributes: rustix::fs::StatxAttributes::empty(),
    }
}

fn entries() -> Vec<(Entry, EntryTime, Stat)> {
    let blob = Key::of(ObjectKind::Blob, b"x");
    let (tree, times) = (Key::of(ObjectKind::Tree, b"t"), Key::of(ObjectKind::Times, b"t"));
    let nodes = [
        (0o100_000, Node::File { content: blob, size: 5, sparse: true }, None),
        (0o040_000, Node::Dir(tree), Some(times)),
        (0o120_000, Node::Symlink(b"/nowhere".to_vec()), None),
        (0o010_000, Node::Fifo, None),
        (0o020_000, Node::CharDevice(1, 3), None),
    ];
    let make = |(at, (kind, node, inside)): (usize, (u32, Node, Option<Key>))| {
        let mut stat = stat(at as u64);
        stat.mode = kind | 0o755;
        if at == 3 {
            stat.dev = 78;
        }
        if let Node::CharDevice(major, minor) = node {
            stat.rdev = (major, minor);
        }
        let entry = Entry {
            name: format!("name{at}").into(),
            mode: 0o755,
            uid: 1,
            gid: 2,
            xattrs: if at % 2 == 0 { vec![(b"user.a".to_vec(), b"\0b".to_vec())] } else { vec![] },
            link: (at == 3).then_some(0x1234),
            node,
        };
        (entry, EntryTime { mtime: stat.mtime, inside }, stat)
    };
    nodes.into_iter().enumerate().map(make).collect()
}

fn record(entries: &[(Entry, EntryTime, Stat)], generation: u32) -> Vec<u8> {
    let mut builder = RecordBuilder::new((77, 1), generation, entries.len());
    for (entry, time, stat) in entries {
        builder.add(&Remembered { entry, time, stat, racy: entry.name == b"name2" });
    }
    builder.finish(&Key::of(ObjectKind::Tree, b"1"), &Key::of(ObjectKind::Times, b"1")).unwrap()
}

fn file() -> Vec<u8> {
    let empty = StatCache::default();
    let mut update = Update::new(&empty, None);
    let generation = update.generation();
    update.add((77, 1), &record(&entries(), generation));
    update.finish(&Key::of(ObjectKind::Root, b"r")).unwrap()
}

#[test]
fn what_was_remembered_is_found() {
    let cache = StatCache::read(file()).unwrap();
    let found = cache.dir(77, 1).unwrap();
    assert_eq!(found.len(), 5);
    assert_eq!(
        (found.tree(), found.times()),
        (Key::of(ObjectKind::Tree, b"1"), Key::of(ObjectKind::Times, b"1"))
    );
    for (entry, time, stat) in entries() {
        let cached = found.entry(&entry.name).unwrap();
        assert_eq!(cached.to_entry().unwrap(), (entry.clone(), time));
        assert_eq!(cached.matches(&stat), entry.name != b"name2", "a racy one never matches");
        for change in 0..8 {
            let mut other = stat;
            match change {
                0 => other.mode ^= 1,
                1 => other.uid += 1,
                2 => other.ino += 1,
                3 => other.size += 1,
                4 => other.mtime.nsec += 1,
                5 => other.ctime.nsec += 1,
                6 => other.dev += 1,
                _ => other.nlink += 1,
            }
            assert!(!cached.matches(&other), "{change}");
        }
    }
    assert!(found.entry(b"name9").is_none() && found.entry(b"").is_none());
    assert!(cache.dir(77, 2).is_none() && cache.dir(0, 0).is_none() && cache.dir(u64::MAX, 0).is_none());
}

#[test]
fn a_flipped_bit_is_never_believed() {
    let good = file();
    let (mut refused, mut lost) = (0, 0);
    for at in 0..good.len() {
        for bit in [0, 5, 7] {
            let mut bad = good.clone();
            bad[at] ^= 1 << bit;
            match StatCache::read(bad) {
                None => refused += 1,
                Some(cache) => {
                    assert!(cache.dir(77, 1).is_none(), "byte {at} bit {bit}");
                    lost += 1;
                }
            }
        }
    }
    assert!(refused > 0 && lost > 0);
    for cut in 0..good.len() {
        assert!(StatCache::read(good[..cut].to_vec()).is_none_or(|cache| cache.dir(77, 1).is_none()));
    }
}

#[test]
fn what_is_known_to_be_stored_follows_the_generations() {
    let (first, second) = (Key::of(ObjectKind::Root, b"r"), Key::of(ObjectKind::Root, b"s"));
    let old = StatCache::read(file()).unwrap();
    assert_eq!(old.trust(Some(&first)), Trust::UpTo(1));
    assert_eq!(old.trust(Some(&second)), Trust::Nothing);
    assert_eq!(old.trust(None), Trust::Nothing);
    // A second capture keeps one directory and adds another.
    let mut update = Update::new(&old, Some(&first));
    update.keep((77, 1), old.dir(77, 1).unwrap());
    let generation = update.generation();
    let empty = RecordBuilder::new((77, 9), generation, 0);
    let (tree, times) = (Key::of(ObjectKind::Tree, b"2"), Key::of(ObjectKind::Times, b"2"));
    update.add((77, 9), &empty.finish(&tree, &times).unwrap());
    let new = StatCache::read(update.finish(&second).unwrap()).unwrap();
    let (kept, added) = (new.dir(77, 1).unwrap(), new.dir(77, 9).unwrap());
    // The second was never committed: only what the first holds is known to be stored.
    let trust = new.trust(Some(&first));
    assert!(trust.covers(kept.generation()) && !trust.covers(added.generation()));
    let trust = new.trust(Some(&second));
    assert!(trust.covers(kept.generation()) && trust.covers(added.generation()));
    assert!(!new.trust(None).covers(kept.generation()));
    // Nothing changed: nothing to write.
    let mut update = Update::new(&new, Some(&second));
    update.keep((77, 1), kept);
    update.keep((77, 9), added);
    assert!(update.finish(&second).is_none());
}

#[test]
fn the_file_has_a_name_of_its_own_for_each_target_and_setting() {
    assert_eq!(file_name("tree", "path"), "tree-path.stat");
    assert_ne!(file_name("a-b", "c"), file_name("a", "b-c"));
    assert!(!file_name("../x", "a/b").contains('/'));
    assert!(file_name(&"x".repeat(300), "p").len() < 200);
}

#[test]
fn a_record_that_was_made_up_is_survived() {
    let good = record(&entries(), 1);
    let (mut read, mut refused) = (0, 0);
    for at in 4..good.len() {
        for flip in [0x01, 0x80, 0xff] {
            let mut bad = good.clone();
            bad[at] ^= flip;
            let sum = crc32fast::hash(&bad[4..]).to_le_bytes();
            bad[..4].copy_from_slice(&sum);
            let Some(record) = DirRecord::read(&bad, (77, 1)) else {
                refused += 1;
                continue;
            };
            for at in 0..record.len().min(10) {
                let Some(entry) = record.at(at) else { continue };
                let _ = (entry.to_entry(), entry.content(), entry.directory(), entry.link(), entry.xattrs());
                let _ = record.find(entry.name());
                read += 1;
            }
        }
    }
    assert!(read > 1000 && refused > 10, "{read} entries read, {refused} records refused");
}
