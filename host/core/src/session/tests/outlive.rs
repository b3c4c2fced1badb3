//! What outlives the project, and whose it is, where the disk is not at its best.

use super::*;

/// The kept history of the world's project.
fn twin(world: &World) -> PathBuf {
    let id = fs::read_to_string(world.temp.path().join("project/.snapback/id")).unwrap();
    world.temp.path().join("state").join(id.trim_end())
}

#[test]
fn two_that_take_over_one_identity_do_not_keep_it_both() {
    let mut world = World::new();
    world.set("start");
    world.run("after");
    let project = world.temp.path().join("project");
    let copies = ["one", "two"].map(|name| world.temp.path().join(name));
    for copy in &copies {
        let status = std::process::Command::new("cp").arg("-a").args([&project, copy]).status();
        assert!(status.unwrap().success());
    }
    // The original is gone, so the first may go on as it; the second finds the first.
    fs::remove_dir_all(&project).unwrap();
    let ids = copies.clone().map(|copy| {
        world.root = copy.clone();
        drop(world.session());
        fs::read_to_string(copy.join(".snapback/id")).unwrap()
    });
    assert_ne!(ids[0], ids[1]);
}

#[test]
fn another_store_in_the_place_of_this_one_gets_nothing_of_its_history() {
    let mut world = World::new();
    world.set("start");
    let own = world.run("after");
    let store = world.temp.path().join("project/.snapback");
    let kept = twin(&world);
    world.root = world.temp.path().join("other");
    fs::create_dir(&world.root).unwrap();
    let others = world.take(SnapshotKind::Manual).snapshot.id;
    let id = fs::read_to_string(world.root.join(".snapback/id")).unwrap();
    fs::remove_dir_all(&store).unwrap();
    fs::rename(world.root.join(".snapback"), &store).unwrap();
    world.root = world.temp.path().join("project");
    assert_eq!(world.open().unwrap().ids().unwrap(), std::slice::from_ref(&own), "its own is read");
    drop(world.session());
    assert_eq!(world.open().unwrap().ids().unwrap(), [own]);
    // It has what it had, and can be taken instead.
    let aside = world.root.join(format!(".snapback.{}", &id[..8]));
    assert_eq!(snapshot::ids(&aside.join("snapshots")).unwrap(), [others]);
    fs::remove_dir_all(&store).unwrap();
    fs::rename(&aside, &store).unwrap();
    // Without an identity, and with what the kept history does not have, it is no better.
    for lost in ["id", "birth"] {
        fs::remove_file(store.join(lost)).unwrap();
    }
    fs::remove_dir_all(world.temp.path().join("state/roots")).unwrap();
    assert!(kept.join("format").exists());
    assert!(world.open().unwrap().foreign().is_some());
    assert_eq!(world.open().unwrap().lock().err().unwrap().kind(), Kind::Denied);
}

#[test]
fn a_twin_that_lacks_something_is_said_to_be_missing() {
    let mut world = World::new();
    world.set("start");
    world.run("after");
    let place = twin(&world);
    assert_eq!(world.open().unwrap().twin().unwrap(), Some(Twin::Whole(place.clone())));
    fs::remove_dir_all(place.join("packs")).unwrap();
    let why = |world: &World| match world.open().unwrap().twin().unwrap() {
        Some(Twin::Missing(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(why(&world).contains("could not be kept"));
    world.user.twin = false;
    assert!(why(&world).contains("is off"));
    world.user.twin = true;
    world.take(SnapshotKind::Run);
    assert_eq!(world.open().unwrap().twin().unwrap(), Some(Twin::Whole(place)));
}

#[test]
fn what_somebody_left_among_the_snapshots_stops_nothing() {
    let world = World::new();
    world.set("start");
    world.run("after");
    let snapshots = world.temp.path().join("project/.snapback/snapshots");
    fs::write(snapshots.join(".directory"), "a file manager's").unwrap();
    fs::create_dir_all(snapshots.join(".left/deeper/still")).unwrap();
    std::os::unix::fs::symlink(world.temp.path(), snapshots.join(".link")).unwrap();
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
    assert!(world.temp.path().join("state").is_dir(), "links are not followed");
    let hidden = snapshots.read_dir().unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert_eq!(hidden.filter(|name| name.starts_with('.')).count(), 0);
}
