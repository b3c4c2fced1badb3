//! Files that come, go, or take the place of others, where a database is or was.
//!
//! Whatever stands in the place of a database is moved aside in one step and compared
//! with what was captured only then; a database goes only under the exclusive lock.
//! What lies beside it goes first: it could bring rows back.

use super::copy::is_there;
use super::lock::{Locked, leave_log};
use super::open::{Access, Opened};
use super::pages;
use super::restore::Restore;
use snapback_core::database::{Found, SIDES, Stage, side};
use snapback_core::error::Result;
use snapback_core::tree::node::Entry;

/// Puts an image where nothing, or a link, is.
pub fn image(this: &Restore<'_>, file: &Entry) -> Result<()> {
    let (call, dir) = (this.call, this.dir);
    let stage = Stage::open(call, dir)?;
    stage.make(call, call.source()?, file)?;
    let there = current(this);
    clear_sides(this, there)?;
    stage.place(call, file, dir, named(there, &file.name))?;
    call.store()?.disk().sync_dir(dir)
}

/// Puts files that are no database, or nothing, where what was captured is.
pub fn files(this: &Restore<'_>) -> Result<()> {
    match &this.current {
        Some(Found::Image { .. }) => over_database(this),
        _ => over_files(this),
    }
}

fn over_database(this: &Restore<'_>) -> Result<()> {
    let (call, dir, at) = (this.call, this.dir, this.at());
    let (disk, name) = (call.store()?.disk(), this.database.place.name());
    let told = at.told("could not lock");
    let stage = Stage::open(call, dir)?;
    let entries = stored(this);
    entries.iter().try_for_each(|entry| stage.make(call, call.source()?, entry))?;
    let locked = Locked::new(Opened::open(at, Access::Write, this.claim()?)?).map_err(&told)?;
    pages::confirm(this, &locked.opened.connection, &locked.opened.file, false)?;
    let (opened, wal) = (locked.opened, locked.wal);
    opened.connection.execute_batch("ROLLBACK").map_err(&told)?;
    if wal {
        leave_log(at, &opened).map_err(&told)?;
    }
    let take = opened.connection.execute_batch("BEGIN EXCLUSIVE").map_err(&told);
    let done = take.and_then(|()| pages::confirm(this, &opened.connection, &opened.file, wal));
    if let Err(error) = done {
        // The first failure is what is told.
        let _ = opened.connection.execute_batch("ROLLBACK");
        if wal {
            let _ = opened.connection.query_row("PRAGMA journal_mode = WAL", [], |_| Ok(()));
        }
        return Err(error);
    }
    for suffix in SIDES {
        let name = side(name, suffix);
        if is_there(dir, &name)? {
            disk.unlink(dir, &name)?;
        }
    }
    match named(entries, name) {
        Some(entry) => stage.replace(call, entry, dir)?,
        None => disk.unlink(dir, name)?,
    }
    for entry in entries.iter().filter(|entry| entry.name != name) {
        stage.place(call, entry, dir, None)?;
    }
    disk.sync_dir(dir)
}

fn over_files(this: &Restore<'_>) -> Result<()> {
    let (call, dir) = (this.call, this.dir);
    let (stage, there, entries) = (Stage::open(call, dir)?, current(this), stored(this));
    entries.iter().try_for_each(|entry| stage.make(call, call.source()?, entry))?;
    for entry in there.iter().filter(|entry| named(entries, &entry.name).is_none()) {
        stage.take_out(call, dir, entry)?;
    }
    remove_index(this)?;
    for entry in entries {
        stage.place(call, entry, dir, named(there, &entry.name))?;
    }
    call.store()?.disk().sync_dir(dir)
}

/// Takes out what lies beside a database that is not there: `entries` are what was
/// captured.
pub fn clear_sides(this: &Restore<'_>, entries: &[Entry]) -> Result<()> {
    let stage = Stage::open(this.call, this.dir)?;
    for entry in entries.iter().filter(|entry| entry.name != this.database.place.name()) {
        stage.take_out(this.call, this.dir, entry)?;
    }
    remove_index(this)
}

/// The index of a log that is gone says nothing.
fn remove_index(this: &Restore<'_>) -> Result<()> {
    let name = side(this.database.place.name(), SIDES[2]);
    match is_there(this.dir, &name)? {
        true => this.call.store()?.disk().unlink(this.dir, &name),
        false => Ok(()),
    }
}

fn current<'a>(this: &'a Restore<'_>) -> &'a [Entry] {
    this.current.as_ref().map_or(&[], Found::entries)
}

fn stored<'a>(this: &'a Restore<'_>) -> &'a [Entry] {
    this.stored.as_ref().map_or(&[], Found::entries)
}

fn named<'e>(entries: &'e [Entry], name: &[u8]) -> Option<&'e Entry> {
    entries.iter().find(|entry| entry.name == name)
}
