//! The tree's component over real core: capture, change, restore, and what it was told
//! to leave alone.

use snapback_core::backend::{Backend, Backends, Call, Part, Target};
use snapback_core::disk::Disk;
use snapback_core::error::{Kind, Result};
use snapback_core::report::Report;
use snapback_core::store::Store;
use snapback_core::tree::root::Root;
use snapback_runtime::{Registry, Setup};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A project, its store beside it, and the backend.
struct World {
    top: PathBuf,
    root: PathBuf,
    store: Arc<Store>,
    tree: Arc<dyn Backend>,
    refused: Arc<Refused>,
}

#[derive(Default)]
struct Refused(Mutex<Vec<String>>);

impl Report for Refused {
    fn refused(&self, _: &str, subject: &[u8], reason: &str) {
        self.0.lock().unwrap().push(format!("{}: {reason}", String::from_utf8_lossy(subject)));
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.top);
    }
}

impl World {
    fn new(name: &str) -> Self {
        let top = std::env::temp_dir().join(format!("snapback-tree-{}-{name}", std::process::id()));
        let root = top.join("project");
        fs::create_dir_all(&root).unwrap();
        let store = Store::create(&top.join("store"), Disk::default().with_sync(false)).unwrap();
        let setup = Setup {
            cache: vec![top.join("components")],
            folders: vec![top.join("plugins")],
            ..Setup::default()
        };
        let tree = Registry::new(setup).get("tree").unwrap();
        Self { root: root.canonicalize().unwrap(), top, store, tree, refused: Arc::default() }
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn call(&self, settings: &[(&str, &str)]) -> Call {
        let settings = settings.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect();
        let target = Target { name: "tree".into(), backend: "tree".into(), settings };
        Call::about(self.root.clone(), target, Some(self.store.clone()), self.refused.clone())
    }

    fn snapshot(&self, settings: &[(&str, &str)], previous: &[Part]) -> Result<Vec<Part>> {
        let writer = Arc::new(self.store.writer()?);
        let call = Call { writer: Some(writer.clone()), ..self.call(settings) };
        let parts = self.tree.snapshot(&call, previous)?;
        drop(call);
        writer.seal()?;
        Ok(parts)
    }

    /// What is beneath the project: path, mode, and content or where a link points.
    fn record(&self) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
        let mut record = BTreeMap::new();
        for entry in walkdir::WalkDir::new(&self.root).min_depth(1) {
            let entry = entry.unwrap();
            let meta = entry.path().symlink_metadata().unwrap();
            let content = if meta.is_symlink() {
                fs::read_link(entry.path()).unwrap().into_os_string().into_encoded_bytes()
            } else if meta.is_file() {
                fs::read(entry.path()).unwrap()
            } else {
                Vec::new()
            };
            record.insert(entry.path().strip_prefix(&self.root).unwrap().to_owned(), (meta.mode(), content));
        }
        record
    }

    fn root_of(&self, parts: &[Part]) -> Root {
        assert_eq!((parts.len(), parts[0].name.as_str()), (1, "tree"));
        Root::decode(&self.store.read(&parts[0].content).unwrap()).unwrap()
    }
}

#[test]
fn what_was_captured_comes_back() {
    let world = World::new("back");
    for i in 0..200 {
        world.write(&format!("src/d{}/f{i}", i % 7), &format!("content {i}\n").repeat(i));
    }
    world.write("large", &"0123456789abcdef".repeat(20_000));
    fs::create_dir(world.root.join("empty")).unwrap();
    symlink("../nowhere", world.root.join("link")).unwrap();
    let before = world.record();
    let stored = world.snapshot(&[], &[]).unwrap();
    assert_eq!(world.root_of(&stored).files, 202, "files and the link");

    fs::remove_dir_all(world.root.join("src/d3")).unwrap();
    fs::rename(world.root.join("src/d4"), world.root.join("moved")).unwrap();
    fs::set_permissions(world.root.join("src/d1/f1"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::remove_file(world.root.join("link")).unwrap();
    fs::create_dir(world.root.join("link")).unwrap();
    world.write("large", "small now");
    world.write("new/file", "made by the run");
    let changed = world.record();
    assert_ne!(changed, before);

    let current = world.snapshot(&[], &stored).unwrap();
    world.tree.restore(&world.call(&[]), &stored, &current).unwrap();
    assert_eq!(world.record(), before);
    world.tree.restore(&world.call(&[]), &stored, &current).unwrap();
    assert_eq!(world.record(), before, "a second call changes nothing");
    assert_eq!(*world.refused.0.lock().unwrap(), [""; 0]);

    let again = world.snapshot(&[], &current).unwrap();
    world.tree.restore(&world.call(&[]), &current, &again).unwrap();
    assert_eq!(world.record(), changed, "and back");
}

#[test]
fn what_can_be_made_again_is_left_out_unless_it_is_wanted() {
    let world = World::new("regenerable");
    for path in [
        "package.json",
        "node_modules/a/index.js",
        "sub/node_modules/b.js",
        "dist/out.js",
        "lib/dist/ours.js",
        "Cargo.toml",
        "target/debug/x",
        "docs/target/ours",
        ".venv/pyvenv.cfg",
        "venv/ours",
        "py/__pycache__/m.pyc",
        "cache/blob",
        ".env",
    ] {
        world.write(path, "x");
    }
    world.write("cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n");
    let root = world.root_of(&world.snapshot(&[], &[]).unwrap());
    let mut left_out: Vec<_> =
        root.left_out.iter().map(|out| String::from_utf8(out.path.clone()).unwrap()).collect();
    left_out.sort();
    assert_eq!(
        left_out,
        [".venv", "cache", "dist", "node_modules", "py/__pycache__", "sub/node_modules", "target"]
    );
    let all = world.root_of(&world.snapshot(&[("skip-regenerable", "false")], &[]).unwrap());
    assert_eq!((all.left_out.len(), all.files), (0, 14));
}

#[test]
fn settings_reach_the_host() {
    let world = World::new("settings");
    for path in ["a/one", "a/two.log", "b/three", "b/four.log", "c/five"] {
        world.write(path, "x");
    }
    for (settings, files) in [
        (&[][..], 5),
        (&[("paths", "a\nb")], 4),
        (&[("ignore", "*.log")], 3),
        (&[("ignore", "*.log"), ("include", "b/four.log")], 4),
        (&[("path", "b")], 2),
        (&[("max-files-per-dir", "1")], 1),
        (&[("max-files-per-dir", "0")], 5),
    ] {
        let parts = world.snapshot(settings, &[]).unwrap();
        assert_eq!(world.root_of(&parts).files, files, "{settings:?}");
    }
    for (settings, says) in [
        (("git", "perhaps"), "`git` is true or false, not `perhaps`"),
        (("times", "later"), "`times` is one of now, stored, not `later`"),
        (("paths", "../x"), "`paths` holds ../x, which leads out of it"),
        (("path", "gone"), "no such file or directory"),
    ] {
        let error = world.snapshot(&[settings], &[]).unwrap_err();
        assert!(error.message().contains(says), "{settings:?}: {error}");
    }
}

#[test]
fn a_directory_outside_the_project_is_not_opened_unasked() {
    let world = World::new("outside");
    let outside = world.top.join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "x").unwrap();
    symlink(&outside, world.root.join("way")).unwrap();
    for path in ["..", "../outside", "way", outside.to_str().unwrap()] {
        let error = world.snapshot(&[("path", path)], &[]).unwrap_err();
        assert_eq!(error.kind(), Kind::Denied, "{path}: {error}");
        assert!(error.message().contains("outside the project"), "{error}");
        assert!(error.hint_text().is_some());
    }
}

#[test]
fn the_work_of_the_host_stops_when_the_user_asks() {
    let world = World::new("cancel");
    world.write("a", "x");
    let call = world.call(&[]);
    call.cancel.cancel();
    assert_eq!(world.tree.snapshot(&call, &[]).unwrap_err().kind(), Kind::Cancelled);
}

#[test]
fn a_snapshot_of_another_kind_is_said_to_be_one() {
    let world = World::new("kind");
    world.write("a", "x");
    let parts = world.snapshot(&[], &[]).unwrap();
    let renamed = [Part { name: "other".into(), ..parts[0].clone() }];
    let error = world.tree.restore(&world.call(&[]), &renamed, &parts).unwrap_err();
    assert_eq!(
        (error.kind(), error.message()),
        (Kind::Incompatible, "the snapshot has no part called `tree`")
    );
    assert!(Path::new(&world.root).join("a").exists());
}
