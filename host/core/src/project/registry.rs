//! The roots that this user's snapback knows: one small file each, named by the
//! hash of the root's path, in the user's own state directory.
//!
//! It is asked before any marker in the file system, so a project whose `.snapback/`
//! or `.git` is gone is still found. A file is written anew when it was not for a day:
//! its time says when the project was used last. Losing the registry loses no history.
//! A state directory that cannot be written is no error: the markers still work.

use super::mounts::{Mounted, Mounts};
use crate::disk::{Dir, Disk};
use crate::error::Result;
use crate::history::clock::Moment;
use crate::object::{Key, ObjectKind};
use crate::text::Bytes;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// An entry is not larger, in bytes: a path of the longest kind in base64, and some more.
const MOST_BYTES: u64 = 64 << 10;
/// An entry that is older is written anew by the next use.
const FRESH: Duration = Duration::from_secs(86_400);

/// The known roots, kept in a directory.
#[derive(Debug, Clone)]
pub struct Registry {
    dir: PathBuf,
}

/// What is known of a root.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Known {
    /// The root's path.
    pub root: Bytes,
    /// The identity of the store that belongs to it.
    pub store: String,
    /// When the store, which came from elsewhere, was trusted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<Moment>,
    /// The file system that it was on when it was used last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Mounted>,
}

impl Registry {
    /// The registry kept in `state` (`$XDG_STATE_HOME/snapback`), which need not exist.
    pub fn new(state: &Path) -> Self {
        Self { dir: state.join("roots") }
    }

    /// What is known of `root`. A file that cannot be read as one counts as absent.
    pub fn get(&self, root: &Path) -> Option<Known> {
        let known = read(&Dir::open(&self.dir).ok()?, name(root).as_bytes())?;
        (known.root.path() == root).then_some(known)
    }

    /// When `root` was used last, to the day.
    pub fn used(&self, root: &Path) -> Option<SystemTime> {
        fs::metadata(self.dir.join(name(root))).ok()?.modified().ok()
    }

    /// Remembers that `store` belongs to `root`, and that it is in use. What was known of
    /// that store stays known; `trusted` is new.
    ///
    /// # Errors
    /// When the state directory cannot be written.
    pub fn put(&self, disk: &Disk, root: &Path, store: &str, trusted: Option<Moment>) -> Result<()> {
        let before = self.get(root).filter(|known| known.store == store);
        let is_fresh = |time: SystemTime| time.elapsed().is_ok_and(|age| age < FRESH);
        if before.is_some() && trusted.is_none() && self.used(root).is_some_and(is_fresh) {
            return Ok(());
        }
        let known = Known {
            root: Bytes::from(root),
            store: store.to_owned(),
            trusted: trusted.or_else(|| before?.trusted),
            on: Mounts::now().on(root),
        };
        let dir = disk.make_dirs(&self.dir)?;
        let text = serde_json::to_vec(&known).expect("a path and an id can be written as JSON");
        disk.write_cache(&dir, name(root).as_bytes(), &text, 0o600)
    }

    /// All known roots.
    pub fn all(&self) -> Vec<Known> {
        let Ok(dir) = Dir::open(&self.dir) else { return Vec::new() };
        let names = dir.names().unwrap_or_default();
        let mut all: Vec<Known> = names.iter().filter_map(|name| read(&dir, name)).collect();
        all.sort_by(|a, b| a.root.cmp(&b.root));
        all
    }

    /// Forgets `root`.
    ///
    /// # Errors
    /// When the state directory cannot be written.
    pub fn remove(&self, disk: &Disk, root: &Path) -> Result<()> {
        if !self.dir.join(name(root)).exists() {
            return Ok(());
        }
        let dir = disk.make_dirs(&self.dir)?;
        disk.unlink(&dir, name(root).as_bytes())
    }
}

/// The entry in the file `name`; what cannot be one is none.
fn read(dir: &Dir, name: &[u8]) -> Option<Known> {
    serde_json::from_slice(&dir.read(name, MOST_BYTES).ok()?).ok()
}

fn name(root: &Path) -> String {
    let key = Key::of(ObjectKind::Blob, root.as_os_str().as_bytes());
    key.hash()[..16].iter().map(|b| format!("{b:02x}")).collect()
}
