//! Operations on attributes: mode, owner, times, extended attributes. By name they
//! never follow a link; a file that is open is changed through its handle.

use super::{Dir, Disk, Handle, Op, OpKind};
use crate::error::Result;
use crate::tree::node::Time;
use rustix::fd::AsFd;
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timespec, Timestamps, UTIME_OMIT, Uid, XattrFlags};

/// What is made by `mknod`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    /// A named pipe.
    Fifo,
    /// A socket that nothing listens on.
    Socket,
    /// A character device: major, minor.
    CharDevice(u32, u32),
    /// A block device: major, minor.
    BlockDevice(u32, u32),
}

impl Special {
    pub(super) fn parts(self) -> (FileType, rustix::fs::Dev) {
        match self {
            Self::Fifo => (FileType::Fifo, 0),
            Self::Socket => (FileType::Socket, 0),
            Self::CharDevice(major, minor) => (FileType::CharacterDevice, rustix::fs::makedev(major, minor)),
            Self::BlockDevice(major, minor) => (FileType::BlockDevice, rustix::fs::makedev(major, minor)),
        }
    }
}

/// A directory itself, or an open file: what attributes are set on through a handle.
pub trait Opened: AsFd {
    /// The operation `kind` on it, as a hook sees it.
    #[doc(hidden)]
    fn op(&self, kind: OpKind) -> Op<'_>;
}

impl Opened for Handle {
    fn op(&self, kind: OpKind) -> Op<'_> {
        Handle::op(self, kind)
    }
}

impl Opened for Dir {
    fn op(&self, kind: OpKind) -> Op<'_> {
        Op::new(kind, self.path(), b"")
    }
}

pub(super) fn timestamps(mtime: Time) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: mtime.sec, tv_nsec: mtime.nsec.into() },
    }
}

fn owner(uid: u32, gid: u32) -> (Option<Uid>, Option<Gid>) {
    (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)))
}

impl Disk {
    /// Sets the 12 mode bits of `name`. A symbolic link has no mode of its own: nothing is done.
    pub fn set_mode(&self, dir: &Dir, name: &[u8], bits: u32) -> Result<()> {
        let op = Op::new(OpKind::SetMode, dir.path(), name).with_bits(bits);
        self.run(&op, || {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let held = rustix::fs::openat(dir, name, flags, Mode::empty())?;
            if FileType::from_raw_mode(rustix::fs::fstat(&held)?.st_mode) == FileType::Symlink {
                return Ok(());
            }
            let held = Dir::from_fd(held, dir.join(name));
            Ok(rustix::fs::chmod(held.by_descriptor(b""), Mode::from_raw_mode(bits))?)
        })
    }

    /// Sets the owner and group of `name`.
    pub fn set_owner(&self, dir: &Dir, name: &[u8], uid: u32, gid: u32) -> Result<()> {
        let op = Op::new(OpKind::SetOwner, dir.path(), name);
        let (uid, gid) = owner(uid, gid);
        self.run(&op, || Ok(rustix::fs::chownat(dir, name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Sets when `name` was last modified; the time of the last access is left.
    pub fn set_times(&self, dir: &Dir, name: &[u8], mtime: Time) -> Result<()> {
        let op = Op::new(OpKind::SetTimes, dir.path(), name);
        self.run(&op, || Ok(rustix::fs::utimensat(dir, name, &timestamps(mtime), AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Sets one extended attribute of `name`.
    pub fn set_xattr(&self, dir: &Dir, name: &[u8], attribute: &[u8], value: &[u8]) -> Result<()> {
        let op = Op { data: value, ..Op::new(OpKind::SetXattr, dir.path(), name) };
        let path = dir.by_descriptor(name);
        self.run(&op, || Ok(rustix::fs::lsetxattr(&path, attribute, value, XattrFlags::empty())?))
    }

    /// Removes one extended attribute of `name`.
    pub fn remove_xattr(&self, dir: &Dir, name: &[u8], attribute: &[u8]) -> Result<()> {
        let op = Op::new(OpKind::RemoveXattr, dir.path(), name);
        let path = dir.by_descriptor(name);
        self.run(&op, || Ok(rustix::fs::lremovexattr(&path, attribute)?))
    }

    /// Sets the 12 mode bits of what is open.
    pub fn set_mode_of(&self, on: &impl Opened, bits: u32) -> Result<()> {
        self.run(&on.op(OpKind::SetMode).with_bits(bits), || {
            Ok(rustix::fs::fchmod(on, Mode::from_raw_mode(bits))?)
        })
    }

    /// Sets the owner and group of what is open.
    pub fn set_owner_of(&self, on: &impl Opened, uid: u32, gid: u32) -> Result<()> {
        let (uid, gid) = owner(uid, gid);
        self.run(&on.op(OpKind::SetOwner), || Ok(rustix::fs::fchown(on, uid, gid)?))
    }

    /// Sets when what is open was last modified; the time of the last access is left.
    pub fn set_times_of(&self, on: &impl Opened, mtime: Time) -> Result<()> {
        self.run(&on.op(OpKind::SetTimes), || Ok(rustix::fs::futimens(on, &timestamps(mtime))?))
    }

    /// Sets one extended attribute of what is open.
    pub fn set_xattr_of(&self, on: &impl Opened, attribute: &[u8], value: &[u8]) -> Result<()> {
        let op = Op { data: value, ..on.op(OpKind::SetXattr) };
        self.run(&op, || Ok(rustix::fs::fsetxattr(on, attribute, value, XattrFlags::empty())?))
    }

    /// Removes one extended attribute of what is open.
    pub fn remove_xattr_of(&self, on: &impl Opened, attribute: &[u8]) -> Result<()> {
        self.run(&on.op(OpKind::RemoveXattr), || Ok(rustix::fs::fremovexattr(on, attribute)?))
    }
}
