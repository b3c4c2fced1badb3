//! What is kept, what is not believed, and what is mended.

use super::*;
use crate::testing::Scratch;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

/// The smallest component.
const COMPONENT: &[u8] = b"\0asm\x0d\0\x01\0";

struct Bench {
    scratch: Scratch,
    engine: Engine,
}

impl Bench {
    fn new() -> Self {
        Self { scratch: Scratch::new(), engine: Engine::new().unwrap() }
    }

    fn folder(&self) -> PathBuf {
        self.scratch.path().join("cache/snapback")
    }

    /// Loads the component and says whether it was compiled for that.
    fn compiles(&self) -> bool {
        Cache::new(Some(self.folder())).load(&self.engine, "d", COMPONENT).unwrap().1
    }

    fn file(&self, end: &str) -> PathBuf {
        self.folder().join(format!("d-{}{end}", self.engine.compatibility()))
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn the_second_time_it_loads() {
    let bench = Bench::new();
    let cache = Cache::new(Some(bench.folder()));
    assert!(cache.facts("d").is_none() && cache.trouble().is_none());
    assert!(!bench.folder().exists(), "looking makes nothing");
    assert!(bench.compiles());
    assert!(!bench.compiles());
    assert_eq!((mode(&bench.folder()), mode(&bench.file(".cwasm"))), (0o700, 0o600));
    let mut names: Vec<_> = fs::read_dir(bench.folder()).unwrap().map(|e| e.unwrap().path()).collect();
    names.sort();
    assert_eq!(names, [bench.file(".cwasm"), bench.file(".seal")], "nothing else is left");
}

#[test]
fn where_one_directory_cannot_be_used_another_is() {
    let bench = Bench::new();
    let blocked = PathBuf::from("/dev/null/snapback");
    let cache = || Cache::new([blocked.clone(), bench.folder()]);
    assert!(cache().trouble().is_none(), "the other one can be made");
    for compiles in [true, false] {
        assert_eq!(cache().load(&bench.engine, "d", COMPONENT).unwrap().1, compiles);
    }
    cache().note("d", &Facts { manifest: "m".into(), imports: vec![] });
    assert_eq!(cache().facts("d").unwrap().manifest, "m");
    assert!(Cache::new([blocked]).trouble().is_some());
}

#[test]
fn what_was_changed_is_made_again() {
    type Change = (&'static str, fn(&Bench));
    let change: [Change; 8] = [
        ("a byte", |b| {
            let file = fs::File::options().write(true).open(b.file(".cwasm")).unwrap();
            file.write_at(b"x", 5000).unwrap();
        }),
        ("a byte, with the old times", |b| {
            let path = b.file(".cwasm");
            let time = fs::metadata(&path).unwrap().modified().unwrap();
            let file = fs::File::options().write(true).open(path).unwrap();
            file.write_at(b"x", 5000).unwrap();
            file.set_modified(time).unwrap();
        }),
        ("truncated", |b| {
            fs::File::options().write(true).open(b.file(".cwasm")).unwrap().set_len(100).unwrap()
        }),
        ("another file of that name", |b| {
            let bytes = fs::read(b.file(".cwasm")).unwrap();
            fs::remove_file(b.file(".cwasm")).unwrap();
            fs::write(b.file(".cwasm"), bytes).unwrap();
        }),
        ("others may write to it", |b| {
            fs::set_permissions(b.file(".cwasm"), Permissions::from_mode(0o666)).unwrap();
        }),
        ("a link", |b| {
            let aside = b.scratch.path().join("aside");
            fs::rename(b.file(".cwasm"), &aside).unwrap();
            symlink(aside, b.file(".cwasm")).unwrap();
        }),
        ("no seal", |b| fs::remove_file(b.file(".seal")).unwrap()),
        ("a seal that is none", |b| fs::write(b.file(".seal"), "1 2 3").unwrap()),
    ];
    for (what, change) in change {
        let bench = Bench::new();
        assert!(bench.compiles() && !bench.compiles());
        change(&bench);
        assert!(bench.compiles(), "{what}: loaded");
        assert!(!bench.compiles(), "{what}: not mended");
    }
}

#[test]
fn a_folder_that_others_can_write_is_taken_back_and_emptied() {
    for unsafe_mode in [0o770, 0o707, 0o777] {
        let bench = Bench::new();
        let cache = Cache::new(Some(bench.folder()));
        assert!(bench.compiles());
        cache.note("d", &Facts { manifest: String::new(), imports: vec![] });
        fs::set_permissions(bench.folder(), Permissions::from_mode(unsafe_mode)).unwrap();
        fs::write(bench.folder().join("planted.cwasm"), "x").unwrap();
        assert!(cache.facts("d").is_none(), "nothing of it is believed");
        let trouble = cache.trouble().unwrap();
        assert!(trouble.message().contains("can be written by others"), "{trouble}");
        assert!(bench.compiles(), "{unsafe_mode:o}: loaded");
        assert!(!bench.compiles(), "{unsafe_mode:o}: not mended");
        assert!(cache.trouble().is_none());
        assert_eq!(mode(&bench.folder()), 0o700);
        assert_eq!(fs::read_dir(bench.folder()).unwrap().count(), 2);
    }
}

/// Only root can make files of somebody else.
#[test]
fn what_another_user_owns_is_not_used() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let bench = Bench::new();
    assert!(bench.compiles());
    std::os::unix::fs::chown(bench.file(".cwasm"), Some(12345), None).unwrap();
    assert!(bench.compiles() && !bench.compiles());
    std::os::unix::fs::chown(bench.folder(), Some(12345), None).unwrap();
    assert!(bench.compiles() && bench.compiles());
    assert!(Cache::new(Some(bench.folder())).trouble().unwrap().message().contains("another user"));
}

#[test]
fn without_a_folder_it_works_all_the_same() {
    let bench = Bench::new();
    let none = Cache::new(None);
    assert!(none.load(&bench.engine, "d", COMPONENT).unwrap().1);
    assert!(none.load(&bench.engine, "d", COMPONENT).unwrap().1);
    fs::write(bench.scratch.path().join("cache"), "in the way").unwrap();
    assert!(bench.compiles() && bench.compiles());
}

#[test]
fn facts_are_kept_and_damaged_ones_are_not_believed() {
    let bench = Bench::new();
    let cache = Cache::new(Some(bench.folder()));
    let facts = Facts { manifest: "name = \"x\"\n'''\"\"\"".into(), imports: vec!["a:b/c@1.0.0".into()] };
    cache.note("d", &facts);
    assert_eq!(cache.facts("d"), Some(facts));
    assert_eq!(cache.facts("e"), None);
    fs::write(bench.folder().join("d.toml"), "manifest = 3").unwrap();
    assert_eq!(cache.facts("d"), None);
}

#[test]
fn what_nobody_made_again_for_long_goes() {
    let bench = Bench::new();
    assert!(bench.compiles());
    for (name, days) in [("old.cwasm", 91), ("young.cwasm", 89)] {
        let file = fs::File::create(bench.folder().join(name)).unwrap();
        file.set_modified(std::time::SystemTime::now() - std::time::Duration::from_secs(days * 86_400))
            .unwrap();
    }
    fs::remove_file(bench.file(".seal")).unwrap();
    assert!(bench.compiles());
    assert!(!bench.folder().join("old.cwasm").exists() && bench.folder().join("young.cwasm").exists());
}

#[test]
fn what_is_no_component_is_said_to_be_none() {
    let bench = Bench::new();
    const NONE: &str = "it is no WebAssembly component";
    const BROKEN: &str = "it is not a component that can be compiled";
    for (bytes, why) in
        [(&b""[..], NONE), (b"MZ", NONE), (b"\0asm\x01\0\0\0", BROKEN), (b"\0asm\x0d\0\x01\0\xff", BROKEN)]
    {
        let error = Cache::new(None).load(&bench.engine, "d", bytes).err().unwrap();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.message().starts_with(why), "{error}");
    }
}
