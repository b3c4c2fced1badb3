//! Looking at all that is recorded of a repository, within limits.

use super::Located;
use super::operation::Operation;
use crate::object::{Key, ObjectKind};
use crate::tree::node::is_name;
use crate::tree::scan::Stat;
use crate::tree::statcache::identity;
use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// Names that are looked at.
pub const MOST_NAMES: usize = 20_000;
/// Directories in each other.
pub const DEEPEST: usize = 32;
/// Bytes of one ref: a line.
pub const LARGEST_REF: u64 = 4 << 10;
/// Bytes of one file of packed refs, or of one reflog.
pub const LARGEST_FILE: u64 = 16 << 20;
/// Bytes of all together.
pub const LARGEST_RECORD: u64 = 64 << 20;
/// Bytes of directory entries that one call to the kernel may bring.
const BATCH: usize = 16 << 10;

/// What there is to record.
#[derive(Default)]
pub(in crate::tree) struct Found {
    /// Sorted by path, each path once.
    pub files: Vec<Item>,
    /// Whether nothing was beyond a limit or could not be looked at.
    pub whole: bool,
    names: usize,
    bytes: u64,
}

/// A file, or a link that stands for a ref.
pub(in crate::tree) struct Item {
    pub path: Vec<u8>,
    pub dir: Arc<OwnedFd>,
    pub name: CString,
    pub stat: Stat,
}

impl Found {
    /// Looks at all of `located` that is recorded.
    pub fn look(located: &Located) -> Self {
        let mut found = Self { whole: true, ..Self::default() };
        let (own, common) = (located.own(), located.common());
        found.named(own, b"", c"HEAD", LARGEST_REF);
        for (path, _) in Operation::FILES {
            found.operation(own, path);
        }
        found.named(common, b"", c"packed-refs", LARGEST_FILE);
        found.dir(common, c"refs", b"refs", LARGEST_REF, DEEPEST);
        // A repository may keep its refs in another form.
        found.dir(common, c"reftable", b"reftable", LARGEST_FILE, 1);
        if let Some(logs) = found.open(own, c"logs") {
            found.named(logs.as_fd(), b"logs", c"HEAD", LARGEST_FILE);
        }
        if let Some(logs) = found.open(common, c"logs") {
            found.dir(logs.as_fd(), c"refs", b"logs/refs", LARGEST_FILE, DEEPEST);
        }
        found.files.sort_by(|a, b| a.path.cmp(&b.path));
        found.files.dedup_by(|a, b| a.path == b.path);
        found
    }

    /// What all of this looks like.
    pub fn digest(&self) -> [u8; 32] {
        let mut seen = vec![u8::from(self.whole)];
        for item in &self.files {
            seen.extend_from_slice(&item.path);
            seen.push(0);
            seen.extend_from_slice(&identity(&item.stat));
        }
        *Key::of(ObjectKind::Opaque, &seen).hash()
    }

    /// Looks at the file at `path`, which tells what git is in the middle of.
    fn operation(&mut self, own: BorrowedFd<'_>, path: &str) {
        let name = |name: &str| CString::new(name).expect("it has no zeros");
        match path.split_once('/') {
            None => self.named(own, b"", &name(path), LARGEST_FILE),
            Some((above, file)) => {
                if let Some(dir) = self.open(own, &name(above)) {
                    self.named(dir.as_fd(), above.as_bytes(), &name(file), LARGEST_FILE);
                }
            }
        }
    }

    /// Looks at the file `name` in `dir`, which has the path `at`.
    fn named(&mut self, dir: BorrowedFd<'_>, at: &[u8], name: &CStr, largest: u64) {
        match (dir.try_clone_to_owned(), Stat::of(dir, name)) {
            (Ok(dir), Ok(stat)) => self.file(&Arc::new(dir), join(at, name), name, stat, largest),
            (_, Err(Errno::NOENT)) => {}
            _ => self.whole = false,
        }
    }

    fn file(&mut self, dir: &Arc<OwnedFd>, path: Vec<u8>, name: &CStr, stat: Stat, largest: u64) {
        if !matches!(stat.kind(), FileType::RegularFile | FileType::Symlink) {
            return;
        }
        if stat.size > largest || self.bytes.saturating_add(stat.size) > LARGEST_RECORD {
            self.whole = false;
            return;
        }
        self.bytes += stat.size;
        self.files.push(Item { path, dir: dir.clone(), name: name.to_owned(), stat });
    }

    /// Looks at all in the directory `name` of `above`, which has the path `at`.
    fn dir(&mut self, above: BorrowedFd<'_>, name: &CStr, at: &[u8], largest: u64, deepest: usize) {
        let Some(handle) = self.open(above, name).map(Arc::new) else { return };
        for name in self.list(&handle) {
            match Stat::of(&handle, &name) {
                Ok(stat) if stat.is_dir() && deepest == 0 => self.whole = false,
                Ok(stat) if stat.is_dir() => {
                    self.dir(handle.as_fd(), &name, &join(at, &name), largest, deepest - 1);
                }
                Ok(stat) => self.file(&handle, join(at, &name), &name, stat, largest),
                Err(Errno::NOENT) => {}
                Err(_) => self.whole = false,
            }
        }
    }

    /// The names in `dir`, as many as are looked at.
    fn list(&mut self, dir: &OwnedFd) -> Vec<CString> {
        let mut buffer = [MaybeUninit::uninit(); BATCH];
        let mut names = Vec::new();
        let mut batch = RawDir::new(dir, &mut buffer);
        while let Some(entry) = batch.next() {
            let Ok(entry) = entry else {
                self.whole = false;
                break;
            };
            if !is_name(entry.file_name().to_bytes()) {
                continue;
            }
            if self.names == MOST_NAMES {
                self.whole = false;
                break;
            }
            self.names += 1;
            names.push(entry.file_name().to_owned());
        }
        names
    }

    /// The directory `name` of `above`, when it is there.
    fn open(&mut self, above: BorrowedFd<'_>, name: &CStr) -> Option<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(above, name, flags, Mode::empty()) {
            Ok(dir) => Some(dir),
            Err(Errno::NOENT) => None,
            Err(_) => {
                self.whole = false;
                None
            }
        }
    }
}

fn join(at: &[u8], name: &CStr) -> Vec<u8> {
    if at.is_empty() { name.to_bytes().to_vec() } else { [at, b"/", name.to_bytes()].concat() }
}
