//! The history outlives the folder that it lies in.

use super::*;
use crate::disk::{Disk, Hook, Op, OpKind};
use std::sync::Arc;

/// Removes parts of the project as a command might, and undoes.
fn undo_after(remove: impl Fn(&Path)) -> World {
    let world = World::new();
    world.set("start");
    world.run("after A");
    world.run("after B");
    remove(&world.temp.path().join("project"));
    assert_eq!(world.open().unwrap().list().unwrap().0.len(), 2, "reading needs no store in the project");
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "after A");
    let store = world.temp.path().join("project/.snapback");
    assert!(Store::open(&store, Disk::default()).is_ok(), "the store is there again");
    world.go(&Ask::Undo).unwrap();
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after A");
    assert!(world.open().unwrap().verify().unwrap().is_whole());
    world
}

#[test]
fn the_history_outlives_the_store_and_the_project() {
    undo_after(|project| fs::remove_dir_all(project.join(".snapback")).unwrap());
    undo_after(|project| fs::remove_dir_all(project).unwrap());
    undo_after(|project| fs::remove_dir_all(project.join(".snapback/packs")).unwrap());
    undo_after(|project| fs::remove_dir_all(project.join(".snapback/snapshots")).unwrap());
    undo_after(|project| fs::remove_file(project.join(".snapback/format")).unwrap());
    undo_after(|project| fs::remove_file(project.join(".snapback/timeline")).unwrap());
}

#[test]
fn what_is_dropped_is_gone_from_the_twin_as_well() {
    let world = World::new();
    world.set("secret");
    let first = world.run("clean");
    world.run("later");
    world.session().forget(&first).unwrap();
    fs::remove_dir_all(world.temp.path().join("project/.snapback")).unwrap();
    let session = world.session();
    assert_eq!(session.ids().unwrap().len(), 1);
    let secret = crate::object::Key::of(ObjectKind::Blob, b"secret");
    assert!(!session.need_store().unwrap().contains(&secret).unwrap());
}

#[test]
fn a_copied_project_and_its_original_do_not_share_a_twin() {
    let mut world = World::new();
    world.set("start");
    world.run("after");
    let project = world.temp.path().join("project");
    let copy = world.temp.path().join("copy");
    let status = std::process::Command::new("cp").arg("-a").args([&project, &copy]).status();
    assert!(status.unwrap().success());
    let id = |root: &Path| fs::read_to_string(root.join(".snapback/id")).unwrap();
    assert_eq!(id(&project), id(&copy));
    world.root = copy.clone();
    world.go(&Ask::Undo).unwrap();
    assert_ne!(id(&project), id(&copy));
    world.set("after");
    world.root = project.clone();
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
    // A moved one keeps its history and its identity.
    let before = id(&project);
    let moved = world.temp.path().join("moved");
    fs::rename(&project, &moved).unwrap();
    world.root = moved.clone();
    world.go(&Ask::Redo).unwrap();
    assert_eq!((world.state().as_str(), id(&moved)), ("after", before));
    fs::remove_dir_all(moved.join(".snapback")).unwrap();
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
}

/// A project with two runs, and its only pack in the store and outside.
fn with_a_pack() -> (World, PathBuf, PathBuf) {
    let world = World::new();
    world.set("start");
    world.run("after A");
    let store = world.temp.path().join("project/.snapback");
    let id = fs::read_to_string(store.join("id")).unwrap();
    let pack = fs::read_dir(store.join("packs")).unwrap().next().unwrap().unwrap();
    let theirs = world.temp.path().join("state").join(id.trim()).join("packs").join(pack.file_name());
    assert!(theirs.exists());
    (world, pack.path(), theirs)
}

/// Flips a bit in the middle, in place.
fn damage(path: &Path) {
    use std::os::unix::fs::{FileExt, PermissionsExt};
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
    let file = fs::File::options().read(true).write(true).open(path).unwrap();
    let (middle, mut byte) = (file.metadata().unwrap().len() / 3, [0]);
    file.read_exact_at(&mut byte, middle).unwrap();
    file.write_all_at(&[byte[0] ^ 1], middle).unwrap();
}

/// The same bytes in a file of its own.
fn split(path: &Path) {
    let bytes = fs::read(path).unwrap();
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

fn names(dir: &Path) -> Vec<String> {
    let names = fs::read_dir(dir).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn a_pack_that_is_marked_as_damaged_never_comes_back_without_the_mark() {
    let (world, ours, theirs) = with_a_pack();
    let marked = [ours.file_name().unwrap().to_str().unwrap(), ".damaged"].concat();
    damage(&ours);
    let project = world.open().unwrap();
    let found = project.verify().unwrap();
    assert!(!found.is_whole());
    let mended = project.lock_unrecovered().unwrap().mend(&found).unwrap();
    assert_eq!(mended, Mended::default());
    for _ in 0..2 {
        assert_eq!(names(ours.parent().unwrap()), [marked.as_str()]);
        assert_eq!(names(theirs.parent().unwrap()), [marked.as_str()]);
        // Not even when the store is made again from its twin.
        fs::remove_dir_all(world.temp.path().join("project/.snapback")).unwrap();
        world.session();
    }
    // Stored again, it is whole in both places, and the mark is gone from both.
    world.take(SnapshotKind::Run);
    world.set("start");
    world.take(SnapshotKind::Run);
    let now = names(ours.parent().unwrap());
    assert_eq!(now, names(theirs.parent().unwrap()));
    let project = world.open().unwrap();
    let newest = project.ids().unwrap()[0].clone();
    let concerned = project.verify().unwrap().concerned;
    assert!(concerned.iter().all(|(id, _)| *id != newest), "{concerned:?}");
}

#[test]
fn a_mark_that_only_the_store_has_yet_is_given_to_the_twin() {
    // Cut short after the store's own name got the mark.
    let (world, ours, theirs) = with_a_pack();
    damage(&ours);
    let marked = ours.with_extension("damaged");
    fs::rename(&ours, &marked).unwrap();
    drop(world.session());
    assert!(!ours.exists(), "it is no other pack");
    world.take(SnapshotKind::Run);
    assert!(!theirs.exists() && theirs.with_extension("damaged").exists());
}

#[test]
fn a_copy_outside_that_is_whole_takes_the_place_of_what_is_damaged() {
    let (world, ours, theirs) = with_a_pack();
    let snapshot = world.open().unwrap().ids().unwrap()[0].clone();
    let meta =
        world.temp.path().join("project/.snapback/snapshots").join(snapshot.as_str()).join("meta.json");
    for path in [&ours, &meta] {
        split(path);
        damage(path);
    }
    let project = world.open().unwrap();
    let found = project.verify().unwrap();
    assert_eq!((found.damaged.len(), found.records.len()), (1, 1));
    let mended = project.lock_unrecovered().unwrap().mend(&found).unwrap();
    assert_eq!(mended, Mended { packs: 1, records: 1 });
    assert!(world.open().unwrap().verify().unwrap().is_whole());
    assert_eq!(names(ours.parent().unwrap()), names(theirs.parent().unwrap()));
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
}

#[test]
fn a_copy_outside_that_is_damaged_as_well_is_not_used() {
    let (world, ours, theirs) = with_a_pack();
    split(&ours);
    damage(&ours);
    damage(&theirs);
    let project = world.open().unwrap();
    let found = project.verify().unwrap();
    assert_eq!(project.lock_unrecovered().unwrap().mend(&found).unwrap(), Mended::default());
    assert!(!ours.exists() && ours.with_extension("damaged").exists());
    assert!(!theirs.exists() && theirs.with_extension("damaged").exists());
}

#[test]
fn a_record_that_is_missing_in_its_directory_is_brought_back() {
    let (world, ..) = with_a_pack();
    let snapshot = world.open().unwrap().ids().unwrap()[0].clone();
    let meta =
        world.temp.path().join("project/.snapback/snapshots").join(snapshot.as_str()).join("meta.json");
    fs::remove_file(&meta).unwrap();
    assert!(world.open().unwrap().load(&snapshot).is_ok(), "read from the twin until then");
    world.session();
    assert!(meta.exists());
}

#[test]
fn several_commands_that_bring_the_history_back_at_once_do_not_disturb_each_other() {
    for _ in 0..10 {
        let (world, ..) = with_a_pack();
        fs::remove_dir_all(world.temp.path().join("project/.snapback")).unwrap();
        let projects: Vec<_> = (0..8).map(|_| world.open().unwrap()).collect();
        std::thread::scope(|scope| {
            for project in projects {
                scope.spawn(|| drop(project.lock().unwrap()));
            }
        });
        assert!(world.open().unwrap().verify().unwrap().is_whole());
        world.go(&Ask::Undo).unwrap();
        assert_eq!(world.state(), "start");
    }
}

#[test]
fn what_another_command_is_dropping_is_not_brought_back() {
    struct Waiting(std::sync::mpsc::SyncSender<()>);
    impl Report for Waiting {
        fn waiting(&self, _why: &str) {
            self.0.send(()).unwrap();
        }
    }
    let world = World::new();
    let (kept, dropped) = (world.run("A"), world.run("B"));
    let holder = world.session();
    // The other command has dropped it from the store, and not yet from the twin.
    fs::remove_dir_all(world.root.join(STORE).join("snapshots").join(dropped.as_str())).unwrap();
    let (send, waits) = std::sync::mpsc::sync_channel(1);
    let mut env = world.open().unwrap().env;
    env.report = Arc::new(Waiting(send));
    let ids = std::thread::scope(|scope| {
        let other = scope.spawn(|| Project::open(env).unwrap().lock().unwrap().ids().unwrap());
        waits.recv().unwrap();
        holder.mirror_removal().unwrap();
        drop(holder);
        other.join().unwrap()
    });
    assert_eq!(ids, [kept]);
}

#[test]
fn what_was_forgotten_from_another_home_does_not_come_back() {
    for others_are_known in [true, false] {
        let world = World::new();
        let project = world.temp.path().join("project");
        let at = |state: &str| {
            let mut env = world.open().unwrap().env;
            env.state = world.temp.path().join(state);
            Project::open(env).unwrap()
        };
        world.set("secret");
        let secret = world.run("clean");
        world.run("later");
        let other = at("other home").lock().unwrap();
        assert_eq!(other.ids().unwrap().len(), 2);
        if !others_are_known {
            // As where the other one may not be written.
            fs::remove_file(project.join(".snapback/twins")).unwrap();
        }
        other.forget(&secret).unwrap();
        drop(other);
        let key = crate::object::Key::of(ObjectKind::Blob, b"secret");
        let is_gone = || {
            let project = world.open().unwrap();
            assert_eq!(project.outlived(), None, "what stands there is right");
            assert_eq!(project.ids().unwrap().len(), 1);
            !project.need_store().unwrap().contains(&key).unwrap()
        };
        assert!(is_gone());
        drop(world.session());
        assert!(is_gone());
        // The twin follows, so it has nothing that could come back later.
        world.run("last");
        assert!(!world.open().unwrap().ids().unwrap().contains(&secret));
        fs::remove_dir_all(project.join(".snapback")).unwrap();
        let session = world.session();
        assert_eq!(session.ids().unwrap().len(), 2);
        assert!(!session.need_store().unwrap().contains(&key).unwrap());
        drop(session);
        assert!(world.open().unwrap().verify().unwrap().is_whole());
        // Nor from the other one's, which is older by now.
        let newest = world.open().unwrap().ids().unwrap()[0].clone();
        world.run("more");
        world.session().forget(&newest).unwrap();
        assert!(!at("other home").lock().unwrap().ids().unwrap().contains(&newest));
    }
}

/// A disk on which no link reaches where the twin is.
struct NoLinks;

impl Hook for NoLinks {
    fn before(&self, op: &Op<'_>) -> std::io::Result<()> {
        let errno = rustix::io::Errno::XDEV.raw_os_error();
        if op.kind == OpKind::Link { Err(std::io::Error::from_raw_os_error(errno)) } else { Ok(()) }
    }
}

#[test]
fn a_snapshot_whose_objects_are_too_much_to_copy_is_not_kept_outside() {
    let world = World::new();
    world.set("one");
    let first = world.run("two");
    let store = crate::disk::Dir::open(&world.temp.path().join("project/.snapback")).unwrap();
    let kept = || {
        let twin = crate::disk::Dir::open(&world.temp.path().join("other")).unwrap();
        snapshot::ids(&twin.path().join("snapshots")).unwrap()
    };
    let disk = Disk::default().with_hook(Arc::new(NoLinks));
    let fill = |budget| {
        let twin = disk.make_dirs(&world.temp.path().join("other")).unwrap();
        crate::session::twin::Filling { disk: &disk, inward: false, budget }
            .fill(&store, &twin, None)
            .unwrap();
    };
    fill(1 << 20);
    assert_eq!(kept(), std::slice::from_ref(&first));
    let second = world.run("three");
    fill(0);
    assert_eq!(kept(), std::slice::from_ref(&first), "nothing is promised that is not there");
    fill(1 << 20);
    assert_eq!(kept(), [second, first]);
}
