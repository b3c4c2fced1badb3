//! What the stat cache saves, and what it must not hide.

use super::*;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::SystemTime;

fn sample(world: &World) {
    for dir in ["src", "src/deep/er", "docs"] {
        for file in 0..5 {
            world.write(&format!("{dir}/{file}.txt"), format!("{dir} {file}"));
        }
    }
    std::os::unix::fs::symlink("src/0.txt", world.path("link")).unwrap();
    world.settle();
}

/// Sets the modification time of a file.
fn set_mtime(path: &Path, time: SystemTime) {
    File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}

#[test]
fn what_did_not_change_is_neither_read_nor_stored() {
    let mut world = World::new();
    // What is known as left out only when it is entered changes nothing.
    world.write("src/inner/format", "snapback store\nversion 1\n");
    sample(&world);
    let first = world.capture();
    assert_eq!((first.counts.opened, first.counts.encoded, first.counts.unchanged), (15, 5, 0));
    let cache = world.store.path().join("cache/tree-path.stat");
    let stamp = std::fs::metadata(&cache).unwrap().modified().unwrap();
    let again = world.capture();
    assert_eq!(again.key, first.key);
    assert_eq!((again.counts.opened, again.counts.encoded, again.counts.unchanged), (0, 0, 5));
    assert_eq!(again.added, 0);
    assert_eq!((again.root.files, again.root.bytes), (first.root.files, first.root.bytes));
    assert_eq!(
        std::fs::metadata(&cache).unwrap().modified().unwrap(),
        stamp,
        "the cache is not written again"
    );
}

#[test]
fn one_changed_byte_is_one_file() {
    let mut world = World::new();
    sample(&world);
    let first = world.capture();
    world.write("src/deep/er/3.txt", "src/deep/er #");
    let after = world.capture();
    assert_eq!(after.counts.opened, 1);
    // The directories on the way up are stored anew, the others are not.
    assert_eq!((after.counts.encoded, after.counts.unchanged), (4, 1));
    let changed: Vec<_> =
        first.entries.iter().filter(|(path, (entry, _))| after.entry(path) != entry).collect();
    let changed: Vec<_> = changed.into_iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(changed, ["src", "src/deep", "src/deep/er", "src/deep/er/3.txt"]);
}

#[test]
fn the_change_time_gives_away_who_sets_the_clock_back() {
    let mut world = World::new();
    sample(&world);
    let first = world.capture();
    let path = world.path("docs/1.txt");
    let old = path.metadata().unwrap().modified().unwrap();
    std::fs::write(&path, "docs X").unwrap();
    set_mtime(&path, old);
    let after = world.capture();
    assert_ne!(after.content("docs/1.txt"), first.content("docs/1.txt"));
    assert_eq!(after.entries["docs/1.txt"].1, first.entries["docs/1.txt"].1, "the time is the same");
}

#[test]
fn a_write_in_the_same_tick_is_seen() {
    let mut world = World::new();
    let path = world.path("file");
    for round in 0..40 {
        std::fs::write(&path, format!("{round:02}a")).unwrap();
        let first = world.capture();
        File::options().write(true).open(&path).unwrap().write_at(b"b", 2).unwrap();
        let after = world.capture();
        assert_ne!(after.content("file"), first.content("file"), "round {round}");
        let wanted = Key::of(crate::object::ObjectKind::Blob, format!("{round:02}b").as_bytes());
        assert_eq!(after.content("file"), wanted);
    }
}

#[test]
fn what_may_still_change_without_a_trace_is_read_again() {
    let mut world = World::new();
    sample(&world);
    world.write("docs/new.txt", "just written");
    let first = world.capture();
    assert_eq!(first.counts.opened, 16);
    // Its times are those of the first capture: it is not believed, whatever they say.
    world.settle();
    let again = world.capture();
    assert_eq!((again.counts.opened, again.key), (1, first.key));
    // By now they are clearly past.
    assert_eq!(world.capture().counts.opened, 0);
}

#[test]
fn a_touch_alone_changes_times_and_not_the_state() {
    let mut world = World::new();
    sample(&world);
    let first = world.capture();
    set_mtime(&world.path("src/1.txt"), SystemTime::UNIX_EPOCH);
    let after = world.capture();
    assert!(after.root.same_state(&first.root));
    assert_ne!(after.key, first.key);
    assert_eq!(after.entries["src/1.txt"].1.mtime.sec, 0);
}

#[test]
fn a_renamed_parent_costs_nothing() {
    let mut world = World::new();
    sample(&world);
    world.capture();
    std::fs::rename(world.path("src"), world.path("lib")).unwrap();
    let after = world.capture();
    assert_eq!((after.counts.opened, after.counts.encoded, after.counts.unchanged), (0, 1, 4));
    assert!(after.entries.contains_key("lib/deep/er/4.txt") && !after.entries.contains_key("src"));
}

#[test]
fn entries_that_come_and_go_are_seen() {
    let mut world = World::new();
    sample(&world);
    world.capture();
    world.write("src/0a.txt", "new");
    std::fs::remove_file(world.path("src/2.txt")).unwrap();
    std::fs::remove_dir_all(world.path("docs")).unwrap();
    std::fs::remove_file(world.path("link")).unwrap();
    world.mkdir("link");
    let after = world.capture();
    assert_eq!(after.counts.opened, 1);
    assert!(after.entries.contains_key("src/0a.txt"));
    assert!(!after.entries.contains_key("src/2.txt") && !after.entries.contains_key("docs"));
    assert!(matches!(after.entry("link").node, Node::Dir(_)));
    world.settle();
    let cold = World { previous: None, ..world };
    std::fs::remove_dir_all(cold.store.path().join("cache")).unwrap();
    assert_eq!(cold.try_capture(true).unwrap().key, after.key, "the cache makes no difference");
}

#[test]
fn a_damaged_cache_costs_time_and_nothing_else() {
    let mut world = World::new();
    sample(&world);
    let first = world.capture();
    let path = world.store.path().join("cache/tree-path.stat");
    let good = std::fs::read(&path).unwrap();
    for (round, at) in (0..good.len()).step_by(29).enumerate() {
        let mut bad = good.clone();
        bad[at] ^= 1 << (round % 8);
        std::fs::write(&path, &bad).unwrap();
        let taken = world.try_capture(true).unwrap();
        assert_eq!(taken.key, first.key, "byte {at}");
    }
    for cut in [0, 1, 50, good.len() / 2, good.len() - 1] {
        std::fs::write(&path, &good[..cut]).unwrap();
        assert_eq!(world.try_capture(true).unwrap().key, first.key, "cut at {cut}");
    }
}

#[test]
fn what_was_never_committed_is_stored_by_the_next() {
    let mut world = World::new();
    sample(&world);
    world.write("large", vec![7; 300_000]);
    world.settle();
    // As if the process had been killed before the commit.
    world.try_capture(false).unwrap();
    let taken = world.capture();
    assert_eq!(taken.counts.opened, 16, "what the cache says is not in the store");
    world.write("src/1.txt", "changed");
    world.settle();
    let lost = world.try_capture(false).unwrap();
    assert_eq!(lost.counts.opened, 1);
    // Only what the lost one had read is read again.
    let taken = world.capture();
    assert_eq!((taken.key, taken.counts.opened), (lost.key, 1));
    // A snapshot that nobody vouches for: every key is looked up, and all are there.
    let unknown = World { previous: None, ..world };
    let taken = unknown.try_capture(true).unwrap();
    assert_eq!((taken.key, taken.counts.opened, taken.counts.encoded), (lost.key, 0, 0));
}
