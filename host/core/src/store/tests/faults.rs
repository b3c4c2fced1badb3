//! The n-th operation fails, for every n: what was there stays, and a second try succeeds.

use super::*;
use crate::disk::{FailAt, Hook, Op, OpKind};
use crate::store::gc::{Sweep, plan};

const ERRORS: [i32; 3] = [5, 28, 13]; // EIO, ENOSPC, EACCES

fn open_with(scratch: &Scratch, hook: Arc<FailAt>) -> Result<Arc<Store>> {
    Store::open(&scratch.0.join("store"), Disk::default().with_hook(hook))
}

/// Does `act` with a failure at each operation in turn, until none is reached.
fn at_every_step(scratch: &Scratch, mut act: impl FnMut(Arc<FailAt>, u64) -> Result<()>) -> u64 {
    for n in 0.. {
        let hook = Arc::new(FailAt::new(n, ERRORS[n as usize % 3], n % 2 == 0));
        let done = act(hook.clone(), n);
        if !hook.reached() {
            done.unwrap();
            return n;
        }
        assert!(scratch.0.exists());
        if let Err(e) = done {
            assert!(e.message().contains("could not"), "step {n}: {e}");
        }
    }
    unreachable!()
}

#[test]
fn making_a_store_fails_clean_and_is_finished_later() {
    let scratch = Scratch::new("make");
    let path = scratch.0.join("store");
    let steps = at_every_step(&scratch, |hook, n| {
        let done = Store::create(&path, Disk::default().with_hook(hook)).map(drop);
        if done.is_err() {
            match Store::open(&path, Disk::default()) {
                // All but the last sync was done.
                Ok(_) => std::fs::remove_dir_all(&path).unwrap(),
                Err(e) => assert_eq!(e.kind(), Kind::NotFound, "step {n}: {e}"),
            }
            if n % 2 == 0 {
                let _ = std::fs::remove_dir_all(&path);
            }
            let store = Store::create(&path, Disk::default()).unwrap();
            let (root, _) = snapshot(&store, &[("a", b"a".to_vec())]).unwrap();
            assert!(is_whole(&scratch.reopen(), &root));
            std::fs::remove_dir_all(&path).unwrap();
        }
        done
    });
    assert!(steps > 15, "{steps}");
}

#[test]
fn storing_fails_clean_at_every_step() {
    let scratch = Scratch::new("store-faults");
    let store = scratch.store();
    let (old, _) = snapshot(&store, &[("old", noise(1, 100_000))]).unwrap();
    let mut good = Vec::new();
    let steps = at_every_step(&scratch, |hook, n| {
        // Many objects, so that the index is written as well.
        let files: Vec<(String, Vec<u8>)> =
            (0..5000).map(|i| (format!("{i:05}"), noise(n * 10_000 + i, 100))).collect();
        let files: Vec<(&str, Vec<u8>)> =
            files.iter().map(|(name, bytes)| (&name[..], bytes.clone())).collect();
        let done = open_with(&scratch, hook).and_then(|store| snapshot(&store, &files));
        let store = scratch.reopen();
        assert!(is_whole(&store, &old), "step {n}");
        let (root, _) = snapshot(&store, &files).unwrap();
        assert!(scratch.names("tmp").is_empty(), "step {n}: a second try clears up");
        assert!(is_whole(&scratch.reopen(), &root), "step {n}");
        good.push(root);
        done.map(drop)
    });
    assert!(steps >= 8, "{steps}");
    let store = scratch.reopen();
    assert!(good.iter().all(|root| is_whole(&store, root)));
}

#[test]
fn cleaning_fails_clean_at_every_step() {
    let scratch = Scratch::new("gc-faults");
    let store = scratch.store();
    let mut round = 0;
    let steps = at_every_step(&scratch, |hook, n| {
        round += 1000;
        let keep = ("keep", noise(round, 400_000));
        let (one, _) = snapshot(&store, &[("dead", noise(round + 1, 400_000)), keep.clone()]).unwrap();
        let (two, _) = snapshot(&store, &[keep]).unwrap();
        let (three, _) = snapshot(&store, &[("dead", noise(round + 2, 400_000))]).unwrap();
        let _ = (one, three);
        let clean = |store: &Arc<Store>| {
            plan(store, &[two], Sweep::Thorough, &Cancel::default())?.apply(
                store,
                &Cancel::default(),
                &Silent,
            )
        };
        let done = open_with(&scratch, hook).and_then(|store| clean(&store));
        let again = scratch.reopen();
        assert!(is_whole(&again, &two), "step {n}");
        clean(&again).unwrap();
        let again = scratch.reopen();
        assert!(is_whole(&again, &two), "step {n}");
        assert!(again.read(&Key::of(ObjectKind::Blob, &noise(round + 2, 400_000)[..BLOCK])).is_err());
        assert!(scratch.names("tmp").is_empty());
        store.look_again();
        done.map(drop)
    });
    assert!(steps >= 10, "{steps}");
}

#[test]
fn after_a_failed_write_nothing_more_is_written() {
    let scratch = Scratch::new("stop");
    scratch.store();
    // Creating the pack and its head succeed; the first frame does not.
    let hook = Arc::new(FailAt::new(2, 28, false));
    let store = open_with(&scratch, hook.clone()).unwrap();
    let writer = store.writer().unwrap();
    let mut lane = writer.lane();
    let mut failed = None;
    for seed in 0..20 {
        if let Err(e) = lane.put(ObjectKind::Blob, &noise(seed, 60_000)) {
            failed.get_or_insert(e);
        }
    }
    assert_eq!(failed.unwrap().kind(), Kind::NoSpace);
    assert_eq!(lane.flush().unwrap_err().kind(), Kind::NoSpace);
    assert_eq!(writer.check().unwrap_err().kind(), Kind::NoSpace);
    assert_eq!(writer.seal().unwrap_err().kind(), Kind::NoSpace);
    drop(writer);
    assert!(scratch.names("packs").is_empty() && scratch.names("tmp").is_empty());
}

/// There is no room for files in this directory: an operation of this kind fails on them.
struct Full(PathBuf, OpKind);

impl Hook for Full {
    fn before(&self, op: &Op<'_>) -> std::io::Result<()> {
        match op.kind == self.1 && op.path().starts_with(&self.0) {
            true => Err(std::io::Error::from_raw_os_error(ERRORS[1])),
            false => Ok(()),
        }
    }
}

#[test]
fn what_is_only_looked_at_needs_no_room() {
    for kind in [OpKind::Create, OpKind::Write] {
        let scratch = Scratch::new("looked-at");
        drop(scratch.store());
        let path = scratch.0.join("store");
        let hook = Arc::new(Full(path.join("tmp"), kind));
        let store = Store::open(&path, Disk::default().with_hook(hook)).unwrap();
        let put = |writer: &Writer, n: u64| -> Result<Key> {
            let mut lane = writer.lane();
            let key = lane.put(ObjectKind::Tree, &noise(n, 100_000))?;
            lane.flush().map(|()| key)
        };
        let writer = store.scratch(false);
        let keys = [1, 2].map(|n| put(&writer, n).unwrap());
        for (n, key) in [1, 2].into_iter().zip(keys) {
            assert_eq!(writer.read(&key).unwrap(), noise(n, 100_000), "{kind:?}");
        }
        // What files hold does not go into memory, nor what is to be kept.
        for (what, writer) in [("content", store.scratch(true)), ("kept", store.writer().unwrap())] {
            // More than is gathered before it is written.
            let error = (3..100).try_for_each(|n| put(&writer, n).map(drop));
            let error = error.and_then(|()| writer.check()).expect_err(&format!("{kind:?}, {what}"));
            assert_eq!(error.kind(), Kind::NoSpace, "{kind:?}, {what}");
        }
    }
}
