//! Reading what belongs to this user and what it may not read.
//!
//! A command may have taken the permission to read its own files from the user
//! (`chmod -R 000 src`). Before that can be taken back it must be captured, so the owner
//! lends itself the permission. Invariant: the mode that was there comes back when the last
//! `Lent` of it goes, unless somebody set another one meanwhile; until then everybody who comes
//! by the same door is told the mode that was there. Nothing is lent that is somebody else's,
//! nor where setting the mode would lose a bit of it (setgid of a group that is not this user's).

use super::{Dir, Disk, Op, OpKind};
use crate::error::{Kind, Result};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

const SETGID: u32 = 0o2000;
/// What the owner needs to read a file, and to list and enter a directory.
const READ: u32 = 0o400;
const ENTER: u32 = 0o500;

/// Device and inode.
type Inode = (u64, u64);

/// What is lent: two targets may cover one directory, and are captured side by side.
#[derive(Default)]
pub(super) struct Loans {
    /// Whether anything ever was.
    any: AtomicBool,
    open: Mutex<HashMap<Inode, Loan>>,
}

struct Loan {
    /// The permissions that were there before.
    mode: u32,
    /// Those that are lent.
    added: u32,
    /// How many have it.
    users: usize,
}

/// Permission to read one entry that was not there before.
pub struct Lent {
    disk: Disk,
    held: OwnedFd,
    inode: Inode,
    mode: u32,
}

impl Loans {
    fn open(&self) -> MutexGuard<'_, HashMap<Inode, Loan>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Disk {
    /// Lends this user the permission to read the file or to enter the directory `name`
    /// of `dir`, when that is its own and it lacks the permission. A link is not followed.
    pub fn lend(&self, dir: impl AsFd, name: &CStr) -> Option<Lent> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        self.lend_held(rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?)
    }

    /// The same for what is open already: a directory may be opened for being listed, and what is
    /// in it not be looked at.
    pub fn lend_opened(&self, opened: impl AsFd) -> Option<Lent> {
        self.lend_held(opened.as_fd().try_clone_to_owned().ok()?)
    }

    fn lend_held(&self, held: OwnedFd) -> Option<Lent> {
        let mut open = self.loans.open();
        let stat = rustix::fs::fstat(&held).ok()?;
        let (inode, mode) = ((stat.st_dev, stat.st_ino), Mode::from_raw_mode(stat.st_mode).bits());
        if let Some(loan) = open.get_mut(&inode) {
            loan.users += 1;
            return Some(Lent { disk: self.clone(), held, inode, mode: loan.mode });
        }
        let added = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => READ,
            FileType::Directory => ENTER,
            _ => return None,
        };
        let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
        if !is_own || mode & added == added || (mode & SETGID != 0 && !is_in_group(stat.st_gid)) {
            return None;
        }
        set(self, &held, mode | added).ok()?;
        self.loans.any.store(true, Ordering::Relaxed);
        open.insert(inode, Loan { mode, added, users: 1 });
        Some(Lent { disk: self.clone(), held, inode, mode })
    }

    /// The same for what is open already, where somebody else has it lent.
    pub fn share(&self, opened: impl AsFd) -> Option<Lent> {
        if !self.loans.any.load(Ordering::Relaxed) {
            return None;
        }
        let mut open = self.loans.open();
        let stat = rustix::fs::fstat(&opened).ok()?;
        let inode = (stat.st_dev, stat.st_ino);
        let loan = open.get_mut(&inode)?;
        let held = opened.as_fd().try_clone_to_owned().ok()?;
        loan.users += 1;
        Some(Lent { disk: self.clone(), held, inode, mode: loan.mode })
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
        rustix::fs::openat(CWD, path(&self.held), flags, Mode::empty())
    }

    /// Ends the loan without giving the mode back that was there before, which it returns:
    /// whoever takes it over sees to that.
    pub fn take_over(self) -> u32 {
        let mut open = self.disk.loans.open();
        if let Some(loan) = open.get_mut(&self.inode) {
            // That it is not what was lent any more is for the others to see.
            loan.added = 0;
        }
        self.mode
    }

    /// The permissions that were there before.
    pub fn mode(&self) -> u32 {
        self.mode
    }
}

/// The very inode, whatever its name leads to by now.
fn path(held: &OwnedFd) -> String {
    format!("/proc/self/fd/{}", held.as_raw_fd())
}

/// Whether this process is in the group `gid`, as far as that can be told.
fn is_in_group(gid: u32) -> bool {
    let more = || rustix::process::getgroups().unwrap_or_default();
    rustix::process::getegid().as_raw() == gid || more().iter().any(|group| group.as_raw() == gid)
}

fn set(disk: &Disk, held: &OwnedFd, mode: u32) -> Result<()> {
    let path = path(held);
    let op = Op::new(OpKind::SetMode, path.as_ref(), b"");
    disk.run(&op, || Ok(rustix::fs::chmod(&path, Mode::from_raw_mode(mode))?))
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut open = self.disk.loans.open();
        let Some(loan) = open.get_mut(&self.inode) else { return };
        loan.users -= 1;
        if loan.users > 0 {
            return;
        }
        let lent = loan.mode | loan.added;
        open.remove(&self.inode);
        let now = rustix::fs::fstat(&self.held).map(|stat| Mode::from_raw_mode(stat.st_mode).bits());
        if now == Ok(lent) {
            // A mode that cannot be given back leaves the owner able to read his own.
            let _ = set(&self.disk, &self.held, self.mode);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_two_need_at_once_is_lent_until_both_have_done_with_it() {
        let temp = TempDir::new();
        let (path, disk) = (temp.path().join("d"), Disk::default());
        fs::create_dir(&path).unwrap();
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        let (above, name) = (Dir::open(temp.path()).unwrap(), c"d");
        fs::set_permissions(&path, Permissions::from_mode(0o050)).unwrap();
        assert!(disk.lend(&above, c"none").is_none() && disk.share(&above).is_none());
        let one = disk.lend(&above, name).unwrap();
        // By name, by what is open, and through another handle of the same door.
        let other = disk.clone().lend(&above, name).unwrap();
        let open = disk.share(one.open().unwrap()).unwrap();
        assert_eq!([one.mode(), other.mode(), open.mode()], [0o050; 3]);
        drop(one);
        drop(open);
        assert_eq!(mode(), 0o550);
        drop(other);
        assert_eq!(mode(), 0o050);
        assert!(disk.share(Dir::open(&path).unwrap()).is_none(), "nothing is lent any more");
        // What somebody sets meanwhile stays.
        let lent = disk.lend(&above, name).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o700)).unwrap();
        drop(lent);
        assert_eq!(mode(), 0o700);
    }
}
