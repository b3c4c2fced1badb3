//! Hundreds of targets in one step cost what they are, not their square.

use super::*;
use std::sync::atomic::Ordering;

/// How often backends are asked what targets capture by themselves: by a run, its undo, its redo, and
/// an undo that is finished after it was cut short, of so many targets.
fn asked(targets: usize) -> Vec<u64> {
    let target = |n: usize| format!("[[target]]\nname = \"t{n}\"\nbackend = \"other\"\npath = \"{n}.db\"\n");
    let world = World::with(&(0..targets).map(target).collect::<String>());
    let mut asked = Vec::new();
    let mut count = || asked.push(world.fakes.2.swap(0, Ordering::Relaxed));
    let set = |state: &str| *world.fakes.1.state.lock().unwrap() = state.into();
    let is = |state: &str| assert_eq!(*world.fakes.1.state.lock().unwrap(), state);
    set("old");
    let id = world.take(SnapshotKind::Run).snapshot.id;
    set("new");
    world.session().end_run(&id, 0).unwrap();
    count();
    world.go(&Ask::Undo).unwrap();
    is("old");
    count();
    world.go(&Ask::Redo).unwrap();
    is("new");
    count();
    *world.fakes.1.fail.lock().unwrap() = 2;
    assert!(world.go(&Ask::Undo).is_err(), "neither done nor taken back");
    world.open().unwrap().lock_unrecovered().unwrap().end_pending(&Recovery::Resume).unwrap();
    is("old");
    count();
    asked
}

#[test]
fn what_targets_capture_by_themselves_is_asked_in_proportion_to_their_number() {
    let [few, more, many] = [10, 20, 40].map(asked);
    for (at, few) in few.iter().enumerate() {
        let (first, second) = (more[at] - few, many[at] - more[at]);
        assert!(first > 0, "nothing was asked");
        assert_eq!(second, 2 * first, "{few}, {}, {} times", more[at], many[at]);
    }
}
