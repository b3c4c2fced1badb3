//! Stores that somebody crafted: whatever is in them, nothing happens outside the
//! project, nothing breaks off, and what cannot be is told in a sentence.

use super::super::*;
use super::forge::{World, dir, entry, file, flat, is_root, top};
use crate::object::ObjectKind;
use crate::store::Lane;
use crate::tree::node::{EntryTime, Node, Time, encode_times, encode_tree};
use crate::tree::root::Root;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, symlink};

#[test]
fn names_that_lead_out_and_directories_that_cannot_be_are_refused() {
    let sets: [&[&[u8]]; 11] = [
        &[b".."],
        &[b"."],
        &[b""],
        &[b"a/b"],
        &[b"../victim"],
        &[b"/etc"],
        &[b"a\0b"],
        &[b"..", b"a"],
        &[b"a", b"a"],
        &[b"b", b"a"],
        &[b"a", b"../victim/f"],
    ];
    for names in sets {
        let world = World::new();
        let error = world.attack(|lane| {
            let entries: Vec<_> = names.iter().map(|name| file(lane, name, b"planted")).collect();
            flat(lane, entries)
        });
        assert_eq!(error.err().unwrap().kind(), Kind::Corrupt, "{names:?}");
        assert_eq!(fs::read(world.project().join("f")).unwrap(), b"project", "nothing was touched");
        assert!(!world.open().verify().unwrap().is_whole());
    }
    // A link, and a directory of its name whose files would go through it.
    let world = World::new();
    let error = world.attack(|lane| {
        let inside = file(lane, b"f", b"planted");
        let (tree, times) = dir(lane, &[(inside, None)]);
        let link = entry(b"d", 0o777, Node::Symlink(b"../victim".to_vec()));
        top(dir(lane, &[(link, None), (entry(b"d", 0o755, Node::Dir(tree)), Some(times))]))
    });
    assert_eq!(error.err().unwrap().kind(), Kind::Corrupt);
}

#[test]
fn no_link_is_followed_whichever_side_has_it() {
    let world = World::new();
    symlink("../victim", world.project().join("d")).unwrap();
    symlink("../victim/f", world.project().join("l")).unwrap();
    world
        .attack(|lane| {
            let inside = file(lane, b"f", b"planted");
            let (tree, times) = dir(lane, &[(inside, None)]);
            let plain = file(lane, b"l", b"planted");
            top(dir(lane, &[(entry(b"d", 0o755, Node::Dir(tree)), Some(times)), (plain, None)]))
        })
        .unwrap();
    assert_eq!(fs::read(world.project().join("d/f")).unwrap(), b"planted");
    // And back: what is a directory becomes a link that leads out, and is only a link.
    world
        .attack(|lane| {
            let link = |name: &[u8], to: &str| entry(name, 0o777, Node::Symlink(to.into()));
            flat(lane, [link(b"d", "../victim"), link(b"l", "../victim/f")])
        })
        .unwrap();
    assert!(world.project().join("d").is_symlink() && world.project().join("l").is_symlink());
}

#[test]
fn names_of_one_inode_that_are_of_all_kinds_reach_nothing() {
    for from in 0..5 {
        let world = World::new();
        symlink("../victim/f", world.project().join("b")).unwrap();
        // Told in a sentence, or done as far as it goes.
        let _ = world.attack(|lane| {
            let mut all = [
                file(lane, b"a", b"one"),
                entry(b"b", 0o4777, Node::Symlink(b"../victim/f".to_vec())),
                entry(b"c", 0o666, Node::Fifo),
                file(lane, b"d", b"another"),
                entry(b"e", 0o600, Node::CharDevice(1, 3)),
            ];
            all.iter_mut().for_each(|entry| entry.link = Some(7));
            flat(lane, all[from..].to_vec())
        });
        world.open().lock().unwrap();
    }
}

#[test]
fn setuid_and_devices_stay_inside_and_need_the_right_to_make_them() {
    let world = World::new();
    let outcome = world
        .attack(|lane| {
            let mut setuid = file(lane, b"s", b"#!/bin/sh\n");
            (setuid.mode, setuid.uid, setuid.gid) = (0o6755, 0, 0);
            flat(lane, [entry(b"c", 0o666, Node::CharDevice(1, 3)), setuid])
        })
        .unwrap();
    let at = |name: &str| world.project().join(name).symlink_metadata();
    if is_root() {
        assert!(at("c").unwrap().file_type().is_char_device());
        assert_eq!((at("s").unwrap().mode() & 0o7777, at("s").unwrap().uid()), (0o6755, 0));
    } else {
        assert!(at("c").is_err(), "only root makes devices");
        assert_eq!(at("s").unwrap().permissions().mode() & 0o6000, 0, "not for another owner");
        assert_eq!(outcome.not_restored.len(), 2);
    }
    // No such device can be: a sentence, and nothing else.
    let _ = world.attack(|lane| flat(lane, [entry(b"x", 0o600, Node::BlockDevice(u32::MAX, u32::MAX))]));
    world.open().lock().unwrap();
}

#[test]
fn numbers_that_overflow_are_told() {
    let sizes = [u64::MAX, u64::MAX - 1, 1 << 63, (1 << 16) + 1];
    for size in sizes {
        for kind in [ObjectKind::Blob, ObjectKind::List] {
            let world = World::new();
            let outcome = world.attack(|lane| {
                let content = lane.put(kind, b"\x01\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01").unwrap();
                let files =
                    [b"a", b"b"].map(|name| entry(name, 0o644, Node::File { content, size, sparse: true }));
                flat(lane, files)
            });
            // Found while planning, or when it was to be done: then each is told and left, and the
            // rest is as the snapshot has it.
            let is_there = world.project().join("f").exists();
            match outcome {
                Ok(outcome) => {
                    assert_eq!((outcome.not_restored.len(), is_there), (2, false), "{size} {kind:?}");
                }
                Err(e) => {
                    assert!(matches!(e.kind(), Kind::Corrupt | Kind::NoSpace), "{size} {kind:?}: {e}");
                    assert!(is_there, "{size} {kind:?}");
                }
            }
        }
    }
    let world = World::new();
    for sec in [i64::MAX, i64::MIN] {
        let _ = world.attack(|lane| {
            let plain = file(lane, b"a", b"x");
            let times = lane.put(
                ObjectKind::Times,
                &encode_times(&[EntryTime { mtime: Time { sec, nsec: 999_999_999 }, inside: None }]),
            );
            let tree = lane.put(ObjectKind::Tree, &encode_tree(&[plain])).unwrap();
            Root { mtime: Time { sec, nsec: 0 }, ..top((tree, times.unwrap())) }
        });
    }
    // Sums over snapshots that say whatever they like.
    let session = world.open().lock().unwrap();
    session.would_free(&Bounds { keep: Some(1), ..Bounds::default() }).unwrap();
    session.gc(&Bounds::default()).unwrap();
}

#[test]
fn attributes_that_cannot_be_are_told() {
    let world = World::new();
    let _ = world.attack(|lane| {
        let mut plain = file(lane, b"a", b"x");
        plain.xattrs = [
            ("security.capability", vec![0xff; 20]),
            ("system.posix_acl_access", vec![1, 2, 3]),
            ("trusted.overlay.redirect", b"../victim".to_vec()),
            ("user.large", vec![0; 100_000]),
            ("zzz", vec![]),
        ]
        .map(|(name, value)| (name.as_bytes().to_vec(), value))
        .to_vec();
        flat(lane, [plain])
    });
    world.open().lock().unwrap();
}

#[test]
fn a_record_that_names_another_directory_is_refused() {
    for value in ["../victim", "..", "/", "sub"] {
        let world = World::new();
        let error = world.attack(|lane| {
            let plain = file(lane, b"f", b"planted");
            Root { value: value.into(), ..flat(lane, [plain]) }
        });
        let error = error.err().unwrap();
        assert!(error.message().contains("another directory"), "{value}: {error}");
    }
}

/// A tree of one directory in the other, so deep.
fn deep(lane: &mut Lane<'_>, depth: usize) -> Root {
    let inmost = file(lane, b"f", b"deep");
    let (mut tree, mut times) = dir(lane, &[(inmost, None)]);
    for _ in 0..depth {
        (tree, times) = dir(lane, &[(entry(b"d", 0o755, Node::Dir(tree)), Some(times))]);
    }
    top((tree, times))
}

#[test]
fn a_tree_may_be_as_deep_as_it_likes() {
    let world = World::new();
    world.attack(|lane| deep(lane, 1000)).unwrap();
    let session = world.open().lock().unwrap();
    session.execute(session.plan(&Ask::Undo, &[], &[]).unwrap(), false).unwrap();
    assert_eq!(fs::read(world.project().join("f")).unwrap(), b"project");
    drop(session);
    let (shallow, abyss) = (world.forge(|lane| deep(lane, 0)), world.forge(|lane| deep(lane, 20_000)));
    let project = world.open();
    let (shallow, abyss) = (project.load(&shallow).unwrap(), project.load(&abyss).unwrap());
    let mut found = 0;
    project
        .differences(None, &shallow.targets, &abyss.targets, &mut |_, _| {
            found += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(found, 20_002, "all that came, and the file that went");
    assert!(project.verify().unwrap().is_whole());
    let session = project.lock().unwrap();
    session.gc(&Bounds::default()).unwrap();
}

/// Makes the store one that nobody here knows.
fn send(world: &World) {
    fs::remove_dir_all(world.temp.path().join("state")).unwrap();
    fs::remove_file(world.project().join(".snapback/birth")).unwrap();
}

#[test]
fn what_no_disk_holds_is_not_trusted() {
    let world = World::new();
    world.forge(|lane| {
        let plain = file(lane, b"f", b"x");
        let (mut tree, mut times) = dir(lane, &[(plain, None)]);
        for _ in 0..80 {
            let both = [b"a", b"b"].map(|name| (entry(name, 0o755, Node::Dir(tree)), Some(times)));
            (tree, times) = dir(lane, &both);
        }
        top((tree, times))
    });
    send(&world);
    let error = world.open().examine().err().unwrap();
    assert!(error.message().contains("more files than there can be"), "{error}");
}

#[test]
fn what_a_stranger_sent_is_counted_before_it_is_trusted() {
    let world = World::new();
    world.forge(|lane| {
        let mut setuid = file(lane, b"s", b"12345");
        setuid.mode = 0o4755;
        flat(lane, [entry(b"c", 0o666, Node::CharDevice(1, 3)), setuid])
    });
    send(&world);
    let project = world.open();
    assert!(project.foreign().is_some() && project.need_own().is_err());
    let stranger = project.examine().unwrap().unwrap();
    let count = stranger.largest;
    assert_eq!((stranger.snapshots, count.entries, count.devices, count.privileged), (1, 2, 1, 1));
    project.trust().unwrap();
    assert!(world.open().examine().unwrap().is_none(), "it is the user's own now");
    let world = World::new();
    world.forge(|lane| {
        let plain = file(lane, b"f", b"x");
        Root { value: "../victim".into(), ..flat(lane, [plain]) }
    });
    send(&world);
    let error = world.open().examine().err().unwrap();
    assert!(error.message().contains("outside of its project"), "{error}");
}
