//! Writing the cache after a capture: whole records are taken over from the old file
//! as they are. Nothing is synced; a file cut short by a crash is no cache.

use super::file::{HEADER, MAGIC, ROW, Trust};
use super::{DirRecord, StatCache};
use crate::object::Key;

/// What a capture found, for the next one. New records are put where they will be
/// written from, so that there is one copy of them.
pub(crate) struct Update<'a> {
    old: &'a StatCache,
    generation: u32,
    base: Option<(Key, u32)>,
    kept: Vec<(Id, DirRecord<'a>)>,
    /// The file so far: room for the header, then new records.
    out: Vec<u8>,
    /// Each new record: whose it is, where it begins, how long it is.
    rows: Vec<(Id, u64, u64)>,
}

/// Device and inode.
type Id = (u64, u64);

impl<'a> Update<'a> {
    /// Begins with the old cache, for a capture after which all that `stored` leads
    /// to is in the store.
    pub fn new(old: &'a StatCache, stored: Option<&Key>) -> Self {
        let base = match (old.trust(stored), stored) {
            (Trust::UpTo(generation), Some(key)) => Some((*key, generation)),
            _ => None,
        };
        let generation = old.generation.wrapping_add(1);
        Self { old, generation, base, kept: Vec::new(), out: Vec::new(), rows: Vec::new() }
    }

    /// The generation of the records that are new.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The directory `id` is as it was.
    pub fn keep(&mut self, id: Id, record: DirRecord<'a>) {
        self.kept.push((id, record));
    }

    /// The directory `id` is as in `record`.
    pub fn add(&mut self, id: Id, record: &[u8]) {
        if self.out.is_empty() {
            self.out.resize(HEADER, 0);
        }
        self.rows.push((id, self.out.len() as u64, record.len() as u64));
        self.out.extend_from_slice(record);
    }

    /// The new file for a capture that came to `root`; `None` when the old one still
    /// says all of it.
    pub fn finish(mut self, root: &Key) -> Option<Vec<u8>> {
        if self.rows.is_empty() && self.kept.len() == self.old.rows() && self.old.root.as_ref() == Some(root)
        {
            return None;
        }
        // Generations are few: a cache that has used them up begins anew.
        if self.generation == u32::MAX || self.generation == 0 {
            return Some(Vec::new());
        }
        let kept = std::mem::take(&mut self.kept);
        let records: usize = kept.iter().map(|(_, record)| record.bytes().len()).sum();
        self.out.reserve_exact(HEADER + records + (kept.len() + self.rows.len()) * ROW);
        kept.iter().for_each(|(id, record)| self.add(*id, record.bytes()));
        let Self { mut out, mut rows, .. } = self;
        out.resize(out.len().max(HEADER), 0);
        rows.sort_unstable();
        // A directory that is mounted twice was met twice: one record is as good as the other.
        rows.dedup_by_key(|(id, ..)| *id);
        let header = header(&self.base, self.generation, root, out.len() as u64, rows.len() as u64);
        out[..HEADER].copy_from_slice(&header);
        for ((dev, ino), start, len) in rows {
            for field in [dev, ino, start, len] {
                out.extend_from_slice(&field.to_le_bytes());
            }
        }
        Some(out)
    }
}

fn header(base: &Option<(Key, u32)>, generation: u32, root: &Key, table: u64, rows: u64) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEADER);
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&base.map_or(0, |(_, generation)| generation).to_le_bytes());
    out.extend_from_slice(&generation.to_le_bytes());
    out.extend_from_slice(&base.map_or([0; Key::LEN], |(key, _)| key.to_bytes()));
    out.extend_from_slice(&root.to_bytes());
    out.extend_from_slice(&table.to_le_bytes());
    out.extend_from_slice(&rows.to_le_bytes());
    let sum = crc32fast::hash(&out[20..]).to_le_bytes();
    out[16..20].copy_from_slice(&sum);
    out
}
