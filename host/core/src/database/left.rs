//! What a killed process left aside of a database: all is put back as it was before that began, so
//! that the next one finds a database with what belongs to it, and begins anew.
//!
//! Invariant: nothing goes from here but what was made here, or what is stored. What lay beside a
//! database returns only to that very one, unwritten since: it would change any other. What finds its
//! place taken is kept for good and told.

use super::put::{Stage, made, out};
use super::{SIDES, side};
use crate::backend::Call;
use crate::disk::Dir;
use crate::error::Result;
use crate::tree::apply::is_stored;
use rustix::fs::{FileType, Stat};

/// Deals with what was left of the database `base` in `dir`.
///
/// # Errors
/// When the disk refuses.
pub fn recover(call: &Call, dir: &Dir, base: &[u8]) -> Result<()> {
    for stage in Stage::left(call, dir)? {
        for half in stage.dir.names()?.iter().filter(|name| name.starts_with(b"w")) {
            stage.disk().unlink(&stage.dir, half)?;
        }
        // What came last goes first.
        for suffix in SIDES {
            stage.take_back(call, dir, &side(base, suffix))?;
        }
        let was = stage.take_back(call, dir, base)?;
        let is_same = stage.give(call, dir, base)?.or(was);
        for suffix in SIDES {
            stage.give_side(call, dir, base, suffix, is_same)?;
        }
        stage.disk().sync_dir(dir)?;
    }
    Ok(())
}

impl Stage {
    /// Takes what was made here as `name` from its place, and gives that back to what it displaced;
    /// whether that is in its place again, none where nothing was displaced.
    fn take_back(&self, call: &Call, dir: &Dir, name: &[u8]) -> Result<Option<bool>> {
        let (disk, made) = (self.disk(), made(name));
        let inode = self.inode(&made)?;
        let is_own = |stat: Option<Stat>| stat.is_some_and(|stat| Some(stat.st_ino) == inode);
        let (here, there) = (self.dir.stat(&made)?, is_own(dir.stat(name)?));
        let mut was = None;
        match (here.is_some() && !is_own(here), there) {
            (true, true) => was = Some(disk.exchange(&self.dir, &made, dir, name)?),
            (true, false) => {
                was = Some(dir.stat(name)?.is_none());
                self.give_back(call, dir, &made, name);
            }
            (false, true) => disk.rename(dir, name, &self.dir, &made)?,
            // It was never anywhere else.
            (false, false) if here.is_some() => disk.unlink(&self.dir, &made)?,
            (false, false) => {}
        }
        // Somebody may have written to it in its place.
        self.keep_unless_stored(call, &made, name)?;
        self.forget(&made)?;
        Ok(was)
    }

    /// Gives back what was taken out as `name`; whether it is in its place again, none where nothing
    /// was taken out.
    fn give(&self, call: &Call, dir: &Dir, name: &[u8]) -> Result<Option<bool>> {
        let out = out(name);
        if self.dir.stat(&out)?.is_none() {
            return Ok(None);
        }
        if self.disk().rename_noreplace(&self.dir, &out, dir, name).is_ok() {
            return Ok(Some(true));
        }
        self.keep_unless_stored(call, &out, name).map(|()| Some(false))
    }

    /// Gives back what lay beside `base`, if that is what it was: `is_same` says so where it was
    /// moved.
    fn give_side(
        &self,
        call: &Call,
        dir: &Dir,
        base: &[u8],
        suffix: &[u8],
        is_same: Option<bool>,
    ) -> Result<()> {
        let name = side(base, suffix);
        let Some(taken) = self.dir.stat(&out(&name))? else { return Ok(()) };
        let is_unwritten =
            |now: Stat| (now.st_mtime, now.st_mtime_nsec) <= (taken.st_ctime, taken.st_ctime_nsec);
        match is_same.unwrap_or(dir.stat(base)?.is_some_and(is_unwritten)) {
            true => self.give(call, dir, &name).map(drop),
            false => self.keep_unless_stored(call, &out(&name), &name),
        }
    }

    fn keep_unless_stored(&self, call: &Call, here: &[u8], name: &[u8]) -> Result<()> {
        let is_file = |stat: Stat| FileType::from_raw_mode(stat.st_mode).is_file();
        let is_link = |stat: Stat| FileType::from_raw_mode(stat.st_mode).is_symlink();
        let Some(stat) = self.dir.stat(here)? else { return Ok(()) };
        let is_own = self.inode(&made(name))? == Some(stat.st_ino);
        let goes = is_file(stat) && is_stored(&self.store, &self.dir, here, &call.cancel)?
            || is_link(stat) && is_own;
        match goes {
            true => self.disk().unlink(&self.dir, here),
            false => {
                self.keep(call, here, name);
                Ok(())
            }
        }
    }
}
