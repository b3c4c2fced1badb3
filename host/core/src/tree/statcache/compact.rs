//! What `stat` said, in few bytes: there is one for every entry, and all are read and
//! compared each time.
//!
//! ```text
//! mode u16, owner uint, group uint, links uint, inode uint, size uint,
//! modified: seconds int, nanoseconds u32; changed: the same;
//! for a device: major uint, minor uint
//! ```

use crate::object::codec::Reader;
use crate::tree::node::Time;
use crate::tree::scan::Stat;
use rustix::fs::FileType;

/// More than any is: ten numbers of at most ten bytes each.
const MOST: usize = 100;

/// What `stat` said, without the device that it lies on.
pub(super) struct Compact {
    bytes: [u8; MOST],
    len: usize,
}

impl Compact {
    /// Of `stat`.
    pub fn of(stat: &Stat) -> Self {
        let mut out = Self { bytes: [0; MOST], len: 0 };
        out.put(&(stat.mode as u16).to_le_bytes());
        for number in [stat.uid.into(), stat.gid.into(), stat.nlink.into(), stat.ino, stat.size] {
            out.uint(number);
        }
        for time in [stat.mtime, stat.ctime] {
            out.uint(((time.sec << 1) ^ (time.sec >> 63)) as u64);
            out.put(&time.nsec.to_le_bytes());
        }
        if is_device(stat.mode) {
            out.uint(stat.rdev.0.into());
            out.uint(stat.rdev.1.into());
        }
        out
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
    }

    fn uint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes[self.len] = value as u8 | 0x80;
            self.len += 1;
            value >>= 7;
        }
        self.bytes[self.len] = value as u8;
        self.len += 1;
    }
}

fn is_device(mode: u32) -> bool {
    matches!(FileType::from_raw_mode(mode), FileType::CharacterDevice | FileType::BlockDevice)
}

/// What an entry needs of it.
pub(super) struct Remains {
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    pub size: u64,
    pub mtime: Time,
    pub rdev: (u32, u32),
}

/// Reads what [`Compact::of`] wrote.
pub(super) fn remains(bytes: &[u8]) -> Option<Remains> {
    let mut r = Reader::new(bytes, "a cached entry");
    let mode = u32::from(u16::from_le_bytes(r.take(2).ok()?.try_into().ok()?));
    let (uid, gid, _, _, size) =
        (r.u32().ok()?, r.u32().ok()?, r.uint().ok()?, r.uint().ok()?, r.uint().ok()?);
    let mut time = || -> Option<Time> {
        let sec = r.int().ok()?;
        Some(Time { sec, nsec: u32::from_le_bytes(r.take(4).ok()?.try_into().ok()?) })
    };
    let (mtime, _) = (time()?, time()?);
    let rdev = if is_device(mode) { (r.u32().ok()?, r.u32().ok()?) } else { (0, 0) };
    Some(Remains { mode, uid, gid, size, mtime, rdev })
}
