//! Whether git ignores a directory: its `.gitignore` files, `info/exclude`, and the
//! user's own excludes file, in git's order.
//!
//! Asked only about the few directories whose name a rule mentions, so everything
//! here is read when it is first needed. Nothing of git's is ever written or locked,
//! and git is not started. What is tracked does not matter here: a directory that
//! git ignores may hold tracked files.

use super::{LARGEST_FILE, Patterns};
use crate::tree::git::locate;
use crate::tree::scan::read_small;
use rustix::fs::{CWD, Mode, OFlags};
use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A repository, seen from its work tree.
#[derive(Debug, Default)]
pub struct Repository {
    /// `info/exclude`.
    exclude: Patterns,
}

impl Repository {
    /// The repository whose work tree begins at `dir`; `None` when there is none, or
    /// when what is called `.git` there is not one.
    pub fn at(dir: impl AsFd) -> Option<Self> {
        let located = locate(dir)?;
        let exclude = read_small(located.common(), "info/exclude", LARGEST_FILE);
        Some(Self { exclude: exclude.map(|file| Patterns::parse(&file)).unwrap_or_default() })
    }

    /// Whether git ignores `names[0]/names[1]/...` of this work tree, which is a
    /// `directory` or not. `ignores[i]` is the `.gitignore` of the directory that holds
    /// `names[i]`; `excludes` is the user's own file.
    pub fn ignores(
        &self,
        names: &[&[u8]],
        directory: bool,
        ignores: &[&Patterns],
        excludes: &Patterns,
    ) -> bool {
        let mut path: Vec<u8> = Vec::new();
        let mut starts = Vec::with_capacity(names.len());
        for (at, name) in names.iter().enumerate() {
            if !path.is_empty() {
                path.push(b'/');
            }
            starts.push(path.len());
            path.extend_from_slice(name);
            let nearest_first = starts.iter().zip(ignores).rev().map(|(&start, list)| (start, *list));
            let all = nearest_first.chain([(0, &self.exclude), (0, excludes)]);
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
    /// The names from the work tree's top down to the captured directory.
    pub names: Vec<Vec<u8>>,
    /// The `.gitignore` of each directory that holds one of `names`.
    pub ignores: Vec<Patterns>,
}

impl Outer {
    /// Looks upwards from `dir` (an absolute path without links), not beyond the file
    /// system that it lies on.
    pub fn find(dir: &Path) -> Option<Self> {
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
            if let Some(repository) = Repository::at(&fd) {
                return Some(Self { repository, ignores: Self::read(above, &names), names });
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
