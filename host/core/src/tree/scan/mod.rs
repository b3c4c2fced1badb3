//! Walking a directory: names, what of them is selected, handles.
//!
//! Everything is relative to open directories; nothing is reached through a link.
//! The walk itself (who goes on where, on which thread) is the caller's: `Walk::enter`
//! opens one directory, lists it, and says which of its entries are to be captured.
//! What is left out is recorded as it is met.

mod apart;
mod choose;
mod databases;
mod decide;
mod dir;
mod each;
mod elsewhere;
mod enter;
mod git;
mod listing;
mod place;
mod stat;

pub use decide::Taken;
pub use dir::{Dir, Kept};
pub use each::Next;
pub use elsewhere::Elsewhere;
pub use enter::{Enter, Scratch, Selected};
pub use listing::Listing;
pub use place::{Place, Scope};
pub use stat::{Stat, stat_in};

use super::directory::Directory;
use super::ignore::Outer;
use super::root::{LeftOut, Root, Stamp, Why};
use crate::disk::Disk;
use crate::store::Source;
use rustix::fs::{FileType, Mode, OFlags};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Single files that were ignored of which it is kept what they look like: a record of a
/// snapshot has to stay small.
const MOST_STAMPS: usize = 10_000;

/// One walk over a directory, shared by its threads.
pub struct Walk<'a> {
    /// What is walked.
    pub directory: &'a Directory,
    /// Handles of directories that are still of use.
    pub kept: Kept,
    cover: Option<Cover<'a>>,
    elsewhere: Elsewhere,
    left_out: Mutex<Vec<LeftOut>>,
    ignored: Vec<AtomicU64>,
    ignored_stamps: Mutex<Vec<Stamp>>,
    /// Which of the `paths` were met.
    met: Vec<AtomicBool>,
    outer: OnceLock<Option<Outer>>,
}

/// A snapshot whose paths are all captured, whatever the rules say now, and whose
/// `.gitignore` files decide instead of those on the disk.
pub struct Cover<'a> {
    /// Its root.
    pub root: Root,
    /// Where its trees are read from.
    pub source: &'a dyn Source,
    /// What lends this user the permission to read its own.
    pub disk: &'a Disk,
}

impl<'a> Walk<'a> {
    /// A walk over `directory`, without what is captured elsewhere.
    pub fn new(directory: &'a Directory, cover: Option<Cover<'a>>, elsewhere: Elsewhere) -> Self {
        let patterns = directory.options().ignore.iter().count();
        Self {
            directory,
            kept: Kept::default(),
            cover,
            elsewhere,
            left_out: Mutex::default(),
            ignored: (0..patterns).map(|_| AtomicU64::new(0)).collect(),
            ignored_stamps: Mutex::default(),
            met: directory.options().paths.iter().map(|path| AtomicBool::new(path.is_empty())).collect(),
            outer: OnceLock::new(),
        }
    }

    /// Records that `path` is not captured; `seen` is what it looks like from outside.
    pub fn leave_out(
        &self,
        path: Vec<u8>,
        why: Why,
        detail: impl Into<String>,
        files: Option<u64>,
        seen: Option<&Stat>,
    ) {
        let stamp = seen.map(|stat| Stamp::of(stat, &path, why));
        let item = LeftOut { path, why, detail: detail.into(), files, stamp };
        self.left_out.lock().unwrap_or_else(PoisonError::into_inner).push(item);
    }

    /// All that was left out, sorted by path.
    pub fn take_left_out(&self) -> Vec<LeftOut> {
        let mut all = std::mem::take(&mut *self.left_out.lock().unwrap_or_else(PoisonError::into_inner));
        all.sort();
        all.dedup_by(|a, b| a.path == b.path);
        all
    }

    /// The `paths` that are not there.
    pub fn missing(&self) -> impl Iterator<Item = Vec<u8>> {
        let paths = self.directory.options().paths.iter().zip(&self.met);
        paths.filter(|(_, met)| !met.load(Ordering::Relaxed)).map(|(path, _)| path.join(&b'/'))
    }

    /// Single files that patterns of `ignore` left out: pattern, how many.
    pub fn ignored(&self) -> Vec<(String, u64)> {
        let counts = self.ignored.iter().map(|count| count.load(Ordering::Relaxed));
        let all = self.directory.options().ignore.iter().zip(counts);
        all.filter(|(_, count)| *count > 0).map(|(p, count)| (p.text().to_owned(), count)).collect()
    }

    /// Remembers what single files that were ignored look like.
    fn stamp_ignored(&self, files: impl Iterator<Item = Stat>) {
        let mut files = files.peekable();
        if files.peek().is_none() {
            return;
        }
        let mut all = self.ignored_stamps.lock().unwrap_or_else(PoisonError::into_inner);
        // One with more names may be covered by another of them.
        let alone = files.filter(|stat| stat.nlink == 1 && stat.kind() != FileType::Directory);
        all.extend(alone.map(|stat| Stamp::of(&stat, b"", Why::Ignored)));
        if all.len() > 2 * MOST_STAMPS {
            lowest(&mut all);
        }
    }

    /// What single files that were ignored look like, sorted.
    pub fn take_ignored_stamps(&self) -> Vec<Stamp> {
        let mut all =
            std::mem::take(&mut *self.ignored_stamps.lock().unwrap_or_else(PoisonError::into_inner));
        lowest(&mut all);
        all
    }
}

/// Keeps the lowest of `stamps`, which are the same whatever thread came first.
fn lowest(stamps: &mut Vec<Stamp>) {
    stamps.sort_unstable();
    stamps.dedup();
    stamps.truncate(MOST_STAMPS);
}

/// The bytes of the small file `path`; `None` when it is not there, no regular file,
/// larger than `limit`, or cannot be read. Its last name is not followed.
pub(crate) fn read_small(dir: impl AsFd, path: impl rustix::path::Arg, limit: u64) -> Option<Vec<u8>> {
    use std::io::Read;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(dir, path, flags, Mode::empty()).ok()?;
    if !Stat::of_open(&file).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    std::fs::File::from(file).take(limit + 1).read_to_end(&mut bytes).ok()?;
    (bytes.len() as u64 <= limit).then_some(bytes)
}
