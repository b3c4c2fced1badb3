//! Writing objects: lanes gather them into frames, frames are appended to packs.
//!
//! Each thread uses a `Lane` of its own, which hashes, drops what is stored already,
//! and encodes whole frames without touching what is shared; shared are the set of
//! keys (in many small locks) and the end of the pack. Packs are written aside, in
//! `tmp/`, and each is held by a kernel lock, so that what a killed process left
//! there can be told from what is being written.
//!
//! Invariant: nothing is visible before `seal`, and after the first failure nothing
//! is written any more: `seal` returns that failure.

use super::append::State;
use super::frames::Frames;
use super::index::Place;
use super::lane::{Gather, Lane};
use super::lock::flock;
use super::read::{Damage, Viewer, damaged, view_frame};
use super::{Extent, Source, Store};
use crate::disk::Dir;
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use rustix::fs::FlockOperation;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

const SHARDS: usize = 64;

/// Objects being stored: shared by threads; each thread uses a `Lane` of its own.
pub struct Writer {
    pub(super) store: Arc<Store>,
    /// Nothing of it is to be kept.
    pub(super) scratch: bool,
    /// What files hold is stored, not only named.
    holds_content: bool,
    known: Vec<Mutex<HashMap<Key, Known, BuildHasherDefault<KeyHasher>>>>,
    pub(super) state: Mutex<State>,
    spare: Mutex<Vec<Gather>>,
    pub(super) lanes: AtomicUsize,
    frames: Frames,
    /// Bytes of the file system that are to stay free.
    pub(super) floor: AtomicU64,
}

/// What is known of an object that this writer stores.
#[derive(Clone, Copy)]
enum Known {
    /// A lane gathers it.
    Gathered,
    /// It is in a pack of this writer.
    At(Place),
    /// It was sent to where the store's objects are.
    Sent,
}

/// Keys are hashes already.
#[derive(Default)]
struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        // Called for the kind's number, and for the hash itself.
        for chunk in bytes.chunks(8).take(1) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.0 = self.0.rotate_left(8) ^ u64::from_le_bytes(word);
        }
    }

    fn write_usize(&mut self, _: usize) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store {
    /// Begins writing objects, under the store's lock: what the store has is not stored
    /// again, so nobody may be removing it. Dropped without `seal`, nothing was stored.
    /// What killed writers left is removed.
    pub fn writer(self: &Arc<Self>) -> Result<Writer> {
        self.remove_leftovers()?;
        Ok(self.new_writer(false, true))
    }

    /// Begins writing objects that are only looked at (a comparison with the present):
    /// they can be read from the writer, and go with it. Without `content`, captures only
    /// find out the keys of what files hold.
    pub fn scratch(self: &Arc<Self>, content: bool) -> Writer {
        self.new_writer(true, content)
    }

    fn new_writer(self: &Arc<Self>, scratch: bool, holds_content: bool) -> Writer {
        Writer {
            store: self.clone(),
            scratch,
            holds_content,
            known: (0..SHARDS).map(|_| Mutex::default()).collect(),
            state: Mutex::default(),
            spare: Mutex::default(),
            lanes: AtomicUsize::new(0),
            frames: Frames::of_writer(),
            floor: AtomicU64::new(0),
        }
    }

    /// Removes the packs and workspaces in `tmp/` that nobody uses any more, as far as that
    /// is possible.
    pub(super) fn remove_leftovers(&self) -> Result<()> {
        let tmp = self.tmp()?;
        for name in tmp.names()? {
            let Ok(left) = tmp.open_file(&name) else { continue };
            let path = tmp.join(&name);
            if !flock(&left, &path, FlockOperation::NonBlockingLockExclusive).is_ok_and(|free| free) {
                continue;
            }
            if left.metadata().is_ok_and(|left| left.is_dir()) {
                super::workspace::remove(&self.disk, tmp, &name, &Dir::from_fd(left.into(), path));
            } else {
                let _ = self.disk.unlink(tmp, &name);
            }
        }
        Ok(())
    }
}

impl Writer {
    /// A lane for one thread.
    pub fn lane(&self) -> Lane<'_> {
        self.lanes.fetch_add(1, Ordering::SeqCst);
        Lane::new(self, lock(&self.spare).pop().unwrap_or_default())
    }

    /// Takes back what a lane gathered when the lane ends.
    pub(super) fn lane_ended(&self, gather: Gather) {
        lock(&self.spare).push(gather);
        self.lanes.fetch_sub(1, Ordering::SeqCst);
    }

    /// What went wrong with this writer, if anything did: a failure to read what is to
    /// be stored is none.
    pub fn check(&self) -> Result<()> {
        match &lock(&self.state).failed {
            Some(e) => Err(e.clone()),
            None => Ok(()),
        }
    }

    /// Stops with `NoSpace` rather than leave less than `bytes` of the file system free.
    pub fn keep_free(&self, bytes: u64) {
        self.floor.store(bytes, Ordering::Relaxed);
    }

    /// Whether a capture stores what files hold, or only finds out its keys.
    pub fn holds_content(&self) -> bool {
        self.holds_content
    }

    /// The store that it writes to.
    pub fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Whether the object is stored, or was put here.
    pub fn contains(&self, key: &Key) -> Result<bool> {
        if lock(self.shard(key)).contains_key(key) {
            return Ok(true);
        }
        self.store.contains(key)
    }

    /// Bytes of an object of this writer, sealed or not, or of the store. What a lane
    /// that still exists gathered last can not be read yet.
    pub fn read(&self, key: &Key) -> Result<Vec<u8>> {
        Source::read(self, key)
    }

    /// Notes where an object lies now.
    pub(super) fn stored_at(&self, key: &Key, place: Place) {
        lock(self.shard(key)).insert(*key, Known::At(place));
    }

    /// Sends `objects`, which lie one after the other in `raw`, where the store's objects
    /// are; false when they belong here.
    pub(super) fn send(&self, objects: &[(Key, u32)], raw: &[u8]) -> Result<bool> {
        let Some(far) = &self.store.far else { return Ok(false) };
        let mut rest = raw;
        for (key, length) in objects {
            let (bytes, after) = rest.split_at(*length as usize);
            far.put(key, bytes)?;
            lock(self.shard(key)).insert(*key, Known::Sent);
            rest = after;
        }
        Ok(true)
    }

    fn shard(&self, key: &Key) -> &Mutex<HashMap<Key, Known, BuildHasherDefault<KeyHasher>>> {
        &self.known[usize::from(key.hash()[31]) % SHARDS]
    }

    /// Whether the caller is the one who has to store `key`.
    pub(super) fn claim(&self, key: &Key) -> Result<bool> {
        let mut shard = lock(self.shard(key));
        match shard.entry(*key) {
            Entry::Occupied(_) => Ok(false),
            // Where objects are elsewhere, whoever gets them knows what is there.
            Entry::Vacant(_) if self.store.far.is_none() && self.store.contains(key)? => Ok(false),
            Entry::Vacant(slot) => {
                slot.insert(Known::Gathered);
                Ok(true)
            }
        }
    }

    /// Takes on `key` although the store has it: it is being moved to another pack.
    pub(super) fn claim_again(&self, key: &Key) -> bool {
        lock(self.shard(key)).insert(*key, Known::Gathered).is_none()
    }

    /// Notes a failure: nothing is written after it.
    pub(crate) fn fail(&self, error: Error) -> Error {
        lock(&self.state).failed.get_or_insert_with(|| error.clone());
        error
    }

    /// Hands over what lanes gathered that exist no more.
    pub(super) fn hand_over(&self) -> Result<()> {
        let mut gathers = std::mem::take(&mut *lock(&self.spare));
        let done = gathers.iter_mut().try_for_each(|gather| gather.cut_all(self));
        lock(&self.spare).append(&mut gathers);
        done
    }

    /// Forgets the objects that were sealed.
    pub(super) fn forget(&self) {
        self.known.iter().for_each(|shard| lock(shard).clear());
    }

    /// Whether nothing of it is to be kept.
    pub fn is_scratch(&self) -> bool {
        self.scratch
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for pack in state.packs.drain(..).filter(|_| !self.scratch) {
            // What stays is removed by the next writer.
            let _ = self.store.tmp().and_then(|tmp| self.store.disk.unlink(tmp, &pack.name));
        }
    }
}

impl Source for Writer {
    fn extent(&self, key: &Key) -> Option<Extent> {
        self.store.find_extent(key)
    }

    fn view(&self, key: &Key, f: Viewer<'_>) -> Result<()> {
        let known = || lock(self.shard(key)).get(key).copied();
        let mut place = known();
        if matches!(place, Some(Known::Gathered)) {
            self.hand_over()?;
            place = known();
        }
        let place = match place {
            Some(Known::At(place)) => place,
            Some(Known::Gathered) => {
                return Err(Error::new(Kind::Busy, format!("{key} is still being stored")));
            }
            None | Some(Known::Sent) => return self.store.view(key, f),
        };
        let file = lock(&self.state).packs.get(place.pack as usize).map(|pack| pack.file.clone());
        let Some(file) = file else { return self.store.view(key, f) };
        let id = (u128::from(place.pack).to_le_bytes(), place.frame);
        view_frame(&self.frames, id, file.file(), key, &place, f)
            .map_err(|Damage(e)| damaged(key, "being written", &e))?
    }
}
