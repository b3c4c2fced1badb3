//! Another store in the place of the project's own: a command put another project, or only its
//! history, where this one was.
//!
//! The registry says whose root it is, and what is kept outside has its steps: an undo must
//! take back one of these, never one of another project. So the own history comes back, and
//! the other store, of which nothing is known here, is only moved aside.
//!
//! Not where the own one was moved, and lives on elsewhere: who moves a project takes its
//! history along, and what is moved here brings its own. Nor where the other one has newer
//! steps of this very root, as the same project under another home directory has.

use super::super::Environment;
use super::{find, has_all, id_of, names};
use crate::disk::{Dir, Disk};
use crate::error::{Kind, Result};
use crate::history::Id;
use crate::history::snapshot::{self, META, Snapshot};
use crate::project::STORE;
use crate::store::Store;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// So many stores are moved aside under one name.
const MOST: usize = 1000;
/// Digits of an identity in such a name.
const DIGITS: usize = 8;

/// The twin of the store that is known for the project's root, when another one stands in its
/// place. `during` the command that asks: it held the own one's lock, so nobody moved here.
pub(in crate::session) fn replaced(env: &Environment, during: bool) -> Option<PathBuf> {
    let path = env.root.join(STORE);
    find(env).filter(|twin| {
        is_another(twin, &path)
            && newest(twin).is_some_and(|newest| {
                during || !lives_on(twin, &newest, &env.root) && !has_newer(&path, &newest, &env.root)
            })
    })
}

/// Whether the store at `path` is not the one that `twin`, which can be used, belongs to.
pub(super) fn is_another(twin: &Path, path: &Path) -> bool {
    let is_dir = |meta: &fs::Metadata| meta.is_dir();
    let Some(meta) = path.symlink_metadata().ok().filter(is_dir) else { return false };
    let other = match id_of(path) {
        // An identity that is damaged says nothing, nor does one in a store with all that is kept.
        Ok(id) => Store::identity(path).is_some() && !is_named(twin, &id) && !is_the_same(twin, path),
        // Closed by another user, who made it.
        Err(error) => error.kind() == Kind::Denied && meta.uid() != rustix::process::geteuid().as_raw(),
    };
    other && Store::is_finished(twin)
}

/// Whether the store at `path` has what `twin` has, by the same files, and nothing else.
fn is_the_same(twin: &Path, path: &Path) -> bool {
    let Some(newest) = newest(twin) else { return false };
    let file = |place: &Path| {
        let record = place.join("snapshots").join(newest.as_str()).join(META);
        record.symlink_metadata().ok().map(|meta| (meta.dev(), meta.ino()))
    };
    let is_shared = file(path).is_some_and(|found| file(twin) == Some(found));
    is_shared && names(path.join("snapshots")).is_some_and(|ours| has_all(twin, "snapshots", &ours))
}

/// Whether `twin` is that of the store with the identity `id`: it is called so.
pub(super) fn is_named(twin: &Path, id: &[u8]) -> bool {
    twin.file_name().is_some_and(|name| name.as_bytes() == id)
}

/// The newest snapshot that is kept in `twin`.
fn newest(twin: &Path) -> Option<Id> {
    snapshot::ids(&twin.join("snapshots")).ok()?.into_iter().next()
}

/// Whether the store of `twin` still is somewhere: it has the same files under other names, or
/// was moved aside in the project at `root`.
fn lives_on(twin: &Path, newest: &Id, root: &Path) -> bool {
    let record = twin.join("snapshots").join(newest.as_str()).join(META);
    let is_aside = |entry: fs::DirEntry| {
        entry.file_name().as_bytes().starts_with(&prefix())
            && id_of(&entry.path()).is_ok_and(|id| is_named(twin, &id))
    };
    let meta = |path: &Path| fs::symlink_metadata(path).ok();
    let Some(kept) = meta(&record) else { return false };
    // Where the other one was only copied over it, its files are there as well.
    let merged = meta(&root.join(STORE).join("snapshots").join(newest.as_str()).join(META));
    let merged = merged.is_some_and(|meta| (meta.dev(), meta.ino()) == (kept.dev(), kept.ino()));
    kept.nlink() > 1 + u64::from(merged)
        || fs::read_dir(root).is_ok_and(|entries| entries.flatten().any(is_aside))
}

/// Whether the store at `path` has a snapshot of the project at `root` that is newer.
fn has_newer(path: &Path, newest: &Id, root: &Path) -> bool {
    let snapshots = path.join("snapshots");
    let of_root = |id: &Id| Snapshot::load(&snapshots, id).is_ok_and(|snapshot| snapshot.root.path() == root);
    let ids = snapshot::ids(&snapshots).unwrap_or_default();
    ids.iter().take_while(|id| *id > newest).any(of_root)
}

fn prefix() -> Vec<u8> {
    [STORE.as_bytes(), b"."].concat()
}

/// Moves the store that stands in `root` aside; returns where it is.
///
/// # Errors
/// When the disk refuses.
pub(super) fn set_aside(disk: &Disk, root: &Dir) -> Result<PathBuf> {
    let id = id_of(&root.join(STORE.as_bytes())).unwrap_or_default();
    let id = id.get(..DIGITS).filter(|id| id.iter().all(u8::is_ascii_alphanumeric)).unwrap_or(b"other");
    let name = [&prefix()[..], id].concat();
    for number in 0..MOST {
        let name = match number {
            0 => name.clone(),
            _ => [&name[..], format!("-{number}").as_bytes()].concat(),
        };
        match disk.rename_noreplace(root, STORE.as_bytes(), root, &name) {
            Err(error) if error.is(rustix::io::Errno::EXIST) => {}
            done => {
                done.map_err(|error| {
                    error.hint("it is not this project's own history; move it away, and try again")
                })?;
                disk.sync_dir(root)?;
                return Ok(root.join(&name));
            }
        }
    }
    Err(crate::error::Error::new(Kind::Other, "too many stores were moved aside here"))
}
