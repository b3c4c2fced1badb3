//! Choosing among the names in one directory: which are captured, and why the others are not.

use super::decide::{PLAIN, Taken, Verdict};
use super::enter::Selected;
use super::{Place, Scope, Scratch, Stat, Walk};
use crate::database::may_be_database;
use crate::error::Result;
use crate::tree::root::Why;
use rustix::fs::FileType;
use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

impl Walk<'_> {
    /// Decides about every name in the listing. Returns how many regular files are captured.
    pub(super) fn select(&self, place: &Place, scratch: &mut Scratch) -> Result<u64> {
        let Scratch { listing, selected, path, ignored, left, barred } = scratch;
        selected.clear();
        ignored.clear();
        left.clear();
        barred.clear();
        let options = self.directory.options();
        let need_paths = !matches!(place.scope, Scope::Whole)
            || options.ignore.need_paths()
            || options.include.need_paths();
        path.clear();
        if need_paths {
            path.extend_from_slice(&place.dir.path_of(b""));
        }
        let base = path.len();
        let elsewhere = self.elsewhere.inside(|| place.dir.path());
        let mut bases = self.with_sides(place, listing);
        let takes_files = elsewhere.is_empty() && bases.is_empty() && self.takes_files(place);
        let mut files = 0;
        for at in 0..listing.len() {
            let (name, mut kind) = listing.get(at);
            if kind == FileType::Unknown {
                let handle = self.kept.open(&place.dir);
                match handle.and_then(|handle| Stat::of(handle, listing.name(at))) {
                    Ok(stat) => kind = stat.kind(),
                    // Whoever captures it meets the same and says so.
                    Err(_) => kind = FileType::RegularFile,
                }
            }
            if takes_files && kind != FileType::Directory {
                files += u64::from(kind == FileType::RegularFile);
                selected.push(Selected { at: at as u32, kind, taken: PLAIN });
                continue;
            }
            path.truncate(base);
            path.extend_from_slice(name);
            let mut theirs = elsewhere.iter().filter(|(other, ..)| other == name).peekable();
            let in_the_way = theirs.peek().is_some();
            // Also what a snapshot that must be covered has: that target captures it.
            if may_be_database(kind)
                && let Some((.., target)) = theirs.find(|(_, base, _)| self.belongs(place, base, name))
            {
                if elsewhere.iter().any(|(other, base, _)| other == name && **base == *name) {
                    place.found(name, target.clone());
                }
                left.push((at as u32, Why::Elsewhere, target.clone()));
                continue;
            }
            let verdict = match in_the_way {
                // It stands in the way of what is to come back: nothing in it may be lost.
                true if self.cover.is_some() => Verdict::Take(Taken { scope: Scope::All, sure: true }),
                _ => self.decide(place, listing, name, kind == FileType::Directory, path)?,
            };
            let verdict = match may_be_database(kind) {
                true => self.with_its_base(place, &mut bases, name, verdict)?,
                false => verdict,
            };
            match verdict {
                Verdict::Take(taken) => {
                    files += u64::from(kind == FileType::RegularFile);
                    selected.push(Selected { at: at as u32, kind, taken });
                }
                Verdict::Leave(why, detail) => left.push((at as u32, why, detail)),
                Verdict::Ignore(pattern) => ignored.push((at as u32, pattern)),
            }
        }
        if !left.is_empty() || !ignored.is_empty() {
            self.bar_sides(place, scratch)?;
        }
        Ok(files)
    }

    /// Records what `select` left out: the directory itself, open as `handle`, is captured.
    pub(super) fn commit(&self, place: &Place, handle: &OwnedFd, scratch: &Scratch) {
        let ignored = scratch.ignored.iter().filter_map(|(at, pattern)| {
            self.ignored[*pattern].fetch_add(1, Ordering::Relaxed);
            Stat::of(handle, scratch.listing.name(*at as usize)).ok()
        });
        self.stamp_ignored(ignored);
        for (at, why, detail) in &scratch.left {
            let name = scratch.listing.name(*at as usize);
            let seen = Stat::of(handle, name).ok();
            self.leave_out(place.dir.path_of(name.to_bytes()), *why, &**detail, None, seen.as_ref());
        }
        for (name, why, detail) in &scratch.barred {
            self.leave_out(place.dir.path_of(name), *why, &**detail, None, None);
        }
    }
}
