//! The store of one project: objects in packs, found through an index.

pub mod opaque;

use crate::disk::Disk;
use crate::error::Result;
use crate::object::{Key, ObjectKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Content of at most this many bytes is one `Blob`; larger content is a `List` of
/// blocks of exactly this many (the last one shorter).
pub const BLOCK: usize = 64 * 1024;

/// Somewhere objects can be read from: a store, or a writer with what it has not sealed.
pub trait Source: Sync {
    /// The object's bytes, checked against its hash.
    ///
    /// # Errors
    /// `NotFound` when it is not there, `Corrupt` when it is damaged.
    fn read(&self, key: &Key) -> Result<Vec<u8>>;
}

/// An open store.
pub struct Store {
    path: PathBuf,
}

impl Store {
    /// Makes a new, empty store at `path` (which must not exist), and opens it.
    pub fn create(path: &Path, disk: Disk) -> Result<Arc<Self>> {
        let _ = (path, disk);
        unimplemented!()
    }
    /// Opens the store at `path`.
    pub fn open(path: &Path, disk: Disk) -> Result<Arc<Self>> {
        let _ = (path, disk);
        unimplemented!()
    }
    /// The store's directory.
    pub fn path(&self) -> &Path {
        &self.path
    }
    /// The store's door to the disk.
    pub fn disk(&self) -> &Disk {
        unimplemented!()
    }
    /// Whether the object is stored (committed packs only).
    pub fn contains(&self, key: &Key) -> Result<bool> {
        let _ = key;
        unimplemented!()
    }
    /// The object's bytes, checked against its hash.
    pub fn read(&self, key: &Key) -> Result<Vec<u8>> {
        let _ = key;
        unimplemented!()
    }
    /// Begins writing objects. Dropped without `seal`, nothing was stored.
    pub fn writer(self: &Arc<Self>) -> Result<Writer> {
        unimplemented!()
    }
}

/// Objects being stored: shared by threads; each thread uses a `Lane` of its own.
pub struct Writer {}

impl Writer {
    /// A lane for one thread.
    pub fn lane(&self) -> Lane<'_> {
        unimplemented!()
    }
    /// Bytes of an object of this writer, sealed or not, or of the store.
    pub fn read(&self, key: &Key) -> Result<Vec<u8>> {
        let _ = key;
        unimplemented!()
    }
    /// Makes all that was put durable and visible; returns bytes added to the disk.
    pub fn seal(&self) -> Result<u64> {
        unimplemented!()
    }
}

/// One thread's way into a `Writer`: gathers small objects and compresses them together.
pub struct Lane<'a> {
    _w: &'a Writer,
}

impl Lane<'_> {
    /// Stores `bytes` unless they are stored; returns their key.
    pub fn put(&mut self, kind: ObjectKind, bytes: &[u8]) -> Result<Key> {
        let _ = (kind, bytes);
        unimplemented!()
    }
    /// Hands what is gathered to the writer. Must be called before the lane is dropped.
    pub fn flush(self) -> Result<()> {
        unimplemented!()
    }
}
