//! Reading content back, piece by piece.

use super::list::{expect, span, top_level};
use super::zeros;
use crate::error::{Error, Result};
use crate::object::{Key, ObjectKind};
use crate::store::Source;

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

/// What is done with each piece: where it begins, the piece.
pub type EachPiece<'a> = &'a mut dyn FnMut(u64, Piece<'_>) -> Result<()>;

/// Hands the content `key` of `size` bytes to `each`, in order and without gaps. A
/// block that is wholly zero comes as `Zeros`, whether it was a hole or written so.
///
/// # Errors
/// `NotFound` and `Corrupt` when it is not whole; what `each` returns.
pub fn load(source: &(impl Source + ?Sized), key: &Key, size: u64, each: EachPiece<'_>) -> Result<()> {
    let level = top_level(size);
    let kind = if level == 0 { ObjectKind::Blob } else { ObjectKind::List };
    if key.kind() != kind {
        return Err(Error::corrupt(format!("{key} cannot be content of {size} bytes")));
    }
    walk(source, key, level, (0, size), each)
}

fn walk(
    source: &(impl Source + ?Sized),
    key: &Key,
    level: u8,
    (start, length): (u64, u64),
    each: EachPiece<'_>,
) -> Result<()> {
    if length == span(level + 1) && *key == zeros::key(level) {
        return each(start, Piece::Zeros(length));
    }
    if level == 0 {
        return source.view(key, &mut |bytes| match bytes.len() as u64 == length {
            true if length > 0 && zeros::is_zero(bytes) => each(start, Piece::Zeros(length)),
            true if length > 0 => each(start, Piece::Bytes(bytes)),
            true => Ok(()),
            false => Err(Error::corrupt(format!("{key} has {} bytes instead of {length}", bytes.len()))),
        });
    }
    let mut list = None;
    source.view(key, &mut |bytes| {
        list = Some(expect(bytes, level, length)?);
        Ok(())
    })?;
    let Some(list) = list else { return Err(Error::corrupt(format!("{key} was not shown"))) };
    list.parts().try_for_each(|(at, length, key)| walk(source, &key, level - 1, (start + at, length), each))
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
    let mut out = Vec::new();
    load(source, key, size, &mut |_, piece| {
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
