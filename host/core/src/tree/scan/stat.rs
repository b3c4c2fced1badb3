//! What the file system says about one entry.

use crate::disk::Dir;
use crate::error::{Error, Result};
use crate::tree::node::Time;
use rustix::fs::{AtFlags, FileType, Statx, StatxAttributes, StatxFlags, StatxTimestamp};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::AsFd;

/// One entry's attributes at one moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// Kind and permissions, as in `st_mode`.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Names of this inode.
    pub nlink: u32,
    /// The file system's device.
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Length in bytes.
    pub size: u64,
    /// When the content was last modified.
    pub mtime: Time,
    /// When the inode was last changed; nobody can set it.
    pub ctime: Time,
    /// When the inode was made; nobody can set it. None where the file system does not say.
    pub born: Option<Time>,
    /// For a device: major, minor.
    pub rdev: (u32, u32),
    /// Bytes that are allocated.
    pub allocated: u64,
    /// The mount that it was reached through.
    pub mount: u64,
    /// What the file system allows to be done with it.
    pub attributes: StatxAttributes,
}

/// What `name` in `dir` is; none when it is not there.
///
/// # Errors
/// When it cannot be looked at.
pub fn stat_in(dir: &Dir, name: &[u8]) -> Result<Option<Stat>> {
    let told = |e: Errno| Error::io(e, "could not look at", dir.join(name));
    let text = CString::new(name).map_err(|_| told(Errno::INVAL))?;
    match Stat::of(dir, &text) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(told(e)),
    }
}

impl Stat {
    /// Of the entry `name` of `dir`; a link is not followed, nothing is mounted.
    pub fn of(dir: impl AsFd, name: &CStr) -> rustix::io::Result<Self> {
        Self::get(dir, name, AtFlags::SYMLINK_NOFOLLOW | AtFlags::NO_AUTOMOUNT)
    }

    /// Of what is open.
    pub fn of_open(fd: impl AsFd) -> rustix::io::Result<Self> {
        Self::get(fd, c"", AtFlags::EMPTY_PATH)
    }

    fn get(dir: impl AsFd, name: &CStr, flags: AtFlags) -> rustix::io::Result<Self> {
        let mask = StatxFlags::BASIC_STATS | StatxFlags::MNT_ID | StatxFlags::BTIME;
        rustix::fs::statx(dir, name, flags, mask).map(|stat| Self::from_statx(&stat))
    }

    fn from_statx(stat: &Statx) -> Self {
        let dev = rustix::fs::makedev(stat.stx_dev_major, stat.stx_dev_minor);
        // Old kernels do not say which mount it is: the device then has to do.
        let known = stat.stx_mask & StatxFlags::MNT_ID.bits() != 0;
        let mount = if known { stat.stx_mnt_id } else { dev | 1 << 63 };
        Self {
            mode: u32::from(stat.stx_mode),
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            nlink: stat.stx_nlink,
            dev,
            ino: stat.stx_ino,
            size: stat.stx_size,
            mtime: time(&stat.stx_mtime),
            ctime: time(&stat.stx_ctime),
            born: (stat.stx_mask & StatxFlags::BTIME.bits() != 0).then(|| time(&stat.stx_btime)),
            rdev: (stat.stx_rdev_major, stat.stx_rdev_minor),
            allocated: stat.stx_blocks.saturating_mul(512),
            mount,
            attributes: stat.stx_attributes & stat.stx_attributes_mask,
        }
    }

    /// What it is.
    pub fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.mode)
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind() == FileType::Directory
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind() == FileType::RegularFile
    }

    /// Permissions with setuid, setgid and sticky.
    pub fn permissions(&self) -> u32 {
        self.mode & 0o7777
    }

    /// The attribute that keeps it from being changed, in words and as `chattr` has it.
    pub fn fixed(&self) -> Option<(&'static str, char)> {
        if self.attributes.contains(StatxAttributes::IMMUTABLE) {
            Some(("immutable", 'i'))
        } else if self.attributes.contains(StatxAttributes::APPEND) {
            Some(("append-only", 'a'))
        } else {
            None
        }
    }

    /// Which inode it is.
    pub fn id(&self) -> (u64, u64) {
        (self.dev, self.ino)
    }
}

fn time(time: &StatxTimestamp) -> Time {
    Time { sec: time.tv_sec, nsec: time.tv_nsec }
}
