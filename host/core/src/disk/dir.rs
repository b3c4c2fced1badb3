//! An open directory, and what is read through it.
//!
//! Invariant: opening by name never follows a link and never blocks on a fifo.

use super::failed;
use crate::error::{Error, Result, odd_hint};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Access, AtFlags, Mode, OFlags, RawDir, Stat};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

const OPEN_DIR: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);
/// A fifo or a device that took a file's place must not stop us.
const OPEN_FILE: OFlags =
    OFlags::NOFOLLOW.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

/// An open directory, with the path it was reached by for messages.
#[derive(Debug)]
pub struct Dir {
    fd: OwnedFd,
    path: PathBuf,
}

impl Dir {
    /// Opens the directory at `path`; links on the way to it are followed, since it
    /// is the user who names it, but it is not itself a link.
    pub fn open(path: &Path) -> Result<Self> {
        let fd =
            rustix::io::retry_on_intr(|| rustix::fs::open(path, OPEN_DIR | OFlags::NOFOLLOW, Mode::empty()))
                .map_err(|e| failed(link_not_dir(e, || lstat_is_link(path)), "could not open", path))?;
        Ok(Self { fd, path: path.to_owned() })
    }

    /// A directory that is open already.
    pub fn from_fd(fd: OwnedFd, path: PathBuf) -> Self {
        Self { fd, path }
    }

    /// Opens the directory `name` in this one; a link is refused.
    pub fn child(&self, name: &[u8]) -> Result<Self> {
        let flags = OPEN_DIR | OFlags::NOFOLLOW;
        let fd = rustix::io::retry_on_intr(|| rustix::fs::openat(&self.fd, name, flags, Mode::empty()))
            .map_err(|e| {
                let is_link = || matches!(self.stat(name), Ok(Some(stat)) if is_link(&stat));
                failed(link_not_dir(e, is_link), "could not open", &self.join(name))
            })?;
        Ok(Self { fd, path: self.join(name) })
    }

    /// A second handle on the same directory.
    pub fn try_clone(&self) -> Result<Self> {
        let fd = self.fd.try_clone().map_err(|e| failed(e, "could not open", &self.path))?;
        Ok(Self { fd, path: self.path.clone() })
    }

    /// The path it was reached by; for messages only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of `name` in it; for messages only.
    pub fn join(&self, name: &[u8]) -> PathBuf {
        if name.is_empty() { self.path.clone() } else { self.path.join(OsStr::from_bytes(name)) }
    }

    /// What `name` is, without following it; none when it is not there.
    pub fn stat(&self, name: &[u8]) -> Result<Option<Stat>> {
        match rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(failed(e, "could not look at", &self.join(name))),
        }
    }

    /// What this directory is.
    pub fn stat_self(&self) -> Result<Stat> {
        rustix::fs::fstat(&self.fd).map_err(|e| failed(e, "could not look at", &self.path))
    }

    /// Opens the file `name` for reading; a link is refused. What it is must be
    /// checked by whoever reads it: it may be a fifo by now.
    pub fn open_file(&self, name: &[u8]) -> Result<File> {
        let flags = OPEN_FILE | OFlags::RDONLY;
        rustix::io::retry_on_intr(|| rustix::fs::openat(&self.fd, name, flags, Mode::empty()))
            .map(File::from)
            .map_err(|e| failed(e, "could not open", &self.join(name)))
    }

    /// Whether this process may list and enter the directory `name`.
    pub fn may_enter(&self, name: &[u8]) -> bool {
        let all = Access::READ_OK | Access::EXEC_OK;
        rustix::fs::accessat(&self.fd, name, all, AtFlags::EACCESS).is_ok()
    }

    /// The bytes of the file `name`, of which there must be at most `limit`.
    pub fn read(&self, name: &[u8], limit: u64) -> Result<Vec<u8>> {
        let file = self.open_file(name)?;
        let path = || self.join(name);
        let stat = rustix::fs::fstat(&file).map_err(|e| failed(e, "could not read", &path()))?;
        let shown = || crate::error::show(&path());
        if rustix::fs::FileType::from_raw_mode(stat.st_mode) != rustix::fs::FileType::RegularFile {
            return Err(Error::corrupt(format!("{} is not a file", shown())).hint(odd_hint(&path())));
        }
        let mut bytes = Vec::with_capacity(u64::try_from(stat.st_size).unwrap_or(0).min(limit) as usize);
        file.take(limit + 1).read_to_end(&mut bytes).map_err(|e| failed(e, "could not read", &path()))?;
        if bytes.len() as u64 > limit {
            return Err(Error::corrupt(format!("{} is larger than it can be", shown())));
        }
        Ok(bytes)
    }

    /// Where the symbolic link `name` points.
    pub fn read_link(&self, name: &[u8]) -> Result<Vec<u8>> {
        rustix::fs::readlinkat(&self.fd, name, Vec::new())
            .map(std::ffi::CString::into_bytes)
            .map_err(|e| failed(e, "could not read", &self.join(name)))
    }

    /// The names in it, without `.` and `..`, in no order.
    ///
    /// Through a handle of its own: what has read a directory once gets nothing on some file
    /// systems (sshfs) when it begins again. The one that is held serves where it may not be
    /// opened any more; that is not for two threads at once.
    pub fn names(&self) -> Result<Vec<Vec<u8>>> {
        let told = |e: Errno| failed(e, "could not list", &self.path);
        let again = self.child(b".");
        let fd = &again.as_ref().unwrap_or(self).fd;
        rustix::fs::seek(fd, rustix::fs::SeekFrom::Start(0)).map_err(told)?;
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut entries = RawDir::new(fd, &mut buffer);
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry.map_err(told)?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(name.to_vec());
            }
        }
        Ok(names)
    }

    /// Bytes that this user may still write to its file system.
    pub fn free_space(&self) -> Result<u64> {
        let fs = rustix::fs::fstatvfs(&self.fd).map_err(|e| failed(e, "could not look at", &self.path))?;
        Ok(fs.f_bavail.saturating_mul(fs.f_frsize))
    }

    /// The way to `name` for calls that take only paths. The last name is not
    /// followed by those that are used with it.
    pub(super) fn by_descriptor(&self, name: &[u8]) -> PathBuf {
        use rustix::fd::AsRawFd;
        let mut path = PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()));
        if !name.is_empty() {
            path.push(OsStr::from_bytes(name));
        }
        path
    }
}

impl AsFd for Dir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

pub(super) fn open_flags() -> OFlags {
    OPEN_FILE
}

fn is_link(stat: &Stat) -> bool {
    rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Symlink
}

fn lstat_is_link(path: &Path) -> bool {
    rustix::fs::lstat(path).is_ok_and(|stat| is_link(&stat))
}

/// Opening a link as a directory says "not a directory": say that it is a link.
fn link_not_dir(error: Errno, is_link: impl Fn() -> bool) -> Errno {
    if error == Errno::NOTDIR && is_link() { Errno::LOOP } else { error }
}
