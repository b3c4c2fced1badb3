//! The cache's file, read.
//!
//! ```text
//! header  magic [16], checksum u32 of the rest of the header, base generation u32,
//!         generation u32, base root [33], root [33], table offset u64, table count u64
//! records one for a directory
//! table   device u64, inode u64, offset u64, length u64; sorted by device and inode
//! ```
//!
//! `root` is the capture that the file was written by. `base` is a capture whose
//! objects were in the store then: what was kept from it has a generation up to the
//! base's. So whoever knows that one of the two is stored knows for which records
//! nothing needs to be looked up. A key of zeros stands for none.

use super::{DirRecord, Fields, file_name};
use crate::disk::Dir;
use crate::object::Key;
use std::path::Path;

pub(super) const MAGIC: &[u8; 16] = b"snapback stats 2";
pub(super) const HEADER: usize = 16 + 4 + 4 + 4 + 33 + 33 + 8 + 8;
pub(super) const ROW: usize = 32;

/// Larger than that of any tree: some hundred bytes for each of twenty million entries.
const MOST_BYTES: u64 = 4 << 30;

/// A cache as it was read, or an empty one.
#[derive(Default)]
pub struct StatCache {
    bytes: Vec<u8>,
    table: usize,
    rows: usize,
    pub(super) base_generation: u32,
    pub(super) generation: u32,
    pub(super) base: Option<Key>,
    pub(super) root: Option<Key>,
}

/// For which records it is known that what they name is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Those of up to this generation.
    UpTo(u32),
    /// None.
    Nothing,
}

impl Trust {
    /// Whether a record of `generation` is among them.
    pub fn covers(self, generation: u32) -> bool {
        matches!(self, Self::UpTo(limit) if generation <= limit)
    }
}

impl StatCache {
    /// Bytes before the first record.
    #[cfg(any(test, feature = "fuzz"))]
    pub(crate) const HEADER: usize = HEADER;

    /// The cache of `target` and `setting` in the store at `store`; `None` when there
    /// is none that is whole.
    pub fn load(store: &Path, target: &str, setting: &str) -> Option<Self> {
        let dir = Dir::open(&store.join("cache")).ok()?;
        Self::read(dir.read(file_name(target, setting).as_bytes(), MOST_BYTES).ok()?)
    }

    /// The cache in `bytes`, if its header is whole.
    pub(crate) fn read(bytes: Vec<u8>) -> Option<Self> {
        let mut header = Fields(bytes.get(..HEADER)?);
        if header.take(16)? != MAGIC || header.u32()? != crc32fast::hash(&bytes[20..HEADER]) {
            return None;
        }
        let (base_generation, generation) = (header.u32()?, header.u32()?);
        let (base, root) = (Key::from_bytes(header.take(33)?), Key::from_bytes(header.take(33)?));
        let (table, rows) = (usize::try_from(header.u64()?).ok()?, usize::try_from(header.u64()?).ok()?);
        bytes.get(table..)?.get(..rows.checked_mul(ROW)?)?;
        Some(Self { bytes, table, rows, base_generation, generation, base, root })
    }

    /// How many directories it knows.
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Whether it was written by the capture that made the root `key`.
    pub(in crate::tree) fn is_of(&self, key: &Key) -> bool {
        self.root.as_ref() == Some(key)
    }

    /// The record of the directory with this device and inode.
    pub fn dir(&self, dev: u64, ino: u64) -> Option<DirRecord<'_>> {
        let (mut low, mut high) = (0, self.rows);
        while low < high {
            let middle = low + (high - low) / 2;
            let mut row = Fields(&self.bytes[self.table + middle * ROW..]);
            let id = (row.u64()?, row.u64()?);
            match id.cmp(&(dev, ino)) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => {
                    let (start, len) = (usize::try_from(row.u64()?).ok()?, usize::try_from(row.u64()?).ok()?);
                    return DirRecord::read(self.bytes.get(start..)?.get(..len)?, id);
                }
            }
        }
        None
    }

    /// What need not be looked up if all that `stored` leads to is in the store.
    pub(crate) fn trust(&self, stored: Option<&Key>) -> Trust {
        match stored {
            Some(key) if self.root.as_ref() == Some(key) => Trust::UpTo(self.generation),
            Some(key) if self.base.as_ref() == Some(key) => Trust::UpTo(self.base_generation),
            _ => Trust::Nothing,
        }
    }
}
