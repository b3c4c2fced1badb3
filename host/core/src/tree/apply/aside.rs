//! Where new entries are made before they take their place, and where displaced ones
//! wait until they are removed.
//!
//! Each entry has one name there, made from its path, so that after a restore that was
//! cut short it is known what a leftover belongs to. It is `w...` while a long file is
//! being written, `x...` when it is whole or displaced. The place is the store's
//! `aside/` where names can be moved between it and the tree, else `.snapback~` in the
//! tree itself, which captures leave out.
//!
//! Invariant: nothing is removed from here that was not compared with what is stored.
//! What somebody wrote after the capture goes to `saved/` and stays.

use super::place::{Place, Places, Volume};
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result};
use crate::object::{Key, ObjectKind};
use crate::tree::scan::Stat;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The name in a tree under which a restore works: never captured.
pub const RESERVED: &[u8] = b".snapback~";
/// Where things wait in a store.
pub const ASIDE: &[u8] = b"aside";
/// Where things are kept for good in a store.
pub const SAVED: &[u8] = b"saved";
/// What begins the names of things that are kept for good aside in a tree.
const BESIDE: &str = "saved-";
/// Of a name, as much as a saved file keeps, so that no name becomes too long.
const KEPT_NAME: usize = 200;

/// One directory aside.
pub struct Aside<'a> {
    /// The directory.
    pub dir: Dir,
    /// It lies in the tree: which directory holds it.
    home: Option<Arc<Place<'a>>>,
    /// What earlier restores left here and nobody has dealt with.
    left: Mutex<HashSet<Vec<u8>>>,
    /// What is made here gets attributes from the directory.
    pub inherits: bool,
}

/// All directories aside of one restore.
pub struct Asides<'a> {
    disk: &'a Disk,
    store: &'a Dir,
    /// Names one restore's target and setting: their leftovers are told apart.
    scope: String,
    /// The store's, and what it lies on.
    main: (Arc<Aside<'a>>, Volume),
    others: Mutex<Vec<(Volume, Arc<Aside<'a>>)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn hex(bytes: &[u8]) -> String {
    let digit = |nibble: u8| char::from(b"0123456789abcdef"[usize::from(nibble)]);
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 15)]).collect()
}

/// The directory `name` of `dir`, made when it is not there.
///
/// # Errors
/// When it cannot be made or opened; `Denied` when it is another user's.
pub fn make_dir(disk: &Disk, dir: &Dir, name: &[u8]) -> Result<Dir> {
    if dir.stat(name)?.is_none() {
        match disk.mkdir(dir, name, 0o700) {
            Err(_) if dir.stat(name)?.is_some() => {}
            done => done?,
        }
    }
    let made = dir.child(name)?;
    let stat = made.stat_self()?;
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        let shown = crate::error::show(made.path());
        return Err(Error::new(Kind::Denied, format!("{shown} is another user's")).hint("move it away"));
    }
    if stat.st_mode & 0o077 != 0 {
        // Where a file system keeps no modes, what is aside is as open as what is in the tree.
        let _ = disk.set_mode_of(&made, 0o700);
    }
    Ok(made)
}

/// Moves `name` of `from` into `saved` for good: under a name that is free, made from `mark` and
/// as much of `last`, what it was called, as fits. Returns where it is.
///
/// # Errors
/// When the disk refuses.
pub fn keep(disk: &Disk, from: &Dir, name: &[u8], saved: &Dir, mark: &str, last: &[u8]) -> Result<PathBuf> {
    let last = &last[..last.len().min(KEPT_NAME)];
    let mut number = 0u32;
    loop {
        let new = [format!("{mark}-{number}-").as_bytes(), last].concat();
        match disk.rename_noreplace(from, name, saved, &new) {
            Err(e) if e.is(rustix::io::Errno::EXIST) => number += 1,
            done => return done.map(|()| saved.path().join(OsStr::from_bytes(&new))),
        }
    }
}

/// The same where it stands, in a directory aside in the tree.
///
/// # Errors
/// When the disk refuses.
pub fn keep_beside(disk: &Disk, dir: &Dir, name: &[u8], mark: &str, last: &[u8]) -> Result<PathBuf> {
    keep(disk, dir, name, dir, &format!("{BESIDE}{mark}"), last)
}

/// Whether what is called `name` in a directory aside in the tree is kept for good.
pub fn is_kept(name: &[u8]) -> bool {
    name.starts_with(BESIDE.as_bytes())
}

impl<'a> Aside<'a> {
    fn open(dir: Dir, home: Option<Arc<Place<'a>>>) -> Result<Self> {
        let left = dir.names()?.into_iter().filter(|name| !is_kept(name)).collect();
        let inherits = !crate::tree::xattr::of_open(&dir).is_empty();
        Ok(Self { dir, home, left: Mutex::new(left), inherits })
    }

    /// Whether there is a leftover called `name` that nobody has dealt with.
    pub fn is_left(&self, name: &[u8]) -> bool {
        lock(&self.left).contains(name)
    }

    /// The leftover `name` has been dealt with.
    pub fn dealt_with(&self, name: &[u8]) {
        lock(&self.left).remove(name);
    }

    /// Leftovers that nobody has dealt with.
    pub fn left(&self) -> Vec<Vec<u8>> {
        let mut left: Vec<Vec<u8>> = lock(&self.left).iter().cloned().collect();
        left.sort();
        left
    }
}

/// The name aside of the entry at `path`, when it is whole.
pub fn name_of(scope: &str, path: &[u8]) -> Vec<u8> {
    let text = [scope.as_bytes(), b"\0", path].concat();
    let hash = Key::of(ObjectKind::Blob, &text);
    [b"x", hex(&hash.hash()[..16]).as_bytes()].concat()
}

/// The same while it is being written.
pub fn unfinished(name: &[u8]) -> Vec<u8> {
    [b"w", &name[1..]].concat()
}

impl<'a> Asides<'a> {
    /// Those of a restore of `target` (and its `setting`) from the store in `store`.
    pub fn open(disk: &'a Disk, store: &'a Dir, target: &str, setting: &str) -> Result<Self> {
        let name = Key::of(ObjectKind::Blob, format!("{target}\0{setting}").as_bytes());
        let scope = hex(&name.hash()[..8]);
        let top = make_dir(disk, store, ASIDE)?;
        let main = Aside::open(make_dir(disk, &top, scope.as_bytes())?, None)?;
        let volume = Volume::of_open(&main.dir)?;
        let main = (Arc::new(main), volume);
        Ok(Self { disk, store, scope, main, others: Mutex::default() })
    }

    /// Whether what lies in or beneath `home` is put aside in the store.
    pub fn is_main(&self, home: &Place<'_>) -> bool {
        home.volume() == self.main.1
    }

    /// The name aside of the entry at `path`.
    pub fn name_of(&self, path: &[u8]) -> Vec<u8> {
        name_of(&self.scope, path)
    }

    /// Where what lies in or beneath `home` is put aside. `home` stays a directory: if
    /// need be, the place aside is made in it, or better at the top.
    pub fn of(&self, home: &Arc<Place<'a>>, top: &Arc<Place<'a>>) -> Result<Arc<Aside<'a>>> {
        if home.volume() == self.main.1 {
            return Ok(self.main.0.clone());
        }
        let mut others = lock(&self.others);
        if let Some((_, aside)) = others.iter().find(|(volume, _)| *volume == home.volume()) {
            return Ok(aside.clone());
        }
        let make = |home: &Arc<Place<'a>>| {
            let dir = make_dir(self.disk, &home.dir, RESERVED)?;
            let dir = make_dir(self.disk, &dir, self.scope.as_bytes())?;
            Aside::open(dir, Some(home.clone()))
        };
        let aside = match (top.volume() == home.volume()).then(|| make(top)) {
            Some(Ok(aside)) => aside,
            Some(Err(e)) if e.kind() != Kind::Denied => return Err(e),
            _ => make(home)?,
        };
        let aside = Arc::new(aside);
        others.push((home.volume(), aside.clone()));
        Ok(aside)
    }

    /// Looks in `place` for what an earlier restore left there.
    pub fn notice(&self, place: &Arc<Place<'a>>) -> Result<()> {
        if place.volume() == self.main.1 || place.dir.stat(RESERVED)?.is_none() {
            return Ok(());
        }
        let mut others = lock(&self.others);
        let known =
            others.iter().any(|(_, a)| a.home.as_ref().is_some_and(|h| h.stat.id() == place.stat.id()));
        let Ok(dir) = place.dir.child(RESERVED).and_then(|dir| dir.child(self.scope.as_bytes())) else {
            return Ok(());
        };
        if !known {
            others.push((place.volume(), Arc::new(Aside::open(dir, Some(place.clone()))?)));
        }
        Ok(())
    }

    /// All that are in use.
    pub fn all(&self) -> Vec<Arc<Aside<'a>>> {
        let others = lock(&self.others);
        std::iter::once(&self.main.0).chain(others.iter().map(|(_, aside)| aside)).cloned().collect()
    }

    /// Keeps `name`, which somebody wrote to, or may, and says where. `path` is where it was.
    pub fn save(&self, aside: &Aside<'_>, name: &[u8], path: &[u8]) -> Result<PathBuf> {
        let id = String::from_utf8_lossy(&name[1..name.len().min(9)]).into_owned();
        let last = super::place::split(path).1;
        let at = match &aside.home {
            None => keep(self.disk, &aside.dir, name, &make_dir(self.disk, self.store, SAVED)?, &id, last)?,
            Some(_) => keep_beside(self.disk, &aside.dir, name, &id, last)?,
        };
        aside.dealt_with(name);
        Ok(at)
    }

    /// Removes the directories aside that are empty; in the tree, the directory that
    /// held one keeps its time.
    pub fn clear(&self, places: &Places<'a>) -> Result<()> {
        for aside in self.all() {
            let Some(home) = &aside.home else { continue };
            if !aside.dir.names()?.is_empty() {
                continue;
            }
            let before =
                Stat::of_open(&home.dir).map_err(|e| Error::io(e, "could not look at", home.dir.path()))?;
            let Some(home) = places.enter_to_write(&home.path)? else { continue };
            let reserved = home.dir.child(RESERVED)?;
            self.disk.rmdir(&reserved, self.scope.as_bytes())?;
            if reserved.names()?.is_empty() {
                self.disk.rmdir(&home.dir, RESERVED)?;
                self.disk.set_times_of(&home.dir, before.mtime)?;
            }
        }
        Ok(())
    }
}
