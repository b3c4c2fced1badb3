//! Reading what belongs to this user and what it may not read.
//!
//! A command may have taken the permission to read its own files from the user
//! (`chmod -R 000 src`). Before that can be taken back it must be captured, so the owner
//! lends itself the permission. Invariant: the mode that was there comes back when the
//! `Lent` goes, unless somebody set another one meanwhile. Nothing is lent that is
//! somebody else's, nor where setting the mode would lose a bit of it (setgid).

use super::{Dir, Disk, Op, OpKind};
use crate::error::{Kind, Result};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

const SETGID: u32 = 0o2000;
/// What the owner needs to read a file, and to list and enter a directory.
const READ: u32 = 0o400;
const ENTER: u32 = 0o500;

/// Permission to read one entry that was not there before.
pub struct Lent {
    disk: Disk,
    held: OwnedFd,
    mode: u32,
    added: u32,
}

impl Disk {
    /// Lends this user the permission to read the file or to enter the directory `name`
    /// of `dir`, when that is its own and it lacks the permission. A link is not followed.
    pub fn lend(&self, dir: impl AsFd, name: &CStr) -> Option<Lent> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let held = rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&held).ok()?;
        let needed = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => READ,
            FileType::Directory => ENTER,
            _ => return None,
        };
        let mode = Mode::from_raw_mode(stat.st_mode).bits();
        let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
        if !is_own || mode & needed == needed || mode & SETGID != 0 {
            return None;
        }
        let lent = Lent { disk: self.clone(), held, mode, added: needed };
        lent.set(mode | needed).ok()?;
        Some(lent)
    }

    /// Opens the file `name` of `dir` for reading, also when this user, its owner, may
    /// not: then true comes with it.
    ///
    /// # Errors
    /// As [`Dir::open_file`] has them.
    pub fn open_own(&self, dir: &Dir, name: &[u8]) -> Result<(File, bool)> {
        let error = match dir.open_file(name) {
            Ok(file) => return Ok((file, false)),
            Err(error) => error,
        };
        let lent = match (error.kind(), CString::new(name)) {
            (Kind::Denied, Ok(name)) => self.lend(dir, &name),
            _ => None,
        };
        lent.and_then(|lent| lent.open().ok()).map(|file| (file.into(), true)).ok_or(error)
    }
}

impl Lent {
    /// Opens what is lent for reading. What it is open stays so when the permission goes.
    ///
    /// # Errors
    /// What the system says.
    pub fn open(&self) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        rustix::fs::openat(CWD, self.path(), flags, Mode::empty())
    }

    /// The permissions that were there before.
    pub fn mode(&self) -> u32 {
        self.mode
    }

    /// The very inode, whatever its name leads to by now.
    fn path(&self) -> String {
        format!("/proc/self/fd/{}", self.held.as_raw_fd())
    }

    fn set(&self, mode: u32) -> Result<()> {
        let path = self.path();
        let op = Op::new(OpKind::SetMode, path.as_ref(), b"");
        self.disk.run(&op, || Ok(rustix::fs::chmod(&path, Mode::from_raw_mode(mode))?))
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let now = rustix::fs::fstat(&self.held).map(|stat| Mode::from_raw_mode(stat.st_mode).bits());
        if now == Ok(self.mode | self.added) {
            // A mode that cannot be given back leaves the owner able to read his own.
            let _ = self.set(self.mode);
        }
    }
}
