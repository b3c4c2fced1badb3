//! Directories that are open, however deep and however many.
//!
//! A `Dir` knows the directory above it and its own name there. Its handle is kept
//! open while it is of use, but only so many are open at once: the ones opened first,
//! which are the highest and needed last, are closed and opened again when needed,
//! name by name from the nearest one that is open. So no path is ever resolved as a
//! whole: none is too long, and none leads through a link. A directory opened again
//! must be the same inode, or it is gone.

use crate::disk::Lent;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::CString;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Handles kept open for directories whose subdirectories are still to be opened.
/// Far below the usual limit of 1024 for a process, which has others open as well;
/// fewer where the limit is lower.
const MOST_OPEN: usize = 128;

/// A directory below (or at) the one that is walked.
pub struct Dir {
    above: Option<Arc<Dir>>,
    name: CString,
    id: (u64, u64),
    handle: Mutex<Option<Arc<OwnedFd>>>,
    /// Permission to enter it, as long as something in it is still to be looked at.
    _lent: Option<Lent>,
}

/// The directories whose handles are kept.
pub struct Kept {
    queue: Mutex<VecDeque<Weak<Dir>>>,
    most: usize,
}

impl Default for Kept {
    fn default() -> Self {
        let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        let most = limit.map_or(MOST_OPEN, |limit| (limit / 4).min(MOST_OPEN as u64) as usize);
        Self { queue: Mutex::default(), most }
    }
}

impl Dir {
    /// The top: its handle is never closed.
    pub fn top(handle: Arc<OwnedFd>, id: (u64, u64)) -> Arc<Self> {
        let handle = Mutex::new(Some(handle));
        Arc::new(Self { above: None, name: CString::default(), id, handle, _lent: None })
    }

    /// The directory `name` of `above`, which was opened as `handle` and is the inode `id`.
    /// The handle is not kept until [`Kept::keep`] says so. What was `lent` to open it
    /// is given back with it.
    pub fn below(above: &Arc<Self>, name: CString, id: (u64, u64), lent: Option<Lent>) -> Arc<Self> {
        Arc::new(Self { above: Some(above.clone()), name, id, handle: Mutex::default(), _lent: lent })
    }

    /// The directory above; none for the top.
    pub fn above(&self) -> Option<&Arc<Self>> {
        self.above.as_ref()
    }

    /// Its name in the directory above; empty for the top.
    pub fn name(&self) -> &[u8] {
        self.name.as_bytes()
    }

    /// Device and inode.
    pub fn id(&self) -> (u64, u64) {
        self.id
    }

    /// The path from the top, `/` between names; empty for the top.
    pub fn path(&self) -> Vec<u8> {
        let mut names = Vec::new();
        let mut at = self;
        while let Some(above) = &at.above {
            names.push(at.name.as_bytes());
            at = above;
        }
        names.reverse();
        names.join(&b'/')
    }

    /// The path of `name` in it.
    pub fn path_of(&self, name: &[u8]) -> Vec<u8> {
        let mut path = self.path();
        if !path.is_empty() {
            path.push(b'/');
        }
        path.extend_from_slice(name);
        path
    }

    fn slot(&self) -> MutexGuard<'_, Option<Arc<OwnedFd>>> {
        self.handle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    /// A handle on `dir`, opened again if it was closed.
    ///
    /// # Errors
    /// `NOENT` when another directory is in its place by now.
    pub fn open(&self, dir: &Arc<Dir>) -> rustix::io::Result<Arc<OwnedFd>> {
        let mut missing = Vec::new();
        let mut at = dir;
        let mut handle = loop {
            if let Some(handle) = &*at.slot() {
                break handle.clone();
            }
            missing.push(at);
            at = at.above.as_ref().ok_or(Errno::BADF)?;
        };
        while let Some(dir) = missing.pop() {
            let opened = self.open_in(&handle, &dir.name)?;
            let stat = rustix::fs::fstat(&opened)?;
            #[allow(clippy::useless_conversion)] // Not all architectures have the same widths.
            if (u64::from(stat.st_dev), u64::from(stat.st_ino)) != dir.id {
                return Err(Errno::NOENT);
            }
            handle = Arc::new(opened);
            if !missing.is_empty() {
                self.keep(dir, handle.clone());
            }
        }
        Ok(handle)
    }

    /// Opens the directory `name` of `handle`, never through a link. When no more can
    /// be open, those that are kept are closed first.
    pub fn open_in(&self, handle: impl AsFd, name: &std::ffi::CStr) -> rustix::io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&handle, name, flags, Mode::empty()) {
            Err(Errno::MFILE | Errno::NFILE) => {
                self.close_all_but(0);
                rustix::fs::openat(&handle, name, flags, Mode::empty())
            }
            done => done,
        }
    }

    /// Keeps `handle` open for `dir`, at the cost of another when there are too many.
    pub fn keep(&self, dir: &Arc<Dir>, handle: Arc<OwnedFd>) {
        if dir.above.is_none() {
            return;
        }
        *dir.slot() = Some(handle);
        self.lock().push_back(Arc::downgrade(dir));
        self.close_all_but(self.most);
    }

    /// Nothing below `dir` will be opened any more.
    pub fn done(&self, dir: &Dir) {
        if dir.above.is_some() {
            dir.slot().take();
        }
    }

    /// Closes those kept longest until at most `limit` may be open.
    fn close_all_but(&self, limit: usize) {
        let mut queue = self.lock();
        if queue.len() <= limit {
            return;
        }
        let open = |dir: &Weak<Dir>| dir.upgrade().is_some_and(|dir| dir.slot().is_some());
        queue.retain(open);
        while queue.len() > limit {
            if let Some(dir) = queue.pop_front().and_then(|dir| dir.upgrade()) {
                dir.slot().take();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Weak<Dir>>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A chain of directories is let go one by one: a deep one must not take the stack.
impl Drop for Dir {
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut dir) = above.and_then(Arc::into_inner) {
            above = dir.above.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use crate::tree::scan::Stat;
    use rustix::fs::CWD;

    fn open(path: &std::path::Path) -> (Arc<OwnedFd>, (u64, u64)) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(CWD, path, flags, Mode::empty()).unwrap();
        let id = Stat::of_open(&handle).unwrap().id();
        (Arc::new(handle), id)
    }

    #[test]
    fn few_stay_open_and_the_rest_are_opened_again() {
        let temp = TempDir::new();
        let path = temp.path().join("d/".repeat(20));
        std::fs::create_dir_all(&path).unwrap();
        let kept = Kept { queue: Mutex::default(), most: 3 };
        let (handle, id) = open(temp.path());
        let mut chain = vec![Dir::top(handle, id)];
        for level in 1..=20 {
            let above = chain.last().unwrap().clone();
            let (handle, id) = open(&temp.path().join("d/".repeat(level)));
            let dir = Dir::below(&above, c"d".to_owned(), id, None);
            kept.keep(&dir, handle);
            chain.push(dir);
        }
        let still_open = |chain: &[Arc<Dir>]| chain.iter().skip(1).filter(|dir| dir.slot().is_some()).count();
        assert_eq!(still_open(&chain), 3);
        for dir in chain.iter().rev() {
            let handle = kept.open(dir).unwrap();
            assert_eq!(Stat::of_open(&handle).unwrap().id(), dir.id());
            assert!(still_open(&chain) <= 3);
        }
        assert_eq!(
            chain[20].path(),
            path.strip_prefix(temp.path()).unwrap().to_str().unwrap().trim_end_matches('/').as_bytes()
        );
        // Another directory, or a link, in the place of one is not it.
        kept.close_all_but(0);
        let (first, moved) = (temp.path().join("d"), temp.path().join("moved"));
        std::fs::rename(&first, &moved).unwrap();
        assert_eq!(kept.open(&chain[5]).unwrap_err(), Errno::NOENT);
        std::fs::create_dir_all(first.join("d/d/d/d")).unwrap();
        assert_eq!(kept.open(&chain[5]).unwrap_err(), Errno::NOENT);
        std::fs::remove_dir_all(&first).unwrap();
        std::os::unix::fs::symlink(&moved, &first).unwrap();
        assert_eq!(kept.open(&chain[5]).unwrap_err(), Errno::NOTDIR);
        std::fs::remove_file(&first).unwrap();
        std::fs::rename(&moved, &first).unwrap();
        kept.open(&chain[5]).unwrap();
    }
}
