//! Putting a database back in place, page by page, in one transaction.
//!
//! Only pages that differ are written, so the cost is that of what changed. Others see
//! the stored state at their next query: what they remember of the database is stale by
//! the counters, and what they remember of its schema by the cookie, which therefore
//! never goes back. A reader that is in the middle goes on with what it began with, or
//! is waited for, as with any commit.

use super::fault;
use super::image;
use super::lock::{Locked, leave_log};
use super::open::{Access, Opened};
use super::restore::{Now, Restore, content, same_content};
use super::stored::Image;
use rusqlite::types::Null;
use rusqlite::{Connection, params};
use snapback_core::database::header::{Header, set_cookie};
use snapback_core::database::{Found, state, state_like};
use snapback_core::error::Result;
use snapback_core::store::content::differing;
use std::fs::File;
use std::ops::Range;
use std::sync::Arc;

/// Puts `image` back where a database is, if its pages have the same size; else nothing
/// was touched, and the answer is false. `held` is what is there, under the lock that its capture
/// kept.
pub fn restore(this: &Restore<'_>, image: &Image<'_>, held: Option<Locked>) -> Result<bool> {
    let Some(header) = image.header else { return Ok(false) };
    let at = this.at();
    let told = at.told("could not put back");
    let mut locked = match held {
        Some(locked) => locked,
        None => {
            let locked = lock(this, Opened::open(at, Access::Write, this.claim()?)?)?;
            if confirm(this, &locked.opened.connection, &locked.opened.file, false)? == Now::Stored {
                return Ok(true);
            }
            locked
        }
    };
    if page_size(&locked).map_err(&told)? != header.page_size {
        return Ok(false);
    }
    let left = locked.wal && !header.wal;
    if left {
        let opened = locked.opened;
        opened.connection.execute_batch("ROLLBACK").map_err(&told)?;
        leave_log(at, &opened).map_err(&told)?;
        locked = lock(this, opened)?;
    }
    let Opened { connection, file, .. } = &locked.opened;
    // After the lock was let go in between.
    let again = if left { confirm(this, connection, file, true).map(drop) } else { Ok(()) };
    let done = again.and_then(|()| write(this, connection, image, header));
    if done.is_err() {
        // The first failure is what is told.
        let _ = connection.execute_batch("ROLLBACK");
        if left {
            let _ = connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        }
    }
    done.map(|()| true)
}

fn lock(this: &Restore<'_>, opened: Opened) -> Result<Locked> {
    Locked::new(opened).map_err(this.at().told("could not lock"))
}

fn page_size(locked: &Locked) -> rusqlite::Result<u32> {
    locked.opened.connection.query_row("PRAGMA page_size", [], |row| row.get(0))
}

/// What is there under the lock; `left`: a log was left since the capture, which the
/// first page tells.
///
/// # Errors
/// `Changed` when it is neither what is to come back nor what was captured.
pub fn confirm(this: &Restore<'_>, connection: &Connection, file: &File, left: bool) -> Result<Now> {
    if !left && this.is_untouched()? {
        let same = same_content(&this.stored, this.current.as_ref());
        return Ok(if same { Now::Stored } else { Now::Current });
    }
    let at = this.at();
    let scratch = Arc::new(this.call.store()?.scratch(true));
    let mut lane = scratch.lane();
    let (key, size) = image::read(at, connection, file, &mut lane).map_err(at.told("could not read"))??;
    lane.publish()?;
    let is =
        |known: &Option<Found>, found| matches!(known, Some(Found::Image { state, .. }) if *state == found);
    if let (true, Some(Found::Image { file: current, .. })) = (left, &this.current) {
        let like = this.begin_of(current)?;
        let same = is(&this.current, state_like(&*scratch, &key, size, &like)?);
        return if same { Ok(Now::Current) } else { Err(this.changed()) };
    }
    let found = state(&*scratch, &key, size)?;
    match (is(&this.stored, found), is(&this.current, found)) {
        (true, _) => Ok(Now::Stored),
        (_, true) => Ok(Now::Current),
        _ if this.is_without_log(&*scratch, &key, size)? => Ok(Now::Current),
        _ => Err(this.changed()),
    }
}

fn write(this: &Restore<'_>, connection: &Connection, image: &Image<'_>, header: Header) -> Result<()> {
    let at = this.at();
    let told = at.told("could not put back");
    let (Some(Found::Image { file: stored, .. }), Some(Found::Image { file: current, .. })) =
        (&this.stored, &this.current)
    else {
        return Err(this.changed());
    };
    // A commit would move pages of what is to come back about, by a list of free pages
    // that belongs to what was there.
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
    if number("PRAGMA auto_vacuum").map_err(&told)? == 1 {
        connection.execute_batch("PRAGMA auto_vacuum = INCREMENTAL").map_err(&told)?;
    }
    let now = number("PRAGMA page_count").map_err(&told)?;
    let cookie = number("PRAGMA schema_version").map_err(&told)? as u32;
    let (size, bytes) = (u64::from(header.page_size), image.size);
    // The first page always: what counts is in it.
    let mut ranges: Vec<Range<u64>> = Vec::from([Range { start: 0, end: size }]);
    let ((now_key, now_size), (key, _)) = (content(current), content(stored));
    differing(this.call.source()?, (&now_key, now_size), (&key, bytes), &mut |start, length| {
        ranges.push(start.max(size)..(start + length).min(bytes));
        Ok(())
    })?;
    let total = ranges.iter().map(|range| range.end.saturating_sub(range.start)).sum();
    let report = &this.call.report;
    report.begin(&format!("putting {} back", this.database.place.shown()), Some(total), "bytes");
    let written = (|| {
        let mut pages = Pages::new(connection).map_err(&told)?;
        let mut page = vec![0; header.page_size as usize];
        for number in ranges.into_iter().flat_map(|range| range.step_by(size as usize)) {
            this.call.cancel.check()?;
            report.advance(size);
            let number = (number / size + 1) as u32;
            if number == header.locked_page() {
                continue;
            }
            image.page(number, &mut page)?;
            if number == 1 {
                // As it is, until all is there: SQLite reads the schema when it changes.
                set_cookie(&mut page, cookie);
            }
            pages.put(number, &page).map_err(&told)?;
        }
        let last = (bytes / size) as i64;
        if last < now { pages.end_after(last).map_err(&told) } else { Ok(()) }
    })();
    report.end();
    written?;
    let next = cookie.max(header.cookie).wrapping_add(1);
    connection.pragma_update(None, "schema_version", next as i32).map_err(&told)?;
    connection.execute_batch("COMMIT").map_err(|error| match fault::is_busy(&error) {
        true => fault::busy(&this.database.place, this.dir),
        false => told(error),
    })
}

/// The pages that a transaction sees.
struct Pages<'c> {
    read: rusqlite::Statement<'c>,
    write: rusqlite::Statement<'c>,
    /// How many pages in a row were not as they are to be.
    differed: u32,
}

/// After so many pages that differ, only one of so many is looked at before it is written.
const RUN: u32 = 32;

impl<'c> Pages<'c> {
    fn new(connection: &'c Connection) -> rusqlite::Result<Self> {
        Ok(Self {
            read: connection.prepare("SELECT data FROM sqlite_dbpage('main') WHERE pgno = ?1")?,
            write: connection
                .prepare("INSERT INTO sqlite_dbpage(pgno, data, schema) VALUES (?1, ?2, 'main')")?,
            differed: 0,
        })
    }

    /// Writes a page unless it is so already; where many differ, that is not always asked.
    fn put(&mut self, number: u32, page: &[u8]) -> rusqlite::Result<()> {
        if self.differed < RUN || self.differed.is_multiple_of(RUN) {
            let mut rows = self.read.query([number])?;
            if let Some(row) = rows.next()?
                && row.get_ref(0)?.as_blob()? == page
            {
                self.differed = 0;
                return Ok(());
            }
        }
        self.differed = self.differed.saturating_add(1);
        self.write.execute(params![number, page]).map(drop)
    }

    /// Makes `last` the last page; what is written after that counts again.
    fn end_after(&mut self, last: i64) -> rusqlite::Result<()> {
        self.write.execute(params![last + 1, Null]).map(drop)
    }
}
