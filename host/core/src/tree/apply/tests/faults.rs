//! Every operation may fail, and every operation may be the last one.

use super::world::{State, World};
use crate::disk::{Counter, FailAt, Hook};
use crate::tree::root::Root;
use rustix::io::Errno;
use std::os::unix::fs::symlink;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Something of every kind of change, as small as can be.
fn scenario() -> (World, State, Root, State, Root) {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let world = World::new(&format!("fault-{}", NUMBER.fetch_add(1, Ordering::Relaxed)));
    world.write("kept/same", "same");
    world.write("kept/edited", "one");
    world.write("kept/mode", "mode");
    world.write("gone/deep/file", "two");
    world.write("kind", "three");
    world.write("dir/inside", "four");
    world.write("locked/file", "five");
    world.chmod("locked", 0o555);
    world.write("long", vec![7; 150_000]);
    world.write("linked", "six");
    std::fs::hard_link(world.path("linked"), world.path("kept/link")).unwrap();
    symlink("one", world.path("symlink")).unwrap();
    let (before, stored) = (world.state(), world.record());
    world.write("kept/edited", "changed");
    world.chmod("kept/mode", 0o600);
    std::fs::remove_dir_all(world.path("gone")).unwrap();
    std::fs::remove_file(world.path("kind")).unwrap();
    world.write("kind/now/dir", "directory");
    std::fs::remove_dir_all(world.path("dir")).unwrap();
    world.write("dir", "now a file");
    world.chmod("locked", 0o755);
    std::fs::remove_file(world.path("locked/file")).unwrap();
    world.write("locked/new", "new");
    world.chmod("locked", 0o555);
    world.write("long", vec![8; 70_000]);
    std::fs::remove_file(world.path("linked")).unwrap();
    world.write("linked", "on its own");
    std::fs::remove_file(world.path("symlink")).unwrap();
    symlink("two", world.path("symlink")).unwrap();
    world.write("added/deep/file", "added");
    let (spoilt, current) = (world.state(), world.record());
    (world, before, stored, spoilt, current)
}

/// What each path is without its attributes: an operation on these may be refused.
fn content(state: &State) -> Vec<(String, String)> {
    let words = |what: &str| if what.starts_with("file") { 3 } else { 1 };
    let first = |what: &str| what.split(' ').take(words(what)).collect::<Vec<_>>().join(" ");
    state.what().iter().map(|(p, what)| (String::from_utf8_lossy(p).into_owned(), first(what))).collect()
}

fn operations() -> u64 {
    let (world, before, stored, _, current) = scenario();
    let counter = Arc::new(Counter::default());
    world.restore_with(&stored, &current, &[], Some(counter.clone())).unwrap();
    assert_eq!(world.state().what(), before.what());
    counter.all()
}

#[test]
fn an_operation_that_fails_takes_everything_back() {
    let all = operations();
    assert!(all > 50, "{all}");
    let mut failed = 0;
    for n in 0..all {
        for errno in [Errno::IO, Errno::NOSPC, Errno::ACCESS] {
            let (world, before, stored, spoilt, current) = scenario();
            let hook = Arc::new(FailAt::new(n, errno.raw_os_error(), false));
            let case = format!("operation {n} fails with {errno}");
            match world.restore_with(&stored, &current, &[], Some(hook as Arc<dyn Hook>)) {
                Err(error) => {
                    failed += 1;
                    assert_eq!(world.state().what(), spoilt.what(), "{case}: {error}");
                    assert_eq!(world.leftovers(), [""; 0], "{case}: {error}");
                }
                Ok(outcome) => {
                    assert!(outcome.refused.is_empty() && outcome.saved.is_empty(), "{case}: {outcome:?}");
                    if outcome.notes.is_empty() {
                        assert_eq!(world.state().what(), before.what(), "{case}");
                    } else {
                        assert_eq!(content(&world.state()), content(&before), "{case}");
                    }
                }
            }
            let outcome = world.restore(&stored, &current).unwrap();
            assert!(outcome.refused.is_empty() && outcome.saved.is_empty(), "{case}: {outcome:?}");
            assert_eq!(world.state().what(), before.what(), "{case}");
            assert_eq!(world.leftovers(), [""; 0], "{case}");
        }
    }
    assert!(failed > 2 * all, "{failed} of {all}");
}

#[test]
fn a_call_that_was_cut_short_is_completed_or_taken_back() {
    for n in 0..operations() {
        for complete in [true, false] {
            let (world, before, stored, spoilt, current) = scenario();
            let hook = Arc::new(FailAt::new(n, Errno::IO.raw_os_error(), true));
            // Nothing works from then on: as if the process had been killed.
            let _ = world.restore_with(&stored, &current, &[], Some(hook as Arc<dyn Hook>));
            let case = format!("cut at {n}");
            let (to, from, expected) =
                if complete { (&stored, &current, &before) } else { (&current, &stored, &spoilt) };
            let outcome = world.restore(to, from).unwrap();
            assert!(outcome.refused.is_empty() && outcome.saved.is_empty(), "{case}: {outcome:?}");
            assert_eq!(world.state().what(), expected.what(), "{case}");
            assert_eq!(world.leftovers(), [""; 0], "{case}");
        }
    }
}
