//! A directory that only this user can write.
//!
//! What lies in it is run, so it is trusted only as far as nobody else could have put
//! it there: the directory and each file belong to this user, and no one else may
//! write to them. Files are written aside, synced and renamed; never changed in place.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use snapback_core::error::{Error, Kind, Result, show};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long a file stays that nobody made again: it is made again when it is needed.
const KEPT: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// The directory, open.
pub struct Folder {
    fd: OwnedFd,
    path: PathBuf,
}

/// What names one state of one file: nobody can set the change time, so a file with
/// the same seal has not been written to since.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal([i64; 6]);

impl Seal {
    fn of(stat: &Stat) -> Self {
        let wide = |n: i128| i64::try_from(n).unwrap_or(i64::MAX);
        Self([
            wide(i128::from(stat.st_ino)),
            wide(i128::from(stat.st_size)),
            wide(i128::from(stat.st_mtime)),
            wide(i128::from(stat.st_mtime_nsec)),
            wide(i128::from(stat.st_ctime)),
            wide(i128::from(stat.st_ctime_nsec)),
        ])
    }

    /// On one line.
    pub fn to_text(self) -> String {
        self.0.map(|n| n.to_string()).join(" ")
    }

    /// What [`Seal::to_text`] wrote.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<i64> = text.split(' ').map(|n| n.parse().ok()).collect::<Option<_>>()?;
        Some(Self(numbers.try_into().ok()?))
    }
}

impl Folder {
    /// Opens it; none when it is not there.
    ///
    /// # Errors
    /// `Denied` when it belongs to another user or others could write to it.
    pub fn open(path: &Path) -> Result<Option<Self>> {
        let Some((folder, shared)) = Self::look(path)? else { return Ok(None) };
        if shared {
            let message = format!("{} can be written by others, so nothing in it is run", show(path));
            return Err(Error::new(Kind::Denied, message));
        }
        Ok(Some(folder))
    }

    /// Opens it, and makes it when it is not there. When others could write to it, that
    /// ends, and what is in it goes: they may have put it there.
    ///
    /// # Errors
    /// `Denied` when it belongs to another user; else when it cannot be made.
    pub fn create(path: &Path) -> Result<Self> {
        let failed = |e: std::io::Error| Error::io(e, "could not make", path);
        match Self::look(path)? {
            Some((folder, false)) => return Ok(folder),
            Some((folder, true)) => {
                rustix::fs::fchmod(&folder.fd, Mode::RWXU).map_err(|e| failed(e.into()))?;
                folder.remove(|_| true);
            }
            None => {
                std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
            }
        }
        Self::open(path)?.ok_or_else(|| failed(Errno::NOENT.into()))
    }

    /// Opens it, and says whether others can write to it; none when it is not there.
    fn look(path: &Path) -> Result<Option<(Self, bool)>> {
        let failed = |e: Errno| Error::io(e, "could not open", path);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let fd = match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(fd) => fd,
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(failed(e)),
        };
        let stat = rustix::fs::fstat(&fd).map_err(failed)?;
        if stat.st_uid != rustix::process::geteuid().as_raw() {
            let message = format!("{} belongs to another user, so nothing in it is run", show(path));
            return Err(Error::new(Kind::Denied, message)
                .hint("until it is removed, components are compiled each time"));
        }
        Ok(Some((Self { fd, path: path.to_owned() }, stat.st_mode & 0o022 != 0)))
    }

    /// The file called `name`, open, with its seal; none when it is not there or is not
    /// a regular file of this user that nobody else can write.
    pub fn file(&self, name: &str) -> Option<(File, Seal)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::openat(&self.fd, name, flags, Mode::empty()).ok()?;
        let stat = rustix::fs::fstat(&fd).ok()?;
        let ours = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
            && stat.st_uid == rustix::process::geteuid().as_raw()
            && stat.st_mode & 0o022 == 0;
        ours.then(|| (File::from(fd), Seal::of(&stat)))
    }

    /// The text in the file called `name`, as `file` finds it, up to `limit` bytes.
    pub fn text(&self, name: &str, limit: u64) -> Option<String> {
        let (file, _) = self.file(name)?;
        let mut text = String::new();
        file.take(limit).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Makes or replaces the file called `name`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let aside = format!(".{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let failed = |e: std::io::Error| Error::io(e, "could not write", self.path.join(name));
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // One that a process of this number left when it was killed.
        let _ = rustix::fs::unlinkat(&self.fd, &aside, AtFlags::empty());
        let mode = Mode::RUSR | Mode::WUSR;
        let fd = rustix::fs::openat(&self.fd, &aside, flags, mode).map_err(|e| failed(e.into()))?;
        let mut file = File::from(fd);
        let done = file
            .write_all(bytes)
            .and_then(|()| file.sync_data())
            .and_then(|()| Ok(rustix::fs::renameat(&self.fd, &aside, &self.fd, name)?));
        done.map_err(|e| {
            let _ = rustix::fs::unlinkat(&self.fd, &aside, AtFlags::empty());
            failed(e)
        })
    }

    /// Removes what is older than [`KEPT`].
    pub fn sweep(&self) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let oldest = now.saturating_sub(KEPT).as_secs();
        self.remove(|stat| u64::try_from(stat.st_mtime).is_ok_and(|time| time < oldest));
    }

    /// Removes the files that are `unwanted`. What fails is left: it is looked at again
    /// before it is used.
    fn remove(&self, unwanted: impl Fn(&Stat) -> bool) {
        for entry in Dir::read_from(&self.fd).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let stat = rustix::fs::statat(&self.fd, name, AtFlags::SYMLINK_NOFOLLOW);
            let is_dir = |stat: &Stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if stat.is_ok_and(|stat| !is_dir(&stat) && unwanted(&stat)) {
                let _ = rustix::fs::unlinkat(&self.fd, name, AtFlags::empty());
            }
        }
    }
}
