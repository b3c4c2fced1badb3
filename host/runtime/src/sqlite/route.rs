//! How a database is to be read, found out without touching it.
//!
//! What somebody uses is read through SQLite, under locks. What nobody uses is not
//! opened where it lies if that would make, change or remove a file beside it: a
//! database that was closed cleanly is read as it is, and what a killed process left
//! is recovered in a copy.

use super::open::At;
use rustix::process::{Flock, FlockOffsetType, FlockType};
use snapback_core::database::header;
use snapback_core::database::{SIDES, Seen, is_side, side};
use snapback_core::error::{Error, Result};
use std::fs::File;
use std::time::Duration;

/// How a database is to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// There is no database: files as they are, if any.
    Files,
    /// An empty file: an empty database.
    Empty,
    /// Its file is all of it, and nobody uses it.
    Still,
    /// Through SQLite, under its locks.
    Live,
    /// Somebody left a log or a journal: recovered in a copy.
    Left,
    /// Somebody uses it with a log that does not lie beside it: in a copy.
    Apart,
}

/// How often is looked for a log that is not there yet.
const LOOKS: u32 = 4;
/// Where SQLite's locks are in a database, and in the index of its log.
pub const LOCKS: (u64, u64) = (0x4000_0000, 512);
pub const INDEX_LOCKS: (u64, u64) = (120, 9);

/// How to read what `seen` is about.
///
/// # Errors
/// When it cannot be looked into.
pub fn of(at: At<'_>, seen: &Seen) -> Result<Route> {
    let Some(stat) = seen.database().filter(|stat| stat.is_file()) else { return Ok(Route::Files) };
    if stat.size == 0 {
        return Ok(Route::Empty);
    }
    let name = at.place.name();
    let file = at.dir.open_file(name)?;
    let header = header::read(&file).map_err(|e| Error::io(e, "could not read", at.dir.join(name)))?;
    let Some(header) = header else { return Ok(Route::Files) };
    if !header.wal && seen.log().is_none() {
        return Ok(Route::Live);
    }
    Ok(match (is_locked_by(at, &file, FlockType::WriteLock), seen.log()) {
        // Whoever uses it has its log elsewhere: by another name, or it was moved or removed. Through
        // SQLite, a second one would come to be beside it, or an index.
        (true, _) if is_apart(at)? => Route::Apart,
        (true, _) => Route::Live,
        (false, Some(_)) => Route::Left,
        (false, None) if seen.journal().is_some_and(|journal| journal.size > 0) => Route::Left,
        (false, None) if header.is_cut(stat.size) => Route::Files,
        (false, None) => Route::Still,
    })
}

/// Whether what whoever uses it writes ahead to does not lie beside it. Who begins has the database
/// before the log.
fn is_apart(at: At<'_>) -> Result<bool> {
    let is_there = |suffix| at.dir.stat(&side(at.place.name(), suffix)).map(|stat| stat.is_some());
    for _ in 0..LOOKS {
        if is_there(SIDES[1])? && is_there(SIDES[2])? {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(true)
}

/// Whether another process holds a lock on it: it reads or writes, or has its log open.
///
/// # Errors
/// When it cannot be opened.
pub fn is_locked(at: At<'_>) -> Result<bool> {
    Ok(is_locked_by(at, &at.dir.open_file(at.place.name())?, FlockType::WriteLock))
}

/// Whether another process is in the middle of writing it.
///
/// # Errors
/// When it cannot be opened.
pub fn is_written(at: At<'_>) -> Result<bool> {
    Ok(is_locked_by(at, &at.dir.open_file(at.place.name())?, FlockType::ReadLock))
}

/// Whether somebody, of whatever user and wherever, holds locks on the database, and on the index of
/// the log that lies beside it. Not for whoever holds one here: it lets go of that.
///
/// # Errors
/// When it cannot be opened.
pub fn both_locked(at: At<'_>) -> Result<(bool, bool)> {
    let file = at.dir.open_file(at.place.name())?;
    Ok((
        is_held(&file, LOCKS, FlockType::WriteLock),
        index_of(at).is_some_and(|index| is_held(&index, INDEX_LOCKS, FlockType::WriteLock)),
    ))
}

/// Whether another process holds a lock that keeps one of `kind` away.
fn is_locked_by(at: At<'_>, file: &File, kind: FlockType) -> bool {
    is_held(file, LOCKS, kind) || index_of(at).is_some_and(|index| is_held(&index, INDEX_LOCKS, kind))
}

/// The index of the log beside it.
fn index_of(at: At<'_>) -> Option<File> {
    let is_index = is_side(at.dir, at.place.name(), SIDES[2])?;
    let index = is_index.then(|| at.dir.open_file(&side(at.place.name(), SIDES[2])));
    index.and_then(Result::ok)
}

fn is_held(file: &File, (start, length): (u64, u64), kind: FlockType) -> bool {
    let lock = Flock { start, length, pid: None, typ: kind, offset_type: FlockOffsetType::Set };
    // A file system that cannot tell is asked by SQLite itself.
    rustix::process::fcntl_getlk(file, &lock).map_or(true, |found| found.is_some())
}
