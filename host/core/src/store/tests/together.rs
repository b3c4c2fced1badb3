//! Many at once, each with a store of its own as processes have them: kernel locks
//! belong to open files, so threads are as good as processes here.

use super::*;
use crate::store::gc::{Sweep, plan};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn writers_cleaners_and_readers_do_not_harm_each_other() {
    let scratch = Scratch::new("together-all");
    let kept = ("kept", noise(1, 500_000));
    // Shares its pack with what goes, so it moves again and again.
    let (root, _) = snapshot(&scratch.store(), &[kept.clone(), ("z", noise(2, 500_000))]).unwrap();
    let live: Mutex<Vec<Key>> = Mutex::new(vec![root]);
    let done = AtomicBool::new(false);
    let (live, done, scratch_ref) = (&live, &done, &scratch);
    std::thread::scope(|scope| {
        let writers: Vec<_> = (0..4u64)
            .map(|thread| {
                scope.spawn(move || {
                    for round in 0..8 {
                        let store = scratch_ref.reopen();
                        let _lock = store.lock(&mut || {}).unwrap();
                        let seed = 100 + thread * 100 + round;
                        let files = [kept_clone(round), ("own", noise(seed, 200_000))];
                        let (root, _) = snapshot(&store, &files).unwrap();
                        live.lock().unwrap().push(root);
                    }
                })
            })
            .collect();
        let cleaner = scope.spawn(move || {
            let store = scratch_ref.reopen();
            let mut round = 0;
            while !done.load(Ordering::Relaxed) {
                round += 1;
                let _lock = store.lock(&mut || {}).unwrap();
                let mut live = live.lock().unwrap();
                // Every second snapshot but the first is dropped.
                let mut n = 0;
                live.retain(|_| {
                    n += 1;
                    n == 1 || n % 2 == round % 2
                });
                let plan = plan(&store, &live, Sweep::Thorough, &Cancel::default()).unwrap();
                assert!(plan.problems.is_empty(), "{:?}", plan.problems);
                plan.apply(&store, &Cancel::default(), &Silent).unwrap();
            }
        });
        // Readers take no lock: packs go under their feet.
        let readers: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(move || {
                    let store = scratch_ref.reopen();
                    let bytes = noise(1, 500_000);
                    let mut rounds = 0;
                    while !done.load(Ordering::Relaxed) {
                        for block in bytes.chunks(BLOCK) {
                            assert_eq!(store.read(&Key::of(ObjectKind::Blob, block)).unwrap(), block);
                        }
                        rounds += 1;
                    }
                    rounds
                })
            })
            .collect();
        writers.into_iter().for_each(|writer| writer.join().unwrap());
        done.store(true, Ordering::Relaxed);
        cleaner.join().unwrap();
        assert!(readers.into_iter().all(|reader| reader.join().unwrap() > 0));
    });
    let store = scratch.reopen();
    let mut verified = verify::packs(&store, &Cancel::default(), &Silent).unwrap();
    assert!(verified.is_whole());
    for root in live.lock().unwrap().iter() {
        assert!(verified.root(&store, root, &mut Vec::new(), 1, &Cancel::default()).unwrap());
    }
}

fn kept_clone(round: u64) -> (&'static str, Vec<u8>) {
    ("kept", if round.is_multiple_of(2) { noise(1, 500_000) } else { noise(3, 100_000) })
}
