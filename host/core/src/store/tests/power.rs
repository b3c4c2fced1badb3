//! The power goes after any operation: what was sealed before is there.

use super::*;
use crate::disk::PowerCut;
use crate::store::gc::{Sweep, plan};

/// What the disk may look like after the first `count` operations.
fn after(scratch: &Scratch, cut: &PowerCut, count: usize, seed: u64) -> Scratch {
    let left = Scratch::new(&format!("left-{}", scratch.0.file_name().unwrap().to_str().unwrap()));
    cut.leave(count, seed, &left.0).unwrap();
    left
}

fn clean(store: &Arc<Store>, roots: &[Key]) {
    let plan = plan(store, roots, Sweep::Thorough, &Cancel::default()).unwrap();
    plan.apply(store, &Cancel::default(), &Silent).unwrap();
}

#[test]
fn a_store_is_made_whole_or_made_again() {
    let scratch = Scratch::new("power-make");
    let cut = Arc::new(PowerCut::new(&scratch.0).unwrap());
    Store::create(&scratch.0.join("store"), Disk::default().with_hook(cut.clone())).unwrap();
    for count in 0..=cut.operations() {
        for seed in 0..6 {
            let left = after(&scratch, &cut, count, seed);
            let made = Store::open(&left.0.join("store"), Disk::default());
            assert!(made.is_ok() || count < cut.operations(), "made, and gone");
            let store = Store::open_or_create(&left.0.join("store"), Disk::default()).unwrap();
            assert_eq!(store.id().unwrap().len(), 32, "after {count} with {seed}");
            let (root, _) = snapshot(&store, &[("a", noise(1, 70_000))]).unwrap();
            assert!(is_whole(&left.reopen(), &root));
        }
    }
}

#[test]
fn what_was_sealed_survives_and_nothing_half_is_believed() {
    let scratch = Scratch::new("power-seal");
    scratch.store();
    let cut = Arc::new(PowerCut::new(&scratch.0).unwrap());
    let disk = Disk::default().with_hook(cut.clone());
    let store = Store::open(&scratch.0.join("store"), disk).unwrap();
    let mut sealed = Vec::new();
    // Many small objects make the index part of it.
    let many: Vec<(String, Vec<u8>)> = (0..4500).map(|i| (format!("{i:05}"), noise(i, 20))).collect();
    let many: Vec<(&str, Vec<u8>)> = many.iter().map(|(name, bytes)| (&name[..], bytes.clone())).collect();
    for files in [
        &[("a", noise(9001, 300_000))][..],
        &many,
        &[("a", noise(9002, 300_000)), ("b", noise(9001, 300_000))],
    ] {
        let (root, _) = snapshot(&store, files).unwrap();
        sealed.push((cut.operations(), root, files.to_vec()));
    }
    for count in 0..=cut.operations() {
        for seed in 0..4 {
            let left = after(&scratch, &cut, count, seed);
            let store = left.reopen();
            for (when, root, files) in &sealed {
                if count >= *when {
                    assert!(is_whole(&store, root), "sealed at {when}, lost at {count} with {seed}");
                } else {
                    // Whatever is half there: a second try is whole.
                    let _lock = store.lock(&mut || {}).unwrap();
                    let (again, _) = snapshot(&store, files).unwrap();
                    assert!(again == *root && is_whole(&left.reopen(), root), "at {count} with {seed}");
                }
            }
            assert!(left.names("tmp").is_empty());
        }
    }
}

#[test]
fn cleaning_never_loses_what_is_referred_to() {
    let scratch = Scratch::new("power-gc");
    let store = scratch.store();
    let keep = ("keep", noise(1, 300_000));
    snapshot(&store, &[("dead", noise(2, 300_000)), keep.clone()]).unwrap();
    let (root, _) = snapshot(&store, &[keep]).unwrap();
    snapshot(&store, &[("dead", noise(3, 300_000))]).unwrap();
    let cut = Arc::new(PowerCut::new(&scratch.0).unwrap());
    let disk = Disk::default().with_hook(cut.clone());
    clean(&Store::open(&scratch.0.join("store"), disk).unwrap(), &[root]);
    assert!(cut.operations() > 8);
    for count in 0..=cut.operations() {
        for seed in 0..8 {
            let left = after(&scratch, &cut, count, seed);
            assert!(is_whole(&left.reopen(), &root), "at {count} with {seed}");
            clean(&left.reopen(), &[root]);
            assert!(is_whole(&left.reopen(), &root), "cleaned again after {count} with {seed}");
        }
    }
}
