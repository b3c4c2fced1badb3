//! Files that come, go, or take the place of others, where a database is or was.
//!
//! What SQLite may not be let at is moved aside in one step each and compared with what was
//! captured only then, what lies beside the database first: it could bring rows back. What
//! cannot be done whole leaves all as it was. Whoever has open what was moved goes on with that.
//! A database that is nobody else's goes only under the exclusive lock.

use super::fault;
use super::holders;
use super::lock::{Locked, leave_log};
use super::open::{Access, Opened};
use super::restore::{Now, Restore};
use super::system::System;
use super::{own, pages, route};
use snapback_core::database::{Deed, Found, SIDES, Stage, capture_file, is_side, side};
use snapback_core::error::{Kind, Result};
use snapback_core::tree::node::Entry;
use std::time::{Duration, Instant};

/// Puts what is stored in the place of what was captured, without SQLite.
///
/// # Errors
/// `Changed` when something else is there, `Busy` when somebody holds a lock on it: all is as
/// it was then.
pub fn aside(this: &Restore<'_>) -> Result<()> {
    let (call, dir, name) = (this.call, this.dir, this.database.place.name());
    let there = on_disk(this)?;
    // What was read before and is moved below is what is compared here in between.
    if this.confirm()? == Now::Stored {
        return Ok(());
    }
    let stage = Stage::open(call, dir, name)?;
    stored(this).iter().try_for_each(|entry| stage.make(call, call.source()?, entry))?;
    let displaced = if this.is_file()? { Some(this.at().id()?) } else { None };
    let claim = displaced.map(|_| this.claim()).transpose()?;
    let others = own::names(this.at())? > 1;
    let left = displaced.is_some() && own::is_left(this.at(), call.store()?)?;
    let is_outside = others && own::group(this.at(), call)?.is_none();
    if displaced.is_some() {
        wait(this, others)?;
    }
    // Who took up what had been left has it open now.
    if left && !own::is_left(this.at(), call.store()?)? {
        return Err(this.changed());
    }
    let mut done = Vec::new();
    if let Err(error) = exchange(this, &stage, &there, &mut done) {
        for (name, placed) in done.into_iter().rev() {
            // The first failure is what is told.
            let _ = stage.back(call, dir, &name, placed);
        }
        return Err(match error.kind() {
            Kind::Denied => error.hint(fault::access_hint(dir, name, Deed::Move)),
            _ => error,
        });
    }
    stage.finish()?;
    drop(claim);
    let tell = |text: &str| call.report.log(&call.target.name, "warn", text);
    let shown = this.database.place.shown();
    if is_outside {
        tell(&format!("{shown} had other names outside of what is put back, and these stay as they are"));
    }
    let who = displaced.map(|id| holders::of_file(&System::recent(call), id)).unwrap_or_default();
    if named(stored(this), name).is_none() {
        // By its other names, what they write stays.
        if !others {
            this.tell_removed(&who);
        }
    } else if !who.is_empty() {
        let who = holders::list(&who);
        tell(&format!(
            "{who} had open what was in the place of {shown}, and goes on with that until it is opened again"
        ));
    }
    Ok(())
}

/// Moves things; what was done is in `done`: names, and what was placed there.
fn exchange<'a>(
    this: &'a Restore<'_>,
    stage: &Stage,
    there: &[Entry],
    done: &mut Vec<(Vec<u8>, Option<&'a Entry>)>,
) -> Result<()> {
    let (call, dir, name) = (this.call, this.dir, this.database.place.name());
    for entry in there.iter().filter(|entry| entry.name != name) {
        stage.take_out(call, dir, entry)?;
        done.push((entry.name.clone(), None));
    }
    let file = named(there, name);
    match (named(stored(this), name), file) {
        (Some(entry), _) => {
            stage.place(call, entry, dir, file)?;
            done.push((name.to_vec(), Some(entry)));
        }
        (None, Some(file)) => {
            stage.take_out(call, dir, file)?;
            done.push((name.to_vec(), None));
        }
        (None, None) => {}
    }
    // What is the tree's beside it is in nobody's way.
    let free = |entry: &&Entry| !matches!(dir.stat(&entry.name), Ok(Some(_)));
    for entry in stored(this).iter().filter(|entry| entry.name != name).filter(free) {
        stage.place(call, entry, dir, None)?;
        done.push((entry.name.clone(), Some(entry)));
    }
    call.store()?.disk().sync_dir(dir)
}

/// Waits until nobody is at work on what is there: whoever has the log of a file with `others`
/// for names goes on with it.
fn wait(this: &Restore<'_>, others: bool) -> Result<()> {
    let (at, since) = (this.at(), Instant::now());
    while if others { route::is_written(at)? } else { route::is_locked(at)? } {
        at.cancel.check()?;
        if since.elapsed() >= at.timeout {
            return Err(fault::busy(at.place, at.dir));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// What is there now: the file or link, and what SQLite made beside it.
fn on_disk(this: &Restore<'_>) -> Result<Vec<Entry>> {
    let (call, dir, name) = (this.call, this.dir, this.database.place.name());
    let _claim = if this.is_file()? { Some(this.claim()?) } else { None };
    let scratch = call.store()?.scratch(true);
    let (mut lane, mut entries) = (scratch.lane(), Vec::new());
    for suffix in [&b""[..]].into_iter().chain(SIDES) {
        if suffix.is_empty() || is_side(dir, name, suffix) == Some(true) {
            entries.extend(capture_file(&mut lane, dir, &side(name, suffix), &call.cancel)?);
        }
    }
    Ok(entries)
}

/// Puts files that are no database, or nothing, where a database is that SQLite is let at.
pub fn over_database(this: &Restore<'_>) -> Result<()> {
    let (call, dir, at) = (this.call, this.dir, this.at());
    let (disk, name) = (call.store()?.disk(), this.database.place.name());
    let told = at.told("could not lock");
    let stage = Stage::open(call, dir, name)?;
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
        if dir.stat(&name)?.is_some() {
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
    Ok(())
}

fn stored<'a>(this: &'a Restore<'_>) -> &'a [Entry] {
    this.stored.as_ref().map_or(&[], Found::entries)
}

fn named<'e>(entries: &'e [Entry], name: &[u8]) -> Option<&'e Entry> {
    entries.iter().find(|entry| entry.name == name)
}
