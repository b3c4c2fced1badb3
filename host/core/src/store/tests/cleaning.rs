//! What nothing refers to goes, and the rest stays whole.

use super::*;
use crate::store::gc::{Freed, Sweep, plan};

fn clean(store: &Arc<Store>, roots: &[Key], sweep: Sweep) -> Freed {
    plan(store, roots, sweep, &Cancel::default()).unwrap().apply(store, &Cancel::default(), &Silent).unwrap()
}

fn disk_use(scratch: &Scratch) -> u64 {
    scratch
        .names("packs")
        .iter()
        .map(|name| scratch.0.join("store/packs").join(name).metadata().unwrap().len())
        .sum()
}

fn holds(scratch: &Scratch, bytes: &[u8]) -> bool {
    let store = scratch.reopen();
    store.read(&Key::of(ObjectKind::Blob, bytes)).is_ok()
}

#[test]
fn what_nothing_refers_to_goes_and_the_rest_stays() {
    let scratch = Scratch::new("gc");
    let store = scratch.store();
    let shared = noise(1, 2_000_000);
    let (one, _) = snapshot(&store, &[("a1", noise(2, 800_000)), ("s", shared.clone())]).unwrap();
    let (two, _) = snapshot(&store, &[("a2", noise(3, 800_000)), ("s", shared.clone())]).unwrap();
    let (three, _) = snapshot(&store, &[("a3", noise(4, 800_000)), ("s", shared.clone())]).unwrap();
    let before = disk_use(&scratch);

    // Everything is needed: nothing is done.
    let all = plan(&store, &[one, two, three], Sweep::Worthwhile, &Cancel::default()).unwrap();
    assert_eq!((all.packs(), all.bytes()), ((0, 0), 0));
    assert_eq!(clean(&store, &[one, two, three], Sweep::Thorough).bytes, 0);
    assert_eq!(disk_use(&scratch), before);

    // The second has a pack of its own, which goes whole.
    let freed = clean(&store, &[one, three], Sweep::Worthwhile);
    assert_eq!((freed.removed, freed.rewritten), (1, 0));
    assert_eq!(before - disk_use(&scratch), freed.bytes);
    assert!(is_whole(&store, &one) && is_whole(&store, &three) && !is_whole(&store, &two));

    // The first shares its pack with the third: it is rewritten.
    let before = disk_use(&scratch);
    let freed = clean(&store, &[three], Sweep::Worthwhile);
    assert_eq!((freed.removed, freed.rewritten), (0, 1));
    assert_eq!(before - disk_use(&scratch), freed.bytes);
    assert!(freed.bytes > 750_000 && is_whole(&scratch.reopen(), &three));
    assert!(!holds(&scratch, &noise(2, 800_000)[..BLOCK]));

    let freed = clean(&store, &[], Sweep::Worthwhile);
    assert!(freed.removed >= 2 && scratch.names("packs").is_empty());
}

#[test]
fn a_forgotten_secret_is_gone_whatever_it_shares_a_pack_with() {
    let scratch = Scratch::new("forget");
    let store = scratch.store();
    let secret = b"password=hunter2 ".repeat(20);
    let (kept, _) = snapshot(&store, &[("big", noise(1, 3_000_000))]).unwrap();
    let (gone, _) = snapshot(
        &store,
        &[("big", noise(1, 3_000_000)), ("env", secret.clone()), ("x", noise(9, 4_000_000))],
    )
    .unwrap();
    let (also, _) = snapshot(&store, &[("x", noise(9, 4_000_000))]).unwrap();
    // Not worth a rewrite, but a rewrite is what it takes.
    assert_eq!(clean(&store, &[kept, also], Sweep::Worthwhile).rewritten, 0);
    assert!(holds(&scratch, &secret));
    assert_eq!(clean(&store, &[kept, also], Sweep::Thorough).rewritten, 1);
    assert!(!holds(&scratch, &secret));
    assert!(
        is_whole(&scratch.reopen(), &kept) && is_whole(&scratch.reopen(), &also) && !is_whole(&store, &gone)
    );
}

#[test]
fn many_small_packs_become_one() {
    let scratch = Scratch::new("small");
    let store = scratch.store();
    let roots: Vec<Key> = (0..40).map(|i| snapshot(&store, &[("f", noise(i, 2000))]).unwrap().0).collect();
    assert_eq!(scratch.names("packs").len(), 40);
    assert_eq!(clean(&store, &roots, Sweep::Worthwhile).rewritten, 40);
    assert_eq!(scratch.names("packs").len(), 1);
    let store = scratch.reopen();
    let mut verified = verify::packs(&store, &Cancel::default(), &Silent).unwrap();
    for root in &roots {
        assert!(verified.root(&store, root, &mut Vec::new(), 1, &Cancel::default()).unwrap());
    }
    assert_eq!(clean(&store, &roots, Sweep::Worthwhile).rewritten, 0);
}

#[test]
fn nothing_goes_when_the_walk_could_not_see_everything() {
    use std::os::unix::fs::{FileExt, PermissionsExt};
    let scratch = Scratch::new("blind");
    let store = scratch.store();
    let (one, _) = snapshot(&store, &[("a", noise(1, 300_000))]).unwrap();
    let first = scratch.names("packs").pop_first().unwrap();
    let (_two, _) = snapshot(&store, &[("b", noise(2, 300_000))]).unwrap();
    // The directory is in the last frame of the first pack.
    let path = scratch.0.join("store/packs").join(&first);
    let table =
        pack::Table::read(&File::open(&path).unwrap(), PackName::parse(first.as_bytes()).unwrap()).unwrap();
    let frame = table.frames.last().unwrap().frame;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
    file.write_all_at(b"damage!", u64::from(frame.offset + frame.stored - 20)).unwrap();
    let store = scratch.reopen();
    let freed = clean(&store, &[one], Sweep::Worthwhile);
    assert_eq!((freed.removed, freed.rewritten), (0, 0));
    assert!(freed.problems.len() >= 2, "{:?}", freed.problems);
    // Without the snapshot that is concerned, all goes on.
    assert_eq!(clean(&store, &[], Sweep::Worthwhile).removed, 2);
}

#[test]
fn the_only_whole_copy_is_never_removed() {
    use std::os::unix::fs::{FileExt, PermissionsExt};
    let content = noise(1, 300_000);
    for case in 0..4 {
        let scratch = Scratch::new(&format!("copies-{case}"));
        let packs = scratch.0.join("store/packs");
        let (root, _) = snapshot(&scratch.store(), &[("a", content.clone())]).unwrap();
        let first = scratch.names("packs").pop_first().unwrap();
        // A second copy, as two processes make it that do not know of each other.
        let aside = scratch.0.join("aside");
        std::fs::rename(packs.join(&first), &aside).unwrap();
        let files = [("a", content.clone()), ("b", noise(2, 10))];
        let (same, _) = snapshot(&scratch.reopen(), &files).unwrap();
        let second = scratch.names("packs").pop_first().unwrap();
        std::fs::rename(&aside, packs.join(&first)).unwrap();

        let damaged = packs.join(if case % 2 == 0 { &first } else { &second });
        std::fs::set_permissions(&damaged, std::fs::Permissions::from_mode(0o600)).unwrap();
        let file = std::fs::OpenOptions::new().write(true).open(&damaged).unwrap();
        file.write_all_at(b"damage!", 70_000).unwrap();
        let sweep = if case < 2 { Sweep::Worthwhile } else { Sweep::Thorough };
        clean(&scratch.reopen(), &[root, same], sweep);
        assert!(is_whole(&scratch.reopen(), &same), "{case}");
        assert!(is_whole(&scratch.reopen(), &root), "{case}");
    }
}
