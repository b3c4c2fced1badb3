//! Every kind of entry, every name.

use super::*;
use rustix::fs::{CWD, FileType, Mode, XattrFlags};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};

fn fifo(path: &Path) {
    rustix::fs::mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o640), 0).unwrap();
}

#[test]
fn every_kind_is_recorded_as_it_is() {
    let mut world = World::new();
    world.write("file", "hello\n");
    world.write("dir/empty", "");
    world.mkdir("dir/none");
    symlink("/nowhere/at/all", world.path("absolute")).unwrap();
    symlink(".", world.path("loop")).unwrap();
    fifo(&world.path("fifo"));
    std::fs::set_permissions(world.path("fifo"), PermissionsExt::from_mode(0o640)).unwrap();
    let socket = std::os::unix::net::UnixListener::bind(world.path("socket")).unwrap();
    std::fs::set_permissions(world.path("file"), PermissionsExt::from_mode(0o4751)).unwrap();
    std::fs::set_permissions(world.path("dir/none"), PermissionsExt::from_mode(0o1777)).unwrap();
    let device = rustix::fs::makedev(1, 3);
    let mode = Mode::from_raw_mode(0o600);
    let has_device =
        rustix::fs::mknodat(CWD, world.path("null"), FileType::CharacterDevice, mode, device).is_ok();

    let taken = world.capture();
    let meta = world.path("file").metadata().unwrap();
    let entry = taken.entry("file");
    assert_eq!((entry.mode, entry.uid, entry.gid), (0o4751, meta.uid(), meta.gid()));
    assert_eq!(
        taken.content("file").to_string(),
        "blob:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03"
    );
    let time = taken.entries["file"].1.mtime;
    assert_eq!((time.sec, i64::from(time.nsec)), (meta.mtime(), meta.mtime_nsec()));
    assert_eq!(taken.entry("dir/none").mode, 0o1777);
    assert_eq!(taken.entry("absolute").node, Node::Symlink(b"/nowhere/at/all".to_vec()));
    assert_eq!(taken.entry("loop").node, Node::Symlink(b".".to_vec()));
    assert_eq!((taken.entry("fifo").mode, &taken.entry("fifo").node), (0o640, &Node::Fifo));
    assert_eq!(taken.entry("socket").node, Node::Socket);
    if has_device {
        assert_eq!(taken.entry("null").node, Node::CharDevice(1, 3));
    }
    // Only the two files were opened; nothing was followed.
    assert_eq!(taken.counts.opened, 2);
    assert_eq!(taken.entries.len(), 8 + usize::from(has_device));
    assert_eq!(taken.root.files, 6 + u64::from(has_device));
    assert_eq!(taken.root.bytes, 6);
    assert!(taken.root.left_out.is_empty() && taken.omitted.is_empty());
    drop(socket);
}

#[test]
fn names_are_bytes() {
    let mut world = World::new();
    let long = vec![b'n'; 255];
    let names: Vec<&[u8]> =
        vec![b"\xfe", b"\xff", b"a\nb", b" lead", b"trail ", b"\"q\"", "日本".as_bytes(), b"\\", b"*", &long];
    for name in &names {
        std::fs::write(world.path("").join(std::ffi::OsStr::from_bytes(name)), name).unwrap();
    }
    let taken = world.capture();
    let mut got: Vec<Vec<u8>> = taken.entries.values().map(|(entry, _)| entry.name.clone()).collect();
    let mut wanted: Vec<Vec<u8>> = names.iter().map(|name| name.to_vec()).collect();
    got.sort();
    wanted.sort();
    assert_eq!(got, wanted);
    // The order of the stored form is that of the bytes, in the cache as well.
    world.settle();
    world.write("other", "");
    assert_eq!(world.capture().entries.len(), names.len() + 1);
}

#[test]
fn extended_attributes_of_all_kinds_are_kept() {
    let mut world = World::new();
    world.write("file", "x");
    world.mkdir("dir");
    let large = vec![b'v'; 900];
    for (path, name, value) in [
        ("file", "user.b", &large[..]),
        ("file", "user.a", b"\0"),
        ("dir", "user.dir", b""),
        ("", "user.top", b"t"),
    ] {
        let path = world.path(path);
        if rustix::fs::lsetxattr(&path, name, value, XattrFlags::empty()).is_err() {
            return; // A file system without any.
        }
    }
    let taken = world.capture();
    let attribute = |name: &str, value: &[u8]| (name.as_bytes().to_vec(), value.to_vec());
    let wanted = [attribute("user.a", b"\0"), attribute("user.b", &large)];
    let user = |entry: &Entry| -> Vec<_> {
        entry.xattrs.iter().filter(|(name, _)| name.starts_with(b"user.")).cloned().collect()
    };
    assert_eq!(user(taken.entry("file")), wanted);
    assert_eq!(user(taken.entry("dir")), [attribute("user.dir", b"")]);
    assert_eq!(user(&taken.root.top), [attribute("user.top", b"t")]);
    // An attribute alone is a change, and one that is seen.
    world.settle();
    world.capture();
    rustix::fs::lsetxattr(world.path("dir"), "user.dir", b"new", XattrFlags::empty()).unwrap();
    let after = world.capture();
    assert_eq!(user(after.entry("dir")), [attribute("user.dir", b"new")]);
    assert_eq!(user(after.entry("file")), wanted);
    assert!(!after.root.same_state(&taken.root));
}

#[test]
fn acls_and_capabilities_are_attributes_like_others() {
    let mut world = World::new();
    world.write("file", "x");
    // Version 2; owner rwx, user 1 r, group r, mask r, other none.
    let mut acl = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in
        [(1u16, 7u16, u32::MAX), (2, 4, 1), (4, 4, u32::MAX), (16, 4, u32::MAX), (32, 0, u32::MAX)]
    {
        acl.extend([tag.to_le_bytes(), rights.to_le_bytes()].concat());
        acl.extend(id.to_le_bytes());
    }
    // Version 2, effective; net_bind_service.
    let capability: Vec<u8> =
        [0x0200_0001u32, 1 << 10, 0, 0, 0].iter().flat_map(|word| word.to_le_bytes()).collect();
    let set = |name: &str, value: &[u8]| {
        rustix::fs::lsetxattr(world.path("file"), name, value, XattrFlags::empty()).is_ok()
    };
    let wanted: Vec<(&str, &[u8])> =
        [("security.capability", &capability[..]), ("system.posix_acl_access", &acl[..])]
            .into_iter()
            .filter(|(name, value)| set(name, value))
            .collect();
    let taken = world.capture();
    for (name, value) in wanted {
        let found = taken.entry("file").xattrs.iter().find(|(have, _)| have == name.as_bytes());
        assert_eq!(found.map(|(_, value)| value.as_slice()), Some(value), "{name}");
    }
    assert_eq!(taken.entries.len(), 1);
}

#[test]
fn hard_links_are_one_inode_again() {
    let mut world = World::new();
    world.write("z/first", "shared");
    world.mkdir("a");
    std::fs::hard_link(world.path("z/first"), world.path("a/second")).unwrap();
    std::fs::hard_link(world.path("z/first"), world.path("third")).unwrap();
    world.write("single", "s");
    // Its other name lies outside of the project.
    std::fs::hard_link(world.path("single"), world.path("../outside")).unwrap();
    fifo(&world.path("fifo1"));
    std::fs::hard_link(world.path("fifo1"), world.path("a/fifo2")).unwrap();
    world.settle();
    let taken = world.capture();
    let number = |path: &str| {
        u64::from_le_bytes(
            Key::of(crate::object::ObjectKind::Blob, path.as_bytes()).hash()[..8].try_into().unwrap(),
        )
    };
    for path in ["z/first", "a/second", "third"] {
        assert_eq!(taken.entry(path).link, Some(number("a/second")), "{path}");
    }
    assert_eq!(taken.entry("a/fifo2").link, Some(number("a/fifo2")));
    assert_eq!(taken.entry("fifo1").link, taken.entry("a/fifo2").link);
    assert_eq!(taken.entry("single").link, None);
    assert_eq!(taken.counts.opened, 2, "an inode is read once");
    assert_eq!((taken.root.files, taken.root.bytes), (6, 6 * 3 + 1));

    let again = world.capture();
    assert_eq!((again.key, again.counts.opened, again.counts.encoded), (taken.key, 0, 0));
    // Without the first name, the number is another; the rest is read again, once.
    std::fs::remove_file(world.path("a/second")).unwrap();
    let after = world.capture();
    assert_eq!(after.entry("third").link, Some(number("third")));
    assert_eq!(after.entry("z/first").link, Some(number("third")));
    assert_eq!(after.counts.opened, 1);
    std::fs::remove_file(world.path("third")).unwrap();
    assert_eq!(world.capture().entry("z/first").link, None);
}

#[test]
fn a_deep_tree_takes_neither_stack_nor_handles() {
    let mut world = World::new();
    let flags = rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::PATH;
    let mut at = rustix::fs::open(world.path(""), flags, Mode::empty()).unwrap();
    let depth = 3000;
    for level in 0..depth {
        let mode = Mode::from_raw_mode(0o755);
        rustix::fs::mkdirat(&at, "level", mode).unwrap();
        // Two siblings on each level: the walk must come back to it.
        rustix::fs::mkdirat(&at, "aside", mode).unwrap();
        let file = rustix::fs::OFlags::CREATE | rustix::fs::OFlags::WRONLY;
        let file = rustix::fs::openat(&at, "file", file, Mode::from_raw_mode(0o600)).unwrap();
        rustix::io::write(&file, format!("{level}").as_bytes()).unwrap();
        at = rustix::fs::openat(&at, "level", flags, Mode::empty()).unwrap();
    }
    // With a small stack, in a pool of its own.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).stack_size(128 << 10).build().unwrap();
    let store = world.store.clone();
    let handles = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let before = handles();
    let root = pool.install(|| world.try_capture_root().unwrap());
    assert!(handles() < before + 20, "handles are let go");
    assert_eq!(root.files, depth);
    let mut tree = root.top.node;
    let mut levels = 0;
    while let Node::Dir(key) = tree {
        let entries = decode_tree(&store.read(&key).unwrap()).unwrap();
        match entries.into_iter().find(|entry| entry.name == b"level") {
            Some(entry) => tree = entry.node,
            None => break,
        }
        levels += 1;
    }
    assert_eq!(levels, depth);
    world.previous = None;
    let removed = std::process::Command::new("rm").arg("-rf").arg(world.path("level")).status().unwrap();
    assert!(removed.success());
}
