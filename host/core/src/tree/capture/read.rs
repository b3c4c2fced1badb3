//! Reading one entry that the stat cache does not know.
//!
//! What is stored was there, whole, at one moment. A file is as it was if its
//! attributes are the same after reading as before. One that only grows (a log) is
//! captured as it was when reading began: its first bytes are read again, and if they
//! are the same nothing moved beneath. Whatever else changes each time becomes a hole.

use super::node::Fresh;
use super::scan::is_large;
use super::special::{fresh, special};
use super::{Capture, Worker};
use crate::error::{Error, Kind, Result, show, show_bytes};
use crate::object::Key;
use crate::store::Still;
use crate::store::content::{name_file, store_file, store_still};
use crate::tree::node::Node;
use crate::tree::root::Why;
use crate::tree::scan::{Place, Stat};
use crate::tree::select::Strategy;
use crate::tree::statcache::identity;
use crate::tree::xattr;
use rustix::fs::{Mode, OFlags, SeekFrom};
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;

/// How often something that changes while it is read is tried.
const TRIES: usize = 3;

/// What one try came to.
enum Try {
    /// This is what is there.
    Is(Box<Fresh>),
    /// It is no longer there.
    Gone,
    /// It is not captured, which was recorded: it could not be read, or is a database.
    Left,
    /// It changed.
    Changed,
}

impl<'a> Capture<'a> {
    /// The entry `name` of `place`; `stat` was true a moment ago. `None` when it is
    /// gone or became a hole.
    pub(super) fn entry(
        &self,
        worker: &mut Worker<'a>,
        place: &Place,
        dir: &OwnedFd,
        name: &CStr,
        stat: Option<&Stat>,
    ) -> Result<Option<Box<Fresh>>> {
        let mut stat = stat.copied();
        for _ in 0..TRIES {
            let known = match stat.take() {
                Some(stat) => Ok(stat),
                None => Stat::of(dir, name),
            };
            let tried = match known {
                Ok(stat) if stat.is_file() => self.file(worker, place, dir, name, &stat)?,
                Ok(stat) if stat.is_dir() => Try::Changed,
                Ok(stat) => self.special(place, dir, name, stat)?,
                Err(error) => self.failed(place, name, error, "looked at")?,
            };
            match tried {
                Try::Is(fresh) => return Ok(Some(fresh)),
                Try::Gone | Try::Left => return Ok(None),
                Try::Changed => {}
            }
        }
        self.walk.leave_out(place.dir.path_of(name.to_bytes()), Why::ChangedWhileRead, "", None, None);
        Ok(None)
    }

    fn special(&self, place: &Place, dir: &OwnedFd, name: &CStr, stat: Stat) -> Result<Try> {
        match special(dir, name, stat) {
            // What was read belongs to what was looked at only if that is still there.
            Ok(fresh) if Stat::of(dir, name).is_ok_and(|now| identity(&now) == identity(&stat)) => {
                Ok(Try::Is(Box::new(fresh)))
            }
            Ok(_) | Err(Errno::INVAL) => Ok(Try::Changed),
            Err(error) => self.failed(place, name, error, "read"),
        }
    }

    fn file(
        &self,
        worker: &mut Worker<'a>,
        place: &Place,
        dir: &OwnedFd,
        name: &CStr,
        seen: &Stat,
    ) -> Result<Try> {
        let opened = match open(dir, name, seen) {
            Err(Errno::ACCESS) => self.walk.lend(place, dir, name).map_or(Err(Errno::ACCESS), |l| l.open()),
            done => done,
        };
        let file = match opened {
            Ok(file) => File::from(file),
            // By now it is a link, or a socket.
            Err(Errno::LOOP | Errno::NXIO) => return Ok(Try::Changed),
            Err(error) => return self.failed(place, name, error, "opened"),
        };
        self.opened.fetch_add(1, Ordering::Relaxed);
        let before = match Stat::of_open(&file) {
            Ok(stat) if stat.is_file() => stat,
            Ok(_) => return Ok(Try::Changed),
            Err(error) => return self.failed(place, name, error, "looked at"),
        };
        if self.walk.leave_database(place, name.to_bytes(), &file, &before) {
            return Ok(Try::Left);
        }
        let sparse = before.allocated < before.size && has_hole(&file, before.size);
        let xattrs = xattr::of_open(&file);
        let mut read = || {
            let still = self.still(place, name, &file, &before)?;
            // A still is what it is: what happens to the file while it is read is no matter.
            let looked = still.as_ref().map(|_| Stat::of_open(&file));
            let (lane, cancel) = (worker.lane(), &self.call.cancel);
            let (content, len) = match &still {
                Some(still) => store_still(lane, still, before.size, sparse, cancel)?,
                None if self.writer.holds_content() => store_file(lane, &file, before.size, sparse, cancel)?,
                None => name_file(lane, &file, before.size, sparse, cancel)?,
            };
            Ok((content, len, looked.unwrap_or_else(|| Stat::of_open(&file))))
        };
        let tried = read().and_then(|(content, len, after)| -> Result<Option<Key>> {
            let same = after.is_ok_and(|after| identity(&after) == identity(&before));
            let grew = after.is_ok_and(|after| after.size >= before.size && after.nlink > 0);
            let whole = len == before.size;
            let again = |(again, again_len, _)| (again, again_len) == (content, len);
            Ok(match whole && (same || (grew && read().map(again)?)) {
                true => Some(content),
                false => None,
            })
        });
        match tried {
            Ok(Some(content)) => {
                let node = Node::File { content, size: before.size, sparse };
                Ok(Try::Is(Box::new(fresh(name.to_bytes(), before, xattrs, node))))
            }
            Ok(None) => Ok(Try::Changed),
            Err(error) if error.kind() == Kind::Cancelled => Err(error),
            Err(error) => {
                // Was it the file, or the store?
                self.writer.check()?;
                let path = place.dir.path_of(name.to_bytes());
                self.walk.leave_out(path, Why::Unreadable, error.message(), None, Some(&before));
                Ok(Try::Left)
            }
        }
    }

    /// A still of a large file, where its blocks are to be shared and can be.
    fn still(&self, place: &Place, name: &CStr, file: &File, stat: &Stat) -> Result<Option<Still>> {
        let strategy = self.walk.directory.options().strategy;
        if strategy == Strategy::Copy || !is_large(stat) || !self.writer.holds_content() {
            return Ok(None);
        }
        let still = self.writer.still_of(file)?;
        if still.is_none() && strategy == Strategy::Reflink {
            let shown = show_bytes(&place.dir.path_of(name.to_bytes()));
            let store = show(self.writer.store().path());
            let text = format!("{shown} cannot share its blocks with the store at {store}");
            return Err(self.writer.fail(Error::new(Kind::Invalid, text).hint(
                "that takes one xfs or btrfs file system for both; `strategy = \"auto\"` copies where it cannot be",
            )));
        }
        Ok(still)
    }

    fn failed(&self, place: &Place, name: &CStr, error: Errno, doing: &str) -> Result<Try> {
        if error == Errno::NOENT {
            return Ok(Try::Gone);
        }
        self.walk.hole(place, name.to_bytes(), error, doing)?;
        Ok(Try::Left)
    }
}

/// Opens a file for reading. What is no regular file by now does not block; the time
/// of the last access is left alone where that is permitted.
pub(super) fn open(dir: impl AsFd, name: &CStr, seen: &Stat) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let me = rustix::process::geteuid();
    if me.is_root() || me.as_raw() == seen.uid {
        match rustix::fs::openat(&dir, name, flags | OFlags::NOATIME, Mode::empty()) {
            Err(Errno::PERM) => {}
            done => return done,
        }
    }
    rustix::fs::openat(&dir, name, flags, Mode::empty())
}

fn has_hole(file: &File, size: u64) -> bool {
    rustix::fs::seek(file, SeekFrom::Hole(0)).is_ok_and(|at| at < size)
}
