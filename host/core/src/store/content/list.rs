//! One list: its stored form.

use crate::error::{Error, Result};
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};
use crate::store::BLOCK;

/// Children of a full list.
pub const FAN_OUT: usize = 128;
/// Enough for any length of 64 bits.
pub const MAX_LEVEL: u8 = 7;
const VERSION: u8 = 1;

/// A list: what stands for `length` bytes of content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List {
    /// 1 over blocks, one more over lists.
    pub level: u8,
    /// Bytes of content beneath it.
    pub length: u64,
    /// The hashes of its children: of blobs at level 1, else of lists one level down.
    pub children: Vec<[u8; 32]>,
}

/// Bytes beneath one full child of a list of `level`, which is at least 1.
pub fn span(level: u8) -> u64 {
    (1..level).fold(BLOCK as u64, |bytes, _| bytes.saturating_mul(FAN_OUT as u64))
}

/// The level of the list that content of `length` bytes has at its top; 0 for a blob.
pub fn top_level(length: u64) -> u8 {
    let mut level = 0;
    let mut reach = BLOCK as u64;
    while length > reach {
        level += 1;
        reach = reach.saturating_mul(FAN_OUT as u64);
    }
    level
}

impl List {
    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        encode(self.level, self.length, &self.children)
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not a list's one stored form.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes, "a list of blocks");
        if r.u8()? != VERSION {
            return Err(r.damaged("an unknown version"));
        }
        let level = r.u8()?;
        let length = r.uint()?;
        if level == 0 || level > MAX_LEVEL || length == 0 {
            return Err(r.damaged("a level or a length that cannot be"));
        }
        let count = length.div_ceil(span(level));
        if count > FAN_OUT as u64 {
            return Err(r.damaged("more children than a list has"));
        }
        let mut children = Vec::with_capacity(count as usize);
        for _ in 0..count {
            children.push(r.take(32)?.try_into().expect("32 bytes were taken"));
        }
        r.end()?;
        Ok(Self { level, length, children })
    }

    /// The kind of its children.
    pub fn child_kind(&self) -> ObjectKind {
        if self.level == 1 { ObjectKind::Blob } else { ObjectKind::List }
    }

    /// Its children: where each begins in it, how many bytes it stands for, its key.
    pub fn parts(&self) -> impl Iterator<Item = (u64, u64, Key)> + '_ {
        let (span, kind) = (span(self.level), self.child_kind());
        self.children.iter().enumerate().map(move |(i, hash)| {
            let start = i as u64 * span;
            (start, span.min(self.length - start), Key::from_parts(kind, *hash))
        })
    }
}

pub(super) fn encode(level: u8, length: u64, children: &[[u8; 32]]) -> Vec<u8> {
    let mut out = Vec::with_capacity(12 + children.len() * 32);
    out.put_u8(VERSION);
    out.put_u8(level);
    out.put_uint(length);
    children.iter().for_each(|hash| out.extend_from_slice(hash));
    out
}

/// The keys that a stored list names, for walks that do not know its place.
///
/// # Errors
/// `Corrupt` when the bytes are not a list's.
pub fn children(bytes: &[u8]) -> Result<Vec<Key>> {
    Ok(List::decode(bytes)?.parts().map(|(_, _, key)| key).collect())
}

/// Reads a list that must have this level and length.
pub(super) fn expect(bytes: &[u8], level: u8, length: u64) -> Result<List> {
    let list = List::decode(bytes)?;
    if (list.level, list.length) != (level, length) {
        return Err(Error::corrupt("the stored form of a list of blocks is damaged: it is another part's"));
    }
    Ok(list)
}
