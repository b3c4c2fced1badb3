//! What is read and replaced, and what is left alone.

use super::*;
use crate::reach::place;
use crate::testing::Scratch;
use snapback_core::disk::PlainRenames;
use std::io::Read;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::sync::Arc;

fn open(scratch: &Scratch, name: &str) -> Result<File> {
    File::open(&place::look_above(scratch.path(), "file", name).unwrap(), "file", &Guarded::default())
}

/// It on a disk that can do everything, and on one that can rename only.
fn on_each_disk(scratch: &Scratch, name: &str, plain: bool) -> File {
    let mut file = open(scratch, name).unwrap();
    if plain {
        file.disk = Disk::default().with_hook(Arc::new(PlainRenames));
    }
    file
}

fn read(file: &File) -> Option<String> {
    let mut text = String::new();
    let mut reading = file.read().unwrap()?;
    reading.file().read_to_string(&mut text).unwrap();
    reading.check().unwrap();
    Some(text)
}

fn replace(file: &File, content: &[u8]) -> Result<()> {
    let mut aside = file.replace()?;
    aside.write(&content[..content.len() / 2])?;
    aside.write(&content[content.len() / 2..])?;
    file.put(aside)
}

fn names(scratch: &Scratch) -> Vec<String> {
    let all = fs::read_dir(scratch.path()).unwrap();
    let mut names: Vec<_> = all.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_read_replaced_removed_and_made_again() {
    for plain in [false, true] {
        let scratch = Scratch::new();
        let path = scratch.path().join("f");
        fs::write(&path, "one").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        rustix::fs::setxattr(&path, "user.x", b"y", rustix::fs::XattrFlags::empty()).unwrap();
        let file = on_each_disk(&scratch, "f", plain);
        assert_eq!(read(&file).as_deref(), Some("one"));
        replace(&file, b"two!").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two!");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        let mut value = [0; 8];
        assert_eq!(rustix::fs::getxattr(&path, "user.x", &mut value).unwrap(), 1);
        // What it put there itself is what was found.
        replace(&file, b"three").unwrap();
        assert_eq!(read(&file).as_deref(), Some("three"));
        file.remove().unwrap();
        file.remove().unwrap();
        assert_eq!((read(&file), names(&scratch)), (None, vec![]));
        replace(&file, b"four").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(names(&scratch), ["f"]);
    }
}

#[test]
fn what_somebody_wrote_meanwhile_is_left_alone() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("in place", |path| fs::write(path, "mine, longer").unwrap()),
        ("by rename", |path| {
            fs::write(path.with_extension("new"), "mine, longer").unwrap();
            fs::rename(path.with_extension("new"), path).unwrap();
        }),
        ("by a link", |path| {
            fs::write(path.with_extension("else"), "mine, longer").unwrap();
            fs::remove_file(path).unwrap();
            symlink(path.with_extension("else"), path).unwrap();
        }),
        ("removed", |path| fs::remove_file(path).unwrap()),
    ];
    for (how, change) in changes {
        for (removing, plain) in [(false, false), (false, true), (true, false), (true, true)] {
            let scratch = Scratch::new();
            let path = scratch.path().join("f");
            fs::write(&path, "one").unwrap();
            let file = on_each_disk(&scratch, "f", plain);
            change(&path);
            let before = names(&scratch);
            let failed = if removing { file.remove() } else { replace(&file, b"two") };
            let kind = failed.unwrap_err().kind();
            // That a link is there is told when it is opened, that it is gone likewise.
            assert!([Kind::Changed, Kind::Invalid, Kind::NotFound].contains(&kind), "{how}: {kind:?}");
            assert_eq!(names(&scratch), before, "{how}");
            if how != "removed" {
                assert_eq!(fs::read_to_string(&path).unwrap(), "mine, longer", "{how}");
            }
        }
    }
    let scratch = Scratch::new();
    let file = open(&scratch, "f").unwrap();
    fs::write(scratch.path().join("f"), "mine").unwrap();
    assert_eq!(replace(&file, b"two").unwrap_err().kind(), Kind::Changed);
    assert_eq!(fs::read_to_string(scratch.path().join("f")).unwrap(), "mine");
    assert_eq!(names(&scratch), ["f"]);
}

#[test]
fn a_file_that_is_written_while_it_is_read_is_told() {
    let scratch = Scratch::new();
    let path = scratch.path().join("f");
    fs::write(&path, "one").unwrap();
    let file = open(&scratch, "f").unwrap();
    let mut reading = file.read().unwrap().unwrap();
    fs::write(&path, "other").unwrap();
    reading.file().read_to_string(&mut String::new()).unwrap();
    assert_eq!(reading.check().unwrap_err().kind(), Kind::Changed);
    assert_eq!(file.read().err().unwrap().kind(), Kind::Changed);
}

#[test]
fn only_a_regular_file_is_one() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path().join("dir")).unwrap();
    fs::write(scratch.path().join("f"), "one").unwrap();
    symlink("f", scratch.path().join("link")).unwrap();
    for name in ["dir", "link"] {
        assert_eq!(open(&scratch, name).err().unwrap().kind(), Kind::Invalid, "{name}");
    }
    let missing = open(&scratch, "gone/f").unwrap();
    assert_eq!(read(&missing), None);
    missing.remove().unwrap();
    assert_eq!(missing.replace().err().unwrap().kind(), Kind::NotFound);
}

#[test]
fn the_directory_is_the_one_that_was_looked_at() {
    let scratch = Scratch::new();
    let root = scratch.path().join("project");
    for dir in ["project/sub", "other"] {
        fs::create_dir_all(scratch.path().join(dir)).unwrap();
        fs::write(scratch.path().join(dir).join("f"), dir).unwrap();
    }
    let look = |path| place::look_above(&root, "file", path).unwrap();
    let opened = |place: &Place| File::open(place, "file", &Guarded::of(&[root.join("own")]));
    let (place, gone, own) = (look("sub/f"), look("gone/f"), look("own/deep/f"));
    fs::rename(root.join("sub"), root.join("moved")).unwrap();
    for (link, to) in [("sub", "../other"), ("gone", "../other")] {
        symlink(to, root.join(link)).unwrap();
    }
    fs::create_dir_all(root.join("own/deep")).unwrap();
    for (place, kind) in [(place, Kind::Changed), (gone, Kind::Changed), (own, Kind::Denied)] {
        assert_eq!(opened(&place).err().unwrap().kind(), kind, "{place:?}");
    }
}

#[test]
fn a_leftover_aside_is_written_over() {
    let scratch = Scratch::new();
    let path = scratch.path().join("f");
    fs::write(&path, "one").unwrap();
    let file = open(&scratch, "f").unwrap();
    let mut aside = file.replace().unwrap();
    aside.write(b"half of it").unwrap();
    std::mem::forget(aside);
    replace(&file, b"two").unwrap();
    assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names(&scratch)), ("two", vec!["f".to_owned()]));
}

#[test]
fn replacements_that_are_open_at_once_do_not_take_each_others_place() {
    let scratch = Scratch::new();
    for name in ["f", "g"] {
        fs::write(scratch.path().join(name), "old").unwrap();
    }
    let content = |name: &str| fs::read_to_string(scratch.path().join(name)).unwrap();
    let (f, g, again) =
        (open(&scratch, "f").unwrap(), open(&scratch, "g").unwrap(), open(&scratch, "f").unwrap());
    let [mut one, mut two, mut three] =
        [f.replace().unwrap(), g.replace().unwrap(), again.replace().unwrap()];
    one.write(b"first of f").unwrap();
    two.write(b"of g").unwrap();
    three.write(b"second of f").unwrap();
    assert_eq!(f.put(one).unwrap_err().kind(), Kind::Changed);
    assert_eq!(content("f"), "old");
    g.put(two).unwrap();
    again.put(three).unwrap();
    assert_eq!((content("f").as_str(), content("g").as_str()), ("second of f", "of g"));
    // Removing takes the place of one that is open, too.
    let begun = again.replace().unwrap();
    again.remove().unwrap();
    assert_eq!(again.put(begun).unwrap_err().kind(), Kind::Changed);
    assert_eq!(names(&scratch), ["g"]);
}
