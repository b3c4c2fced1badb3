//! A directory in the store's `tmp/` for files that are only worked with: a copy to
//! look into, a file that takes its place elsewhere.
//!
//! Held by a kernel lock while it is in use, like the packs that are written there:
//! what nobody holds was left by a killed process and goes with the next writer.

use super::lock::flock;
use super::{Store, random_hex};
use crate::disk::{Dir, Disk};
use crate::error::Result;
use rustix::fs::FlockOperation;
use std::sync::Arc;

/// A directory that goes with this value.
pub struct Workspace {
    store: Arc<Store>,
    name: Vec<u8>,
    dir: Dir,
}

impl Store {
    /// A new, empty one that only this user can enter.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn workspace(self: &Arc<Self>) -> Result<Workspace> {
        loop {
            let name = random_hex(8)?.into_bytes();
            let tmp = self.tmp()?;
            self.disk.mkdir(tmp, &name, 0o700)?;
            let dir = tmp.child(&name)?;
            // A cleaner may have come between making it and holding it.
            let held = flock(&dir, dir.path(), FlockOperation::NonBlockingLockExclusive)?;
            if held && dir.stat_self()?.st_nlink > 0 {
                return Ok(Workspace { store: self.clone(), name, dir });
            }
        }
    }
}

impl Workspace {
    /// The directory.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        if let Ok(tmp) = self.store.tmp() {
            remove(&self.store.disk, tmp, &self.name, &self.dir);
        }
    }
}

/// Removes the directory `name`, as far as that is possible: what stays is removed by
/// the next writer.
pub(super) fn remove(disk: &Disk, tmp: &Dir, name: &[u8], dir: &Dir) {
    for inside in dir.names().unwrap_or_default() {
        let _ = disk.unlink(dir, &inside);
    }
    let _ = disk.rmdir(tmp, name);
}
