//! Writing the cache after a capture: whole records are taken over from the old file
//! as they are. Nothing is synced; a file cut short by a crash is no cache.

use super::file::{HEADER, MAGIC, ROW, Trust};
use super::{DirRecord, StatCache};
use crate::object::Key;

/// What a capture found, for the next one.
pub(crate) struct Update<'a> {
    old: &'a StatCache,
    generation: u32,
    base: Option<(Key, u32)>,
    kept: Vec<((u64, u64), DirRecord<'a>)>,
    new: Vec<((u64, u64), Vec<u8>)>,
}

impl<'a> Update<'a> {
    /// Begins with the old cache, for a capture after which all that `stored` leads
    /// to is in the store.
    pub fn new(old: &'a StatCache, stored: Option<&Key>) -> Self {
        let base = match (old.trust(stored), stored) {
            (Trust::UpTo(generation), Some(key)) => Some((*key, generation)),
            _ => None,
        };
        Self { old, generation: old.generation.wrapping_add(1), base, kept: Vec::new(), new: Vec::new() }
    }

    /// The generation of the records that are new.
    pub fn generation(&self) -> u32 {
        self.generation
    }

    /// The directory `id` is as it was.
    pub fn keep(&mut self, id: (u64, u64), record: DirRecord<'a>) {
        self.kept.push((id, record));
    }

    /// The directory `id` is as in `record`.
    pub fn add(&mut self, id: (u64, u64), record: Vec<u8>) {
        self.new.push((id, record));
    }

    /// The new file for a capture that came to `root`; `None` when the old one still
    /// says all of it.
    pub fn finish(self, root: &Key) -> Option<Vec<u8>> {
        if self.new.is_empty() && self.kept.len() == self.old.rows() && self.old.root.as_ref() == Some(root) {
            return None;
        }
        // Generations are few: a cache that has used them up begins anew.
        if self.generation == u32::MAX || self.generation == 0 {
            return Some(Vec::new());
        }
        let kept = self.kept.iter().map(|(id, record)| (*id, record.bytes()));
        let mut all: Vec<((u64, u64), &[u8])> =
            kept.chain(self.new.iter().map(|(id, bytes)| (*id, bytes.as_slice()))).collect();
        all.sort_unstable_by_key(|(id, _)| *id);
        // A directory that is mounted twice was met twice: one record is as good as the other.
        all.dedup_by_key(|(id, _)| *id);
        let records: usize = all.iter().map(|(_, bytes)| bytes.len()).sum();
        let mut out = Vec::with_capacity(HEADER + records + all.len() * ROW);
        out.extend_from_slice(MAGIC);
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&self.base.map_or(0, |(_, generation)| generation).to_le_bytes());
        out.extend_from_slice(&self.generation.to_le_bytes());
        out.extend_from_slice(&self.base.map_or([0; Key::LEN], |(key, _)| key.to_bytes()));
        out.extend_from_slice(&root.to_bytes());
        out.extend_from_slice(&((HEADER + records) as u64).to_le_bytes());
        out.extend_from_slice(&(all.len() as u64).to_le_bytes());
        let sum = crc32fast::hash(&out[20..]).to_le_bytes();
        out[16..20].copy_from_slice(&sum);
        let mut table = Vec::with_capacity(all.len() * ROW);
        for ((dev, ino), bytes) in &all {
            for field in [*dev, *ino, out.len() as u64, bytes.len() as u64] {
                table.extend_from_slice(&field.to_le_bytes());
            }
            out.extend_from_slice(bytes);
        }
        out.extend_from_slice(&table);
        Some(out)
    }
}
