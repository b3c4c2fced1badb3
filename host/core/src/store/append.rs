//! The packs of a writer: frames are appended, files are made and ended.
//!
//! A frame's place is taken under a lock and written outside it. After the first
//! failure nothing is appended any more; only what is looked at, and has no content of files
//! in it, goes on in memory when the disk is full.

use super::BLOCK;
use super::index::Place;
use super::lane::FRAME;
use super::lock::flock;
use super::pack::{Encoding, Frame, FrameTable, HEAD};
use super::write::{Writer, lock};
use crate::disk::{Handle, size_text};
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use rustix::fs::FlockOperation;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A pack is ended when it would become longer than this, in bytes, or when it holds so
/// many objects that its table would become unwieldy.
const PACK: u64 = 512 << 20;
const PACK_OBJECTS: usize = 2 << 20;
/// Where blocks that can be shared begin: a multiple of any file system's block size.
const ALIGN: u64 = BLOCK as u64;
/// Free space is looked at each time so many bytes were written.
const LOOK: u64 = 16 << 20;

#[derive(Default)]
pub(super) struct State {
    pub(super) packs: Vec<OpenPack>,
    pub(super) failed: Option<Error>,
    /// Bytes that may be written before free space is looked at again.
    unlooked: u64,
    /// Whether there is no more room on the disk for what is only looked at.
    in_memory: bool,
}

/// A pack that is being written.
pub(super) struct OpenPack {
    pub(super) file: Arc<Handle>,
    pub(super) name: Vec<u8>,
    pub(super) end: u64,
    pub(super) frames: Vec<FrameTable>,
    objects: usize,
}

/// A place in a pack that was taken for frames, one after the other.
struct Room {
    pack: u32,
    file: Arc<Handle>,
    frames: Vec<FrameTable>,
}

impl Writer {
    /// Appends a frame of `objects` to the pack.
    pub(super) fn append(
        &self,
        encoding: Encoding,
        stored: &[u8],
        raw: usize,
        mut objects: Vec<(Key, u32)>,
    ) -> Result<()> {
        let frame = Frame { offset: 0, stored: stored.len() as u32, raw: raw as u32, encoding };
        loop {
            let mut room = self.room(encoding, vec![FrameTable { frame, objects }])?;
            let offset = u64::from(room.frames[0].frame.offset);
            match self.store.disk.write_all(&room.file, offset, stored) {
                Err(error) if self.only_looks_at_keys() && error.kind() == Kind::NoSpace => {
                    if std::mem::replace(&mut lock(&self.state).in_memory, true) {
                        return Err(error);
                    }
                    objects = room.frames.swap_remove(0).objects;
                }
                done => {
                    done?;
                    self.filled(room);
                    return Ok(());
                }
            }
        }
    }

    /// Whether nothing of it is kept, and no content of files is in it.
    fn only_looks_at_keys(&self) -> bool {
        self.scratch && !self.holds_content()
    }

    /// Appends blocks that lie one after the other in `from`, from `offset`: where the file
    /// system shares blocks between files, they are shared. That they are what their keys
    /// say was seen in `from`, which nobody writes to.
    pub(super) fn append_shared(&self, from: &File, offset: u64, blocks: &[(Key, u32)]) -> Result<()> {
        let encoding = Encoding::Aligned;
        let frames = blocks.chunks(FRAME / BLOCK).map(|blocks| {
            let length = blocks.iter().map(|(_, len)| len).sum();
            let frame = Frame { offset: 0, stored: length, raw: length, encoding };
            FrameTable { frame, objects: blocks.to_vec() }
        });
        let room = self.room(encoding, frames.collect())?;
        let length = blocks.iter().map(|(_, len)| u64::from(*len)).sum();
        let start = u64::from(room.frames[0].frame.offset);
        self.store.disk.copy_all(from, offset, &room.file, start, length)?;
        self.filled(room);
        Ok(())
    }

    /// Takes the place for frames of one encoding, and tells each its offset.
    fn room(&self, encoding: Encoding, mut frames: Vec<FrameTable>) -> Result<Room> {
        let mut state = lock(&self.state);
        if let Some(e) = &state.failed {
            return Err(e.clone());
        }
        let length = frames.iter().map(|table| u64::from(table.frame.stored)).sum();
        if state.unlooked < length {
            state.unlooked = self.look_at_space(length)?;
        }
        state.unlooked -= length;
        let start = |pack: &OpenPack| match encoding {
            Encoding::Aligned => pack.end.next_multiple_of(ALIGN),
            Encoding::Raw | Encoding::Zstd => pack.end,
        };
        let in_memory = state.in_memory;
        let is_full = |pack: &OpenPack| {
            start(pack) + length > PACK || pack.objects > PACK_OBJECTS || in_memory && !pack.name.is_empty()
        };
        if state.packs.last().is_none_or(is_full) {
            let pack = self.new_pack(in_memory)?;
            state.packs.push(pack);
        }
        let number = (state.packs.len() - 1) as u32;
        let Some(pack) = state.packs.last_mut() else { unreachable!("one was made") };
        pack.end = start(pack);
        for table in &mut frames {
            table.frame.offset = pack.end as u32;
            pack.end += u64::from(table.frame.stored);
            pack.objects += table.objects.len();
        }
        pack.frames.extend_from_slice(&frames);
        Ok(Room { pack: number, file: pack.file.clone(), frames })
    }

    /// Notes where the objects of frames lie, which were written.
    fn filled(&self, room: Room) {
        for FrameTable { frame, objects } in room.frames {
            let mut start = 0;
            for (key, len) in objects {
                self.stored_at(&key, Place { pack: room.pack, frame, start, len });
                start += len;
            }
        }
    }

    /// How many bytes may be written before it is looked again; refuses to write `length`
    /// bytes when too little would stay free.
    fn look_at_space(&self, length: u64) -> Result<u64> {
        let floor = self.floor.load(Ordering::Relaxed);
        if floor == 0 {
            return Ok(length.max(LOOK));
        }
        let free = self.store.dir.free_space()?;
        let room = free.saturating_sub(floor);
        if room >= length {
            return Ok(room.min(length.max(LOOK)));
        }
        let (free, floor) = (size_text(free), size_text(floor));
        let at = crate::error::show(self.store.path());
        Err(Error::new(Kind::NoSpace, format!("only {free} are free at {at}, and {floor} are to stay free"))
            .hint(
                "`snapback gc` frees space without needing any; `min-free` of the user's config is the limit",
            ))
    }

    /// Bytes of the file system that are free but for what this writer has written, and
    /// bytes that are to stay free.
    pub(crate) fn space(&self) -> Result<(u64, u64)> {
        let written: u64 = lock(&self.state).packs.iter().map(|pack| pack.end).sum();
        Ok((self.store.dir.free_space()?.saturating_add(written), self.floor.load(Ordering::Relaxed)))
    }

    fn new_pack(&self, in_memory: bool) -> Result<OpenPack> {
        let begin = |file: &Handle| self.store.disk.write_all(file, 0, HEAD);
        let memory = || {
            let file = Handle::in_memory(self.store.path())?;
            begin(&file).map(|()| (Vec::new(), file))
        };
        let on_disk = || {
            let (name, file) = self.create()?;
            begin(&file).map(|()| (name, file))
        };
        // Whoever only looks needs no disk that can be written.
        let is_enough = |error: &Error| match error.kind() {
            Kind::Denied => self.scratch,
            Kind::NoSpace => self.only_looks_at_keys(),
            _ => false,
        };
        let (name, file) = match if in_memory { memory() } else { on_disk() } {
            Err(error) if !in_memory && is_enough(&error) => memory()?,
            made => made?,
        };
        let end = HEAD.len() as u64;
        Ok(OpenPack { file: Arc::new(file), name, end, frames: Vec::new(), objects: 0 })
    }

    /// A new file that is held, and its name; of what is only looked at, the name is gone.
    fn create(&self) -> Result<(Vec<u8>, Handle)> {
        let (disk, tmp) = (&self.store.disk, self.store.tmp()?);
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
            return Ok((name, file));
        }
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

    /// Gives back packs that could not be sealed, to be removed; notes why.
    pub(super) fn give_up(&self, packs: Vec<OpenPack>, error: Error) -> Error {
        lock(&self.state).packs.extend(packs);
        self.fail(error)
    }
}
