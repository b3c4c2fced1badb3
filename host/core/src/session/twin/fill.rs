//! Giving one of the two what the other has: the store its second name outside, or what it
//! lost from there.
//!
//! Invariant: a link where one reaches, else a copy that is written aside, synced and
//! renamed; snapshots whole or not at all, and outside none whose objects are not there.

use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result};
use crate::history::Id;
use crate::history::snapshot::{META, odd};
use crate::store::{DAMAGED, PackName, Store};
use rustix::io::Errno;
use std::collections::HashSet;

/// Small files at the top that belong to the history; `format` is last, since a
/// directory without it is no store.
pub(super) const FILES: [&[u8]; 5] = [b".gitignore", b"CACHEDIR.TAG", b"id", b"timeline", b"format"];

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;

/// The name of a pack's file without the mark that objects in it are damaged.
pub(super) fn unmarked(name: &[u8]) -> &[u8] {
    name.strip_suffix(DAMAGED).unwrap_or(name)
}

fn is_pack(name: &[u8]) -> bool {
    PackName::parse(unmarked(name)).is_some()
}

/// Giving one of the two what the other has.
pub(in crate::session) struct Filling<'a> {
    pub disk: &'a Disk,
    /// From the twin to the store: what the store has stays as it is.
    pub inward: bool,
    /// Bytes that may still be copied where links do not reach.
    pub budget: u64,
}

impl Filling<'_> {
    /// Gives `to` all that `from` has and it has not; of the snapshot `touched` each file.
    pub fn fill(&mut self, from: &Dir, to: &Dir, touched: Option<&Id>) -> Result<()> {
        let is_whole = self.packs(from, to)?;
        // A record without its objects would promise what cannot be kept. The older ones had
        // theirs, and may still be touched.
        self.snapshots(from, to, touched, is_whole || self.inward)?;
        for name in FILES {
            self.file(from, to, name)?;
        }
        Ok(())
    }

    /// Gives `to` all packs; whether none is too large to be copied.
    fn packs(&mut self, from: &Dir, to: &Dir) -> Result<bool> {
        let Some(from) = there(from, b"packs")? else { return Ok(true) };
        let to = Self::sub(self.disk, to, b"packs")?;
        let theirs = from.names()?;
        let there = to.names()?;
        let have: HashSet<&[u8]> = match self.inward {
            true => there.iter().map(|name| unmarked(name)).collect(),
            false => there.iter().map(|name| &name[..]).collect(),
        };
        let known = |name: &[u8]| have.contains(if self.inward { unmarked(name) } else { name });
        let new: Vec<&Vec<u8>> = theirs.iter().filter(|name| is_pack(name) && !known(name)).collect();
        let mut is_whole = true;
        for name in new {
            is_whole &= self.second_name(&from, &to, name, name)?;
        }
        if !self.inward {
            self.marks(&from, &to, &theirs)?;
        }
        Ok(is_whole)
    }

    /// Gives a pack that was marked as damaged, or is no longer, the same mark in the twin.
    fn marks(&self, store: &Dir, twin: &Dir, ours: &[Vec<u8>]) -> Result<()> {
        let ours: HashSet<&[u8]> = ours.iter().map(|name| &name[..]).collect();
        for name in twin.names()?.iter().filter(|name| !ours.contains(&name[..])) {
            let marked = [name, DAMAGED].concat();
            let outdated = match name.strip_suffix(DAMAGED) {
                Some(plain) => ours.contains(plain),
                // A copy may be whole where the store's is not: it is looked into first.
                None => ours.contains(&marked[..]) && same_file(store, &marked, twin, name)?,
            };
            if outdated {
                self.disk.unlink(twin, name)?;
            }
        }
        Ok(())
    }

    fn snapshots(&mut self, from: &Dir, to: &Dir, touched: Option<&Id>, new: bool) -> Result<()> {
        let Some(from) = there(from, b"snapshots")? else { return Ok(()) };
        let to = Self::sub(self.disk, to, b"snapshots")?;
        let have: HashSet<Vec<u8>> = to.names()?.into_iter().collect();
        for name in from.names()?.iter().filter(|name| is_id(name)) {
            let touched = touched.is_some_and(|id| id.as_str().as_bytes() == &name[..]);
            if have.contains(name) && !touched && to.child(name)?.stat(META.as_bytes())?.is_some() {
                continue;
            }
            if !new && !have.contains(name) {
                continue;
            }
            let source = from.child(name)?;
            if source.stat(META.as_bytes())?.is_none() {
                continue;
            }
            if have.contains(name) {
                self.missing(&source, &to.child(name)?)?;
                continue;
            }
            // Whole or not at all, as when it was committed.
            let aside = [b".", &name[..]].concat();
            self.missing(&source, &Self::sub(self.disk, &to, &aside)?)?;
            self.disk.rename(&to, &aside, &to, name)?;
        }
        Ok(())
    }

    fn missing(&mut self, from: &Dir, to: &Dir) -> Result<()> {
        for name in from.names()? {
            if to.stat(&name)?.is_none() {
                self.second_name(from, to, &name, &name)?;
            }
        }
        Ok(())
    }

    /// Puts what the other has in the place of `name`.
    pub fn replace(&mut self, from: &Dir, to: &Dir, name: &[u8]) -> Result<()> {
        let aside = [b".", name, b".twin"].concat();
        if to.stat(&aside)?.is_some() {
            self.disk.unlink(to, &aside)?;
        }
        if self.second_name(from, to, name, &aside)? {
            self.disk.rename(to, &aside, to, name)?;
        }
        Ok(())
    }

    /// A small file at the top, which may have been written anew since.
    fn file(&mut self, from: &Dir, to: &Dir, name: &[u8]) -> Result<()> {
        let (Some(source), there) = (from.stat(name)?, to.stat(name)?) else { return Ok(()) };
        if self.inward && there.is_some() && (name != b"format" || Store::is_finished(to.path())) {
            return Ok(());
        }
        let same = there.is_some_and(|there| {
            (there.st_dev, there.st_ino) == (source.st_dev, source.st_ino)
                || (there.st_dev != source.st_dev
                    && there.st_size == source.st_size
                    && there.st_mtime >= source.st_mtime)
        });
        if same { Ok(()) } else { self.replace(from, to, name) }
    }

    /// Links `old` as `new`, or copies it where a link does not reach.
    fn second_name(&mut self, from: &Dir, to: &Dir, old: &[u8], new: &[u8]) -> Result<bool> {
        const NO_LINK: [Errno; 4] = [Errno::XDEV, Errno::PERM, Errno::MLINK, Errno::OPNOTSUPP];
        match self.disk.link(from, old, to, new) {
            Ok(()) => return Ok(true),
            Err(e) if NO_LINK.iter().any(|&errno| e.is(errno)) => {}
            Err(e) => return Err(e),
        }
        let size = from.stat(old)?.map_or(0, |stat| stat.st_size as u64);
        if size > self.budget {
            return Ok(false);
        }
        self.budget -= size;
        self.copy(from, to, old, new)?;
        Ok(true)
    }

    fn copy(&self, from: &Dir, to: &Dir, old: &[u8], new: &[u8]) -> Result<()> {
        use std::os::unix::fs::FileExt;
        let source = from.open_file(old)?;
        let aside = [b".", new, b".copy"].concat();
        if to.stat(&aside)?.is_some() {
            self.disk.unlink(to, &aside)?;
        }
        let target = self.disk.create_file(to, &aside, 0o600)?;
        let (mut piece, mut at) = (vec![0; PIECE], 0);
        loop {
            let n =
                source.read_at(&mut piece, at).map_err(|e| Error::io(e, "could not read", from.join(old)))?;
            if n == 0 {
                break;
            }
            self.disk.write_all(&target, at, &piece[..n])?;
            at += n as u64;
        }
        // The timeline is appended to; all else is sealed.
        let bits = if old == b"timeline" { 0o600 } else { 0o400 };
        self.disk.set_mode_of(&target, bits)?;
        self.disk.sync_file(&target)?;
        self.disk.rename(to, &aside, to, new)
    }

    /// The directory `name` of `dir`, made when it is not there.
    pub fn sub(disk: &Disk, dir: &Dir, name: &[u8]) -> Result<Dir> {
        if dir.stat(name)?.is_none() {
            disk.mkdir(dir, name, 0o700)?;
        }
        dir.child(name).map_err(odd)
    }
}

pub(super) fn there(dir: &Dir, name: &[u8]) -> Result<Option<Dir>> {
    match dir.child(name) {
        Ok(dir) => Ok(Some(dir)),
        Err(e) if e.kind() == Kind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether the two names are of one file.
pub(in crate::session) fn same_file(a: &Dir, a_name: &[u8], b: &Dir, b_name: &[u8]) -> Result<bool> {
    let id = |stat: rustix::fs::Stat| (stat.st_dev, stat.st_ino);
    Ok(match (a.stat(a_name)?, b.stat(b_name)?) {
        (Some(a), Some(b)) => id(a) == id(b),
        _ => false,
    })
}

pub(super) fn is_id(name: &[u8]) -> bool {
    std::str::from_utf8(name).ok().and_then(Id::parse).is_some()
}
