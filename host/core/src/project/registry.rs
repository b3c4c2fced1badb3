//! The roots that this user's snapback knows: one small file each, named by the
//! hash of the root's path, in the user's own state directory.
//!
//! It is asked before any marker in the file system, so a project whose `.snapback/`
//! or `.git` is gone is still found. Losing it loses no history. A state directory
//! that cannot be written is no error: the markers still work.

use crate::disk::{Dir, Disk};
use crate::error::{Kind, Result};
use crate::object::{Key, ObjectKind};
use crate::text::Bytes;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

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
}

impl Registry {
    /// The registry kept in `state` (`$XDG_STATE_HOME/snapback`), which need not exist.
    pub fn new(state: &Path) -> Self {
        Self { dir: state.join("roots") }
    }

    /// What is known of `root`. A file that cannot be read as one counts as absent.
    pub fn get(&self, root: &Path) -> Option<Known> {
        let text = fs::read(self.dir.join(name(root))).ok()?;
        let known: Known = serde_json::from_slice(&text).ok()?;
        (known.root.path() == root).then_some(known)
    }

    /// Remembers that `store` belongs to `root`.
    ///
    /// # Errors
    /// When the state directory cannot be written.
    pub fn put(&self, disk: &Disk, root: &Path, store: &str) -> Result<()> {
        let known = Known { root: Bytes::from(root), store: store.to_owned() };
        if self.get(root).as_ref() == Some(&known) {
            return Ok(());
        }
        let dir = ensure(disk, &self.dir)?;
        let text = serde_json::to_vec(&known).expect("a path and an id can be written as JSON");
        disk.write_cache(&dir, name(root).as_bytes(), &text, 0o600)
    }

    /// All known roots.
    pub fn all(&self) -> Vec<Known> {
        let Ok(entries) = fs::read_dir(&self.dir) else { return Vec::new() };
        let mut all: Vec<Known> = entries
            .flatten()
            .filter_map(|entry| serde_json::from_slice(&fs::read(entry.path()).ok()?).ok())
            .collect();
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
        let dir = ensure(disk, &self.dir)?;
        disk.unlink(&dir, name(root).as_bytes())
    }
}

/// Opens the directory `path`, made with its parents when it is not there.
pub(crate) fn ensure(disk: &Disk, path: &Path) -> Result<Dir> {
    match Dir::open(path) {
        Err(error) if error.kind() == Kind::NotFound => {}
        other => return other,
    }
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Dir::open(path) };
    let parent = ensure(disk, parent)?;
    // Another command may have made it in the meantime: opening tells.
    let _ = disk.mkdir(&parent, name.as_bytes(), 0o700);
    parent.child(name.as_bytes())
}

fn name(root: &Path) -> String {
    let key = Key::of(ObjectKind::Blob, root.as_os_str().as_bytes());
    key.hash()[..16].iter().map(|b| format!("{b:02x}")).collect()
}
