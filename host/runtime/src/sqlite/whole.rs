//! Putting a database back in place, all of it, under the exclusive lock: where pages
//! have another size, or what is there is no database at all.
//!
//! SQLite's own backup writes it in one transaction. The lock is kept from before the
//! look at what is there until the end, so nothing comes between.

use super::image::{self, Stored};
use super::lock::leave_log;
use super::open::{Access, Opened};
use super::pages;
use super::restore::{Now, Restore, content};
use super::stored::Image;
use rusqlite::backup::{Backup, StepResult};
use rusqlite::config::DbConfig;
use snapback_core::database::{Found, SIDES, side};
use snapback_core::error::{Error, Kind, Result};
use snapback_core::store::content::store_file;
use snapback_core::tree::node::Entry;
use std::sync::Arc;

/// Puts `image` back where a file is; `damaged`: a database that cannot be relied on.
pub fn restore(this: &Restore<'_>, image: &Image<'_>, damaged: bool) -> Result<()> {
    let at = this.at();
    let told = at.told("could not put back");
    let foreign = match &this.current {
        Some(Found::Files(entries)) => entries.iter().find(|entry| entry.name == this.database.place.name()),
        _ => None,
    };
    // Closed after the connection.
    let handle = this.call.store()?.disk().open_for_writing(this.dir, this.database.place.name())?;
    let opened = Opened::open(at, Access::Write, this.claim()?)?;
    let left = foreign.is_none() && leave(this, &opened)?;
    let done = take_lock(&opened, foreign.is_some()).map_err(&told).and_then(|()| {
        confirm(this, &opened, foreign, left)?;
        opened.connection.execute_batch("COMMIT").map_err(&told)
    });
    if let Err(error) = done {
        // The first failure is what is told.
        let _ = opened.connection.execute_batch("ROLLBACK");
        if left {
            let _ =
                opened.connection.execute_batch("PRAGMA locking_mode = NORMAL; PRAGMA journal_mode = WAL");
        }
        return Err(error);
    }
    let mut opened = opened;
    if image.header.is_some() {
        copy(image, &mut opened, damaged || foreign.is_some()).map_err(&told)?;
    } else {
        reset(&opened, true).map_err(&told)?;
        opened.connection.execute_batch("VACUUM").map_err(&told)?;
        this.call.store()?.disk().truncate(&handle, 0)?;
        this.call.store()?.disk().sync_file(&handle)?;
    }
    drop(opened);
    drop(handle);
    clear_journal(this)
}

/// Leaves the log, if there is one; whether there was.
fn leave(this: &Restore<'_>, opened: &Opened) -> Result<bool> {
    let told = |error| this.at().told("could not lock")(error);
    opened.connection.execute_batch("BEGIN").map_err(told)?;
    let wal = image::writes_ahead(&opened.connection).map_err(told)?;
    opened.connection.execute_batch("ROLLBACK").map_err(told)?;
    if wal {
        leave_log(this.at(), opened).map_err(told)?;
    }
    Ok(wal)
}

/// Takes the exclusive lock, to be kept over several transactions.
fn take_lock(opened: &Opened, foreign: bool) -> rusqlite::Result<()> {
    let connection = &opened.connection;
    reset(opened, foreign)?;
    connection.query_row("PRAGMA locking_mode = EXCLUSIVE", [], |_| Ok(()))?;
    connection.execute_batch("BEGIN EXCLUSIVE")
}

/// Refuses what is not what was captured.
fn confirm(this: &Restore<'_>, opened: &Opened, foreign: Option<&Entry>, left: bool) -> Result<()> {
    let Some(entry) = foreign else {
        return match pages::confirm(this, &opened.connection, &opened.file, left)? {
            Now::Current => Ok(()),
            Now::Stored => Err(this.changed()),
        };
    };
    let scratch = Arc::new(this.call.store()?.scratch(true));
    let size =
        opened.file.metadata().map_err(|e| Error::io(e, "could not look at", this.database.place.shown()));
    let found: Stored = store_file(&mut scratch.lane(), &opened.file, size?.len(), false, &this.call.cancel)?;
    if found == content(entry) { Ok(()) } else { Err(this.changed()) }
}

/// Whether what is there is taken for nothing when it is overwritten.
fn reset(opened: &Opened, on: bool) -> rusqlite::Result<()> {
    opened.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_RESET_DATABASE, on).map(drop)
}

fn copy(image: &Image<'_>, opened: &mut Opened, anew: bool) -> rusqlite::Result<()> {
    let source = image.connect()?;
    reset(opened, anew)?;
    let backup = Backup::new(&source, &mut opened.connection)?;
    while backup.step(-1)? != StepResult::Done {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    drop(backup);
    reset(opened, false)?;
    if anew {
        // What was overwritten may have counted further than what it was before.
        let cookie = image.header.map_or(0, |header| header.cookie).wrapping_add(1000);
        opened.connection.pragma_update(None, "schema_version", cookie as i32)?;
    }
    Ok(())
}

/// Under the exclusive lock SQLite keeps an emptied journal for the next transaction.
fn clear_journal(this: &Restore<'_>) -> Result<()> {
    let name = side(this.database.place.name(), SIDES[0]);
    let Some(stat) = this.dir.stat(&name)? else { return Ok(()) };
    let begin = this.dir.read(&name, u64::try_from(stat.st_size).unwrap_or(0))?;
    match begin.iter().take(8).all(|&byte| byte == 0) {
        true => this.call.store()?.disk().unlink(this.dir, &name),
        false => {
            Err(Error::new(Kind::Other, format!("a journal was left beside {}", this.database.place.shown()))
                .hint("the next process that opens the database deals with it"))
        }
    }
}
