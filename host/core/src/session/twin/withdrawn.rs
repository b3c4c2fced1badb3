//! A project's folder that holds nothing but the store is an empty one to the command that runs
//! in it: `git clone URL .`, and what makes new projects, refuse any other. So while a run goes
//! on the store withdraws to where its history is kept outside, and whoever writes next puts it
//! back, also after a kill.
//!
//! Invariant: the store is renamed, whole, both ways: at every moment it is at one of the two
//! places. It stays where it is when it cannot be renamed to the other, as on another file system.

use super::super::{Environment, Session};
use super::find;
use crate::disk::{Dir, Disk};
use crate::error::{Kind, Result};
use crate::project::STORE;
use crate::store::Store;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Its name beside what is kept outside.
const WITHDRAWN: &[u8] = b"withdrawn";

/// The project's own store, when it has withdrawn to `twin`.
pub(in crate::session) fn withdrawn(twin: &Path) -> Option<PathBuf> {
    let path = twin.join(OsStr::from_bytes(WITHDRAWN));
    Store::is_finished(&path).then_some(path)
}

/// Whether `path` is where a store withdraws to.
pub(in crate::session) fn is_withdrawn(path: &Path) -> bool {
    path.ends_with(OsStr::from_bytes(WITHDRAWN))
}

/// Puts the store that withdrew to `twin` back in the folder `root`, where nothing stands in its
/// place; whether there was one.
///
/// # Errors
/// When the disk refuses.
pub(super) fn put_back(disk: &Disk, twin: &Dir, root: &Dir) -> Result<bool> {
    if twin.stat(WITHDRAWN)?.is_none() {
        return Ok(false);
    }
    match disk.rename_noreplace(twin, WITHDRAWN, root, STORE.as_bytes()) {
        Ok(()) => disk.sync_dir(root).map(|()| true),
        // Another command was as quick.
        Err(error) if error.kind() == Kind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

impl Session {
    /// Withdraws from a folder that holds nothing else, as long as a run goes on; the store at
    /// its new place, if so.
    pub(in crate::session) fn withdraw(&self) -> Option<Arc<Store>> {
        let env = self.env();
        let root = Dir::open(&env.root).ok()?;
        // Seldom so: nothing more is looked at then.
        if !is_alone(&root) || self.running().ok()?.is_empty() {
            return None;
        }
        let twin = find(env).filter(|twin| self.opened().id().is_ok_and(|id| twin.ends_with(id)))?;
        let to = Dir::open(&twin).ok()?;
        if self.is_twin(&to) {
            return None;
        }
        env.disk.rename_noreplace(&root, STORE.as_bytes(), &to, WITHDRAWN).ok()?;
        // Where it cannot be opened there, it is as good as not gone.
        let store = env.disk.sync_dir(&to).and_then(|()| opened(env, &twin));
        if store.is_err() {
            let _ = put_back(&env.disk, &to, &root);
        }
        store.ok()
    }
}

/// Whether the folder `root` holds the store and nothing else.
fn is_alone(root: &Dir) -> bool {
    // A large folder is not listed for it.
    let first = || std::fs::read_dir(root.path()).ok().map(|entries| entries.flatten().take(2));
    first().is_some_and(|mut entries| entries.all(|entry| entry.file_name() == STORE))
}

fn opened(env: &Environment, twin: &Path) -> Result<Arc<Store>> {
    Store::open(&twin.join(OsStr::from_bytes(WITHDRAWN)), env.disk.clone())
}
