//! The directories of a restore: opened name by name, never through a link.
//!
//! Invariant: a `Place` was reached from the root by opening one name after the other
//! without following; what its path leads to later does not matter. Only so many are
//! kept open, so a tree may be deep and wide. A directory that its owner may not
//! enter or write is opened up while there is work in it, and closed again; who only looks into
//! it is lent the permission for so long, and is told the mode that was there.

use crate::disk::{Dir, Disk, Lent};
use crate::error::{Error, Kind, Result};
use crate::tree::scan::{Stat, stat_in};
use crate::tree::statcache::{DirRecord, StatCache};
use rustix::fs::{Access, AtFlags, IFlags};
use std::collections::{BTreeMap, HashMap};
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// Directories that are kept open; far below the usual limit of 1024 for a process.
const KEPT: usize = 192;
/// What the owner needs to work in a directory.
const OWNER: u32 = 0o700;
/// All bits of a mode that can be set.
const PERMISSIONS: u32 = 0o7777;
/// What the owner needs to look at what is in a directory, and to list it.
const LOOKS: u32 = 0o500;

/// What a directory is opened for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum For {
    /// To look at what is in it.
    Looking,
    /// To change something in it, now or later.
    Work,
}

/// Within what names can be moved.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Volume {
    device: u64,
    mount: u64,
    /// What is made in a directory counts for the quota of a project, which inherits to all
    /// beneath: nothing is moved into it that counts for another (ext4, xfs). Nested projects
    /// are not told apart.
    of_project: bool,
}

impl Volume {
    /// That of the open directory `dir`.
    ///
    /// # Errors
    /// When it cannot be looked at.
    pub fn of_open(dir: &Dir) -> Result<Self> {
        let stat = Stat::of_open(dir).map_err(|e| Error::io(e, "could not look at", dir.path()))?;
        Ok(Self::of(dir, &stat))
    }

    fn of(dir: &Dir, stat: &Stat) -> Self {
        // Where a file system has no such flags, it has no such projects.
        let flags = rustix::fs::ioctl_getflags(dir).unwrap_or(IFlags::empty());
        let of_project = flags.contains(IFlags::PROJECT_INHERIT);
        Self { device: stat.dev, mount: stat.mount, of_project }
    }
}

/// An open directory of the tree that is restored.
pub struct Place<'a> {
    /// The directory.
    pub dir: Dir,
    /// Its path from the root; empty for the root.
    pub path: Vec<u8>,
    /// What it was when it was opened.
    pub stat: Stat,
    writable: AtomicBool,
    witness: Option<&'a StatCache>,
    record: OnceLock<Option<DirRecord<'a>>>,
    volume: OnceLock<Volume>,
    /// Permission to look into it, as long as this is there.
    lent: Mutex<Option<Lent>>,
}

impl<'a> Place<'a> {
    /// The open directory `dir` at `path`, which may be `lent`.
    fn new(dir: Dir, path: Vec<u8>, witness: Option<&'a StatCache>, lent: Option<Lent>) -> Result<Self> {
        let mut stat = Stat::of_open(&dir).map_err(|e| Error::io(e, "could not look at", dir.path()))?;
        if let Some(lent) = &lent {
            stat.mode = stat.mode & !PERMISSIONS | lent.mode();
        }
        let (writable, record, volume) = (AtomicBool::new(false), OnceLock::new(), OnceLock::new());
        Ok(Self { dir, path, stat, writable, witness, record, volume, lent: Mutex::new(lent) })
    }

    /// What it is now.
    fn stat_self(&self) -> Result<Stat> {
        Stat::of_open(&self.dir).map_err(|e| Error::io(e, "could not look at", self.dir.path()))
    }

    /// What `name` in it is; none when it is not there.
    pub fn stat_of(&self, name: &[u8]) -> Result<Option<Stat>> {
        stat_in(&self.dir, name)
    }

    /// Whether `name` in it, now as in `stat`, is exactly what the capture saw.
    pub fn unchanged(&self, name: &[u8], stat: &Stat) -> bool {
        let record = self.record.get_or_init(|| self.witness?.dir(self.stat.dev, self.stat.ino));
        record.as_ref().and_then(|record| record.entry(name)).is_some_and(|entry| entry.matches(stat))
    }

    /// Whether names can be made and removed in it with the rights of this process.
    pub fn may_write(&self) -> Result<(), rustix::io::Errno> {
        rustix::fs::accessat(&self.dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS)
    }

    /// Whether its owner, who runs this, may list it and not look at what it lists, or neither.
    fn is_shut_to(&self, uid: u32) -> bool {
        let may =
            || rustix::fs::accessat(&self.dir, ".", Access::READ_OK | Access::EXEC_OK, AtFlags::EACCESS);
        self.stat.uid == uid && self.stat.permissions() & LOOKS != LOOKS && may().is_err()
    }

    /// Within what names can be moved in and out of it.
    pub fn volume(&self) -> Volume {
        *self.volume.get_or_init(|| Volume::of(&self.dir, &self.stat))
    }
}

/// All places of one restore.
pub struct Places<'a> {
    disk: &'a Disk,
    root: Arc<Place<'a>>,
    uid: u32,
    witness: Option<&'a StatCache>,
    kept: Mutex<HashMap<Vec<u8>, Arc<Place<'a>>>>,
    /// Directories that were opened up: the mode that they had.
    opened_up: Mutex<BTreeMap<Vec<u8>, u32>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The path of the directory that holds `path`, and the last name.
pub fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|&b| b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

impl<'a> Places<'a> {
    /// Places beneath `root`; `witness` knows what was captured there.
    pub fn new(disk: &'a Disk, root: Dir, witness: Option<&'a StatCache>) -> Result<Self> {
        let uid = rustix::process::geteuid().as_raw();
        let mut root = Place::new(root, Vec::new(), witness, None)?;
        if root.is_shut_to(uid) {
            let lent = disk.lend_opened(&root.dir);
            root = Place::new(root.dir, Vec::new(), witness, lent)?;
        }
        let (kept, opened_up) = Default::default();
        Ok(Self { disk, root: Arc::new(root), uid, witness, kept, opened_up })
    }

    /// The root.
    pub fn root(&self) -> &Arc<Place<'a>> {
        &self.root
    }

    /// The directory at `path`, to look at what is in it; none when it is not there, or is no
    /// directory (a link to one is none).
    ///
    /// # Errors
    /// When it is there and cannot be opened.
    pub fn open(&self, path: &[u8]) -> Result<Option<Arc<Place<'a>>>> {
        self.walk(path, For::Looking)
    }

    /// Like [`Self::open`], opening up what its owner may not enter.
    pub fn enter(&self, path: &[u8]) -> Result<Option<Arc<Place<'a>>>> {
        self.walk(path, For::Work)
    }

    /// Like [`Self::enter`], and makes sure that names can be made and removed in it.
    pub fn enter_to_write(&self, path: &[u8]) -> Result<Option<Arc<Place<'a>>>> {
        let Some(place) = self.enter(path)? else { return Ok(None) };
        if !place.writable.load(Ordering::Relaxed) {
            let is_shut = place.stat.uid == self.uid && place.stat.permissions() & OWNER != OWNER;
            if is_shut && place.may_write() == Err(rustix::io::Errno::ACCESS) {
                self.open_up(&place)?;
            }
            place.writable.store(true, Ordering::Relaxed);
        }
        Ok(Some(place))
    }

    /// Gives its owner all permissions in `place`, until it is closed again.
    fn open_up(&self, place: &Place<'_>) -> Result<()> {
        let before = match lock(&place.lent).take() {
            Some(lent) => lent.take_over(),
            None => place.stat_self()?.permissions(),
        };
        self.note_mode(&place.path, before);
        self.disk.set_mode_of(&place.dir, before | OWNER)
    }

    /// `place`, which may have been lent to be looked at, for work in it.
    fn ready(&self, place: Arc<Place<'a>>, what_for: For) -> Result<Option<Arc<Place<'a>>>> {
        if what_for == For::Work && lock(&place.lent).is_some() {
            self.open_up(&place)?;
        }
        Ok(Some(place))
    }

    fn walk(&self, path: &[u8], what_for: For) -> Result<Option<Arc<Place<'a>>>> {
        if path.is_empty() {
            return self.ready(self.root.clone(), what_for);
        }
        let (mut at, mut from) = {
            let kept = lock(&self.kept);
            let ends = (0..=path.len()).rev().filter(|&end| end == path.len() || path[end] == b'/');
            let mut found = ends.filter_map(|end| kept.get(&path[..end]).map(|place| (place.clone(), end)));
            match found.next() {
                Some((place, end)) if end == path.len() => {
                    drop(kept);
                    return self.ready(place, what_for);
                }
                Some((place, end)) => (place, end + 1),
                None => (self.root.clone(), 0),
            }
        };
        loop {
            let end = path[from..].iter().position(|&b| b == b'/').map_or(path.len(), |n| from + n);
            let Some(child) = self.child(&at, &path[from..end], path[..end].to_vec(), what_for)? else {
                return Ok(None);
            };
            at = Arc::new(child);
            let mut kept = lock(&self.kept);
            if kept.len() >= KEPT {
                kept.clear();
            }
            kept.insert(at.path.clone(), at.clone());
            drop(kept);
            if end == path.len() {
                return Ok(Some(at));
            }
            from = end + 1;
        }
    }

    /// The directory `name` in `at`, whose path is `path`.
    fn child(&self, at: &Place<'_>, name: &[u8], path: Vec<u8>, what_for: For) -> Result<Option<Place<'a>>> {
        let Some((dir, lent)) = self.child_dir(at, name, &path, what_for)? else { return Ok(None) };
        let place = Place::new(dir, path, self.witness, lent)?;
        if !place.is_shut_to(self.uid) {
            return Ok(Some(place));
        }
        let lent = match what_for {
            For::Work => self.open_up(&place).map(|()| None)?,
            For::Looking => self.disk.lend_opened(&place.dir),
        };
        Place::new(place.dir, place.path, self.witness, lent).map(Some)
    }

    fn child_dir(
        &self,
        at: &Place<'_>,
        name: &[u8],
        path: &[u8],
        what_for: For,
    ) -> Result<Option<(Dir, Option<Lent>)>> {
        let mut tries = 0;
        loop {
            tries += 1;
            let error = match at.dir.child(name) {
                Ok(dir) => return Ok(Some((dir, None))),
                Err(error) => error,
            };
            match error.kind() {
                Kind::NotFound | Kind::Invalid => return Ok(None),
                _ if tries > 1 => return Err(error),
                _ if error.is(rustix::io::Errno::MFILE) || error.is(rustix::io::Errno::NFILE) => {
                    lock(&self.kept).clear()
                }
                Kind::Denied if what_for == For::Looking => {
                    let lent = CString::new(name).ok().and_then(|name| self.disk.lend(&at.dir, &name));
                    let opened = lent.as_ref().and_then(|lent| lent.open().ok());
                    let dir = opened.map(|handle| Dir::from_fd(handle, at.dir.join(name))).ok_or(error)?;
                    return Ok(Some((dir, lent)));
                }
                Kind::Denied => match at.stat_of(name)? {
                    // Where nothing is missing, another thread has opened it up meanwhile.
                    Some(stat) if stat.is_dir() && stat.uid == self.uid => {
                        if stat.permissions() & OWNER != OWNER {
                            self.note_mode(path, stat.permissions());
                            self.disk.set_mode(&at.dir, name, stat.permissions() | OWNER)?;
                        }
                    }
                    _ => return Err(error),
                },
                _ => return Err(error),
            }
        }
    }

    /// The directory at `path` is no more, or another: it is opened anew when needed.
    pub fn forget(&self, path: &[u8]) {
        let inside = |p: &[u8]| p.starts_with(path) && matches!(p.get(path.len()), None | Some(b'/'));
        lock(&self.kept).retain(|p, _| !inside(p));
    }

    fn note_mode(&self, path: &[u8], mode: u32) {
        lock(&self.opened_up).entry(path.to_vec()).or_insert(mode);
    }

    /// The mode of the directory at `path` has been set for good.
    pub fn mode_is_set(&self, path: &[u8]) {
        self.root.writable.store(false, Ordering::Relaxed);
        lock(&self.kept).remove(path);
        lock(&self.opened_up).remove(path);
    }

    /// Gives the mode back that directories had before they were opened up, unless it
    /// was set for good or somebody else set it. What is inside comes before what holds it.
    ///
    /// # Errors
    /// The first failure; all are tried.
    pub fn close_again(&self) -> Result<()> {
        let opened = std::mem::take(&mut *lock(&self.opened_up));
        let mut first = Ok(());
        for (path, mode) in opened.iter().rev() {
            let close = || match self.open(path)? {
                Some(place) if place.stat_self()?.permissions() == mode | OWNER => {
                    self.disk.set_mode_of(&place.dir, *mode)
                }
                _ => Ok(()),
            };
            self.forget(path);
            let done = close();
            if first.is_ok() {
                first = done;
            }
        }
        first
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TempDir, as_nobody, give_to_nobody};
    use std::fs::{Permissions, create_dir, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_several_threads_open_up_at_once_is_open_for_all() {
        let temp = TempDir::new();
        let shut = temp.path().join("d");
        create_dir(&shut).unwrap();
        give_to_nobody(temp.path());
        let disk = Disk::default();
        as_nobody(|| {
            for _ in 0..3000 {
                set_permissions(&shut, Permissions::from_mode(0o000)).unwrap();
                let places = Places::new(&disk, Dir::open(temp.path()).unwrap(), None).unwrap();
                let enter = || places.enter(b"d").map(|place| place.is_some());
                let both = rayon::join(enter, enter);
                assert!(both.0.unwrap() && both.1.unwrap());
                places.close_again().unwrap();
                assert_eq!(shut.metadata().unwrap().permissions().mode() & 0o777, 0);
            }
        });
    }
}
