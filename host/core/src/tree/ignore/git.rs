//! Whether git ignores a directory: its `.gitignore` files, `info/exclude`, and the
//! user's own excludes file, in git's order.
//!
//! Asked only about the few directories whose name a rule mentions, so everything
//! here is read when it is first needed. Nothing of git's is ever written or locked,
//! and git is not started. As for `git check-ignore`, a directory in which something is
//! tracked is not ignored, whatever patterns say.

use super::{LARGEST_FILE, Patterns};
use crate::tree::git::{GitUser, Tracked, locate, read};
use crate::tree::scan::read_small;
use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// A repository, seen from its work tree.
#[derive(Debug, Default)]
pub struct Repository {
    /// `info/exclude`.
    exclude: Patterns,
    /// The excludes file that its settings, or those of the user, name.
    excludes: Patterns,
    tracked: OnceLock<Tracked>,
}

impl Repository {
    /// The repository whose work tree begins at `dir`; `None` when there is none, or
    /// when what is called `.git` there is not one.
    pub fn at(dir: impl AsFd, user: &GitUser) -> Option<Self> {
        let located = locate(&dir)?;
        let patterns = |file: Option<Vec<u8>>| file.map(|file| Patterns::parse(&file)).unwrap_or_default();
        Some(Self {
            exclude: patterns(read(located.common(), Path::new("info/exclude"), LARGEST_FILE)),
            excludes: patterns(user.excludes(located.common(), &dir)),
            tracked: OnceLock::new(),
        })
    }

    /// Whether something in the directory `names[0]/names[1]/...` of the work tree that
    /// begins at `dir` is tracked.
    pub fn tracks(&self, dir: impl AsFd, names: &[&[u8]]) -> bool {
        let tracked = || locate(dir).map(|located| Tracked::of(located.own())).unwrap_or_default();
        self.tracked.get_or_init(tracked).is_any_in(&names.join(&b'/'))
    }

    /// Whether git ignores `names[0]/names[1]/...` of this work tree, which is a
    /// `directory` or not. `ignores[i]` is the `.gitignore` of the directory that holds
    /// `names[i]`.
    pub fn ignores(&self, names: &[&[u8]], directory: bool, ignores: &[&Patterns]) -> bool {
        let mut path: Vec<u8> = Vec::new();
        let mut starts = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            if !path.is_empty() {
                path.push(b'/');
            }
            starts.push(path.len());
            path.extend_from_slice(name);
            let nearest_first = starts.iter().zip(ignores).rev().map(|(&start, list)| (start, *list));
            let all = nearest_first.chain([(0, &self.exclude), (0, &self.excludes)]);
            // What lies in an ignored directory is ignored, whatever patterns inside say.
            if let Some((_, true)) = all
                .into_iter()
                .find_map(|(start, list)| list.decide(&path[start..], directory || at + 1 < names.len()))
            {
                return true;
            }
        }
        false
    }
}

/// The repository that a captured directory lies in, when its work tree begins above.
#[derive(Debug)]
pub struct Outer {
    /// The repository.
    pub repository: Repository,
    /// Where its work tree begins.
    pub top: OwnedFd,
    /// The names from the work tree's top down to the captured directory.
    pub names: Vec<Vec<u8>>,
    /// The `.gitignore` of each directory that holds one of `names`.
    pub ignores: Vec<Patterns>,
}

impl Outer {
    /// Looks upwards from `dir` (an absolute path without links), not beyond the file
    /// system that it lies on.
    pub fn find(dir: &Path, user: &GitUser) -> Option<Self> {
        let device = rustix::fs::stat(dir).ok()?.st_dev;
        let mut names: Vec<Vec<u8>> = Vec::new();
        let mut below = dir;
        for above in dir.ancestors().skip(1) {
            names.insert(0, below.file_name()?.as_bytes().to_vec());
            below = above;
            let fd = open_dir(CWD, above)?;
            if rustix::fs::fstat(&fd).ok()?.st_dev != device {
                return None;
            }
            if let Some(repository) = Repository::at(&fd, user) {
                return Some(Self { repository, top: fd, ignores: Self::read(above, &names), names });
            }
        }
        None
    }

    fn read(top: &Path, names: &[Vec<u8>]) -> Vec<Patterns> {
        let mut path: PathBuf = top.to_owned();
        let mut all = Vec::with_capacity(names.len());
        for name in names {
            let file = read_small(CWD, path.join(".gitignore"), LARGEST_FILE);
            all.push(file.map(|file| Patterns::parse(&file)).unwrap_or_default());
            path.push(OsStr::from_bytes(name));
        }
        all
    }
}

fn open_dir(at: impl AsFd, path: &Path) -> Option<OwnedFd> {
    rustix::fs::openat(at, path, OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
}
