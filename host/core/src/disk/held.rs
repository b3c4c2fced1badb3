//! An entry of any kind that is held fast without being opened: a fifo is not waited
//! for, a device is not touched, a link is not followed, and whatever takes its name
//! meanwhile is not changed in its place.

use super::{Dir, Disk, Op, OpKind, failed};
use crate::error::Result;
use crate::tree::node::Time;
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Stat, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use std::io;
use std::path::{Path, PathBuf};

/// An entry that is held fast.
#[derive(Debug)]
pub struct Held {
    fd: OwnedFd,
    dir: PathBuf,
    name: Vec<u8>,
}

impl Dir {
    /// Holds the entry `name` fast, whatever it is; none when it is not there.
    pub fn hold(&self, name: &[u8]) -> Result<Option<Held>> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(self, name, flags, Mode::empty()) {
            Ok(fd) => Ok(Some(Held { fd, dir: self.path().to_owned(), name: name.to_vec() })),
            Err(Errno::NOENT) => Ok(None),
            Err(e) => Err(failed(e, "could not look at", &self.join(name))),
        }
    }
}

impl Held {
    /// What it is.
    pub fn stat(&self) -> Result<Stat> {
        let stat = rustix::fs::statat(&self.fd, "", AtFlags::EMPTY_PATH);
        stat.map_err(|e| failed(e, "could not look at", &self.op(OpKind::SetMode).path()))
    }

    /// Refuses a link on a file system of a program (FUSE): those are told a path, and some of
    /// them (sshfs) follow the link, so that what it leads to would be changed.
    fn refuse_followed(&self) -> io::Result<()> {
        const FUSE: u32 = 0x6573_5546;
        match rustix::fs::fstatfs(&self.fd) {
            Ok(system) if system.f_type as u32 != FUSE => return Ok(()),
            Ok(_) => {}
            // It followed the link for this question as well, to where nothing is.
            Err(Errno::NOENT) => return Err(Errno::OPNOTSUPP.into()),
            Err(error) => return Err(error.into()),
        }
        let stat = rustix::fs::statat(&self.fd, "", AtFlags::EMPTY_PATH)?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::Symlink => Err(Errno::OPNOTSUPP.into()),
            _ => Ok(()),
        }
    }

    fn op(&self, kind: OpKind) -> Op<'_> {
        Op::new(kind, &self.dir, &self.name)
    }

    /// A path that leads to it and to nothing else. It ends in no link that a system
    /// call would follow further.
    fn way(&self) -> impl AsRef<Path> + rustix::path::Arg {
        PathBuf::from(format!("/proc/self/fd/{}", self.fd.as_raw_fd()))
    }
}

impl AsFd for Held {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Disk {
    /// Sets the 12 mode bits of what is held, which is no symbolic link.
    pub fn set_mode_held(&self, on: &Held, bits: u32) -> Result<()> {
        let way = on.way();
        let op = on.op(OpKind::SetMode).with_bits(bits);
        self.run(&op, || Ok(rustix::fs::chmod(way.as_ref(), Mode::from_raw_mode(bits))?))
    }

    /// Sets the owner and group of what is held.
    pub fn set_owner_held(&self, on: &Held, uid: u32, gid: u32) -> Result<()> {
        let (uid, gid) = (Some(Uid::from_raw(uid)), Some(Gid::from_raw(gid)));
        self.run(&on.op(OpKind::SetOwner), || {
            on.refuse_followed()?;
            Ok(rustix::fs::chownat(&on.fd, "", uid, gid, AtFlags::EMPTY_PATH)?)
        })
    }

    /// Sets when what is held was last modified; the time of the last access is left.
    pub fn set_times_held(&self, on: &Held, mtime: Time) -> Result<()> {
        self.set_timestamps_held(on, super::attributes::timestamps(mtime))
    }

    /// Makes what is held modified at the present time.
    pub fn touch_held(&self, on: &Held) -> Result<()> {
        let present = |_| rustix::fs::Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_NOW };
        let [last_access, last_modification] = [0, 1].map(present);
        self.set_timestamps_held(on, Timestamps { last_access, last_modification })
    }

    fn set_timestamps_held(&self, on: &Held, times: Timestamps) -> Result<()> {
        self.run(&on.op(OpKind::SetTimes), || {
            on.refuse_followed()?;
            match rustix::fs::utimensat(&on.fd, "", &times, AtFlags::EMPTY_PATH) {
                // Before Linux 5.8.
                Err(Errno::INVAL) => {
                    Ok(rustix::fs::utimensat(rustix::fs::CWD, on.way().as_ref(), &times, AtFlags::empty())?)
                }
                done => Ok(done?),
            }
        })
    }

    /// Sets one extended attribute of what is held.
    pub fn set_xattr_held(&self, on: &Held, attribute: &[u8], value: &[u8]) -> Result<()> {
        let op = Op { data: value, ..on.op(OpKind::SetXattr) };
        let way = on.way();
        self.run(&op, || Ok(rustix::fs::setxattr(way.as_ref(), attribute, value, XattrFlags::empty())?))
    }

    /// Removes one extended attribute of what is held.
    pub fn remove_xattr_held(&self, on: &Held, attribute: &[u8]) -> Result<()> {
        let way = on.way();
        self.run(&on.op(OpKind::RemoveXattr), || Ok(rustix::fs::removexattr(way.as_ref(), attribute)?))
    }
}
