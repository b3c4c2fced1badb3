//! Tests of the door to the disk: what it does, and that it can be made to fail.

use super::*;
use crate::tree::node::Time;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;

/// A directory that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("snapback-disk-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_link_is_never_followed() {
    let scratch = Scratch::new("links");
    let (disk, dir) = (Disk::default(), Dir::open(&scratch.0).unwrap());
    std::fs::write(scratch.0.join("victim"), "victim").unwrap();
    std::fs::set_permissions(scratch.0.join("victim"), std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::create_dir(scratch.0.join("real")).unwrap();
    disk.symlink(&dir, b"file", b"victim").unwrap();
    disk.symlink(&dir, b"dir", b"real").unwrap();
    disk.symlink(&dir, b"nowhere", b"missing").unwrap();

    for name in [&b"file"[..], b"nowhere"] {
        let said = disk.open_or_create(&dir, name, 0o600).unwrap_err();
        assert!(said.message().ends_with("it is a symbolic link"), "{said}");
        assert!(disk.create_file(&dir, name, 0o600).is_err());
        assert!(disk.open_for_writing(&dir, name).is_err());
        assert!(dir.open_file(name).is_err());
        disk.set_mode(&dir, name, 0o777).unwrap();
        disk.set_times(&dir, name, Time { sec: 5, nsec: 6 }).unwrap();
        // A link holds no attributes of the user's: what matters is that its target gets none.
        assert!(disk.set_xattr(&dir, name, b"user.x", b"y").is_err());
    }
    let said = dir.child(b"dir").unwrap_err();
    assert!(said.message().ends_with("it is a symbolic link"), "{said}");
    assert!(!scratch.0.join("missing").exists());
    let victim = scratch.0.join("victim").metadata().unwrap();
    assert_eq!((victim.mode() & 0o7777, victim.mtime() == 5), (0o640, false));
    assert_eq!(scratch.0.join("file").symlink_metadata().unwrap().mtime(), 5);
    assert_eq!(dir.read_link(b"file").unwrap(), b"victim");
}

#[test]
fn what_is_not_one_name_is_refused() {
    let scratch = Scratch::new("names");
    let (disk, dir) = (Disk::default(), Dir::open(&scratch.0).unwrap());
    for name in [&b""[..], b".", b"..", b"a/b", b"../x", b"/etc/x"] {
        assert_eq!(disk.create_file(&dir, name, 0o600).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(disk.mkdir(&dir, name, 0o700).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(disk.rename(&dir, b"x", &dir, name).unwrap_err().kind(), Kind::Invalid);
        assert_eq!(disk.unlink(&dir, name).unwrap_err().kind(), Kind::Invalid);
    }
}

#[test]
fn names_are_made_moved_and_removed() {
    let scratch = Scratch::new("moves");
    let (disk, dir) = (Disk::default(), Dir::open(&scratch.0).unwrap());
    disk.mkdir(&dir, b"d", 0o755).unwrap();
    let inner = dir.child(b"d").unwrap();
    let file = disk.create_file(&inner, b"a", 0o644).unwrap();
    disk.write_all(&file, 3, b"abc").unwrap();
    disk.link(&inner, b"a", &dir, b"b").unwrap();
    assert_eq!(dir.read(b"b", 6).unwrap(), b"\0\0\0abc");
    assert_eq!(dir.read(b"b", 5).unwrap_err().kind(), Kind::Corrupt);
    assert!(disk.rename_noreplace(&inner, b"a", &dir, b"b").is_err());
    disk.write_cache(&dir, b"c", b"c", 0o600).unwrap();
    disk.exchange(&inner, b"a", &dir, b"c").unwrap();
    assert_eq!(inner.read(b"a", 9).unwrap(), b"c");
    disk.rename(&inner, b"a", &dir, b"c").unwrap();
    disk.rmdir(&dir, b"d").unwrap();
    disk.unlink(&dir, b"b").unwrap();
    disk.mknod(&dir, b"fifo", Special::Fifo, 0o600).unwrap();
    let mut names = dir.names().unwrap();
    names.sort();
    assert_eq!(names, [&b"c"[..], b"fifo"]);
    // A fifo in a file's place stops nobody.
    assert_eq!(dir.read(b"fifo", 9).unwrap_err().kind(), Kind::Corrupt);
}

#[test]
fn no_name_is_taken_where_the_system_does_not_help_with_it() {
    let scratch = Scratch::new("plain");
    let (disk, dir) = (Disk::default().with_hook(Arc::new(PlainRenames)), Dir::open(&scratch.0).unwrap());
    let exists = |done: Result<()>| assert!(done.unwrap_err().is(Errno::EXIST));
    for name in [&b"a"[..], b"b"] {
        disk.write_cache(&dir, name, name, 0o600).unwrap();
    }
    disk.symlink(&dir, b"link", b"a").unwrap();
    for name in [&b"d"[..], b"e"] {
        disk.mkdir(&dir, name, 0o700).unwrap();
    }
    for (old, new) in
        [(&b"a"[..], &b"b"[..]), (b"a", b"link"), (b"link", b"b"), (b"a", b"d"), (b"d", b"e"), (b"d", b"b")]
    {
        exists(disk.rename_noreplace(&dir, old, &dir, new));
    }
    assert!(!disk.exchange(&dir, b"a", &dir, b"b").unwrap());
    for (old, new) in [(&b"a"[..], &b"x"[..]), (b"link", b"y"), (b"d", b"z")] {
        disk.rename_noreplace(&dir, old, &dir, new).unwrap();
    }
    let mut names = dir.names().unwrap();
    names.sort();
    assert_eq!(names, [&b"b"[..], b"e", b"x", b"y", b"z"]);
    assert_eq!((dir.read(b"x", 1).unwrap(), dir.read_link(b"y").unwrap()), (b"a".to_vec(), b"a".to_vec()));
}

#[test]
fn attributes_are_set_by_name_and_by_handle() {
    let scratch = Scratch::new("attributes");
    let (disk, dir) = (Disk::default(), Dir::open(&scratch.0).unwrap());
    let file = disk.create_file(&dir, b"f", 0o600).unwrap();
    let stat = || scratch.0.join("f").metadata().unwrap();
    disk.set_mode(&dir, b"f", 0o4711).unwrap();
    assert_eq!(stat().mode() & 0o7777, 0o4711);
    disk.set_mode_of(&file, 0o400).unwrap();
    assert_eq!(stat().mode() & 0o7777, 0o400);
    disk.set_times_of(&file, Time { sec: -7, nsec: 8 }).unwrap();
    assert_eq!((stat().mtime(), stat().mtime_nsec()), (-7, 8));
    disk.set_times(&dir, b"f", Time { sec: 9, nsec: 1 }).unwrap();
    assert_eq!((stat().mtime(), stat().mtime_nsec()), (9, 1));
    disk.set_owner(&dir, b"f", stat().uid(), stat().gid()).unwrap();
    disk.set_owner_of(&file, stat().uid(), stat().gid()).unwrap();
    disk.set_mode_of(&dir, 0o711).unwrap();
    assert_eq!(scratch.0.metadata().unwrap().mode() & 0o7777, 0o711);
    // Who is not root may set attributes of what they may write only.
    disk.set_mode_of(&file, 0o600).unwrap();
    if let Err(e) = disk.set_xattr_of(&file, b"user.a", b"1") {
        assert!(e.message().contains("not supported"), "{e}");
        return;
    }
    disk.set_xattr(&dir, b"f", b"user.b", b"2").unwrap();
    let mut value = [0; 4];
    assert_eq!(rustix::fs::fgetxattr(&file, "user.b", &mut value[..]).unwrap(), 1);
    disk.remove_xattr(&dir, b"f", b"user.b").unwrap();
    disk.remove_xattr_of(&file, b"user.a").unwrap();
    assert_eq!(rustix::fs::flistxattr(&file, &mut value[..]).unwrap(), 0);
}

#[test]
fn a_sealed_file_is_there_whole_or_not_at_all() {
    let scratch = Scratch::new("sealed");
    let dir = Dir::open(&scratch.0).unwrap();
    let counter = Arc::new(Counter::default());
    let disk = Disk::default().with_hook(counter.clone());
    disk.write_sealed(&dir, b"f", b"old", 0o400).unwrap();
    assert_eq!((counter.syncs(), counter.of(OpKind::Rename)), (2, 1));
    let steps = counter.all();
    for n in 0..steps {
        let hook = Arc::new(FailAt::new(n, 5, false));
        let failing = Disk::default().with_hook(hook.clone());
        let said = failing.write_sealed(&dir, b"f", b"new", 0o400).unwrap_err();
        assert!(hook.reached() && said.message().contains("input/output error"), "{said}");
        assert!([&b"old"[..], b"new"].contains(&&dir.read(b"f", 9).unwrap()[..]));
        assert_eq!(dir.names().unwrap().len(), 1, "failing at {n}");
        disk.write_sealed(&dir, b"f", b"old", 0o400).unwrap();
    }
    // Left by a writer that was killed.
    std::fs::write(scratch.0.join("f.new"), "half").unwrap();
    disk.write_sealed(&dir, b"f", b"new", 0o400).unwrap();
    assert_eq!(dir.read(b"f", 9).unwrap(), b"new");
    assert_eq!(dir.names().unwrap().len(), 1);
}

#[test]
fn without_syncs_nothing_waits() {
    let scratch = Scratch::new("unsynced");
    let dir = Dir::open(&scratch.0).unwrap();
    let counter = Arc::new(Counter::default());
    let disk = Disk::default().with_hook(counter.clone()).with_sync(false);
    disk.write_sealed(&dir, b"f", b"x", 0o400).unwrap();
    disk.sync_filesystem(&dir).unwrap();
    assert_eq!(counter.syncs(), 0);
}

#[test]
fn a_full_disk_is_told_with_its_numbers() {
    let scratch = Scratch::new("full");
    let dir = Dir::open(&scratch.0).unwrap();
    let disk = Disk::default().with_hook(Arc::new(FailAt::new(0, 28, true)));
    let said = disk.create_file(&dir, b"f", 0o600).unwrap_err();
    assert_eq!(said.kind(), Kind::NoSpace);
    assert!(said.hint_text().unwrap().contains("iB are free there"), "{:?}", said.hint_text());
}

#[test]
fn holes_are_made_and_blocks_copied() {
    let scratch = Scratch::new("holes");
    let (disk, dir) = (Disk::default(), Dir::open(&scratch.0).unwrap());
    let file = disk.create_file(&dir, b"f", 0o600).unwrap();
    disk.write_all(&file, 0, &[7; 3 << 16]).unwrap();
    disk.punch(&file, 1 << 16, 1 << 16).unwrap();
    disk.truncate(&file, 1 << 30).unwrap();
    let stat = file.stat().unwrap();
    assert_eq!(stat.st_size, 1 << 30);
    assert!(stat.st_blocks * 512 < 1 << 20, "{}", stat.st_blocks);
    let other = disk.create_file(&dir, b"g", 0o600).unwrap();
    if let Some(n) = disk.copy_range(file.file(), 0, &other, 0, 3 << 16).unwrap() {
        assert!(n > 0);
    }
    let _ = disk.clone_file(file.file(), &other).unwrap();
}
