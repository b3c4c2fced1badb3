//! Building the lists over blocks, and storing content that comes as a stream.

use super::LARGE;
use super::list::{FAN_OUT, MAX_LEVEL, encode, span};
use super::zeros;
use crate::backend::Cancel;
use crate::error::{Error, Result};
use crate::object::{Key, ObjectKind};
use crate::store::lane::Class;
use crate::store::{BLOCK, Lane};
use std::io::Read;

/// Stores all that `from` yields, cut like a file; returns its key and length.
///
/// # Errors
/// `Cancelled`; what `from` fails with; what kept the store from being written.
pub fn store_bytes(lane: &mut Lane<'_>, mut from: impl Read, cancel: &Cancel) -> Result<(Key, u64)> {
    let mut builder = Builder::default();
    let mut block = vec![0; BLOCK];
    loop {
        cancel.check()?;
        let mut n = 0;
        while n < BLOCK {
            match from.read(&mut block[n..]) {
                Ok(0) => break,
                Ok(more) => n += more,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(Error::io(e, "could not read", "what is to be stored")),
            }
        }
        if n > 0 {
            let class = if builder.length < LARGE { Class::Content } else { Class::Large };
            let key = lane.put_block(class, &block[..n])?;
            builder.block(lane, &key, n)?;
        }
        if n < BLOCK {
            return builder.finish(lane);
        }
    }
}

/// Gathers the hashes of blocks and lists; a full list is stored at once.
#[derive(Default)]
pub(super) struct Builder {
    /// Bytes of content so far.
    pub length: u64,
    /// The children gathered for the list of each level, from level 1.
    levels: Vec<Vec<[u8; 32]>>,
}

impl Builder {
    /// The next block, of `len` bytes: only the last one may be short.
    pub fn block(&mut self, lane: &mut Lane<'_>, key: &Key, len: usize) -> Result<()> {
        self.length += len as u64;
        self.child(lane, 1, *key.hash())
    }

    /// The next child of the list of `level`.
    fn child(&mut self, lane: &mut Lane<'_>, level: u8, hash: [u8; 32]) -> Result<()> {
        self.levels.resize(self.levels.len().max(usize::from(level)), Vec::new());
        // A full list waits for what comes after it, since it may be the top. What comes
        // now comes after all full lists up to this level.
        for full in 1..=level {
            if self.levels[usize::from(full) - 1].len() == FAN_OUT {
                let children = std::mem::take(&mut self.levels[usize::from(full) - 1]);
                let key = lane.put(ObjectKind::List, &encode(full, span(full + 1), &children))?;
                self.child(lane, full + 1, *key.hash())?;
            }
        }
        self.levels[usize::from(level) - 1].push(hash);
        Ok(())
    }

    /// The next `blocks` blocks, all zero: whole lists of zeros where they fit.
    pub fn zeros(&mut self, lane: &mut Lane<'_>, mut blocks: u64) -> Result<()> {
        while blocks > 0 {
            let before = self.length / BLOCK as u64;
            // The largest list that begins here and is filled.
            let (mut level, mut count) = (0, 1);
            let fits = |count: u64| before.is_multiple_of(count) && blocks >= count;
            while level + 1 < MAX_LEVEL && fits(count * FAN_OUT as u64) {
                level += 1;
                count *= FAN_OUT as u64;
            }
            let key = zeros::put(lane, level)?;
            self.child(lane, level + 1, *key.hash())?;
            self.length += count * BLOCK as u64;
            blocks -= count;
        }
        Ok(())
    }

    /// Ends: stores the lists that are not full, up to the one at the top.
    pub fn finish(mut self, lane: &mut Lane<'_>) -> Result<(Key, u64)> {
        if self.length == 0 {
            return Ok((lane.put(ObjectKind::Blob, b"")?, 0));
        }
        let mut level = 1;
        loop {
            let children = std::mem::take(&mut self.levels[usize::from(level) - 1]);
            let is_top = self.levels[usize::from(level)..].iter().all(Vec::is_empty);
            match children[..] {
                [] => {}
                // The only child of a list that need not be.
                [hash] if is_top => {
                    let kind = if level == 1 { ObjectKind::Blob } else { ObjectKind::List };
                    return Ok((Key::from_parts(kind, hash), self.length));
                }
                _ => {
                    let whole = span(level + 1);
                    let length = self.length - (self.length - 1) / whole * whole;
                    let key = lane.put(ObjectKind::List, &encode(level, length, &children))?;
                    if is_top {
                        return Ok((key, self.length));
                    }
                    self.child(lane, level + 1, *key.hash())?;
                }
            }
            level += 1;
        }
    }
}
