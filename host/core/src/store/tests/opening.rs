//! A store is made private, and what is no store is told from a newer one.

use super::*;
use crate::disk::{Counter, OpKind};

#[test]
fn a_new_store_is_private_and_passed_over() {
    use std::os::unix::fs::PermissionsExt;
    let scratch = Scratch::new("private");
    let counter = Arc::new(Counter::default());
    let store = Store::create(&scratch.0.join("store"), Disk::default().with_hook(counter.clone())).unwrap();
    let mode =
        |name: &str| scratch.0.join("store").join(name).metadata().unwrap().permissions().mode() & 0o7777;
    assert_eq!((mode(""), mode("packs"), mode("format"), mode("id")), (0o700, 0o700, 0o400, 0o400));
    assert_eq!(std::fs::read_to_string(scratch.0.join("store/.gitignore")).unwrap(), "*\n");
    assert!(
        std::fs::read(scratch.0.join("store/CACHEDIR.TAG"))
            .unwrap()
            .starts_with(b"Signature: 8a477f597d28d172789f06886806bc55")
    );
    assert_eq!(store.id().unwrap().len(), 32);
    assert_eq!(scratch.reopen().id().unwrap(), store.id().unwrap());
    assert_ne!(store.id().unwrap(), store.renew_id().unwrap());
    put_all(&store, &[b"x".to_vec()]);
    let pack = scratch.names("packs").pop_first().unwrap();
    assert_eq!(mode(&format!("packs/{pack}")), 0o400);
    assert!(counter.of(OpKind::SyncFile) > 0);
}

#[test]
fn what_is_no_store_is_told_from_a_newer_one() {
    let scratch = Scratch::new("kinds");
    let path = scratch.0.join("store");
    assert_eq!(Store::open(&path, Disk::default()).err().unwrap().kind(), Kind::NotFound);
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("thesis.txt"), "mine").unwrap();
    let said = Store::create(&path, Disk::default()).err().unwrap();
    assert!(said.kind() == Kind::Invalid && said.message().contains("thesis.txt"), "{said}");
    std::fs::remove_file(path.join("thesis.txt")).unwrap();
    std::fs::create_dir(path.join("packs")).unwrap();
    assert_eq!(Store::open(&path, Disk::default()).err().unwrap().kind(), Kind::NotFound);
    let _ = scratch.store();
    assert_eq!(Store::create(&path, Disk::default()).err().unwrap().kind(), Kind::Invalid);
    let format = |text: &str| {
        std::fs::remove_file(path.join("format")).unwrap();
        std::fs::write(path.join("format"), text).unwrap();
        Store::open(&path, Disk::default()).err().unwrap()
    };
    let newer = format("snapback store\nversion 2\nwhatever comes then\n");
    assert!(newer.kind() == Kind::Incompatible && newer.hint_text().is_some());
    assert_eq!(format("").kind(), Kind::Corrupt);
    assert_eq!(format("snapback store\nversion x\n").kind(), Kind::Corrupt);
    std::fs::remove_file(path.join("format")).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", path.join("format")).unwrap();
    assert!(Store::open(&path, Disk::default()).is_err());
}

#[test]
fn one_holds_the_lock_and_a_replaced_file_is_noticed() {
    let scratch = Scratch::new("lock");
    let (store, other) = (scratch.store(), scratch.reopen());
    let held = store.lock(&mut || panic!("nobody holds it")).unwrap();
    assert!(other.try_lock().unwrap().is_none());
    // Removed by a command that cleans up: what is held is worth nothing now.
    std::fs::remove_file(scratch.0.join("store/lock")).unwrap();
    assert!(!held.is_current(store.dir()).unwrap());
    let second = other.try_lock().unwrap().unwrap();
    drop(held);
    let waiting = std::sync::mpsc::channel();
    let waiter = std::thread::spawn(move || {
        let mut told = 0;
        let lock = store.lock(&mut || {
            told += 1;
            waiting.0.send(()).unwrap();
        });
        (lock.is_ok(), told)
    });
    waiting.1.recv().unwrap();
    drop(second);
    assert_eq!(waiter.join().unwrap(), (true, 1));
}

#[test]
fn many_may_make_the_store_at_once() {
    let scratch = Scratch::new("together");
    let path = scratch.0.join("store");
    let ids: BTreeSet<String> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| Store::open_or_create(&path, Disk::default()).unwrap().id().unwrap()))
            .collect();
        jobs.into_iter().map(|job| job.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    let file = scratch.0.join("file");
    std::fs::write(&file, "mine").unwrap();
    assert!(Store::open_or_create(&file, Disk::default()).is_err());
}
