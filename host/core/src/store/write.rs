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

use super::frames::Frames;
use super::index::Place;
use super::lane::{Gather, Lane};
use super::lock::flock;
use super::pack::{Encoding, Frame, FrameTable, HEAD, read_frame};
use super::read::{Viewer, damaged, view_in};
use super::{Source, Store};
use crate::disk::Handle;
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use rustix::fs::FlockOperation;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A pack is ended when it would become longer than this, in bytes, or when it holds so
/// many objects that its table would become unwieldy.
const PACK: u64 = 512 << 20;
const PACK_OBJECTS: usize = 2 << 20;
/// Free space is looked at each time so many bytes were written.
const LOOK: u64 = 16 << 20;
const SHARDS: usize = 64;

/// Objects being stored: shared by threads; each thread uses a `Lane` of its own.
pub struct Writer {
    store: Arc<Store>,
    /// Nothing of it is to be kept.
    scratch: bool,
    known: Vec<Mutex<HashMap<Key, Known, BuildHasherDefault<KeyHasher>>>>,
    state: Mutex<State>,
    spare: Mutex<Vec<Gather>>,
    lanes: AtomicUsize,
    frames: Frames,
    /// Bytes of the file system that are to stay free.
    floor: AtomicU64,
}

#[derive(Default)]
pub(super) struct State {
    packs: Vec<OpenPack>,
    failed: Option<Error>,
    /// Bytes that may be written before free space is looked at again.
    unlooked: u64,
}

/// A pack that is being written.
pub(super) struct OpenPack {
    pub(super) file: Arc<Handle>,
    pub(super) name: Vec<u8>,
    pub(super) end: u64,
    pub(super) frames: Vec<FrameTable>,
    objects: usize,
}

/// What is known of an object that this writer stores.
#[derive(Clone, Copy)]
enum Known {
    /// A lane gathers it.
    Gathered,
    /// It is in a pack of this writer.
    At(Place),
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
        Ok(self.new_writer(false))
    }

    /// Begins writing objects that are only looked at (a comparison with the present):
    /// they can be read from the writer, and go with it.
    pub fn scratch(self: &Arc<Self>) -> Writer {
        self.new_writer(true)
    }

    fn new_writer(self: &Arc<Self>, scratch: bool) -> Writer {
        Writer {
            store: self.clone(),
            scratch,
            known: (0..SHARDS).map(|_| Mutex::default()).collect(),
            state: Mutex::default(),
            spare: Mutex::default(),
            lanes: AtomicUsize::new(0),
            frames: Frames::default(),
            floor: AtomicU64::new(0),
        }
    }

    /// Removes the packs in `tmp/` that nobody writes any more, as far as that is possible.
    pub(super) fn remove_leftovers(&self) -> Result<()> {
        for name in self.tmp.names()? {
            let free = self.tmp.open_file(&name).and_then(|file| {
                flock(&file, &self.tmp.join(&name), FlockOperation::NonBlockingLockExclusive)
            });
            if free.is_ok_and(|free| free) {
                let _ = self.disk.unlink(&self.tmp, &name);
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

    fn shard(&self, key: &Key) -> &Mutex<HashMap<Key, Known, BuildHasherDefault<KeyHasher>>> {
        &self.known[usize::from(key.hash()[31]) % SHARDS]
    }

    /// Whether the caller is the one who has to store `key`.
    pub(super) fn claim(&self, key: &Key) -> Result<bool> {
        let mut shard = lock(self.shard(key));
        match shard.entry(*key) {
            Entry::Occupied(_) => Ok(false),
            Entry::Vacant(_) if self.store.contains(key)? => Ok(false),
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
    pub(super) fn fail(&self, error: Error) -> Error {
        lock(&self.state).failed.get_or_insert_with(|| error.clone());
        error
    }

    /// Appends a frame of `objects` to the pack.
    pub(super) fn append(
        &self,
        encoding: Encoding,
        stored: &[u8],
        raw: usize,
        objects: Vec<(Key, u32)>,
    ) -> Result<()> {
        let (number, file, frame) = {
            let mut state = lock(&self.state);
            if let Some(e) = &state.failed {
                return Err(e.clone());
            }
            let length = stored.len() as u64;
            if state.unlooked < length {
                self.look_at_space(length)?;
                state.unlooked = length.max(LOOK);
            }
            state.unlooked -= length;
            let is_full = |pack: &OpenPack| pack.end + length > PACK || pack.objects > PACK_OBJECTS;
            if state.packs.last().is_none_or(is_full) {
                let pack = self.new_pack()?;
                state.packs.push(pack);
            }
            let number = (state.packs.len() - 1) as u32;
            let Some(pack) = state.packs.last_mut() else { unreachable!("one was made") };
            let frame =
                Frame { offset: pack.end as u32, stored: stored.len() as u32, raw: raw as u32, encoding };
            pack.end += length;
            pack.objects += objects.len();
            pack.frames.push(FrameTable { frame, objects: objects.clone() });
            (number, pack.file.clone(), frame)
        };
        self.store.disk.write_all(&file, u64::from(frame.offset), stored)?;
        let mut start = 0;
        for (key, len) in objects {
            let place = Place { pack: number, frame, start, len };
            lock(self.shard(&key)).insert(key, Known::At(place));
            start += len;
        }
        Ok(())
    }

    /// Refuses to write `length` bytes, and what is not looked at after them, when too
    /// little would stay free.
    fn look_at_space(&self, length: u64) -> Result<()> {
        let floor = self.floor.load(Ordering::Relaxed);
        if floor == 0 {
            return Ok(());
        }
        let free = self.store.dir.free_space()?;
        if free >= floor.saturating_add(length.max(LOOK)) {
            return Ok(());
        }
        let (free, floor) = (crate::disk::size_text(free), crate::disk::size_text(floor));
        let at = crate::error::show(self.store.path());
        Err(Error::new(Kind::NoSpace, format!("only {free} are free at {at}, and {floor} are to stay free"))
            .hint("`snapback gc` frees space without needing any; `min-free` in the user's configuration sets the limit"))
    }

    fn new_pack(&self) -> Result<OpenPack> {
        let (disk, tmp) = (&self.store.disk, &self.store.tmp);
        loop {
            let name = super::random_hex(8)?.into_bytes();
            let file = disk.create_file(tmp, &name, 0o400)?;
            // A cleaner may have come between making it and holding it.
            let held = flock(&file, file.path(), FlockOperation::NonBlockingLockExclusive)?;
            if !held || file.stat()?.st_nlink == 0 {
                continue;
            }
            if self.scratch {
                disk.unlink(tmp, &name)?;
            }
            disk.write_all(&file, 0, HEAD)?;
            let end = HEAD.len() as u64;
            return Ok(OpenPack { file: Arc::new(file), name, end, frames: Vec::new(), objects: 0 });
        }
    }

    /// Hands over what lanes gathered that exist no more.
    fn hand_over(&self) -> Result<()> {
        let mut gathers = std::mem::take(&mut *lock(&self.spare));
        let done = gathers.iter_mut().try_for_each(|gather| gather.cut(self));
        lock(&self.spare).append(&mut gathers);
        done
    }

    /// Ends writing: hands over all, and takes out what there is to seal.
    pub(super) fn take(&self) -> Result<Vec<OpenPack>> {
        if self.lanes.load(Ordering::SeqCst) > 0 {
            return Err(Error::new(Kind::Busy, "objects are still being stored"));
        }
        self.hand_over()?;
        self.check()?;
        Ok(std::mem::take(&mut lock(&self.state).packs))
    }

    /// Forgets the objects that were sealed.
    pub(super) fn forget(&self) {
        self.known.iter().for_each(|shard| lock(shard).clear());
    }

    pub(super) fn is_scratch(&self) -> bool {
        self.scratch
    }

    /// Gives back packs that could not be sealed, to be removed; notes why.
    pub(super) fn give_up(&self, packs: Vec<OpenPack>, error: Error) -> Error {
        lock(&self.state).packs.extend(packs);
        self.fail(error)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        for pack in state.packs.drain(..).filter(|_| !self.scratch) {
            // What stays is removed by the next writer.
            let _ = self.store.disk.unlink(&self.store.tmp, &pack.name);
        }
    }
}

impl Source for Writer {
    fn read(&self, key: &Key) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.view(key, &mut |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(out)
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
            None => return self.store.view(key, f),
        };
        let file = lock(&self.state).packs.get(place.pack as usize).map(|pack| pack.file.clone());
        let Some(file) = file else { return self.store.view(key, f) };
        let id = (u128::from(place.pack).to_le_bytes(), place.frame.offset);
        let frame = self
            .frames
            .get(id, place.frame.raw as usize, |out| read_frame(file.file(), &place.frame, out))?;
        let what = "being written";
        view_in(frame.bytes().map_err(|e| damaged(key, what, &e))?, key, &place, f)
            .unwrap_or_else(|| Err(damaged(key, what, &Error::corrupt("its bytes are not what was written"))))
    }
}
