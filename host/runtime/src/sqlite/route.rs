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
}

/// Where SQLite's locks are in a database, and in the index of its log.
const LOCKS: (u64, u64) = (0x4000_0000, 512);
const INDEX_LOCKS: (u64, u64) = (120, 9);

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
        // Whoever uses it does so by another name, with a log that is called like that: it has two,
        // or was moved. Through SQLite, a second log would come to be beside it.
        (true, None) if header.wal && at.dir.stat(&side(name, SIDES[2]))?.is_none() => Route::Left,
        (true, _) => Route::Live,
        (false, Some(_)) => Route::Left,
        (false, None) if seen.journal().is_some_and(|journal| journal.size > 0) => Route::Left,
        (false, None) if header.is_cut(stat.size) => Route::Files,
        (false, None) => Route::Still,
    })
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

/// Whether another process holds a lock that keeps one of `kind` away.
fn is_locked_by(at: At<'_>, file: &File, kind: FlockType) -> bool {
    let index = side(at.place.name(), SIDES[2]);
    let index =
        is_side(at.dir, at.place.name(), SIDES[2]).and_then(|is| is.then(|| at.dir.open_file(&index)));
    let is = |file: &File, (start, length)| {
        let lock = Flock { start, length, pid: None, typ: kind, offset_type: FlockOffsetType::Set };
        // A file system that cannot tell is asked by SQLite itself.
        rustix::process::fcntl_getlk(file, &lock).map_or(true, |found| found.is_some())
    };
    is(file, LOCKS) || index.and_then(Result::ok).is_some_and(|index| is(&index, INDEX_LOCKS))
}
