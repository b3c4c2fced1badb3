//! Databases that are met on the way: left to targets of their own, with what lies
//! beside them, and not captured as files.
//!
//! One is known by its first bytes. Where files lie beside a file that could be those of
//! a database, it is looked into before any of them is read; else when it is read anyway.
//! Where the `sqlite` option is off, and for names that no setting can hold, a database
//! is a file like any other.

use super::{Listing, Place, Stat, Walk};
use crate::database::{SIDES, header, side};
use crate::tree::root::Why;
use rustix::fs::{Mode, OFlags};
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::{MutexGuard, PoisonError};

impl Walk<'_> {
    /// The databases in `place` beside which others of the names in `listing` lie.
    pub(super) fn with_sides(&self, place: &Place, listing: &Listing) -> Vec<Vec<u8>> {
        let mut found: Vec<Vec<u8>> = Vec::new();
        if !self.elsewhere.finds {
            return found;
        }
        for at in 0..listing.len() {
            let name = listing.get(at).0.to_bytes();
            for base in SIDES.iter().filter_map(|suffix| name.strip_suffix(*suffix)) {
                if listing.has(base)
                    && !found.iter().any(|known| known == base)
                    && is_text(place, base)
                    && self.kept.open(&place.dir).is_ok_and(|dir| is_database(dir, base))
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
        !databases.is_empty() && place.is_beside_database(name)
    }

    /// Whether `file`, which is `name` in `place`, is a database: then it is left to a
    /// target of its own, and not captured here.
    pub fn leave_database(&self, place: &Place, name: &[u8], file: &File, stat: &Stat) -> bool {
        let may_be = self.elsewhere.finds && stat.size >= header::LENGTH as u64;
        if !may_be || !is_text(place, name) || !matches!(header::read(file), Ok(Some(_))) {
            return false;
        }
        place.databases().push(name.to_vec());
        self.leave_out(place.dir.path_of(name), Why::Elsewhere, "", None, Some(stat));
        true
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

    /// Whether `name` lies beside one of the databases that were found so far, and belongs
    /// to it.
    pub fn is_beside_database(&self, name: &[u8]) -> bool {
        self.databases().iter().any(|base| SIDES.iter().any(|suffix| side(base, suffix) == name))
    }
}

/// Whether the path of `name` can be a setting.
fn is_text(place: &Place, name: &[u8]) -> bool {
    std::str::from_utf8(&place.dir.path_of(name)).is_ok_and(|path| !path.contains('\n'))
}

/// Whether the file `name` of `dir` is a database that a target can be made for.
fn is_database(dir: impl AsFd, name: &[u8]) -> bool {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let Ok(name) = CString::new(name) else { return false };
    let Ok(file) = rustix::fs::openat(dir, &name, flags, Mode::empty()) else { return false };
    let file = File::from(file);
    Stat::of_open(&file).is_ok_and(|stat| stat.is_file()) && matches!(header::read(&file), Ok(Some(_)))
}
