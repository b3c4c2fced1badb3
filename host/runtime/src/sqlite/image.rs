//! Reading a database's pages as one file, in order, as a checkpoint would leave them.
//!
//! The image ends with the last page that SQLite counts, however it is read: what a file has
//! behind that is no part of it.

use super::fault;
use super::open::At;
use rusqlite::{Connection, Rows};
use snapback_core::database::{SIDES, header, side};
use snapback_core::error::{Error, Result};
use snapback_core::object::Key;
use snapback_core::store::{Lane, content};
use std::fs::File;
use std::io::{self, Read};

/// Content that was stored: its key and length.
pub type Stored = (Key, u64);

/// Stores the image that `connection` sees; begins a transaction there if none is open.
/// Without a log, or with an empty one, the file is the image, and is read as such under the
/// connection's lock.
///
/// # Errors
/// What SQLite says, as it is; or what kept the store from being written.
pub fn read(
    at: At<'_>,
    connection: &Connection,
    file: &File,
    lane: &mut Lane<'_>,
) -> rusqlite::Result<Result<Stored>> {
    if connection.is_autocommit() {
        connection.execute_batch("BEGIN")?;
    }
    let number = |pragma: &str| connection.query_row(pragma, [], |row| row.get::<_, i64>(0));
    // The transaction begins with the first look: what the file is counts from then on.
    let size = number("PRAGMA page_count")? as u64 * number("PRAGMA page_size")? as u64;
    // A transaction that writes begins an empty database with a page that no file has yet.
    let length = match file.metadata() {
        Ok(file) => file.len(),
        Err(e) => return Ok(Err(Error::io(e, "could not look at", at.place.shown()))),
    };
    if length == 0 {
        return Ok(content::store_bytes(lane, &[][..], at.cancel));
    }
    if writes_ahead(connection)? && !is_log_empty(at) {
        return by_pages(at, connection, lane);
    }
    if size > length || header::read(file).is_ok_and(|header| header.is_none_or(|h| h.is_cut(length))) {
        return Err(fault::foreign());
    }
    Ok(content::store_file(lane, file, size, false, at.cancel))
}

/// Whether what `connection` sees is partly in a log.
///
/// # Errors
/// What SQLite says.
pub fn writes_ahead(connection: &Connection) -> rusqlite::Result<bool> {
    let mode: String = connection.query_row("PRAGMA journal_mode", [], |row| row.get(0))?;
    Ok(mode.eq_ignore_ascii_case("wal"))
}

/// Whether nothing is in the log, for a connection that reads already. What one reads from a
/// log is not taken out of it, so the connection reads the file; and nobody brings
/// a log into the file as long as somebody reads that.
fn is_log_empty(at: At<'_>) -> bool {
    let log = at.dir.stat(&side(at.place.name(), SIDES[1]));
    log.is_ok_and(|log| log.is_none_or(|stat| stat.st_size == 0))
}

/// Stores all pages that `connection` sees.
///
/// # Errors
/// As [`read`] has them.
pub fn by_pages(
    at: At<'_>,
    connection: &Connection,
    lane: &mut Lane<'_>,
) -> rusqlite::Result<Result<Stored>> {
    let mut statement = connection.prepare("SELECT data FROM sqlite_dbpage('main')")?;
    let mut pages = Pages { rows: statement.query([])?, page: Vec::new(), at: 0, fault: None };
    let stored = content::store_bytes(lane, &mut pages, at.cancel);
    match pages.fault {
        Some(fault) => Err(fault),
        None => Ok(stored),
    }
}

/// Pages, one after the other.
struct Pages<'s> {
    rows: Rows<'s>,
    page: Vec<u8>,
    at: usize,
    /// What kept the next page from being read.
    fault: Option<rusqlite::Error>,
}

impl Pages<'_> {
    /// Goes to the next page: how much of `buffer` it filled at once, all of it where that
    /// has room.
    fn next(&mut self, buffer: &mut [u8]) -> rusqlite::Result<Option<usize>> {
        self.page.clear();
        self.at = 0;
        let Some(row) = self.rows.next()? else { return Ok(None) };
        let page = row.get_ref(0)?.as_blob()?;
        if let Some(room) = buffer.get_mut(..page.len()) {
            room.copy_from_slice(page);
            return Ok(Some(page.len()));
        }
        self.page.extend_from_slice(page);
        Ok(Some(0))
    }
}

impl Read for &mut Pages<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.at == self.page.len() {
            match self.next(buffer) {
                Ok(Some(copied)) if copied > 0 => return Ok(copied),
                Ok(Some(_)) => {}
                Ok(None) => return Ok(0),
                Err(fault) => {
                    self.fault = Some(fault);
                    return Err(io::Error::other("a page"));
                }
            }
        }
        let length = buffer.len().min(self.page.len() - self.at);
        buffer[..length].copy_from_slice(&self.page[self.at..self.at + length]);
        self.at += length;
        Ok(length)
    }
}
