//! Sharing blocks with files: a still of a file, and where blocks lie that a file can share.
//!
//! A still has all blocks of a file as it was at one moment, and nobody else can write to
//! it. So what is hashed is what is stored, whatever becomes of the file meanwhile; and
//! its blocks get into a pack without being written again.

use super::index::Place;
use super::pack::Encoding;
use super::{Store, Writer, random_hex};
use crate::disk::Handle;
use crate::error::Result;
use crate::object::Key;
use std::fs::File;
use std::sync::Arc;

/// A file without a name that shares its blocks with another, as that was at one moment.
pub struct Still(Handle);

impl Still {
    /// The file, for reading.
    pub fn file(&self) -> &File {
        self.0.file()
    }
}

/// Where an object lies as it is, at a place that files can share.
#[derive(Debug, Clone)]
pub struct Extent {
    /// The file that holds it.
    pub file: Arc<File>,
    /// Where in the file it begins.
    pub offset: u64,
}

/// Blocks that are to be shared with a pack: one after the other in a file that nobody
/// writes to.
pub(super) struct Run<'a> {
    writer: &'a Writer,
    file: &'a File,
    /// Where the next block would begin.
    end: u64,
    blocks: Vec<(Key, u32)>,
}

impl<'a> Run<'a> {
    /// None yet, of `file`.
    pub fn new(writer: &'a Writer, file: &'a File) -> Self {
        Self { writer, file, end: 0, blocks: Vec::new() }
    }

    /// Adds the block at `at`, which the caller took on.
    pub fn add(&mut self, at: u64, key: Key, len: u32) -> Result<()> {
        if self.end != at {
            self.end()?;
        }
        self.blocks.push((key, len));
        self.end = at + u64::from(len);
        Ok(())
    }

    /// Shares what was added.
    pub fn end(&mut self) -> Result<()> {
        let blocks = std::mem::take(&mut self.blocks);
        let length: u64 = blocks.iter().map(|(_, len)| u64::from(*len)).sum();
        if blocks.is_empty() {
            return Ok(());
        }
        let done = self.writer.append_shared(self.file, self.end - length, &blocks);
        done.map_err(|e| self.writer.fail(e))
    }
}

impl Writer {
    /// A still of `file`; none where the file system does not share blocks between the
    /// file and the store.
    ///
    /// # Errors
    /// When the store cannot be written; `Writer::check` fails as well then.
    pub fn still_of(&self, file: &File) -> Result<Option<Still>> {
        self.make_still(file).map_err(|e| self.fail(e))
    }

    fn make_still(&self, file: &File) -> Result<Option<Still>> {
        let (disk, tmp) = (&self.store.disk, &self.store.tmp);
        let name = random_hex(8)?.into_bytes();
        let still = disk.create_file(tmp, &name, 0o600)?;
        // Whoever cleans up may have been quicker.
        if tmp.stat(&name)?.is_some() {
            disk.unlink(tmp, &name)?;
        }
        Ok(disk.clone_file(file, &still)?.then_some(Still(still)))
    }
}

impl Store {
    /// Where `key` lies at a place that files can share; none when it does not.
    pub(super) fn find_extent(&self, key: &Key) -> Option<Extent> {
        let catalog = self.catalog().ok()?;
        let aligned = |place: &Place| place.frame.encoding == Encoding::Aligned;
        let place = catalog.find(key).ok()?.into_iter().find(aligned)?;
        let (_, file) = self.pack_file(&catalog, place.pack).ok()?;
        Some(Extent { file, offset: u64::from(place.frame.offset) + u64::from(place.start) })
    }
}
