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
    /// The first bytes of the name, as a number: most names are told apart by them alone.
    begin: u64,
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
            let begin = begin(&name[..len as usize]);
            self.names.push(Listed { begin, start, len, kind: entry.file_type() });
            self.bytes.extend_from_slice(name);
        }
        let bytes = &self.bytes;
        let order = |a: &Listed, b: &Listed| a.begin.cmp(&b.begin).then_with(|| a.of(bytes).cmp(b.of(bytes)));
        self.names.sort_unstable_by(order);
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
    pub fn get(&self, at: usize) -> (&[u8], FileType) {
        let listed = self.names[at];
        (listed.of(&self.bytes), listed.kind)
    }

    /// The name at `at`, as the kernel takes it.
    pub fn name(&self, at: usize) -> &CStr {
        let Listed { start, len, .. } = self.names[at];
        let name = &self.bytes[start as usize..=(start + len) as usize];
        CStr::from_bytes_with_nul(name).unwrap_or_default()
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
        let first = begin(name);
        let order = |listed: &Listed| listed.begin.cmp(&first).then_with(|| listed.of(&self.bytes).cmp(name));
        self.names.binary_search_by(order).is_ok()
    }
}

/// The first bytes of `name`, in an order that is that of names as far as it tells them apart:
/// no name has a NUL, which stands for what a short one lacks.
fn begin(name: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    let len = name.len().min(8);
    bytes[..len].copy_from_slice(&name[..len]);
    u64::from_be_bytes(bytes)
}

impl Listed {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..(self.start + self.len) as usize]
    }
}
