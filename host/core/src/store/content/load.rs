//! Reading content back, piece by piece.

use super::list::{expect, span, top_level};
use super::zeros;
use crate::error::{Error, Result};
use crate::object::{Key, ObjectKind};
use crate::store::Source;
use rayon::prelude::*;
use std::ops::Range;

/// A piece of content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Piece<'a> {
    /// These bytes.
    Bytes(&'a [u8]),
    /// So many zeros.
    Zeros(u64),
}

impl Piece<'_> {
    /// Bytes of content that it is.
    pub fn length(&self) -> u64 {
        match self {
            Self::Bytes(bytes) => bytes.len() as u64,
            Self::Zeros(length) => *length,
        }
    }
}

/// A block of content, or a run of blocks that are known to be zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Leaf {
    /// Where it begins.
    pub at: u64,
    /// How many bytes it is.
    pub length: u64,
    /// The block; none for zeros.
    pub key: Option<Key>,
}

/// What is done with each piece: where it begins, the piece.
pub type EachPiece<'a> = &'a mut dyn FnMut(u64, Piece<'_>) -> Result<()>;

/// Blocks that one thread is handed at once, and how often all are between two moments
/// at which they wait for the last.
const STRETCH: usize = 16;
const ROUND: usize = 16;

/// Hands the content `key` of `size` bytes to `each`, in order and without gaps. A
/// block that is wholly zero comes as `Zeros`, whether it was a hole or written so.
///
/// # Errors
/// `NotFound` and `Corrupt` when it is not whole; what `each` returns.
pub fn load(source: &(impl Source + ?Sized), key: &Key, size: u64, each: EachPiece<'_>) -> Result<()> {
    load_range(source, key, size, 0..size, each)
}

/// Like [`load`] for the part `range` of the content. Blocks that it only touches are
/// read and checked whole.
///
/// # Errors
/// As [`load`] has them.
pub fn load_range(
    source: &(impl Source + ?Sized),
    key: &Key,
    size: u64,
    range: Range<u64>,
    each: EachPiece<'_>,
) -> Result<()> {
    let wanted = range.start.min(size)..range.end.min(size);
    leaves(source, key, size, &wanted, &mut |leaf| view_part(source, &leaf, &wanted, each))
}

/// Hands stretches of the content `key` of `size` bytes to `act`: the blocks of each are
/// in order, all are handed over, but from many threads at once when there are many.
/// What they hold is not read.
///
/// # Errors
/// `NotFound` and `Corrupt` when a list is not whole; the first that `act` returns.
pub fn spread(
    source: &(impl Source + ?Sized),
    key: &Key,
    size: u64,
    act: &(dyn Fn(&[Leaf]) -> Result<()> + Sync),
) -> Result<()> {
    let most = STRETCH * ROUND * rayon::current_num_threads();
    let mut round = Vec::new();
    let flush = |round: &mut Vec<Leaf>| {
        match round.len() {
            ..=STRETCH => act(round)?,
            _ => round.par_chunks(STRETCH).with_max_len(1).try_for_each(act)?,
        }
        round.clear();
        Ok(())
    };
    leaves(source, key, size, &(0..size), &mut |leaf| {
        round.push(leaf);
        if round.len() < most { Ok(()) } else { flush(&mut round) }
    })?;
    if round.is_empty() { Ok(()) } else { flush(&mut round) }
}

/// Whether the first block of the content `key` of `size` bytes lies where files can share it.
pub fn begins_shared(source: &(impl Source + ?Sized), key: &Key, size: u64) -> bool {
    let mut shared = false;
    let found = leaves(source, key, size, &(0..1), &mut |leaf| {
        shared |= leaf.key.is_some_and(|key| source.extent(&key).is_some());
        Ok(())
    });
    found.is_ok() && shared
}

/// Shows what a leaf stands for, checked.
///
/// # Errors
/// `NotFound` and `Corrupt` when it is not whole; what `each` returns.
pub fn view(source: &(impl Source + ?Sized), leaf: &Leaf, each: EachPiece<'_>) -> Result<()> {
    view_part(source, leaf, &(leaf.at..leaf.at + leaf.length), each)
}

/// Shows what of a leaf lies in `wanted`.
fn view_part(
    source: &(impl Source + ?Sized),
    leaf: &Leaf,
    wanted: &Range<u64>,
    each: EachPiece<'_>,
) -> Result<()> {
    let (from, to) = (leaf.at.max(wanted.start), (leaf.at + leaf.length).min(wanted.end));
    let Some(key) = &leaf.key else { return each(from, Piece::Zeros(to - from)) };
    source.view(key, &mut |bytes| {
        if bytes.len() as u64 != leaf.length {
            let (count, length) = (bytes.len(), leaf.length);
            return Err(Error::corrupt(format!("{key} has {count} bytes instead of {length}")));
        }
        match &bytes[(from - leaf.at) as usize..(to - leaf.at) as usize] {
            [] => Ok(()),
            bytes if zeros::is_zero(bytes) => each(from, Piece::Zeros(to - from)),
            bytes => each(from, Piece::Bytes(bytes)),
        }
    })
}

/// Calls `each` for the leaves of the content `key` of `size` bytes that lie in `wanted`
/// or touch it, in order. Reads lists only.
fn leaves(
    source: &(impl Source + ?Sized),
    key: &Key,
    size: u64,
    wanted: &Range<u64>,
    each: &mut dyn FnMut(Leaf) -> Result<()>,
) -> Result<()> {
    let level = top_level(size);
    let kind = if level == 0 { ObjectKind::Blob } else { ObjectKind::List };
    if key.kind() != kind {
        return Err(Error::corrupt(format!("{key} cannot be content of {size} bytes")));
    }
    walk(source, key, level, 0..size, wanted, each)
}

/// Goes through the part of the content that `part` is; `key` is its blob or list.
fn walk(
    source: &(impl Source + ?Sized),
    key: &Key,
    level: u8,
    part: Range<u64>,
    wanted: &Range<u64>,
    each: &mut dyn FnMut(Leaf) -> Result<()>,
) -> Result<()> {
    let length = part.end - part.start;
    // Empty content is still an object that must be there.
    if part.start.max(wanted.start) >= part.end.min(wanted.end) && length > 0 {
        return Ok(());
    }
    if length == span(level + 1) && zeros::is(key, level) {
        return each(Leaf { at: part.start, length, key: None });
    }
    if level == 0 {
        return each(Leaf { at: part.start, length, key: Some(*key) });
    }
    let mut list = None;
    source.view(key, &mut |bytes| {
        list = Some(expect(bytes, level, length)?);
        Ok(())
    })?;
    let Some(list) = list else { return Err(Error::corrupt(format!("{key} was not shown"))) };
    list.parts().try_for_each(|(at, length, key)| {
        let start = part.start + at;
        walk(source, &key, level - 1, start..start + length, wanted, each)
    })
}

/// The content `key` of `size` bytes as one buffer, when it has at most `limit` bytes.
///
/// # Errors
/// As [`load`] has them; `Invalid` when it is longer than `limit`.
pub fn read_all(source: &(impl Source + ?Sized), key: &Key, size: u64, limit: u64) -> Result<Vec<u8>> {
    if size > limit {
        let size = crate::disk::size_text(size);
        return Err(Error::new(
            crate::error::Kind::Invalid,
            format!("content of {size} is too large for this"),
        ));
    }
    read_begin(source, key, size, size)
}

/// The first `length` bytes of the content `key` of `size` bytes; all of it, when it is shorter.
///
/// # Errors
/// As [`load`] has them.
pub fn read_begin(source: &(impl Source + ?Sized), key: &Key, size: u64, length: u64) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    load_range(source, key, size, 0..length, &mut |_, piece| {
        match piece {
            Piece::Bytes(bytes) => out.extend_from_slice(bytes),
            Piece::Zeros(length) => out.resize(out.len() + length as usize, 0),
        }
        Ok(())
    })?;
    Ok(out)
}

/// Cuts bytes that begin at a multiple of `grain` into runs of data and runs of whole
/// zero grains: what becomes holes again in a sparse file.
pub fn pieces(bytes: &[u8], grain: usize) -> impl Iterator<Item = (u64, Piece<'_>)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let is_hole = |grain_: &&[u8]| grain_.len() == grain && zeros::is_zero(grain_);
        let hole = rest.chunks(grain).next().is_some_and(|first| is_hole(&first));
        let run: usize = rest.chunks(grain).take_while(|g| is_hole(g) == hole).map(<[u8]>::len).sum();
        let piece = if hole { Piece::Zeros(run as u64) } else { Piece::Bytes(&rest[..run]) };
        at += run;
        Some(((at - run) as u64, piece))
    })
}
