//! Seeing and failing operations: what tests hold on to.

use super::failed;
use crate::error::Error;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// What an operation does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs)]
pub enum OpKind {
    Create,
    OpenForWriting,
    Write,
    Truncate,
    Punch,
    CopyRange,
    Clone,
    SyncFile,
    SyncDir,
    SyncFileSystem,
    Rename,
    RenameNoReplace,
    Exchange,
    Link,
    Unlink,
    MakeDir,
    RemoveDir,
    Symlink,
    MakeNode,
    SetMode,
    SetOwner,
    SetTimes,
    SetXattr,
    RemoveXattr,
}

impl OpKind {
    /// How a sentence about its failure begins.
    pub fn doing(self) -> &'static str {
        match self {
            Self::Create | Self::Symlink | Self::MakeNode | Self::MakeDir => "could not create",
            Self::OpenForWriting => "could not open for writing",
            Self::Write | Self::CopyRange | Self::Clone => "could not write",
            Self::Truncate | Self::Punch => "could not change the length of",
            Self::SyncFile | Self::SyncDir | Self::SyncFileSystem => "could not make durable",
            Self::Rename | Self::RenameNoReplace | Self::Exchange => "could not rename",
            Self::Link => "could not link",
            Self::Unlink | Self::RemoveDir => "could not remove",
            Self::SetMode => "could not set the mode of",
            Self::SetOwner => "could not set the owner of",
            Self::SetTimes => "could not set the times of",
            Self::SetXattr | Self::RemoveXattr => "could not set an attribute of",
        }
    }

    /// Whether it waits for the device.
    pub fn is_sync(self) -> bool {
        matches!(self, Self::SyncFile | Self::SyncDir | Self::SyncFileSystem)
    }
}

/// One operation, as a hook sees it.
#[derive(Debug, Clone, Copy)]
pub struct Op<'a> {
    /// What it does.
    pub kind: OpKind,
    /// The directory it works in; for an open file, the one it was opened in.
    pub dir: &'a Path,
    /// The name it works on; empty for the directory itself.
    pub name: &'a [u8],
    /// For a rename, an exchange, a link: the other place.
    pub to: Option<(&'a Path, &'a [u8])>,
    /// For a write, a punch, a copy: where it begins. For a truncation: the length.
    pub offset: u64,
    /// For a write: what is written. For a symbolic link: where it points.
    pub data: &'a [u8],
    /// For what is made, and for a mode that is set: the permission bits.
    pub bits: u32,
}

impl<'a> Op<'a> {
    pub(super) fn new(kind: OpKind, dir: &'a Path, name: &'a [u8]) -> Self {
        Self { kind, dir, name, to: None, offset: 0, data: &[], bits: 0 }
    }

    pub(super) fn with_bits(self, bits: u32) -> Self {
        Self { bits, ..self }
    }

    /// The path of what it works on, for messages.
    pub fn path(&self) -> PathBuf {
        if self.name.is_empty() { self.dir.to_owned() } else { self.dir.join(OsStr::from_bytes(self.name)) }
    }
}

/// Sees every operation that changes the disk. Called from many threads.
pub trait Hook: Send + Sync {
    /// Called before the operation; an error fails it, and nothing was done.
    ///
    /// # Errors
    /// Whatever the operation is to fail with.
    fn before(&self, op: &Op<'_>) -> io::Result<()>;

    /// Called after the operation; `done` says whether it succeeded.
    fn after(&self, op: &Op<'_>, done: bool) {
        let _ = (op, done);
    }
}

/// Counts operations by kind.
#[derive(Default)]
pub struct Counter(Mutex<std::collections::BTreeMap<OpKind, u64>>);

impl Counter {
    /// How many operations of `kind` there were.
    pub fn of(&self, kind: OpKind) -> u64 {
        self.counts().get(&kind).copied().unwrap_or(0)
    }

    /// How many operations waited for the device.
    pub fn syncs(&self) -> u64 {
        self.counts().iter().filter(|(kind, _)| kind.is_sync()).map(|(_, n)| n).sum()
    }

    /// How many operations there were.
    pub fn all(&self) -> u64 {
        self.counts().values().sum()
    }

    /// All counts.
    pub fn counts(&self) -> std::collections::BTreeMap<OpKind, u64> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone()
    }
}

impl Hook for Counter {
    fn before(&self, op: &Op<'_>) -> io::Result<()> {
        let mut counts = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *counts.entry(op.kind).or_default() += 1;
        Ok(())
    }
}

/// A file system that can neither exchange names nor rename without replacing, as most over
/// a network.
pub struct PlainRenames;

impl Hook for PlainRenames {
    fn before(&self, op: &Op<'_>) -> io::Result<()> {
        match op.kind {
            OpKind::Exchange | OpKind::RenameNoReplace => Err(rustix::io::Errno::INVAL.into()),
            _ => Ok(()),
        }
    }
}

/// Fails the n-th operation (counted from 0), and with `for_ever` all after it.
pub struct FailAt {
    seen: AtomicU64,
    at: u64,
    errno: i32,
    for_ever: bool,
}

impl FailAt {
    /// Fails operation number `at` with the system's error `errno`.
    pub fn new(at: u64, errno: i32, for_ever: bool) -> Self {
        Self { seen: AtomicU64::new(0), at, errno, for_ever }
    }

    /// Whether the failing operation was reached.
    pub fn reached(&self) -> bool {
        self.seen.load(Ordering::SeqCst) > self.at
    }

    /// What a failure of the operation on `path` looks like, for tests of messages.
    pub fn error(&self, doing: &str, path: &Path) -> Error {
        failed(io::Error::from_raw_os_error(self.errno), doing, path)
    }
}

impl Hook for FailAt {
    fn before(&self, _: &Op<'_>) -> io::Result<()> {
        let n = self.seen.fetch_add(1, Ordering::SeqCst);
        if n == self.at || (self.for_ever && n > self.at) {
            return Err(io::Error::from_raw_os_error(self.errno));
        }
        Ok(())
    }
}
