//! The index: where each object lies, merged from the tables of all packs.
//!
//! A cache: it can be thrown away at any time, and nothing in it is trusted. It is
//! one sorted file of pages; the first hash of each page is kept in memory, so that
//! a look-up reads one page, once. Each page carries a checksum, and the tail lists
//! the packs that are covered, so that an index which is cut off, overwritten or
//! out of date is noticed: `Corrupt`, and the caller goes on without it.
//!
//! Layout: pages; tail (packs, fences); trailer. FORMAT.md has the bytes.

use super::pack::{Encoding, Frame, PackName};
use crate::disk::{Dir, Disk, Handle};
use crate::error::{Error, Result};
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

/// The index's file in the store.
pub const FILE: &[u8] = b"index";
const MAGIC: &[u8; 16] = b"snapback index 1";
const PAGE: usize = 4096;
const ENTRY: usize = 58;
const SUM: usize = 8;
/// Entries of a full page.
const FULL: usize = (PAGE - SUM - 2) / ENTRY;
const TRAILER: usize = 48;
/// Largest tail, in bytes: enough for some hundred million objects.
const MAX_TAIL: u64 = 64 << 20;

/// Where one object lies: a frame of a pack (numbered by whoever made the place),
/// and its bytes in the decoded frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// Which pack.
    pub pack: u32,
    /// Which frame.
    pub frame: Frame,
    /// Where the object begins in the decoded frame.
    pub start: u32,
    /// Its length.
    pub len: u32,
}

/// One pack that an index covers: its name and the size of its file.
pub type Covered = (PackName, u64);

/// An open index.
pub struct Index {
    file: File,
    packs: Vec<Covered>,
    fences: Vec<u64>,
    pages: Vec<OnceLock<Box<[u8]>>>,
    entries: u64,
}

fn damaged(how: &str) -> Error {
    Error::corrupt(format!("the index is damaged: {how}"))
}

/// The order of entries: by hash, since hashes are spread evenly; then by kind.
pub fn order(key: &Key) -> (&[u8; 32], u8) {
    (key.hash(), key.kind() as u8)
}

fn fence(key: &Key) -> u64 {
    u64::from_be_bytes(key.hash()[..8].try_into().expect("a hash has 32 bytes"))
}

impl Index {
    /// Opens the store's index; none when there is none.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged: to be gone on without.
    pub fn open(dir: &Dir) -> Result<Option<Self>> {
        if dir.stat(FILE)?.is_none() {
            return Ok(None);
        }
        Self::read(dir.open_file(FILE)?).map(Some)
    }

    /// Reads all but the pages of `file`.
    pub(crate) fn read(file: File) -> Result<Self> {
        let unreadable = |_| damaged("it cannot be read");
        let size = file.metadata().map_err(unreadable)?.len();
        let mut trailer = [0; TRAILER];
        let at = size.checked_sub(TRAILER as u64).ok_or_else(|| damaged("it is cut off"))?;
        file.read_exact_at(&mut trailer, at).map_err(unreadable)?;
        let count = u64::from_le_bytes(trailer[..8].try_into().expect("eight bytes"));
        if trailer[32..] != *MAGIC || count.checked_mul(PAGE as u64).is_none_or(|end| end > at) {
            return Err(damaged("its end is missing"));
        }
        let length = at - count * PAGE as u64;
        if length > MAX_TAIL {
            return Err(damaged("its tail is too large"));
        }
        let mut tail = vec![0; length as usize];
        file.read_exact_at(&mut tail, count * PAGE as u64).map_err(unreadable)?;
        if Sha256::digest(&tail)[..24] != trailer[8..32] {
            return Err(damaged("its tail is not what was written"));
        }
        let mut r = Reader::new(&tail, "the index");
        let entries = r.uint()?;
        let mut packs = Vec::new();
        for _ in 0..r.uint()? {
            let name = PackName(r.take(16)?.try_into().expect("16 bytes were taken"));
            packs.push((name, r.uint()?));
        }
        let mut fences = Vec::new();
        for _ in 0..count {
            fences.push(u64::from_le_bytes(r.take(8)?.try_into().expect("eight bytes were taken")));
        }
        r.end()?;
        let pages = fences.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { file, packs, fences, pages, entries })
    }

    /// The packs that it covers; a place's `pack` is a position in this list.
    pub fn packs(&self) -> &[Covered] {
        &self.packs
    }

    /// How many entries it has.
    pub fn len(&self) -> u64 {
        self.entries
    }

    /// Calls `found` for each place of `key` until it returns true.
    pub fn find(&self, key: &Key, mut found: impl FnMut(Place) -> bool) -> Result<()> {
        let first = fence(key);
        // The first page whose successor begins above the key; equal hashes may span pages.
        let mut number = self.fences.partition_point(|&f| f < first).saturating_sub(1);
        while number < self.fences.len() && self.fences[number] <= first {
            let page = self.page(number)?;
            let count = count_of(page);
            let mut low = 0;
            let mut high = count;
            while low < high {
                let middle = (low + high) / 2;
                let entry = entry_of(page, middle);
                if (&entry[..32], entry[32]) < (&key.hash()[..], key.kind() as u8) {
                    low = middle + 1;
                } else {
                    high = middle;
                }
            }
            for entry in (low..count).map(|i| entry_of(page, i)) {
                let (k, place) = self.decode(entry)?;
                if k != *key || found(place) {
                    return Ok(());
                }
            }
            number += 1;
        }
        Ok(())
    }

    /// Calls `each` for all entries in order.
    pub fn each(&self, mut each: impl FnMut(Key, Place) -> Result<()>) -> Result<()> {
        for number in 0..self.fences.len() {
            // Not kept: a pass over all would fill the memory.
            let page = self.read_page(number)?;
            for i in 0..count_of(&page) {
                let (key, place) = self.decode(entry_of(&page, i))?;
                each(key, place)?;
            }
        }
        Ok(())
    }

    /// What an entry says, which must be true of some object in one of the packs.
    fn decode(&self, entry: &[u8]) -> Result<(Key, Place)> {
        let word = |at: usize| u32::from_le_bytes(entry[at..at + 4].try_into().expect("four bytes"));
        let kind =
            ObjectKind::from_number(entry[32]).ok_or_else(|| damaged("an object of an unknown kind"))?;
        let encoding = Encoding::from_number(entry[45]).ok_or_else(|| damaged("an unknown encoding"))?;
        let key = Key::from_parts(kind, entry[..32].try_into().expect("32 bytes"));
        let frame = Frame { offset: word(37), stored: word(41), raw: word(46), encoding };
        let place = Place { pack: word(33), frame, start: word(50), len: word(54) };
        let pack = self.packs.get(place.pack as usize);
        let inside = u64::from(place.start) + u64::from(place.len) <= u64::from(frame.raw);
        if !inside || !pack.is_some_and(|(_, size)| frame.can_be(*size)) {
            return Err(damaged("a place that cannot be"));
        }
        Ok((key, place))
    }

    fn page(&self, number: usize) -> Result<&[u8]> {
        let cell = &self.pages[number];
        if let Some(page) = cell.get() {
            return Ok(page);
        }
        let page = self.read_page(number)?;
        Ok(cell.get_or_init(|| page))
    }

    fn read_page(&self, number: usize) -> Result<Box<[u8]>> {
        let mut page = vec![0; PAGE].into_boxed_slice();
        self.file
            .read_exact_at(&mut page, (number * PAGE) as u64)
            .map_err(|_| damaged("a page cannot be read"))?;
        let (body, sum) = page.split_at(PAGE - SUM);
        if Sha256::digest(body)[..SUM] != *sum || count_of(&page) > FULL {
            return Err(damaged("a page is not what was written"));
        }
        Ok(page)
    }
}

fn count_of(page: &[u8]) -> usize {
    usize::from(u16::from_le_bytes([page[0], page[1]]))
}

fn entry_of(page: &[u8], i: usize) -> &[u8] {
    &page[2 + i * ENTRY..2 + (i + 1) * ENTRY]
}

/// Writes one entry of a page.
pub(crate) fn put(out: &mut Vec<u8>, key: &Key, place: &Place) {
    out.extend_from_slice(key.hash());
    out.push(key.kind() as u8);
    out.extend_from_slice(&place.pack.to_le_bytes());
    out.extend_from_slice(&place.frame.offset.to_le_bytes());
    out.extend_from_slice(&place.frame.stored.to_le_bytes());
    out.push(place.frame.encoding as u8);
    out.extend_from_slice(&place.frame.raw.to_le_bytes());
    out.extend_from_slice(&place.start.to_le_bytes());
    out.extend_from_slice(&place.len.to_le_bytes());
}

/// Writes a new index: entries come in order, `finish` puts it in place.
pub struct Draft<'a> {
    disk: &'a Disk,
    dir: &'a Dir,
    file: Handle,
    written: u64,
    buffer: Vec<u8>,
    page: Vec<u8>,
    fences: Vec<u64>,
    entries: u64,
}

const ASIDE: &[u8] = b"index.new";

impl<'a> Draft<'a> {
    /// Begins beside the index that is there.
    pub fn begin(disk: &'a Disk, dir: &'a Dir) -> Result<Self> {
        if dir.stat(ASIDE)?.is_some() {
            disk.unlink(dir, ASIDE)?;
        }
        let file = disk.create_file(dir, ASIDE, 0o600)?;
        Ok(Self {
            disk,
            dir,
            file,
            written: 0,
            buffer: Vec::new(),
            page: vec![0; 2],
            fences: Vec::new(),
            entries: 0,
        })
    }

    /// Adds one entry, which is not before the last one.
    pub fn add(&mut self, key: &Key, place: &Place) -> Result<()> {
        if self.page.len() == 2 {
            self.fences.push(fence(key));
        }
        put(&mut self.page, key, place);
        self.entries += 1;
        if self.page.len() == 2 + FULL * ENTRY {
            self.end_page()?;
        }
        Ok(())
    }

    fn end_page(&mut self) -> Result<()> {
        let count = ((self.page.len() - 2) / ENTRY) as u16;
        self.page[..2].copy_from_slice(&count.to_le_bytes());
        self.page.resize(PAGE - SUM, 0);
        let sum = Sha256::digest(&self.page);
        self.page.extend_from_slice(&sum[..SUM]);
        self.buffer.extend_from_slice(&self.page);
        self.page.truncate(2);
        if self.buffer.len() >= 1 << 20 { self.write_out() } else { Ok(()) }
    }

    fn write_out(&mut self) -> Result<()> {
        self.disk.write_all(&self.file, self.written, &self.buffer)?;
        self.written += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }

    /// Ends it and puts it in the place of the old one. `packs` is what the places'
    /// numbers stand for. Nothing is synced: what a power cut leaves is noticed.
    pub fn finish(mut self, packs: &[Covered]) -> Result<()> {
        if self.page.len() > 2 {
            self.end_page()?;
        }
        let mut tail = Vec::with_capacity(32 + packs.len() * 24 + self.fences.len() * 8);
        tail.put_uint(self.entries);
        tail.put_uint(packs.len() as u64);
        for (name, size) in packs {
            tail.extend_from_slice(&name.0);
            tail.put_uint(*size);
        }
        self.fences.iter().for_each(|fence| tail.extend_from_slice(&fence.to_le_bytes()));
        let sum = Sha256::digest(&tail);
        self.buffer.extend_from_slice(&tail);
        self.buffer.extend_from_slice(&(self.fences.len() as u64).to_le_bytes());
        self.buffer.extend_from_slice(&sum[..24]);
        self.buffer.extend_from_slice(MAGIC);
        self.write_out()?;
        self.disk.rename(self.dir, ASIDE, self.dir, FILE)
    }
}
