//! Content that shares its blocks with the files it comes from. Where the tests run, files
//! mostly cannot: there a copy takes the place of a clone, which nothing else depends on.

use super::*;
use crate::disk::{Counter, FailAt, Hook, OpKind, PowerCut};
use crate::store::content::store_still;
use crate::store::gc::{Sweep, plan};
use std::os::unix::fs::{FileExt, PermissionsExt};

impl Scratch {
    fn sharing(&self, hook: Option<Arc<dyn Hook>>) -> Arc<Store> {
        let disk = Disk::default().with_copies_as_clones();
        let disk = match hook {
            Some(hook) => disk.with_hook(hook),
            None => disk.with_sync(false),
        };
        Store::open_or_create(&self.0.join("store"), disk).unwrap()
    }

    fn file(&self, name: &str, bytes: &[u8]) -> File {
        let path = self.0.join(name);
        std::fs::write(&path, bytes).unwrap();
        File::options().read(true).write(true).open(path).unwrap()
    }
}

/// Two equal blocks, one of zeros, others, and a rest.
fn content(seed: u64) -> Vec<u8> {
    let mut bytes = noise(seed, 9 * BLOCK + 100);
    bytes.copy_within(0..BLOCK, 3 * BLOCK);
    bytes[5 * BLOCK..6 * BLOCK].fill(0);
    bytes
}

/// Stores a directory with the one file, whose blocks are shared.
fn share(store: &Arc<Store>, file: &File) -> Result<(Key, Key, u64)> {
    let writer = store.writer()?;
    let mut lane = writer.lane();
    let still = writer.still_of(file)?.unwrap();
    let size = file.metadata().unwrap().len();
    let (content, size) = store_still(&mut lane, &still, size, false, &Cancel::default())?;
    let entry = entry(b"file", Node::File { content, size, sparse: false });
    let tree = lane.put(ObjectKind::Tree, &encode_tree(&[entry]))?;
    let times =
        lane.put(ObjectKind::Times, &encode_times(&[EntryTime { mtime: Time::default(), inside: None }]))?;
    let root = lane.put(ObjectKind::Root, &root_of(tree, times, 1).encode())?;
    lane.flush()?;
    Ok((root, content, writer.seal()?))
}

fn all(store: &Store, key: &Key, size: usize) -> Result<Vec<u8>> {
    crate::store::content::read_all(store, key, size as u64, 1 << 30)
}

/// The extents of the blocks of `bytes` that are stored to be shared.
fn extents(store: &Store, bytes: &[u8]) -> Vec<u64> {
    let keys = bytes.chunks(BLOCK).map(|block| Key::of(ObjectKind::Blob, block));
    keys.filter_map(|key| store.extent(&key)).map(|extent| extent.offset).collect()
}

#[test]
fn a_still_is_stored_as_the_file_was_and_whole_blocks_lie_where_files_can_share_them() {
    let scratch = Scratch::new("still");
    let counter = Arc::new(Counter::default());
    let store = scratch.sharing(Some(counter.clone()));
    let bytes = content(1);
    let file = scratch.file("file", &bytes);
    let writer = store.writer().unwrap();
    let still = writer.still_of(&file).unwrap().unwrap();
    // What happens to the file now is no matter.
    file.write_all_at(&noise(2, 300_000), 0).unwrap();
    let mut lane = writer.lane();
    let cancel = Cancel::default();
    let (key, size) = store_still(&mut lane, &still, bytes.len() as u64, false, &cancel).unwrap();
    assert_eq!(size, bytes.len() as u64);
    lane.flush().unwrap();
    assert_eq!(crate::store::content::read_all(&writer, &key, size, 1 << 30).unwrap(), bytes);
    assert_eq!(scratch.names("tmp").len(), 1, "a still has no name");
    writer.seal().unwrap();
    let store = scratch.reopen();
    assert_eq!(all(&store, &key, bytes.len()).unwrap(), bytes);
    assert_eq!(store_bytes(&mut store.writer().unwrap().lane(), &bytes[..], &cancel).unwrap().0, key);
    // Neither the rest nor the zeros; the equal blocks in one place.
    let places = extents(&store, &bytes);
    assert_eq!((places.len(), places.iter().collect::<BTreeSet<_>>().len()), (8, 7));
    assert!(places.iter().all(|at| at.is_multiple_of(BLOCK as u64)), "{places:?}");
    assert_eq!(counter.of(OpKind::Clone), 1);
    assert!(is_whole(&store, &Key::of(ObjectKind::Blob, &bytes[..BLOCK])));
}

#[test]
fn only_what_is_new_of_a_still_is_added() {
    let scratch = Scratch::new("still-change");
    let store = scratch.sharing(None);
    let mut bytes = content(1);
    let file = scratch.file("file", &bytes);
    let (first, _, all_of_it) = share(&store, &file).unwrap();
    assert!(all_of_it > 7 * BLOCK as u64);
    file.write_all_at(b"changed", 7 * BLOCK as u64 + 99).unwrap();
    bytes[7 * BLOCK + 99..][..7].copy_from_slice(b"changed");
    let (second, key, added) = share(&store, &file).unwrap();
    // One block, and the gap in front of it, which takes no room.
    assert!(added < 2 * BLOCK as u64 + 8192, "{added}");
    assert_eq!(all(&store, &key, bytes.len()).unwrap(), bytes);
    assert!(is_whole(&store, &first) && is_whole(&store, &second));
    let (_, _, none) = share(&store, &file).unwrap();
    assert_eq!(none, 0);
}

#[test]
fn a_still_without_sharing_is_none_and_leaves_nothing() {
    let scratch = Scratch::new("no-still");
    let store = scratch.store();
    let file = scratch.file("file", &content(1));
    let writer = store.writer().unwrap();
    let still = writer.still_of(&file).unwrap();
    assert!(scratch.names("tmp").is_empty());
    // Here or elsewhere, a file system that shares is as good.
    assert_eq!(still.is_some(), rustix::fs::ioctl_ficlone(scratch.file("other", b""), &file).is_ok());
}

#[test]
fn cleaning_shares_what_stays() {
    let scratch = Scratch::new("still-gc");
    let store = scratch.sharing(None);
    let bytes = content(1);
    let file = scratch.file("file", &bytes);
    let (first, _, _) = share(&store, &file).unwrap();
    let mut other = content(2);
    other[..4 * BLOCK].copy_from_slice(&bytes[..4 * BLOCK]);
    let (second, key, _) = share(&store, &scratch.file("file", &other)).unwrap();
    let _ = first;
    let counter = Arc::new(Counter::default());
    let cleaning = scratch.sharing(Some(counter.clone()));
    let plan = plan(&cleaning, &[second], Sweep::Thorough, &Cancel::default()).unwrap();
    let freed = plan.apply(&cleaning, &Cancel::default(), &Silent).unwrap();
    assert!(freed.problems.is_empty() && freed.rewritten == 1, "{freed:?}");
    assert!(counter.of(OpKind::CopyRange) >= 1, "{:?}", counter.counts());
    let store = scratch.reopen();
    assert!(is_whole(&store, &second));
    assert_eq!(all(&store, &key, other.len()).unwrap(), other);
    assert_eq!(extents(&store, &other).len(), 8);
    assert!(!store.contains(&Key::of(ObjectKind::Blob, &bytes[6 * BLOCK..7 * BLOCK])).unwrap());
}

#[test]
fn a_flipped_bit_in_a_shared_block_is_found_and_the_block_stored_again() {
    let scratch = Scratch::new("still-bits");
    let store = scratch.sharing(None);
    let bytes = content(1);
    let file = scratch.file("file", &bytes);
    let (root, key, _) = share(&store, &file).unwrap();
    let at = extents(&store, &bytes)[5] + 12_345;
    let pack = scratch.0.join("store/packs").join(scratch.names("packs").first().unwrap());
    std::fs::set_permissions(&pack, std::fs::Permissions::from_mode(0o600)).unwrap();
    let open = File::options().read(true).write(true).open(&pack).unwrap();
    let mut byte = [0];
    open.read_exact_at(&mut byte, at).unwrap();
    open.write_all_at(&[byte[0] ^ 1], at).unwrap();
    let store = scratch.sharing(None);
    assert_eq!(all(&store, &key, bytes.len()).unwrap_err().kind(), Kind::Corrupt);
    let verified = verify::packs(&store, &Cancel::default(), &Silent).unwrap();
    assert_eq!(verified.problems.len(), 1);
    assert!(!is_whole(&store, &root));
    store.mark(&verified.damaged_packs()).unwrap();
    share(&store, &file).unwrap();
    assert!(is_whole(&scratch.reopen(), &root));
    assert_eq!(all(&scratch.reopen(), &key, bytes.len()).unwrap(), bytes);
}

#[test]
fn what_was_sealed_survives_a_power_cut() {
    let scratch = Scratch::new("still-power");
    scratch.sharing(None);
    let file = scratch.file("file", &content(1));
    let store = scratch.0.join("store");
    let cut = Arc::new(PowerCut::new(&store).unwrap());
    let (root, _, _) = share(&scratch.sharing(Some(cut.clone())), &file).unwrap();
    let sealed = cut.operations();
    for count in 0..=cut.operations() {
        for seed in 0..4 {
            let left = Scratch::new("still-power-left");
            std::fs::create_dir(left.0.join("store")).unwrap();
            cut.leave(count, seed, &left.0.join("store")).unwrap();
            if count < sealed {
                share(&left.sharing(None), &file).unwrap();
            }
            assert!(is_whole(&left.reopen(), &root), "at {count} of {sealed} with {seed}");
        }
    }
}

#[test]
fn sharing_fails_clean_at_every_step() {
    let scratch = Scratch::new("still-faults");
    scratch.sharing(None);
    for n in 0.. {
        let file = scratch.file("file", &content(n));
        let hook = Arc::new(FailAt::new(n, [5, 28][n as usize % 2], n % 3 == 0));
        let done = share(&scratch.sharing(Some(hook.clone())), &file);
        if let Err(e) = &done {
            assert!(e.message().contains("could not"), "step {n}: {e}");
        }
        let (root, _, _) = share(&scratch.sharing(None), &file).unwrap();
        assert!(is_whole(&scratch.reopen(), &root), "step {n}");
        assert!(scratch.names("tmp").is_empty());
        if !hook.reached() {
            assert!(done.is_ok() && n > 8, "{n}");
            return;
        }
    }
}
