//! The store's lock: one writing command at a time.
//!
//! A kernel lock, so a killed process never leaves it held. The lock file means
//! nothing by its existence; when it was removed or replaced while we waited (a
//! command may clean its own project), the lock on the old file is worth nothing:
//! that is noticed and the new file is locked instead.

use crate::disk::{Dir, Disk, Handle};
use crate::error::{Error, Kind, Result};
use rustix::fd::AsFd;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use std::path::Path;

/// The lock's file in the store.
pub const FILE: &[u8] = b"lock";

/// The lock, held until this is dropped.
#[derive(Debug)]
pub struct Lock {
    file: Handle,
}

impl Lock {
    /// Takes the lock; `waiting` is called once when another process holds it.
    pub(crate) fn take(disk: &Disk, dir: &Dir, waiting: &mut dyn FnMut()) -> Result<Self> {
        let mut told = false;
        loop {
            let file = disk.open_or_create(dir, FILE, 0o600)?;
            if !flock(&file, file.path(), FlockOperation::NonBlockingLockExclusive)? {
                if !std::mem::replace(&mut told, true) {
                    waiting();
                }
                flock(&file, file.path(), FlockOperation::LockExclusive)?;
            }
            let lock = Self { file };
            if lock.is_current(dir)? {
                return Ok(lock);
            }
        }
    }

    /// Takes the lock if nobody holds it.
    pub(super) fn try_take(disk: &Disk, dir: &Dir) -> Result<Option<Self>> {
        loop {
            let file = disk.open_or_create(dir, FILE, 0o600)?;
            if !flock(&file, file.path(), FlockOperation::NonBlockingLockExclusive)? {
                return Ok(None);
            }
            let lock = Self { file };
            if lock.is_current(dir)? {
                return Ok(Some(lock));
            }
        }
    }

    /// Whether the file that is locked is still the store's lock file.
    pub fn is_current(&self, dir: &Dir) -> Result<bool> {
        let held = self.file.stat()?;
        let named = dir.stat(FILE)?;
        Ok(named.is_some_and(|named| (named.st_dev, named.st_ino) == (held.st_dev, held.st_ino)))
    }
}

/// Locks an open file until it is closed; false when somebody else holds it and
/// `operation` does not wait.
pub(super) fn flock(file: &impl AsFd, path: &Path, operation: FlockOperation) -> Result<bool> {
    match rustix::io::retry_on_intr(|| rustix::fs::flock(file, operation)) {
        Ok(()) => Ok(true),
        Err(Errno::WOULDBLOCK) => Ok(false),
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOLCK) => {
            let path = crate::error::show(path);
            Err(Error::new(Kind::Incompatible, format!("the file system of {path} has no locks"))
                .hint("put the project on a file system that can lock files"))
        }
        Err(e) => Err(Error::io(e, "could not lock", path)),
    }
}
