//! Opening a project: whatever state its folder, its records and its configuration are in.

use super::*;

#[test]
fn a_store_that_was_never_finished_is_finished() {
    let world = World::new();
    world.set("start");
    for unfinished in [&[][..], &["packs"], &["packs", "tmp", "snapshots"]] {
        let _ = fs::remove_dir_all(world.root.join(".snapback"));
        let _ = fs::remove_dir_all(world.temp.path().join("state"));
        fs::create_dir(world.root.join(".snapback")).unwrap();
        for sub in unfinished {
            fs::create_dir(world.root.join(".snapback").join(sub)).unwrap();
        }
        assert!(world.open().unwrap().list().unwrap().0.is_empty());
        world.run("after");
        world.go(&Ask::Undo).unwrap();
        assert_eq!(world.state(), "start");
    }
}

#[test]
fn a_project_that_a_run_moves_keeps_its_history() {
    let mut world = World::new();
    world.set("start");
    let session = world.session();
    let id = session
        .take(Request {
            kind: SnapshotKind::Run,
            message: None,
            command: None,
            pinned: false,
            selection: Selection::default(),
        })
        .unwrap()
        .snapshot
        .id;
    let project = session.unlock();
    world.set("after");
    let moved = world.temp.path().join("moved");
    fs::rename(&world.root, &moved).unwrap();
    let session = project.lock().unwrap();
    assert_eq!(session.root(), moved);
    session.end_run(&id, 0).unwrap();
    drop(session);
    assert!(!world.root.exists(), "nothing is made where the project was");
    world.root = moved;
    assert_eq!(world.open().unwrap().list().unwrap().0[0].state, State::Ended);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
}

#[test]
fn what_is_no_file_is_no_configuration() {
    let world = World::new();
    let path = world.root.join("snapback.toml");
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
    assert!(world.open().unwrap().config().unwrap_err().to_string().ends_with("is not a regular file"));
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink("nowhere", &path).unwrap();
    assert!(world.open().unwrap().config().unwrap_err().to_string().ends_with("is a link to nothing"));
    fs::remove_file(&path).unwrap();
    assert!(world.open().unwrap().config().is_ok());
}

#[test]
fn a_damaged_record_leaves_the_others_listed() {
    let world = World::new();
    world.set("a");
    let first = world.run("b");
    world.run("c");
    let meta = world.temp.path().join("project/.snapback/snapshots").join(first.as_str()).join("meta.json");
    let mut bytes = fs::read(&meta).unwrap();
    bytes[100] ^= 1;
    fs::remove_file(&meta).unwrap();
    fs::write(&meta, bytes).unwrap();
    let (whole, damaged) = world.open().unwrap().list().unwrap();
    assert_eq!((whole.len(), damaged.len()), (1, 1));
    assert_eq!(damaged[0].id, first);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "b");
    assert_eq!(world.go(&Ask::Undo).err().unwrap().kind(), Kind::Corrupt);
}

#[test]
fn backends_and_settings_that_do_not_exist_are_named_with_their_line() {
    let message = |config: &str| {
        let error = World::with(config).open().unwrap().config().err().unwrap();
        format!("{error} | {}", error.hint_text().unwrap_or(""))
    };
    assert_eq!(
        message("[[target]]\nname = \"x\"\nbackend = \"othr\"\n"),
        "snapback.toml, line 3: there is no backend `othr` | did you mean `other`?"
    );
    assert_eq!(
        message("[[target]]\nbackend = \"other\"\npth = \"x\"\n"),
        "snapback.toml, line 3: the backend `other` has no setting `pth` | did you mean `path`?"
    );
}

#[test]
fn what_is_no_entry_among_the_known_roots_is_passed_over() {
    let temp = crate::testing::TempDir::new();
    let (registry, root) = (Registry::new(temp.path()), Path::new("/some/where"));
    registry.put(&Disk::default(), root, &"0".repeat(32), None).unwrap();
    let roots = temp.path().join("roots");
    let entry = fs::read_dir(&roots).unwrap().next().unwrap().unwrap().path();
    fs::File::create(roots.join("large")).unwrap().set_len(1 << 40).unwrap();
    let fifo = |path: &Path| {
        assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    };
    fifo(&roots.join("pipe"));
    assert_eq!(registry.all().len(), 1);
    assert!(registry.get(root).is_some());
    fs::remove_file(&entry).unwrap();
    fifo(&entry);
    assert!(registry.get(root).is_none() && registry.all().is_empty());
}

#[test]
fn a_store_that_its_owner_made_read_only_is_read() {
    use std::os::unix::fs::PermissionsExt;
    let world = World::new();
    world.set("a");
    world.run("b");
    let store = world.root.join(STORE);
    let chmod = |path: &Path, bits| fs::set_permissions(path, fs::Permissions::from_mode(bits)).unwrap();
    chmod(&store, 0o500);
    let error = world.go(&Ask::Undo).err().unwrap();
    assert!(error.message().ends_with("is read-only: its owner may not write in it"), "{error}");
    assert!(error.hint_text().unwrap().contains("chmod -R u+w"), "{error}");
    assert_eq!(world.state(), "b");
    assert_eq!(fs::metadata(&store).unwrap().permissions().mode() & 0o7777, 0o500, "it stays so");
    let project = world.open().unwrap();
    assert_eq!(project.list().unwrap().0.len(), 1);
    assert!(project.verify().unwrap().is_whole());
    // With the whole project it is what a command did.
    chmod(&world.root, 0o555);
    world.go(&Ask::Undo).unwrap();
    chmod(&world.root, 0o755);
    assert_eq!(world.state(), "a");
    chmod(&store, 0o500);
    chmod(&store, 0o700);
    world.go(&Ask::Redo).unwrap();
}
