//! Storing content: cutting it into blocks and building the lists over them.

use super::list::{FAN_OUT, MAX_LEVEL, encode, span};
use super::{holes, zeros};
use crate::backend::Cancel;
use crate::error::{Error, Result};
use crate::object::{Key, ObjectKind};
use crate::store::lane::{Class, FRAME};
use crate::store::{BLOCK, Lane};
use rayon::prelude::*;
use std::fs::File;
use std::io::Read;
use std::ops::Range;

/// Content of more bytes than this is read and hashed by all threads together.
pub const LARGE: u64 = 8 << 20;
/// What one thread takes of it at once: a frame, in bytes.
const STRETCH: u64 = FRAME as u64;
/// Stretches for each thread between two moments at which all wait for the last.
const ROUND: u64 = 16;

/// Stores up to `size` bytes of `file`; returns the key of what was there and how
/// many bytes it was (fewer when the file became shorter). With `sparse`, holes are
/// not read. Memory does not depend on the size.
///
/// # Errors
/// `Cancelled`; what kept the file from being read; what kept the store from being
/// written (then `Writer::check` fails as well).
pub fn store_file(
    lane: &mut Lane<'_>,
    file: &File,
    size: u64,
    sparse: bool,
    cancel: &Cancel,
) -> Result<(Key, u64)> {
    if size <= BLOCK as u64 {
        let (key, n) = lane.put_from(Class::Content, file, 0, size as usize)?;
        return Ok((key, n as u64));
    }
    let (class, round) = match size > LARGE {
        true => (Class::Large, STRETCH * ROUND * rayon::current_num_threads() as u64),
        false => (Class::Content, STRETCH),
    };
    let mut builder = Builder::default();
    let mut size = size;
    let mut data_end = if sparse { 0 } else { size };
    while builder.length < size {
        cancel.check()?;
        let at = builder.length;
        if at >= data_end {
            size = size.min(holes::length(file)?);
            let data = holes::data(file, at..size);
            // Whole blocks only: what a hole and data share is read with the data, and
            // what a hole leaves of the last block is read as well.
            builder.zeros(lane, data.start.saturating_sub(at) / BLOCK as u64)?;
            data_end = data.end.max(builder.length + 1).next_multiple_of(BLOCK as u64);
            continue;
        }
        let end = size.min(data_end).min(at + round);
        for (key, n) in read(lane, class, file, at..end, cancel)? {
            builder.block(lane, &key, n)?;
        }
        if builder.length < end {
            break;
        }
    }
    builder.finish(lane)
}

/// Stores the blocks of `range`, which begins with one: their keys and lengths, up to
/// where the file ends. More than one stretch is shared out among all threads.
fn read(
    lane: &mut Lane<'_>,
    class: Class,
    file: &File,
    range: Range<u64>,
    cancel: &Cancel,
) -> Result<Vec<(Key, usize)>> {
    let end = range.end;
    let stretch = |lane: &mut Lane<'_>, start: u64| {
        let mut blocks = Vec::with_capacity(FRAME / BLOCK);
        for at in (start..end.min(start + STRETCH)).step_by(BLOCK) {
            let len = (end - at).min(BLOCK as u64) as usize;
            let (key, n) = lane.put_from(class, file, at, len)?;
            blocks.extend((n > 0).then_some((key, n)));
            if n < len {
                break;
            }
        }
        Ok(blocks)
    };
    if end - range.start <= STRETCH {
        return stretch(lane, range.start);
    }
    let writer = lane.writer();
    let starts: Vec<u64> = range.clone().step_by(STRETCH as usize).collect();
    let stretches: Vec<Vec<(Key, usize)>> = starts
        .par_iter()
        .with_max_len(1)
        .map_init(
            || writer.lane(),
            |lane, start| {
                cancel.check()?;
                stretch(lane, *start)
            },
        )
        .collect::<Result<_>>()?;
    let mut blocks = Vec::with_capacity(stretches.len() * (FRAME / BLOCK));
    for (start, stretch) in starts.into_iter().zip(stretches) {
        let length: u64 = stretch.iter().map(|(_, n)| *n as u64).sum();
        blocks.extend(stretch);
        // What was read after the end of a file that became shorter is no part of it.
        if length < STRETCH.min(end - start) {
            break;
        }
    }
    Ok(blocks)
}

/// Stores all that `from` yields, cut like a file; returns its key and length.
///
/// # Errors
/// As [`store_file`] has them.
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
struct Builder {
    length: u64,
    /// The children gathered for the list of each level, from level 1.
    levels: Vec<Vec<[u8; 32]>>,
}

impl Builder {
    /// The next block, of `len` bytes: only the last one may be short.
    fn block(&mut self, lane: &mut Lane<'_>, key: &Key, len: usize) -> Result<()> {
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
    fn zeros(&mut self, lane: &mut Lane<'_>, mut blocks: u64) -> Result<()> {
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
    fn finish(mut self, lane: &mut Lane<'_>) -> Result<(Key, u64)> {
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
