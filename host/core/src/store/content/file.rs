//! Storing the content of files: small ones block by block, large ones by all threads
//! together, in rounds, so that memory does not depend on the size.

use super::build::Builder;
use super::{LARGE, holes, zeros};
use crate::backend::Cancel;
use crate::error::Result;
use crate::object::Key;
use crate::store::lane::{Class, FRAME};
use crate::store::share::Run;
use crate::store::{BLOCK, Lane, Still};
use rayon::prelude::*;
use std::fs::File;
use std::ops::Range;

/// What one thread takes of a large file at once: a frame, in bytes.
const STRETCH: u64 = FRAME as u64;
/// Stretches for each thread between two moments at which all wait for the last.
const ROUND: u64 = 16;

/// Blocks as they were read: the key and the length of each.
type Blocks = Vec<(Key, usize)>;

/// Stores up to `size` bytes of `file`; returns the key of what was there and how
/// many bytes it was (fewer when the file became shorter). With `sparse`, holes are
/// not read.
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
    let class = if size > LARGE { Class::Large } else { Class::Content };
    in_rounds(lane, file, size, sparse, &mut |lane, range| {
        let writer = lane.writer();
        let put = |lane: &mut Lane<'_>, at, len| lane.put_from(class, file, at, len);
        stretches(range, lane, || writer.lane(), put, cancel)
    })
}

/// Stores up to `size` bytes of `still`, as [`store_file`] does; its whole blocks are
/// shared, not written.
///
/// # Errors
/// As [`store_file`] has them.
pub fn store_still(
    lane: &mut Lane<'_>,
    still: &Still,
    size: u64,
    sparse: bool,
    cancel: &Cancel,
) -> Result<(Key, u64)> {
    let file = still.file();
    in_rounds(lane, file, size, sparse, &mut |lane, range| {
        let mut at = range.start;
        let writer = lane.writer();
        let name = |lane: &mut Lane<'_>, at, len| lane.name_from(file, at, len);
        let blocks = stretches(range, lane, || writer.lane(), name, cancel)?;
        let mut run = Run::new(writer, file);
        for (key, n) in &blocks {
            if *key == zeros::key(0) {
                zeros::put(lane, 0)?;
            } else if *n < BLOCK {
                // What was claimed is stored before anything can fail to be read.
                run.end()?;
                lane.put_from(Class::Large, file, at, *n)?;
            } else if writer.claim(key)? {
                run.add(at, *key, BLOCK as u32)?;
            }
            at += *n as u64;
        }
        run.end()?;
        Ok(blocks)
    })
}

/// Finds out what [`store_file`] would return, and stores no blocks.
///
/// # Errors
/// As [`store_file`] has them.
pub fn name_file(
    lane: &mut Lane<'_>,
    file: &File,
    size: u64,
    sparse: bool,
    cancel: &Cancel,
) -> Result<(Key, u64)> {
    if size <= BLOCK as u64 {
        let (key, n) = lane.name_from(file, 0, size as usize)?;
        return Ok((key, n as u64));
    }
    in_rounds(lane, file, size, sparse, &mut |lane, range| {
        let writer = lane.writer();
        let name = |lane: &mut Lane<'_>, at, len| lane.name_from(file, at, len);
        stretches(range, lane, || writer.lane(), name, cancel)
    })
}

/// Stores a file round by round: `read` stores the blocks of a range, which begins with
/// one, up to where the file ends.
fn in_rounds(
    lane: &mut Lane<'_>,
    file: &File,
    mut size: u64,
    sparse: bool,
    read: &mut dyn FnMut(&mut Lane<'_>, Range<u64>) -> Result<Blocks>,
) -> Result<(Key, u64)> {
    let round = if size > LARGE { STRETCH * ROUND * rayon::current_num_threads() as u64 } else { STRETCH };
    let mut builder = Builder::default();
    let mut data_end = if sparse { 0 } else { size };
    while builder.length < size {
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
        for (key, n) in read(lane, at..end)? {
            builder.block(lane, &key, n)?;
        }
        if builder.length < end {
            break;
        }
    }
    builder.finish(lane)
}

/// Calls `block` for each block of `range`: where it begins, how long it is at most. One
/// stretch is gone through here, with `own`; several are shared out among all threads.
fn stretches<T>(
    range: Range<u64>,
    own: &mut T,
    new: impl Fn() -> T + Sync + Send,
    block: impl Fn(&mut T, u64, usize) -> Result<(Key, usize)> + Sync,
    cancel: &Cancel,
) -> Result<Blocks> {
    let end = range.end;
    let stretch = |with: &mut T, start: u64| {
        cancel.check()?;
        let mut blocks = Vec::with_capacity(FRAME / BLOCK);
        for at in (start..end.min(start + STRETCH)).step_by(BLOCK) {
            let len = (end - at).min(BLOCK as u64) as usize;
            let (key, n) = block(with, at, len)?;
            blocks.extend((n > 0).then_some((key, n)));
            if n < len {
                break;
            }
        }
        Ok(blocks)
    };
    if end - range.start <= STRETCH {
        return stretch(own, range.start);
    }
    let starts: Vec<u64> = range.step_by(STRETCH as usize).collect();
    let each = starts.par_iter().with_max_len(1).map_init(new, |with, start| stretch(with, *start));
    let each: Vec<Blocks> = each.collect::<Result<_>>()?;
    let mut blocks = Vec::with_capacity(each.len() * (FRAME / BLOCK));
    for (start, stretch) in starts.into_iter().zip(each) {
        let length: u64 = stretch.iter().map(|(_, n)| *n as u64).sum();
        blocks.extend(stretch);
        // What was read after the end of a file that became shorter is no part of it.
        if length < STRETCH.min(end - start) {
            break;
        }
    }
    Ok(blocks)
}
