//! Opaque content: the bytes that a component stored, as a list of pieces.
//!
//! A stream is cut where its own bytes say so, so that an insertion early in a dump
//! leaves the later pieces as they were, and they are stored once. Boundaries depend on
//! the content and on this file's constants alone; those are part of the format.
//! A piece is a `Blob` of at most `BLOCK` bytes.
//!
//! Invariant: the lengths of the pieces add up to the size; `decode` refuses else.

use super::{BLOCK, Source, Writer};
use crate::error::{Error, Result};
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};
use std::sync::Arc;

/// The first byte of the stored form.
const VERSION: u8 = 1;
/// Shortest piece but the last, in bytes.
const MIN: usize = 8 * 1024;
/// Up to here a cut is made unlikely, beyond it likely, in bytes: pieces gather around it.
const NORMAL: usize = 32 * 1024;
/// Bits that must be zero for a cut before `NORMAL`: one place in 2^17.
const RARE: u64 = 0x1ffff << 40;
/// Bits that must be zero for a cut after it: one place in 2^13.
const FREQUENT: u64 = 0x1fff << 40;
/// Bytes gathered before pieces are cut and handed on.
const BATCH: usize = 1024 * 1024;

/// A number for each value of a byte, spread over all bits.
const GEAR: [u64; 256] = gear();

const fn gear() -> [u64; 256] {
    let mut table = [0; 256];
    let mut state = 0u64;
    let mut i = 0;
    while i < 256 {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        table[i] = z ^ (z >> 31);
        i += 1;
    }
    table
}

/// Length of the first piece of `bytes`; all of it when no cut is found.
fn cut(bytes: &[u8]) -> usize {
    let mut hash = 0u64;
    for (i, &byte) in bytes.iter().enumerate().take(BLOCK).skip(MIN) {
        hash = (hash << 1).wrapping_add(GEAR[usize::from(byte)]);
        let mask = if i < NORMAL { RARE } else { FREQUENT };
        if hash & mask == 0 {
            return i + 1;
        }
    }
    bytes.len().min(BLOCK)
}

/// One piece: its `Blob` and its length in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Its bytes.
    pub key: Key,
    /// How many they are.
    pub len: u64,
}

/// The stored form of opaque content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Opaque {
    /// Length in bytes.
    pub size: u64,
    /// What it consists of, in order.
    pub pieces: Vec<Piece>,
}

impl Opaque {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.pieces.len() * (Key::LEN + 3));
        out.put_u8(VERSION);
        out.put_uint(self.size);
        out.put_uint(self.pieces.len() as u64);
        for piece in &self.pieces {
            out.put_uint(piece.len);
            out.put_key(&piece.key);
        }
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not that.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes, "a component's content");
        if r.u8()? != VERSION {
            return Err(r.damaged("an unknown version"));
        }
        let (size, count) = (r.uint()?, r.uint()?);
        let (mut pieces, mut sum) = (Vec::new(), 0u64);
        for _ in 0..count {
            let (len, key) = (r.uint()?, r.key()?);
            if key.kind() != ObjectKind::Blob || len == 0 || len > BLOCK as u64 {
                return Err(r.damaged("a piece that is no piece"));
            }
            sum += len;
            pieces.push(Piece { key, len });
        }
        if sum != size {
            return Err(r.damaged("pieces that do not add up to it"));
        }
        r.end()?;
        Ok(Self { size, pieces })
    }

    /// The object `key`, which is of kind `Opaque`.
    ///
    /// # Errors
    /// `NotFound` or `Corrupt`.
    pub fn read(source: &dyn Source, key: &Key) -> Result<Self> {
        Self::decode(&source.read(key)?)
    }
}

/// Content being stored. Dropped without `finish`, nothing refers to what was written.
pub struct Draft {
    writer: Arc<Writer>,
    pending: Vec<u8>,
    content: Opaque,
    /// The first failure: after it nothing is written any more.
    failed: Option<Error>,
}

impl Draft {
    /// Empty content that will go into `writer`.
    pub fn new(writer: Arc<Writer>) -> Self {
        Self { writer, pending: Vec::new(), content: Opaque::default(), failed: None }
    }

    /// Appends `bytes`.
    ///
    /// # Errors
    /// Whatever kept them from being written.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= BATCH { self.store(BLOCK) } else { Ok(()) }
    }

    /// Stores what is left and the list itself.
    ///
    /// # Errors
    /// Whatever kept them from being written.
    pub fn finish(mut self) -> Result<Key> {
        self.store(1)?;
        let mut lane = self.writer.lane();
        let key = lane.put(ObjectKind::Opaque, &self.content.encode())?;
        lane.flush()?;
        Ok(key)
    }

    /// Stores pieces as long as at least `enough` bytes are there to cut one from.
    fn store(&mut self, enough: usize) -> Result<()> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.try_store(enough).inspect_err(|error| self.failed = Some(error.clone()))
    }

    fn try_store(&mut self, enough: usize) -> Result<()> {
        let mut lane = self.writer.lane();
        let mut rest = self.pending.as_slice();
        while rest.len() >= enough {
            let (piece, after) = rest.split_at(cut(rest));
            let key = lane.put(ObjectKind::Blob, piece)?;
            self.content.pieces.push(Piece { key, len: piece.len() as u64 });
            self.content.size += piece.len() as u64;
            rest = after;
        }
        lane.flush()?;
        self.pending = rest.to_vec();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes without a pattern, the same at each call.
    fn noise(len: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as u8
        };
        (0..len).map(|_| next()).collect()
    }

    fn split(mut bytes: &[u8]) -> Vec<&[u8]> {
        let mut pieces = Vec::new();
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(cut(bytes));
            pieces.push(piece);
            bytes = rest;
        }
        pieces
    }

    #[test]
    fn pieces_keep_their_limits_whatever_the_content() {
        for content in [noise(2_000_000), vec![0; 1_000_000], b"abc".repeat(300_000)] {
            let pieces = split(&content);
            assert_eq!(pieces.concat(), content);
            let (last, others) = pieces.split_last().unwrap();
            assert!(others.iter().all(|p| (MIN..=BLOCK).contains(&p.len())), "{:?}", others.len());
            assert!(last.len() <= BLOCK);
        }
        let mean = 8_000_000 / split(&noise(8_000_000)).len();
        assert!((24_000..44_000).contains(&mean), "{mean}");
    }

    #[test]
    fn an_insertion_leaves_later_pieces_as_they_were() {
        let before = noise(2_000_000);
        let mut after = before.clone();
        after.splice(1000..1000, *b"inserted");
        let (old, new) = (split(&before), split(&after));
        let kept = new.iter().filter(|piece| old.contains(piece)).count();
        assert!(kept + 4 >= old.len(), "{kept} of {}", old.len());
    }

    /// The boundaries are part of the format: this test must never need a change.
    #[test]
    fn the_boundaries_are_frozen() {
        let lengths: Vec<usize> = split(&noise(300_000)).iter().map(|p| p.len()).collect();
        assert_eq!(lengths, FROZEN);
    }

    const FROZEN: &[usize] = &[38826, 39863, 39386, 43675, 40093, 42445, 26441, 29271];

    #[test]
    fn the_stored_form_comes_back_and_hostile_ones_are_refused() {
        let piece = |len| Piece { key: Key::of(ObjectKind::Blob, b"x"), len };
        let good = Opaque { size: 30, pieces: vec![piece(10), piece(20)] };
        assert_eq!(Opaque::decode(&good.encode()).unwrap(), good);
        assert_eq!(Opaque::decode(&Opaque::default().encode()).unwrap(), Opaque::default());
        let tree = Piece { key: Key::of(ObjectKind::Tree, b"x"), len: 30 };
        for bad in [
            Opaque { size: 31, ..good.clone() },
            Opaque { size: 0, pieces: vec![piece(0)] },
            Opaque { size: BLOCK as u64 + 1, pieces: vec![piece(BLOCK as u64 + 1)] },
            Opaque { size: 30, pieces: vec![tree] },
        ] {
            assert!(Opaque::decode(&bad.encode()).is_err(), "{bad:?}");
        }
        for end in 0..good.encode().len() {
            assert!(Opaque::decode(&good.encode()[..end]).is_err(), "{end}");
        }
    }
}
