//! Directories that are reached only as tar archives: captured from one as it arrives, and
//! put back by one.
//!
//! Who carries the archives is lent (`Far`); an engine of containers does, for a volume at
//! which no program of ours can run. What the other side leaves out of an archive (sockets,
//! most attributes, holes, parts of a second) is not captured, and it deletes nothing: what
//! was added stays, and is told. Memory grows with the number of entries, never with what
//! they hold. Refuses archives that are cut short or lead out of the directory.

mod capture;
mod check;
mod jobs;
mod names;
mod pax;
mod read;
mod restore;
mod write;

pub use capture::{Of, capture};
pub(crate) use read::Reader;
pub use restore::{Far, Give, Seen, Take, holds_nothing_new, restore};

use super::node::{Time, Xattr};

/// Bytes of a block of an archive.
const BLOCK: usize = 512;
/// The largest part of the number of a device that an archive can have; no system has larger.
const DEVICE: u32 = 0o7_777_777;

/// One member of an archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member {
    /// Its path, as the archive has it.
    pub path: Vec<u8>,
    /// Permissions with setuid, setgid and sticky: 12 bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// When it was last modified.
    pub mtime: Time,
    /// Extended attributes, sorted by name.
    pub xattrs: Vec<Xattr>,
    /// What it is.
    pub what: What,
}

/// What a member is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum What {
    /// A file of so many bytes, which follow.
    File(u64),
    /// The same inode as the member at this path.
    Link(Vec<u8>),
    /// A directory.
    Dir,
    /// A symbolic link, and where it points.
    Symlink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A character device: major, minor.
    CharDevice(u32, u32),
    /// A block device: major, minor.
    BlockDevice(u32, u32),
}

#[cfg(any(test, feature = "fuzz"))]
pub(crate) use write::Writer;
#[cfg(test)]
mod tests;
