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
