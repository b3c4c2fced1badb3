//! Keeping the history within bounds.

use super::trees::Ground;
use super::*;

#[test]
fn old_snapshots_go_and_what_undo_needs_stays() {
    let mut world = World::new();
    world.user.retention.keep = 3;
    for n in 0..6 {
        world.set(&n.to_string());
        world.run(&format!("after {n}"));
    }
    assert_eq!(world.open().unwrap().ids().unwrap().len(), 3);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "5");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after 5");
    world.go(&Ask::Undo).unwrap();
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "4");
    assert_eq!(world.open().unwrap().ids().unwrap().len(), 3);
    assert!(world.go(&Ask::Undo).is_err(), "older steps went with their snapshots");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "5");
}

#[test]
fn without_being_asked_fifty_snapshots_of_thirty_days_are_kept() {
    let world = World::new();
    let ids = || world.open().unwrap().ids().unwrap();
    for n in 0..55 {
        world.set(&n.to_string());
        world.run(&format!("after {n}"));
        assert_eq!(ids().len(), 50.min(n + 1));
    }
    world.later(29);
    world.set("late");
    let first = world.run("after late");
    assert_eq!(ids().len(), 50, "nothing is too old");
    world.later(2);
    world.set("later");
    let second = world.run("after later");
    assert_eq!(ids().len(), 50, "the clock may be wrong this once");
    let third = world.run("after all");
    assert_eq!(ids(), [third, second, first]);
    (0..3).for_each(|_| drop(world.go(&Ask::Undo).unwrap()));
    assert_eq!(world.state(), "late");
}

#[test]
fn a_clock_that_is_wrong_once_drops_nothing() {
    let world = World::new();
    let ids = || world.open().unwrap().ids().unwrap();
    for n in 0..5 {
        world.set(&n.to_string());
        world.run(&format!("after {n}"));
    }
    world.later(40);
    let wrong = world.run("in the future");
    assert_eq!(ids().len(), 6);
    world.sooner(40);
    for n in 0..3 {
        world.run(&format!("again {n}"));
        assert_eq!(ids().len(), 7 + n);
    }
    assert!(ids().contains(&wrong));
    // Who asks for it is believed.
    world.later(40);
    let week = Bounds { keep_within: Some(std::time::Duration::from_secs(7 * 86_400)), ..Bounds::default() };
    world.session().gc(&week).unwrap();
    assert!(ids().len() < 5, "{:?}", ids());
}

#[test]
fn a_forgotten_snapshot_is_gone_from_the_list_and_the_timeline() {
    let world = World::new();
    world.set("secret");
    let first = world.run("clean");
    world.run("later");
    world.session().forget(&first).unwrap();
    let project = world.open().unwrap();
    assert!(!project.ids().unwrap().contains(&first));
    assert_eq!(project.timeline().unwrap().done.len(), 1);
    let secret = crate::object::Key::of(ObjectKind::Blob, b"secret");
    assert!(!project.need_store().unwrap().contains(&secret).unwrap());
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "clean");
}

/// Files beneath `dir` in which `secret` stands, also compressed.
fn holding(dir: &Path, secret: &[u8]) -> Vec<PathBuf> {
    const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
    let has = |bytes: &[u8]| bytes.windows(secret.len()).any(|window| window == secret);
    let mut found = Vec::new();
    for entry in fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(holding(&entry, secret));
            continue;
        }
        let bytes = fs::read(&entry).unwrap();
        let frames = bytes.windows(4).enumerate().filter(|(_, window)| *window == ZSTD);
        let compressed = frames.map(|(at, _)| at).any(|at| {
            let mut out = Vec::new();
            // To the end of the frame: what follows is something else.
            let done = zstd::stream::read::Decoder::new(&bytes[at..])
                .map(|decoder| std::io::Read::read_to_end(&mut decoder.single_frame(), &mut out));
            done.is_ok() && has(&out)
        });
        if compressed || has(&bytes) {
            found.push(entry);
        }
    }
    found
}

#[test]
fn a_secret_that_is_forgotten_is_nowhere_any_more() {
    let ground = Ground::new();
    let disk = Disk::default();
    let take = |kind| super::trees::take(&ground, &disk, kind).unwrap();
    let secret = b"correct horse battery staple ".repeat(3);
    ground.write("notes/plain", &secret);
    // In a file of several blocks, at a place where it is not cut.
    let mut long = vec![b'.'; 150_000];
    long[70_000..][..secret.len()].copy_from_slice(&secret);
    ground.write("long", &long);
    ground.write("kept", "kept");
    let with = take(SnapshotKind::Manual);
    ground.remove("notes");
    ground.remove("long");
    let without = take(SnapshotKind::Manual);
    let store = ground.project().join(STORE);
    assert!(!holding(&store, &secret).is_empty(), "it is found where it is");
    assert!(!holding(&ground.place().join("state"), &secret).is_empty());
    // What a writer and a restore that were killed left behind.
    fs::write(store.join("tmp/left"), &secret).unwrap();
    let aside = store.join("aside/0123456789abcdef");
    fs::create_dir_all(&aside).unwrap();
    for (name, bytes) in [("x1", &secret), ("x2", &long), ("w3", &long)] {
        fs::write(aside.join(name), bytes).unwrap();
    }
    fs::write(aside.join("x4"), "somebody's, and stored nowhere").unwrap();
    let freed = ground.reading().lock_unrecovered().unwrap().forget(&with).unwrap();
    assert!(freed.problems.is_empty(), "{:?}", freed.problems);
    assert_eq!(holding(&ground.place(), &secret), Vec::<PathBuf>::new());
    assert_eq!(fs::read_dir(store.join("saved")).unwrap().count(), 1, "what is stored nowhere is kept");
    assert!(ground.reading().verify().unwrap().is_whole());
    assert_eq!(ground.reading().ids().unwrap(), [without]);
}
