//! A restore, on real files: it changes what differs and nothing else.

mod faults;
mod kinds;
mod large;
mod links;
mod model;
mod never;
mod race;
mod real;
mod refuse;
mod slip;
mod world;

use world::World;

/// A bit of everything.
fn sample(world: &World) {
    world.write("a/x", "one");
    world.write("a/y", "two");
    world.write("b/deep/er/z", "three");
    world.write("b/same", "same");
    world.write("top", "four");
    std::os::unix::fs::symlink("../nowhere", world.path("a/link")).unwrap();
    std::fs::create_dir(world.path("empty")).unwrap();
    for path in
        ["a/x", "a/y", "a/link", "a", "b/deep/er/z", "b/deep/er", "b/deep", "b/same", "b", "top", "empty", ""]
    {
        world.touch(path, 1_000_000_000);
    }
}

/// Changes much of it.
fn spoil(world: &World) {
    std::fs::remove_dir_all(world.path("b/deep")).unwrap();
    std::fs::remove_dir(world.path("empty")).unwrap();
    std::fs::remove_file(world.path("a/link")).unwrap();
    std::os::unix::fs::symlink("elsewhere", world.path("a/link")).unwrap();
    world.write("a/x", "changed");
    world.write("new/file", "new");
    world.write("new/dir/file", "newer");
    world.chmod("top", 0o600);
    std::fs::rename(world.path("a/y"), world.path("a/renamed")).unwrap();
}

#[test]
fn what_was_spoilt_comes_back_and_goes_again() {
    let world = World::new("round");
    sample(&world);
    let (before, stored) = (world.state(), world.record());
    spoil(&world);
    let (spoilt, current) = (world.state(), world.record());
    let outcome = world.restore(&stored, &current).unwrap();
    assert!(
        outcome.refused.is_empty() && outcome.notes.is_empty() && outcome.saved.is_empty(),
        "{outcome:?}"
    );
    assert_eq!((outcome.added, outcome.modified, outcome.deleted), (5, 3, 5), "{outcome:?}");
    let after = world.state();
    after.assert_is(&before, &["a/x", "a/y", "b/deep/er/z"]);
    for path in ["b/same", "top", "a", "b"] {
        assert_eq!(after.at(path), before.at(path), "{path}");
    }
    // Undone as well: the other way round.
    world.restore(&current, &stored).unwrap();
    world.state().assert_is(&spoilt, &["a/x", "a/renamed", "new/file", "new/dir/file"]);
    assert_eq!(world.leftovers(), [""; 0]);
}

#[test]
fn a_second_call_changes_nothing() {
    let world = World::new("again");
    sample(&world);
    let stored = world.record();
    spoil(&world);
    let current = world.record();
    world.restore(&stored, &current).unwrap();
    let first = world.state();
    let outcome = world.restore(&stored, &current).unwrap();
    assert!(outcome.refused.is_empty(), "{outcome:?}");
    assert_eq!(world.state(), first);
    assert_eq!(world.leftovers(), [""; 0]);
}
