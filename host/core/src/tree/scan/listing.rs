//! The names in one directory, in one piece of memory, sorted by their bytes.

use crate::tree::select::Name;
use rustix::fs::{FileType, RawDir};
use std::ffi::CStr;
use std::mem::MaybeUninit;
use std::os::fd::AsFd;

/// Bytes of directory entries that one call to the kernel may bring.
const BATCH: usize = 32 * 1024;

/// The names in one directory. Reused from directory to directory.
#[derive(Default)]
pub struct Listing {
    /// The names, each with a NUL behind it.
    bytes: Vec<u8>,
    names: Vec<Listed>,
    buffer: Vec<MaybeUninit<u8>>,
}

/// One name.
#[derive(Debug, Clone, Copy)]
pub struct Listed {
    start: u32,
    len: u32,
    /// What it is, as far as the directory itself says.
    pub kind: FileType,
}

impl Listing {
    /// Reads the names in `dir`, which was just opened; `.` and `..` are not kept.
    pub fn read(&mut self, dir: impl AsFd) -> rustix::io::Result<()> {
        self.bytes.clear();
        self.names.clear();
        self.buffer.resize(BATCH, MaybeUninit::uninit());
        let mut batch = RawDir::new(dir, &mut self.buffer);
        while let Some(entry) = batch.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes_with_nul();
            if matches!(name, b".\0" | b"..\0") {
                continue;
            }
            let start = u32::try_from(self.bytes.len()).map_err(|_| rustix::io::Errno::NOMEM)?;
            let len = (name.len() - 1) as u32;
            self.names.push(Listed { start, len, kind: entry.file_type() });
            self.bytes.extend_from_slice(name);
        }
        let bytes = &self.bytes;
        self.names.sort_unstable_by(|a, b| a.of(bytes).cmp(b.of(bytes)));
        // A directory that changes while it is read may show a name twice.
        self.names.dedup_by(|a, b| a.of(bytes) == b.of(bytes));
        Ok(())
    }

    /// How many names there are.
    pub fn len(&self) -> usize {
        self.names.len()
    }

    /// Whether the directory is empty.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// The name at `at`, and what it is.
    pub fn get(&self, at: usize) -> (&CStr, FileType) {
        let listed = self.names[at];
        let end = (listed.start + listed.len) as usize;
        let name = &self.bytes[listed.start as usize..=end];
        (CStr::from_bytes_with_nul(name).unwrap_or_default(), listed.kind)
    }

    /// All names.
    pub fn names(&self) -> impl Iterator<Item = &[u8]> {
        self.names.iter().map(|listed| listed.of(&self.bytes))
    }

    /// Whether a name that `wanted` means is there.
    pub fn has_match(&self, wanted: &Name) -> bool {
        match wanted {
            Name::Exact(name) => self.has(name),
            Name::Glob(glob) => self.names().any(|name| glob.matches(name)),
        }
    }

    /// Whether `name` is there.
    pub fn has(&self, name: &[u8]) -> bool {
        self.names.binary_search_by(|listed| listed.of(&self.bytes).cmp(name)).is_ok()
    }
}

impl Listed {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..(self.start + self.len) as usize]
    }
}
