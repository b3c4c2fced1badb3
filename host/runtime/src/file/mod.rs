//! Single files, read and replaced for a component: what was granted, and nothing beside it.
//!
//! A file is the directory that holds it, which is the one that was agreed to for as long
//! as it is open, and a name in it, which is never followed. What takes its place is
//! written aside and exchanged with it; only then is what came out compared with what was
//! found when the file was opened, and what somebody wrote meanwhile goes back.
//!
//! Invariant: only what this wrote itself, or what it found and took out, is ever removed.

use crate::digest;
use crate::reach::guarded::Guarded;
use crate::reach::place::Place;
use rustix::fs::FileType;
use snapback_core::disk::{Dir, Disk, Handle};
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::tree::apply::{RESERVED, make_dir};
use snapback_core::tree::xattr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// What the name of what is written aside begins with, before that of its file: the next
/// one for that file takes the place of a leftover.
const ASIDE: &[u8] = b"file-";
/// What is put before the name of what could not go back to where it was.
const SAVED: &[u8] = b"saved-";

/// A file that was granted.
pub struct File {
    /// The directory that holds it; none when it is not there.
    dir: Option<Dir>,
    name: Vec<u8>,
    disk: Disk,
    found: Mutex<Option<Found>>,
}

/// What a file is: as long as this is the same, nobody has written to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Found {
    id: (u64, u64),
    len: i64,
    modified: (i64, u64),
}

impl Found {
    /// What `stat` says; `shown` names the file.
    fn of(stat: &rustix::fs::Stat, shown: impl FnOnce() -> String) -> Result<Self> {
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            let why = format!("{} is not a regular file", shown());
            return Err(Error::new(Kind::Invalid, why).hint("name a file, not a link or a directory"));
        }
        #[allow(
            clippy::useless_conversion,
            clippy::unnecessary_cast,
            reason = "types differ between systems"
        )]
        let modified = (stat.st_mtime as i64, stat.st_mtime_nsec as u64);
        Ok(Self { id: (stat.st_dev, stat.st_ino), len: stat.st_size, modified })
    }

    fn in_dir(dir: &Dir, name: &[u8]) -> Result<Option<Self>> {
        let stat = dir.stat(name)?;
        stat.map(|stat| Self::of(&stat, || show(&dir.join(name)))).transpose()
    }
}

impl File {
    /// Opens the file at `place`, which the setting `key` names; not in a directory of
    /// snapback's own.
    ///
    /// # Errors
    /// `Changed` when its directory is not the one that was looked at, `Denied` when it is one
    /// of those, `Invalid` when what is there is no regular file.
    pub fn open(place: &Place, key: &str, own: &Guarded) -> Result<Self> {
        let name = place.path.file_name().unwrap_or_default().as_bytes().to_vec();
        let above = place.path.parent().unwrap_or(Path::new("/"));
        let dir = match place.open(key) {
            Err(error) if error.kind() == Kind::NotFound => None,
            dir => Some(Dir::from_fd(dir?, above.to_owned())),
        };
        if let Some(dir) = &dir {
            own.refuse_open(key, &place.path, dir)?;
        }
        let found = dir.as_ref().map(|dir| Found::in_dir(dir, &name)).transpose()?.flatten();
        Ok(Self { dir, name, disk: Disk::default(), found: Mutex::new(found) })
    }

    /// It, open for reading; none when it is not there.
    ///
    /// # Errors
    /// `Changed` when it is no longer what was found, or it cannot be read.
    pub fn read(&self) -> Result<Option<Reading>> {
        let (Some(dir), Some(found)) = (&self.dir, self.found()) else { return Ok(None) };
        let reading = Reading { file: dir.open_file(&self.name)?, found, shown: self.shown() };
        reading.check().map(|()| Some(reading))
    }

    /// A place aside for what is to take its place.
    ///
    /// # Errors
    /// `NotFound` when there is no directory for it; when it cannot be made.
    pub fn replace(&self) -> Result<Aside> {
        let Some(dir) = &self.dir else {
            let why = format!("there is no directory for `{}`", snapback_core::error::show_bytes(&self.name));
            return Err(Error::new(Kind::NotFound, why).hint("make it first"));
        };
        let (dir, disk) = (dir.try_clone()?, self.disk.clone());
        let inner = make_dir(&disk, &dir, RESERVED)?;
        // A name as long as its file's may be too long for one.
        let name = [ASIDE, digest::of(&self.name).as_bytes()].concat();
        if inner.stat(&name)?.is_some() {
            disk.unlink(&inner, &name)?;
        }
        let file = disk.create_file(&inner, &name, 0o600)?;
        Ok(Aside { dir, inner, name, file, disk, len: 0 })
    }

    /// Puts what was written aside into its place.
    ///
    /// # Errors
    /// `Changed` when it is no longer what was found, which is left there, or when
    /// another replacement of it was begun.
    pub fn put(&self, aside: Aside) -> Result<()> {
        let Aside { dir, inner, name, file, disk, .. } = &aside;
        if !aside.is_there()? {
            return Err(self.changed());
        }
        match self.found() {
            None => {
                disk.sync_file(file)?;
                match disk.rename_noreplace(inner, name, dir, &self.name) {
                    Err(_) if dir.stat(&self.name)?.is_some() => return Err(self.changed()),
                    done => done?,
                }
            }
            Some(found) => {
                let old = dir.open_file(&self.name)?;
                keep(disk, &old, file)?;
                disk.sync_file(file)?;
                match disk.exchange(inner, name, dir, &self.name) {
                    Ok(true) => {
                        if let Err(error) = self.check(inner, name, found) {
                            aside.back(name, disk.exchange(inner, name, dir, &self.name).map(drop))?;
                            return Err(error);
                        }
                        // Where it stays, the next one takes its place.
                        let _ = disk.unlink(inner, name);
                    }
                    Ok(false) => self.exchange_in_steps(dir, &aside, found)?,
                    Err(e) if e.kind() == Kind::NotFound => return Err(self.changed()),
                    Err(e) => return Err(e),
                }
            }
        }
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) =
            Some(Found::of(&file.stat()?, || self.shown())?);
        disk.sync_dir(dir)
    }

    /// Puts `aside` in its place where the file system cannot exchange: the name is free for
    /// a moment.
    fn exchange_in_steps(&self, dir: &Dir, aside: &Aside, found: Found) -> Result<()> {
        let Aside { inner, name, disk, .. } = aside;
        let out = [b"out-", &name[..]].concat();
        self.take_out(dir, aside, &out, found)?;
        if let Err(error) = disk.rename_noreplace(inner, name, dir, &self.name) {
            aside.back(&out, disk.rename_noreplace(inner, &out, dir, &self.name))?;
            return Err(error);
        }
        let _ = disk.unlink(inner, &out);
        Ok(())
    }

    /// Takes it out of its place to where `aside` lies, as `out`, if it is what was `found`.
    fn take_out(&self, dir: &Dir, aside: &Aside, out: &[u8], found: Found) -> Result<()> {
        let Aside { inner, disk, .. } = aside;
        match disk.rename(dir, &self.name, inner, out) {
            Err(e) if e.kind() == Kind::NotFound => return Err(self.changed()),
            done => done?,
        }
        let checked = self.check(inner, out, found);
        if checked.is_err() {
            aside.back(out, disk.rename_noreplace(inner, out, dir, &self.name))?;
        }
        checked
    }

    /// Removes it; what is not there is removed already.
    ///
    /// # Errors
    /// `Changed` when it is no longer what was found, which is left there.
    pub fn remove(&self) -> Result<()> {
        let (Some(dir), Some(found)) = (&self.dir, self.found()) else { return Ok(()) };
        let aside = self.replace()?;
        let Aside { inner, name, disk, .. } = &aside;
        self.take_out(dir, &aside, name, found)?;
        let _ = disk.unlink(inner, name);
        *self.found.lock().unwrap_or_else(PoisonError::into_inner) = None;
        disk.sync_dir(dir)
    }

    fn found(&self) -> Option<Found> {
        *self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, dir: &Dir, name: &[u8], found: Found) -> Result<()> {
        match Found::in_dir(dir, name) {
            Ok(Some(now)) if now == found => Ok(()),
            _ => Err(self.changed()),
        }
    }

    fn changed(&self) -> Error {
        changed(&self.shown())
    }

    fn shown(&self) -> String {
        self.dir.as_ref().map_or_else(String::new, |dir| show(&dir.join(&self.name)))
    }
}

fn changed(shown: &str) -> Error {
    Error::new(Kind::Changed, format!("{shown} changed since it was opened")).hint("try again")
}

/// Gives `new` the owner, mode and attributes that `old` has.
fn keep(disk: &Disk, old: &fs::File, new: &Handle) -> Result<()> {
    let (was, is) = (rustix::fs::fstat(old), new.stat()?);
    let was = was.map_err(|e| Error::io(e, "could not look at", new.path()))?;
    if (was.st_uid, was.st_gid) != (is.st_uid, is.st_gid) {
        disk.set_owner_of(new, was.st_uid, was.st_gid)?;
    }
    let has = xattr::of_open(new.file());
    for (name, value) in xattr::of_open(old).iter().filter(|attribute| !has.contains(attribute)) {
        disk.set_xattr_of(new, name, value)?;
    }
    // After the owner, which takes bits away.
    disk.set_mode_of(new, was.st_mode & 0o7777)
}

/// A file that is being read.
pub struct Reading {
    file: fs::File,
    found: Found,
    shown: String,
}

impl Reading {
    /// The file.
    pub fn file(&mut self) -> &mut fs::File {
        &mut self.file
    }

    /// Refuses it when it is no longer what was found: what was read may be of two states.
    ///
    /// # Errors
    /// `Changed`.
    pub fn check(&self) -> Result<()> {
        let stat = rustix::fs::fstat(&self.file)
            .map_err(|e| Error::io(e, "could not read", Path::new(&self.shown)))?;
        match Found::of(&stat, || self.shown.clone()) {
            Ok(now) if now == self.found => Ok(()),
            _ => Err(changed(&self.shown)),
        }
    }
}

/// What is written aside. Dropped, it is gone, if it was not put in its place.
pub struct Aside {
    dir: Dir,
    inner: Dir,
    name: Vec<u8>,
    file: Handle,
    disk: Disk,
    len: u64,
}

impl Aside {
    /// Adds `bytes`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.disk.write_all(&self.file, self.len, bytes)?;
        self.len += bytes.len() as u64;
        Ok(())
    }

    /// Whether what has its name is it: another one for the same file takes its place.
    fn is_there(&self) -> Result<bool> {
        let (mine, there) = (self.file.stat()?, self.inner.stat(&self.name)?);
        Ok(there.is_some_and(|there| (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)))
    }

    /// After `done`, which was to put back what somebody wrote and is aside as `name`: where
    /// that failed, it stays there by a name that nothing is removed by.
    fn back(&self, name: &[u8], done: Result<()>) -> Result<()> {
        let Err(error) = done else { return Ok(()) };
        let saved = [SAVED, name].concat();
        self.disk.rename_noreplace(&self.inner, name, &self.inner, &saved)?;
        let why = format!("what somebody wrote meanwhile is kept as {}", show(&self.inner.join(&saved)));
        Err(error.context(why))
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        // What stays of it goes with the next one.
        if self.is_there().unwrap_or_default() {
            let _ = self.disk.unlink(&self.inner, &self.name);
        }
        let _ = self.disk.rmdir(&self.dir, RESERVED);
    }
}

#[cfg(test)]
mod tests;
