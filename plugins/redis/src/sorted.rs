//! Entries sorted by their keys, in the bytes in which they are stored: each is copied once on its
//! way in, and written out as it lies there.

use crate::rdb::{EXPIRES_MS, Entry};
use crate::text::string;
use std::cmp::Ordering;

/// Bytes of entries that lie together.
const BLOCK: usize = 1 << 20;
/// An entry that is longer lies alone, so that little of a block is left empty.
const LONG: usize = 64 * 1024;
/// Entries that are put in order while others are still on their way.
const RUN: usize = 4096;

/// The entries.
#[derive(Default)]
pub struct Sorted {
    blocks: Vec<Vec<u8>>,
    /// The block that the next short entry goes into.
    open: usize,
    /// Those that came, each run but the last in order. None of them ever grows beyond what it was
    /// made for: a list of all that grew would need twice its room.
    runs: Vec<Vec<Slot>>,
    /// All of them in order, once they are.
    slots: Vec<Slot>,
}

/// Where an entry lies.
struct Slot {
    /// The first bytes of its key, as numbers that are ordered as they are.
    first: [u64; 2],
    block: u32,
    start: u32,
    value: u32,
    end: u32,
}

impl Sorted {
    /// Adds an entry, in no order.
    pub fn push(&mut self, entry: &Entry) {
        let most = entry.key.len() + entry.value.len() + 32;
        let at = match self.blocks.get(self.open) {
            Some(block) if most <= LONG && block.capacity() - block.len() >= most => self.open,
            _ => {
                self.blocks.push(Vec::with_capacity(if most <= LONG { BLOCK } else { most }));
                self.blocks.len() - 1
            }
        };
        if most <= LONG {
            self.open = at;
        }
        let block = &mut self.blocks[at];
        let start = block.len() as u32;
        if let Some(at) = entry.expires {
            block.push(EXPIRES_MS);
            block.extend_from_slice(&at.to_le_bytes());
        }
        block.push(entry.kind);
        string(block, entry.key);
        let value = block.len() as u32;
        block.extend_from_slice(entry.value);
        let end = block.len() as u32;
        let slot = Slot { first: first(entry.key), block: at as u32, start, value, end };
        match self.runs.last_mut().filter(|run| run.len() < RUN) {
            Some(run) => run.push(slot),
            None => {
                let blocks = &self.blocks;
                if let Some(run) = self.runs.last_mut() {
                    run.sort_unstable_by(|a, b| a.compare(b, blocks));
                }
                let mut run = Vec::with_capacity(RUN);
                run.push(slot);
                self.runs.push(run);
            }
        }
    }

    /// Puts them in order: no more are added.
    pub fn sort(&mut self) {
        self.slots.reserve_exact(self.runs.iter().map(Vec::len).sum());
        self.slots.extend(std::mem::take(&mut self.runs).into_iter().flatten());
        let blocks = &self.blocks;
        // This one makes use of the runs that are in order.
        self.slots.sort_by(|a, b| a.compare(b, blocks));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// The one at `place`.
    pub fn entry(&self, place: usize) -> Entry<'_> {
        let slot = &self.slots[place];
        let stored = slot.stored(&self.blocks);
        let (expires, kind) = match stored.split_first_chunk::<9>() {
            Some(([EXPIRES_MS, at @ ..], rest)) => (Some(u64::from_le_bytes(*at)), rest[0]),
            _ => (None, stored[0]),
        };
        Entry {
            key: slot.key(&self.blocks),
            expires,
            kind,
            value: &stored[(slot.value - slot.start) as usize..],
        }
    }

    /// Each as it is stored.
    pub fn stored(&self) -> impl Iterator<Item = &[u8]> {
        self.slots.iter().map(|slot| slot.stored(&self.blocks))
    }
}

impl Slot {
    fn stored<'a>(&self, blocks: &'a [Vec<u8>]) -> &'a [u8] {
        &blocks[self.block as usize][self.start as usize..self.end as usize]
    }

    fn key<'a>(&self, blocks: &'a [Vec<u8>]) -> &'a [u8] {
        let head = &self.stored(blocks)[..(self.value - self.start) as usize];
        // Behind the time of expiry and the kind is its length, which has one byte, two or nine.
        let at = if head[0] == EXPIRES_MS { 10 } else { 1 };
        let length = match head[at] {
            0..0x40 => 1,
            0x40..0x80 => 2,
            _ => 9,
        };
        &head[at + length..]
    }

    fn compare(&self, other: &Self, blocks: &[Vec<u8>]) -> Ordering {
        self.first.cmp(&other.first).then_with(|| by_words(self.key(blocks), other.key(blocks)))
    }
}

/// The order of `a` and `b`, eight bytes at once.
fn by_words(mut a: &[u8], mut b: &[u8]) -> Ordering {
    while let (Some((one, after)), Some((other, behind))) = (a.split_first_chunk(), b.split_first_chunk()) {
        if one != other {
            return u64::from_be_bytes(*one).cmp(&u64::from_be_bytes(*other));
        }
        (a, b) = (after, behind);
    }
    a.cmp(b)
}

/// The first bytes of a key.
fn first(key: &[u8]) -> [u64; 2] {
    let mut bytes = [0; 16];
    let some = key.len().min(bytes.len());
    bytes[..some].copy_from_slice(&key[..some]);
    let bytes = u128::from_be_bytes(bytes);
    [(bytes >> 64) as u64, bytes as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_the_order_of_their_keys() {
        let keys = (0..3 * RUN + 5).map(|n| format!("key:{}", n * 7919 % 30_011).into_bytes());
        let alike = |end: &str| format!("{}{end}", "alike:".repeat(40)).into_bytes();
        let alike = ["", "a", "aaaaaaab", "aaaaaaabb", "b"].map(alike);
        let short = [&b""[..], b"\0", b"k", b"k\0", b"key", b"\xff"].map(<[u8]>::to_vec);
        let keys: Vec<Vec<u8>> = keys.chain(short).chain(alike).collect();
        let long = vec![7; LONG + 1];
        let mut sorted = Sorted::default();
        for (at, key) in keys.iter().enumerate() {
            let value = if at % 5000 == 0 { &long[..] } else { b"v" };
            let expires = (at % 2 == 0).then_some(at as u64);
            sorted.push(&Entry { key, expires, kind: (at % 5) as u8, value });
        }
        sorted.sort();
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|at| &keys[*at]);
        assert_eq!(sorted.len(), order.len());
        for (place, at) in order.into_iter().enumerate() {
            let entry = sorted.entry(place);
            assert_eq!((entry.key, entry.expires), (&keys[at][..], (at % 2 == 0).then_some(at as u64)));
            assert_eq!((usize::from(entry.kind), entry.value.len() > 1), (at % 5, at % 5000 == 0));
        }
        let few = sorted.blocks.iter().map(Vec::capacity).sum::<usize>();
        assert!(few < 2 * BLOCK + 8 * long.len(), "{few}");
    }
}
