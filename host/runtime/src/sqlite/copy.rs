//! What a killed process left beside a database, recovered in a copy.
//!
//! A journal may name another one, of a commit over several databases. SQLite asks
//! whether that file is there; since the copy has another name than the journal that
//! such a file would list, it is left alone whatever it is.

use super::fault;
use super::image::{self, Stored};
use super::open::{At, private};
use super::stored::quick_check;
use snapback_core::database::{Header, SIDES, Seen, is_side, side};
use snapback_core::disk::{Dir, Disk};
use snapback_core::error::{Error, Result};
use snapback_core::store::{Lane, Store, Workspace};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The copy's name in its workspace.
pub const NAME: &str = "db";

/// Copies what is at `at`; none when it changed meanwhile.
///
/// # Errors
/// When it cannot be read, or there is no room.
pub fn make(at: At<'_>, store: &Arc<Store>, seen: &Seen) -> Result<Option<Workspace>> {
    let workspace = store.workspace()?;
    let name = at.place.name();
    for suffix in [&b""[..], SIDES[0], SIDES[1]] {
        let from = side(name, suffix);
        if suffix.is_empty() || is_side(at.dir, name, suffix) == Some(true) {
            let to = side(NAME.as_bytes(), suffix);
            copy(at, store.disk(), &at.dir.open_file(&from)?, workspace.dir(), &to)?;
        }
    }
    Ok(seen.still(&Seen::look(store, at.dir, name)?).then_some(workspace))
}

/// Stores the image that comes of a copy.
///
/// # Errors
/// What SQLite says, as it is; or what kept it from being stored.
pub fn image_of(at: At<'_>, copy: &Workspace, lane: &mut Lane<'_>) -> rusqlite::Result<Result<Stored>> {
    let connection = private(copy.dir(), NAME, false, at.cancel)?;
    connection.execute_batch("BEGIN")?;
    let count: u32 = connection.query_row("PRAGMA page_count", [], |row| row.get(0))?;
    if count > 0 {
        let first = "SELECT data FROM sqlite_dbpage('main') WHERE pgno = 1";
        let first: Vec<u8> = connection.query_row(first, [], |row| row.get(0))?;
        // As a file that was cut short is not, also when it was so before it was recovered.
        if Header::parse(&first).is_none_or(|header| header.pages.is_some_and(|pages| pages > count)) {
            return Err(fault::foreign());
        }
    }
    // What was left of another database makes nothing sound of this one: the files are kept.
    connection.execute_batch("PRAGMA ignore_check_constraints = ON")?;
    let said = quick_check(&connection, "1");
    if matches!(&said, Ok(said) if said != "ok") || said.as_ref().is_err_and(fault::is_damage) {
        return Err(fault::foreign());
    }
    image::by_pages(at, &connection, lane)
}

fn copy(at: At<'_>, disk: &Disk, from: &File, dir: &Dir, name: &[u8]) -> Result<()> {
    let to = disk.create_file(dir, name, 0o600)?;
    if disk.clone_file(from, &to)? {
        return Ok(());
    }
    let mut buffer = vec![0; 1 << 20];
    let mut done = 0;
    loop {
        at.cancel.check()?;
        let read = from.read_at(&mut buffer, done);
        let read = read.map_err(|e| Error::io(e, "could not read", at.place.shown()))?;
        if read == 0 {
            return Ok(());
        }
        disk.write_all(&to, done, &buffer[..read])?;
        done += read as u64;
    }
}
