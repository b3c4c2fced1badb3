//! snapback's own directories, which no grant reaches: stores, the user's state, compiled
//! components, the folders with backends.
//!
//! They are known by device and inode, so that no other name and no link leads around.

use super::place::{self, Place};
use rustix::fs::{CWD, Mode, OFlags};
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::project::STORE;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Directories deeper than this are taken for a loop.
const DEPTH: usize = 4096;

/// snapback's own directories.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guarded(Vec<(PathBuf, (u64, u64))>);

impl Guarded {
    /// `own`, and the store of the project at `root`; those that exist.
    pub fn new(root: &Path, own: &[PathBuf]) -> Self {
        Self::of(&own.iter().cloned().chain([root.join(STORE)]).collect::<Vec<_>>())
    }

    /// Those of `own` that exist.
    pub fn of(own: &[PathBuf]) -> Self {
        Self(own.iter().filter_map(|path| Some((path.clone(), place::id(open(path)?, path).ok()?))).collect())
    }

    /// Device and inode of each.
    pub fn ids(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(_, id)| *id)
    }

    /// Refuses a place that is one of them, or lies in one.
    ///
    /// # Errors
    /// `Denied`.
    pub fn refuse_inside(&self, key: &str, place: &Place) -> Result<()> {
        // Of a file, or of what is not there yet, what holds it counts.
        let dir = open(&place.path).or_else(|| place.path.parent().and_then(open));
        dir.map_or(Ok(()), |dir| self.refuse_open(key, &place.path, dir))
    }

    /// Refuses `dir`, which was opened by `path`, if it is one of them, or lies in one.
    ///
    /// # Errors
    /// `Denied`.
    pub fn refuse_open(&self, key: &str, path: &Path, dir: impl AsFd) -> Result<()> {
        match self.around(path, dir)? {
            Some(own) => Err(refused(key, path, own)),
            None => Ok(()),
        }
    }

    /// Refuses it when it holds one of them, too: for what hands out all that is in it.
    ///
    /// # Errors
    /// `Denied`.
    pub fn refuse_around(&self, key: &str, path: &Path, dir: impl AsFd) -> Result<()> {
        self.refuse_open(key, path, &dir)?;
        let alone = Self(vec![(path.to_owned(), place::id(&dir, path)?)]);
        for (own, dir) in self.0.iter().filter_map(|(own, _)| Some((own, open(own)?))) {
            if alone.around(own, dir)?.is_some() {
                return Err(refused(key, path, own));
            }
        }
        Ok(())
    }

    /// Which of them `dir` is, or lies in.
    fn around(&self, path: &Path, dir: impl AsFd) -> Result<Option<&Path>> {
        let mut at = rustix::fs::openat(&dir, ".", FLAGS, Mode::empty()).ok();
        for _ in 0..DEPTH {
            let Some(dir) = at else { return Ok(None) };
            let id = place::id(&dir, path)?;
            if let Some((own, _)) = self.0.iter().find(|(_, known)| *known == id) {
                return Ok(Some(own));
            }
            let Ok(parent) = rustix::fs::openat(&dir, "..", FLAGS, Mode::empty()) else { return Ok(None) };
            at = (place::id(&parent, path)? != id).then_some(parent);
        }
        Err(Error::new(Kind::Denied, format!("{} lies too deep", show(path))))
    }
}

const FLAGS: OFlags = OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

fn open(path: &Path) -> Option<OwnedFd> {
    rustix::fs::openat(CWD, path, FLAGS, Mode::empty()).ok()
}

fn refused(key: &str, path: &Path, own: &Path) -> Error {
    let why = format!("`{key}` reaches snapback's own files: {} and {}", show(path), show(own));
    Error::new(Kind::Denied, why).hint("name a directory that has nothing of snapback's in it")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_snapbacks_own_is_reached_from_no_side() {
        let scratch = Scratch::new();
        let (root, state) = (scratch.path().join("project"), scratch.path().join("home/state"));
        for dir in [&root.join(".snapback/packs"), &root.join("src"), &state.join("consents")] {
            std::fs::create_dir_all(dir).unwrap();
        }
        symlink("../home", root.join("link")).unwrap();
        let guarded = Guarded::new(&root, &[state, scratch.path().join("missing")]);
        let check = |value: &str, around: bool| {
            let place = place::look(&root, value).unwrap();
            match around {
                true => open(&place.path)
                    .map_or_else(
                        || guarded.refuse_inside("path", &place),
                        |dir| guarded.refuse_around("path", &place.path, dir),
                    )
                    .is_ok(),
                false => guarded.refuse_inside("path", &place).is_ok(),
            }
        };
        // value, lies in none, holds none
        for (value, inside, around) in [
            ("src", true, true),
            (".", true, false),
            ("..", true, false),
            ("../home", true, false),
            ("link", true, false),
            ("link/state", false, false),
            ("../home/state/consents", false, false),
            ("../home/state/new", false, false),
            (".snapback", false, false),
            (".snapback/packs", false, false),
            ("src/new", true, true),
        ] {
            assert_eq!((check(value, false), check(value, true)), (inside, around), "{value}");
        }
    }
}
