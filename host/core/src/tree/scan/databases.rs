//! Databases that are met on the way: left to targets of their own, with what lies
//! beside them, and not captured as files.
//!
//! One is known by its first bytes. Where files lie beside a file that could be those of
//! a database, it is looked into before any of them is read; else when it is read anyway.
//! Where the `sqlite` option is off, and at a path that SQLite itself cannot open, a
//! database is a file like any other.

use super::{Listing, Place, Stat, Walk};
use crate::database::{LONGEST, SIDES, bases, header, is_side};
use crate::tree::root::Why;
use rustix::fs::{Mode, OFlags};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::{MutexGuard, PoisonError};

/// Bytes of the smallest page that a database can have: all of it are whole pages.
const SMALLEST_PAGE: u64 = 512;

impl Walk<'_> {
    /// The databases in `place` beside which others of the names in `listing` lie.
    pub(super) fn with_sides(&self, place: &Place, listing: &Listing) -> Vec<Vec<u8>> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        if !self.elsewhere.finds {
            return found;
        }
        for at in 0..listing.len() {
            let name = listing.get(at).0;
            for (base, _) in bases(name) {
                if listing.has(base)
                    && !found.iter().any(|known| known == base)
                    && self.can_be_opened(place, base)
                    && self.kept.open(&place.dir).is_ok_and(|dir| begins_one(dir, base))
                {
                    found.push(base.to_vec());
                }
            }
        }
        found
    }

    /// Whether `name`, which is captured, is one of `databases` or lies beside one that is
    /// captured: names come in order, so a database before what lies beside it.
    pub(super) fn is_of_databases(&self, place: &Place, databases: &[Vec<u8>], name: &[u8]) -> bool {
        if databases.iter().any(|base| base == name) {
            place.databases().push(name.to_vec());
            return true;
        }
        !databases.is_empty() && self.beside_database(place, name) == Some(true)
    }

    /// Whether `name` in `place` belongs to the database `base`: it is that, or SQLite made it
    /// beside that.
    pub(super) fn belongs(&self, place: &Place, base: &[u8], name: &[u8]) -> bool {
        match name.strip_prefix(base) {
            Some([]) => true,
            Some(suffix) if SIDES.contains(&suffix) => {
                self.kept.open(&place.dir).is_ok_and(|dir| is_side(dir, base, suffix) == Some(true))
            }
            _ => false,
        }
    }

    /// Whether SQLite made what is called `name` beside one of the databases that were found in
    /// `place` so far; none when it is called like that and no longer there.
    pub fn beside_database(&self, place: &Place, name: &[u8]) -> Option<bool> {
        let databases = place.databases();
        for (base, suffix) in bases(name).filter(|(base, _)| databases.iter().any(|known| known == base)) {
            let Ok(dir) = self.kept.open(&place.dir) else { return Some(false) };
            match is_side(dir, base, suffix) {
                Some(false) => {}
                told => return told,
            }
        }
        Some(false)
    }

    /// Whether `file`, which is `name` in `place`, is a database: then it is left to a
    /// target of its own, and not captured here.
    pub fn leave_database(&self, place: &Place, name: &[u8], file: &File, stat: &Stat) -> bool {
        let may_be = self.elsewhere.finds && stat.size >= header::LENGTH as u64;
        if !may_be || !self.can_be_opened(place, name) || !matches!(header::read(file), Ok(Some(_))) {
            return false;
        }
        place.databases().push(name.to_vec());
        self.leave_out(place.dir.path_of(name), Why::Elsewhere, "", None, Some(stat));
        true
    }

    /// Whether `name` in `place`, open as `dir` and seen as `stat`, is a database that is left
    /// to a target of its own. One that was cut short is not told without reading it.
    pub fn is_database(&self, place: &Place, dir: impl AsFd, name: &[u8], stat: &Stat) -> bool {
        let may_be = self.elsewhere.finds && stat.is_file() && stat.size > 0;
        may_be
            && stat.size.is_multiple_of(SMALLEST_PAGE)
            && self.can_be_opened(place, name)
            && begins_one(dir, name)
    }

    /// Whether SQLite takes the path of `name`: no application has it open by a longer one.
    fn can_be_opened(&self, place: &Place, name: &[u8]) -> bool {
        let above = self.directory.path().as_os_str().len() + 1;
        above + place.dir.path_of(name).len() <= LONGEST
    }
}

impl Place {
    fn databases(&self) -> MutexGuard<'_, Vec<Vec<u8>>> {
        self.databases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether any were found.
    pub fn has_databases(&self) -> bool {
        !self.databases().is_empty()
    }
}

/// Whether the file `name` of `dir` begins like a database.
fn begins_one(dir: impl AsFd, name: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(name) = CString::new(name) else { return false };
    let Ok(file) = rustix::fs::openat(dir, &name, flags, Mode::empty()) else { return false };
    let file = File::from(file);
    Stat::of_open(&file).is_ok_and(|stat| stat.is_file()) && matches!(header::read(&file), Ok(Some(_)))
}
