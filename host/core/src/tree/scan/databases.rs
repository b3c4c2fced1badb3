//! Databases that are met on the way: left to targets of their own, with what lies
//! beside them, and not captured as files.
//!
//! One is known by its first bytes. Where files lie beside a file that could be those of
//! a database, it is looked into before any of them is read; else when it is read anyway.
//! Where the `sqlite` option is off, and at a path that SQLite itself cannot open, a
//! database is a file like any other.
//!
//! Invariant: what SQLite made beside a file is captured, put back and removed only with that
//! file. A log or a journal alone, beside a file that goes on as it is, changes what is in that.

use super::decide::Verdict;
use super::{Listing, Place, Scratch, Stat, Walk};
use crate::database::{Header, LONGEST, SIDES, bases, header, is_side, is_stored_side};
use crate::error::{Result, show_bytes};
use crate::tree::root::Why;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;
use std::sync::{Arc, MutexGuard, PoisonError};

impl Walk<'_> {
    /// The files in `place` beside which others of the names in `listing` lie.
    pub(super) fn with_sides(&self, place: &Place, listing: &Listing) -> Vec<Base> {
        let mut found: Vec<Base> = Vec::new();
        for at in 0..listing.len() {
            let name = listing.get(at).0;
            for (base, _) in bases(name) {
                if listing.has(base) && !found.iter().any(|known| known.name == base) {
                    found.push(self.base(place, base));
                }
            }
        }
        found
    }

    fn base(&self, place: &Place, name: &[u8]) -> Base {
        let begin = match self.kept.open(&place.dir) {
            Ok(dir) => self.begin_of(place, &dir, name),
            Err(error) => Err(error),
        };
        let is_database =
            matches!(begin, Ok(Some(_))) && self.elsewhere.finds && self.can_be_opened(place, name);
        let left = matches!(begin, Err(Errno::ACCESS)).then(|| {
            let detail = format!("it belongs to {}, which could not be opened", show_bytes(name));
            Verdict::Leave(Why::Unreadable, detail.into())
        });
        Base { name: name.to_vec(), is_database, left }
    }

    /// The `verdict` about `name`, a file or link in `place`, once it is known whether it is a
    /// database, which is left to a target of its own, or was made by SQLite beside one of
    /// `known`: then it goes the way of that. Names come in order, so those come first.
    pub(super) fn with_its_base(
        &self,
        place: &Place,
        known: &mut [Base],
        name: &[u8],
        verdict: Verdict,
    ) -> Result<Verdict> {
        let verdict = match verdict {
            Verdict::Take(_) => self.left_with_base(place, known, name)?.unwrap_or(verdict),
            verdict => verdict,
        };
        // What lies beside a database is left to the same target.
        if let Some(base) = known.iter_mut().find(|base| base.name == name)
            && !matches!(verdict, Verdict::Take(_) | Verdict::Leave(Why::Elsewhere, _))
        {
            base.left = Some(verdict.clone());
        }
        Ok(verdict)
    }

    /// What becomes of `name` in `place`, which no rule leaves out, when it is not captured.
    fn left_with_base(&self, place: &Place, known: &[Base], name: &[u8]) -> Result<Option<Verdict>> {
        if known.iter().any(|base| base.is_database && base.name == name) {
            place.found(name, "".into());
            return Ok(Some(Verdict::Leave(Why::Elsewhere, "".into())));
        }
        let beside = bases(name).find_map(|(of, _)| {
            let left = known.iter().find(|base| base.name == of)?.left.clone()?;
            self.belongs(place, of, name).then_some(left)
        });
        Ok(match beside {
            // What is not kept by its path would be taken for gone.
            Some(Verdict::Ignore(at)) if self.covered(place, name)?.is_some() => {
                let (why, detail) = self.ignored_because(at);
                Some(Verdict::Leave(why, detail))
            }
            None => match self.beside_database(place, name) {
                Some((target, true)) => Some(Verdict::Leave(Why::Elsewhere, target)),
                // If it comes again while it is read, it is left then.
                _ => None,
            },
            beside => beside,
        })
    }

    /// Bars what the snapshot that must be covered has beside files of `scratch` that are left
    /// out, and is not there now: it would come to be beside a file that goes on.
    pub(super) fn bar_sides(&self, place: &Place, scratch: &mut Scratch) -> Result<()> {
        let (Some(cover), Some(entries)) = (&self.cover, self.cover_of(place)?) else { return Ok(()) };
        let Scratch { listing, ignored, left, barred, .. } = scratch;
        let is_gone = |name: &[u8]| !listing.has(name);
        for entry in entries.iter().filter(|entry| bases(&entry.name).next().is_some()) {
            for (base, suffix) in bases(&entry.name).filter(|_| is_gone(&entry.name)) {
                let is_base = |at: u32| listing.get(at as usize).0 == base;
                let left = left.iter().find(|(at, why, _)| *why != Why::Elsewhere && is_base(*at));
                let ignored = ignored.iter().find(|(at, _)| is_base(*at));
                let why = match (left, ignored) {
                    (Some((_, why, detail)), _) => (*why, detail.clone()),
                    (None, Some((_, pattern))) => self.ignored_because(*pattern),
                    (None, None) => continue,
                };
                if is_stored_side(cover.source, &entry.node, suffix)? {
                    barred.push((entry.name.clone(), why.0, why.1));
                }
            }
        }
        Ok(())
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

    /// The target of the database, found in `place` so far, beside which SQLite made what is called
    /// `name`, and whether that is there: what is called like that and is not was there a moment ago.
    pub fn beside_database(&self, place: &Place, name: &[u8]) -> Option<(Arc<str>, bool)> {
        let databases = place.databases();
        bases(name).find_map(|(base, suffix)| {
            let (_, target) = databases.iter().find(|(known, _)| known == base)?;
            let there = is_side(self.kept.open(&place.dir).ok()?, base, suffix);
            (there != Some(false)).then(|| (target.clone(), there.is_some()))
        })
    }

    /// Whether `file`, which is `name` in `place`, is a database: then it is left to a
    /// target of its own, and not captured here.
    pub fn leave_database(&self, place: &Place, name: &[u8], file: &File, stat: &Stat) -> bool {
        let may_be = self.elsewhere.finds && stat.size >= header::LENGTH as u64;
        if !may_be || !self.can_be_opened(place, name) || !matches!(header::read(file), Ok(Some(_))) {
            return false;
        }
        place.found(name, "".into());
        self.leave_out(place.dir.path_of(name), Why::Elsewhere, "", None, Some(stat));
        true
    }

    /// Whether `name` in `place`, open as `dir` and seen as `stat`, is a database that is left
    /// to a target of its own.
    pub fn is_database(&self, place: &Place, dir: impl AsFd, name: &[u8], stat: &Stat) -> bool {
        let may_be = self.elsewhere.finds && stat.is_file() && stat.size >= header::LENGTH as u64;
        may_be
            && self.can_be_opened(place, name)
            && matches!(self.begin_of(place, dir, name), Ok(Some(header)) if !header.is_cut(stat.size))
    }

    /// The header with which the file `name` in `place`, open as `dir`, begins; none when it
    /// is no database.
    fn begin_of(&self, place: &Place, dir: impl AsFd, name: &[u8]) -> rustix::io::Result<Option<Header>> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let Ok(name) = CString::new(name) else { return Ok(None) };
        let file = match rustix::fs::openat(&dir, &name, flags, Mode::empty()) {
            Err(Errno::ACCESS) => self.lend(place, dir, &name).map_or(Err(Errno::ACCESS), |lent| lent.open()),
            opened => opened,
        };
        let file = File::from(file?);
        match Stat::of_open(&file).is_ok_and(|stat| stat.is_file()) {
            true => Ok(header::read(&file).ok().flatten()),
            false => Ok(None),
        }
    }

    /// Whether SQLite takes the path of `name`: no application has it open by a longer one.
    fn can_be_opened(&self, place: &Place, name: &[u8]) -> bool {
        let above = self.directory.path().as_os_str().len() + 1;
        above + place.dir.path_of(name).len() <= LONGEST
    }
}

/// A file beside which others lie that are called as SQLite calls them.
pub(super) struct Base {
    name: Vec<u8>,
    /// Whether it is left to a target of its own, when no rule leaves it out.
    is_database: bool,
    /// What becomes of it when it is not captured.
    left: Option<Verdict>,
}

impl Place {
    fn databases(&self) -> MutexGuard<'_, Vec<(Vec<u8>, Arc<str>)>> {
        self.databases.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes the database `name`, which is left to `target`; to one of its own when that is empty.
    pub(super) fn found(&self, name: &[u8], target: Arc<str>) {
        self.databases().push((name.to_vec(), target));
    }

    /// Whether any were found.
    pub fn has_databases(&self) -> bool {
        !self.databases().is_empty()
    }
}
