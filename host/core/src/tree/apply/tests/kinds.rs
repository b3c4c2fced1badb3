//! Kinds, names and attributes: what the reports against other tools were about.

use super::world::World;
use crate::tree::compare::Only;
use std::os::unix::fs::{MetadataExt, symlink};

/// Whether this is root, who may give owners and make devices.
fn root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Records, spoils, records, restores, and compares with what was; then the same back.
/// `written` are the regular files that are written in either direction.
fn round(world: &World, spoil: impl Fn(&World), written: &[&str]) {
    let (before, stored) = (world.state(), world.record());
    spoil(world);
    let (spoilt, current) = (world.state(), world.record());
    for (to, from, expected) in [(&stored, &current, &before), (&current, &stored, &spoilt)] {
        let outcome = world.restore(to, from).unwrap();
        assert!(
            outcome.refused.is_empty() && outcome.notes.is_empty() && outcome.saved.is_empty(),
            "{outcome:?}"
        );
        world.state().assert_is(expected, written);
    }
    assert_eq!(world.leftovers(), [""; 0]);
}

#[test]
fn a_file_that_became_a_link_is_replaced_and_its_target_untouched() {
    let world = World::new("file-link");
    let victim = world.base.join("victim");
    std::fs::write(&victim, "victim").unwrap();
    world.write("x", "mine");
    round(
        &world,
        |world| {
            std::fs::remove_file(world.path("x")).unwrap();
            symlink(&victim, world.path("x")).unwrap();
        },
        &["x"],
    );
    assert_eq!(std::fs::read(&victim).unwrap(), b"victim");
}

#[test]
fn nothing_is_written_through_a_directory_that_became_a_link() {
    let world = World::new("dir-link");
    let outside = world.base.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "outside").unwrap();
    world.write("d/f", "mine");
    world.write("d/g", "mine too");
    round(
        &world,
        |world| {
            std::fs::remove_dir_all(world.path("d")).unwrap();
            symlink(&outside, world.path("d")).unwrap();
        },
        &["d/f", "d/g"],
    );
    // A single path beneath it: said, and nothing else.
    let current = world.record();
    std::fs::remove_file(world.path("d")).unwrap();
    world.write("d/f", "mine");
    let stored = world.record();
    std::fs::remove_dir_all(world.path("d")).unwrap();
    symlink(&outside, world.path("d")).unwrap();
    let error = world.restore_with(&stored, &current, &["d/f"], None).unwrap_err();
    assert!(error.message().contains("symbolic link now"), "{error}");
    assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"outside");
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 1);
}

#[test]
fn a_directory_that_becomes_a_link_under_our_feet_is_not_followed() {
    let world = World::new("dir-link-late");
    let outside = world.base.join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("f"), "outside").unwrap();
    world.write("d/f", "one");
    let stored = world.record();
    world.write("d/f", "two");
    let current = world.record();
    std::fs::rename(world.path("d"), world.base.join("moved")).unwrap();
    symlink(&outside, world.path("d")).unwrap();
    let outcome = world.restore(&stored, &current).unwrap();
    assert_eq!(outcome.refused.len(), 1, "{outcome:?}");
    assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"outside");
    assert!(world.path("d").symlink_metadata().unwrap().is_symlink());
}

#[test]
fn links_are_verbatim_and_never_followed() {
    let world = World::new("links");
    symlink(".", world.path("loop")).unwrap();
    symlink("/usr/bin/python3", world.path("absolute")).unwrap();
    symlink("../../../..", world.path("up")).unwrap();
    round(
        &world,
        |world| {
            for name in ["loop", "absolute", "up"] {
                std::fs::remove_file(world.path(name)).unwrap();
            }
            symlink("other", world.path("absolute")).unwrap();
        },
        &[],
    );
}

#[test]
fn hard_links_become_one_inode_again() {
    let world = World::new("hard-links");
    world.write("a", "one");
    world.write("other/c", "alone");
    std::fs::hard_link(world.path("a"), world.path("b")).unwrap();
    std::fs::hard_link(world.path("a"), world.path("other/d")).unwrap();
    // Edited in place, all three change; replaced by one name, two stay.
    round(&world, |world| world.write("a", "two"), &["a", "b", "other/d"]);
    round(
        &world,
        |world| {
            std::fs::remove_file(world.path("b")).unwrap();
            world.write("b", "three");
        },
        // The file that it is one more name of has its time.
        &["a", "b", "other/d"],
    );
    round(
        &world,
        |world| {
            std::fs::remove_file(world.path("a")).unwrap();
            std::fs::remove_file(world.path("other/c")).unwrap();
            std::fs::hard_link(world.path("b"), world.path("other/c")).unwrap();
        },
        &["a", "b", "other/c", "other/d"],
    );
}

#[test]
fn names_that_did_not_change_keep_their_inode() {
    let world = World::new("link-inodes");
    world.write("a", "one");
    for name in ["b", "c"] {
        std::fs::hard_link(world.path("a"), world.path(name)).unwrap();
    }
    world.write("x", "two");
    world.touch("x", 1_000);
    world.write("y", "two");
    world.touch("y", 1_000);
    let (before, stored) = (world.state(), world.record());
    std::fs::remove_file(world.path("c")).unwrap();
    std::fs::remove_file(world.path("y")).unwrap();
    std::fs::hard_link(world.path("x"), world.path("y")).unwrap();
    let current = world.record();
    let outcome = world.restore(&stored, &current).unwrap();
    assert!(outcome.refused.is_empty(), "{outcome:?}");
    let after = world.state();
    assert_eq!(after.what(), before.what());
    assert_eq!(after.at("c").ino, before.at("a").ino);
    assert_eq!(after.at("a").ino, before.at("a").ino);
    assert!(after.at("a").mtime > before.at("a").mtime, "a build that misses `c` looks at its time");
    let (x, y) = (after.at("x").ino, after.at("y").ino);
    assert!(x != y && [x, y].contains(&before.at("x").ino));
}

#[test]
fn a_sparse_file_stays_sparse() {
    let world = World::new("sparse");
    let file = std::fs::File::create(world.path("sparse")).unwrap();
    file.set_len(20 << 30).unwrap();
    std::os::unix::fs::FileExt::write_all_at(&file, b"middle", 10 << 30).unwrap();
    drop(file);
    let stored = world.record();
    world.write("sparse", "small");
    let current = world.record();
    let outcome = world.restore(&stored, &current).unwrap();
    assert!(outcome.refused.is_empty(), "{outcome:?}");
    let stat = world.path("sparse").metadata().unwrap();
    assert_eq!(stat.len(), 20 << 30);
    assert!(stat.blocks() * 512 < 1 << 20, "{} blocks", stat.blocks());
    let mut middle = [0; 8];
    let file = std::fs::File::open(world.path("sparse")).unwrap();
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut middle, (10 << 30) - 1).unwrap();
    assert_eq!(&middle, b"\0middle\0");
}

#[test]
fn long_content_comes_back() {
    let world = World::new("long");
    let bytes: Vec<u8> = (0..3_000_000u32).flat_map(|i| (i ^ (i >> 7)).to_le_bytes()).collect();
    world.write("long", &bytes);
    world.write("zeros", vec![0; 300_000]);
    let mut other = bytes.clone();
    other[7_000_000] ^= 1;
    round(
        &world,
        |world| {
            world.write("long", &other);
            world.write("zeros", vec![0; 200_000]);
        },
        &["long", "zeros"],
    );
}

#[test]
fn special_files_are_never_opened() {
    use rustix::fs::{CWD, FileType, Mode, makedev, mknodat};
    let world = World::new("special");
    let make = |name: &str, kind, dev| mknodat(CWD, world.path(name), kind, Mode::from_raw_mode(0o640), dev);
    make("fifo", FileType::Fifo, 0).unwrap();
    make("socket", FileType::Socket, 0).unwrap();
    if root() {
        make("null", FileType::CharacterDevice, makedev(1, 3)).unwrap();
        make("loop", FileType::BlockDevice, makedev(7, 200)).unwrap();
    }
    round(
        &world,
        |world| {
            std::fs::remove_file(world.path("fifo")).unwrap();
            world.write("fifo", "no longer");
            std::fs::remove_file(world.path("socket")).unwrap();
            if root() {
                std::fs::remove_file(world.path("null")).unwrap();
                std::fs::remove_file(world.path("loop")).unwrap();
                make("null", FileType::CharacterDevice, makedev(1, 5)).unwrap();
            }
        },
        &["fifo"],
    );
}

#[test]
fn names_are_bytes() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let world = World::new("names");
    let long = [b'x'; 255];
    let names: [&[u8]; 8] =
        [b"\xfe", b"\xff", b"a\nb", b" lead", b"\"quote\"", "日本".as_bytes(), b"-rf", &long];
    for name in names {
        std::fs::write(world.tree.join(OsStr::from_bytes(name)), name).unwrap();
    }
    let (before, stored) = (world.state(), world.record());
    for name in names {
        std::fs::remove_file(world.tree.join(OsStr::from_bytes(name))).unwrap();
    }
    let current = world.record();
    world.restore(&stored, &current).unwrap();
    assert_eq!(world.state().what(), before.what());
    assert!(Only::new(&[b"\xff".to_vec()]).unwrap().contains(b"\xff"));
}

#[test]
fn files_directories_and_links_take_each_others_place() {
    let world = World::new("kinds");
    world.write("file-dir", "f");
    world.write("file-link", "f");
    world.write("dir-file/in/side", "f");
    world.write("dir-link/inside", "f");
    symlink("a", world.path("link-file")).unwrap();
    symlink("a", world.path("link-dir")).unwrap();
    round(
        &world,
        |world| {
            for name in ["file-dir", "file-link", "link-file", "link-dir"] {
                std::fs::remove_file(world.path(name)).unwrap();
            }
            for name in ["dir-file", "dir-link"] {
                std::fs::remove_dir_all(world.path(name)).unwrap();
            }
            world.write("file-dir/a/b", "g");
            symlink("b", world.path("file-link")).unwrap();
            world.write("dir-file", "g");
            symlink("b", world.path("dir-link")).unwrap();
            world.write("link-file", "g");
            world.write("link-dir/c", "g");
        },
        &[
            "file-dir",
            "file-dir/a/b",
            "file-link",
            "dir-file",
            "dir-file/in/side",
            "dir-link/inside",
            "link-file",
            "link-dir/c",
        ],
    );
}

#[test]
fn directories_and_files_that_may_not_be_written() {
    let world = World::new("read-only");
    world.write("d/e/f", "one");
    world.write("d/g", "two");
    world.chmod("d/e/f", 0o444);
    world.chmod("d/e", 0o555);
    world.chmod("d", 0o555);
    round(
        &world,
        |world| {
            world.chmod("d", 0o755);
            world.chmod("d/e", 0o755);
            std::fs::remove_file(world.path("d/e/f")).unwrap();
            world.write("d/e/f", "changed");
            world.chmod("d/e/f", 0o400);
            std::fs::remove_file(world.path("d/g")).unwrap();
            world.write("d/new/h", "three");
            world.chmod("d/new", 0o500);
            world.chmod("d/e", 0o555);
            world.chmod("d", 0o500);
        },
        &["d/e/f", "d/g", "d/new/h"],
    );
}

#[test]
fn only_what_changed_in_a_read_only_directory_is_touched() {
    let world = World::new("read-only-same");
    world.write("d/f", "one");
    world.chmod("d", 0o555);
    round(
        &world,
        |world| {
            world.chmod("d", 0o755);
            std::fs::remove_file(world.path("d/f")).unwrap();
            world.write("d/f", "two");
            world.chmod("d", 0o555);
        },
        &["d/f"],
    );
}

#[test]
fn modes_with_setuid_setgid_and_sticky() {
    let world = World::new("setuid");
    for (name, mode) in [("u", 0o4755), ("g", 0o2755), ("both", 0o6711)] {
        world.write(name, "x");
        world.chmod(name, mode);
    }
    std::fs::create_dir(world.path("sticky")).unwrap();
    world.chmod("sticky", 0o1777);
    std::fs::create_dir(world.path("group")).unwrap();
    world.chmod("group", 0o2775);
    round(
        &world,
        |world| {
            world.write("u", "y");
            world.chmod("u", 0o755);
            world.chmod("g", 0o755);
            std::fs::remove_file(world.path("both")).unwrap();
            std::fs::remove_dir(world.path("sticky")).unwrap();
            world.chmod("group", 0o755);
        },
        &["u", "both"],
    );
}

#[test]
fn attributes_and_acls() {
    let world = World::new("xattrs");
    let set = |name: &str, attribute: &str, value: &[u8]| {
        rustix::fs::setxattr(world.path(name), attribute, value, rustix::fs::XattrFlags::empty())
    };
    for name in ["file", "same"] {
        world.write(name, "x");
        set(name, "user.a", b"1").unwrap();
        set(name, "user.b", b"").unwrap();
    }
    std::fs::create_dir(world.path("dir")).unwrap();
    world.write("dir/inside", "x");
    // An ACL in the kernel's form: user::rw-, user:1:r--, group::r--, mask::r--, other::---.
    let acl = |user: u16, mask: u16| {
        let mut out = 2u32.to_le_bytes().to_vec();
        let none = u32::MAX;
        for (tag, perm, id) in
            [(1u16, 6u16, none), (2, user, 1), (4, 4, none), (16, mask, none), (32, 0, none)]
        {
            out.extend_from_slice(&tag.to_le_bytes());
            out.extend_from_slice(&perm.to_le_bytes());
            out.extend_from_slice(&id.to_le_bytes());
        }
        out
    };
    set("file", "system.posix_acl_access", &acl(4, 4)).unwrap();
    set("dir", "system.posix_acl_default", &acl(6, 6)).unwrap();
    // version 2, cap_net_bind_service permitted.
    let capability: Vec<u8> =
        [0x0200_0000u32, 1 << 10, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    if root() {
        set("same", "security.capability", &capability).unwrap();
    }
    round(
        &world,
        |world| {
            world.write("file", "changed");
            for name in ["system.posix_acl_access", "user.a"] {
                rustix::fs::removexattr(world.path("file"), name).unwrap();
            }
            set("file", "user.c", b"new").unwrap();
            set("same", "user.b", b"other").unwrap();
            rustix::fs::removexattr(world.path("dir"), "system.posix_acl_default").unwrap();
            std::fs::remove_file(world.path("dir/inside")).unwrap();
            if root() {
                rustix::fs::removexattr(world.path("same"), "security.capability").unwrap();
                std::os::unix::fs::chown(world.path("same"), Some(3), Some(4)).unwrap();
            }
        },
        &["file", "dir/inside"],
    );
}

#[test]
fn owners_come_back() {
    if !root() {
        return;
    }
    let world = World::new("owners");
    world.write("a", "x");
    world.write("b", "x");
    symlink("a", world.path("l")).unwrap();
    std::os::unix::fs::chown(world.path("a"), Some(12), Some(34)).unwrap();
    std::os::unix::fs::lchown(world.path("l"), Some(56), Some(78)).unwrap();
    world.chmod("a", 0o4755);
    round(
        &world,
        |world| {
            std::fs::remove_file(world.path("a")).unwrap();
            std::fs::remove_file(world.path("l")).unwrap();
            std::os::unix::fs::chown(world.path("b"), Some(5), Some(6)).unwrap();
        },
        &["a"],
    );
}

#[test]
fn paths_longer_than_the_system_takes_at_once() {
    use rustix::fs::{CWD, Mode, OFlags, mkdirat, openat};
    let world = World::new("deep");
    let name = "n".repeat(250);
    let open = |dir: rustix::fd::BorrowedFd<'_>, name: &str| {
        openat(dir, name, OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).unwrap()
    };
    let mut at = open(CWD, world.tree.to_str().unwrap());
    let mut path = Vec::new();
    let depth = 40;
    for _ in 0..depth {
        mkdirat(&at, name.as_str(), Mode::from_raw_mode(0o755)).unwrap();
        at = open(rustix::fd::AsFd::as_fd(&at), &name);
        path.push(name.clone());
    }
    drop(at);
    // The simple record of these tests cannot reach so deep: it is made by hand.
    let objects = crate::tree::sample::Objects::default();
    let mut inside = vec![crate::tree::sample::file("bottom", "deep")];
    for name in path.iter().rev() {
        inside = vec![crate::tree::sample::dir(name, inside)];
    }
    let stored = crate::tree::sample::sample_root(&objects, inside);
    let empty = crate::tree::sample::sample_root(&objects, vec![]);
    let remove = || {
        let mut dirs = vec![open(CWD, world.tree.to_str().unwrap())];
        for name in &path {
            let next = openat(dirs.last().unwrap(), name.as_str(), OFlags::DIRECTORY, Mode::empty());
            let Ok(next) = next else { break };
            dirs.push(next);
        }
        let bottom = rustix::fs::statat(dirs.last().unwrap(), "bottom", rustix::fs::AtFlags::empty());
        let _ = rustix::fs::unlinkat(dirs.last().unwrap(), "bottom", rustix::fs::AtFlags::empty());
        for dir in dirs.iter().rev().skip(1) {
            rustix::fs::unlinkat(dir, name.as_str(), rustix::fs::AtFlags::REMOVEDIR).unwrap();
        }
        bottom.map(|stat| stat.st_size)
    };
    assert!(remove().is_err());
    world.restore_from(&objects, &stored, &empty).unwrap();
    assert_eq!(remove().unwrap(), 4);
    world.restore_from(&objects, &stored, &empty).unwrap();
    world.restore_from(&objects, &empty, &stored).unwrap();
    assert_eq!(std::fs::read_dir(&world.tree).unwrap().count(), 0);
}
