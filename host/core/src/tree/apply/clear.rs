//! Removing what restores left aside in the store, once there is none to complete, and what
//! they kept in `saved/`.
//!
//! Invariant: a file goes only when its content is stored, or when it was never whole;
//! any other goes to `saved/`, and from there only once it is stored and nobody can write to
//! it any more. What is no regular file stays where it is.

use super::aside::{ASIDE, SAVED, make_dir};
use crate::backend::Cancel;
use crate::disk::{Dir, Writers};
use crate::error::{Error, Kind, Result};
use crate::store::Store;
use crate::store::content::name_file;
use crate::tree::scan::stat_in;
use rustix::fs::FileType;
use std::sync::Arc;

/// Clears the directories aside of `store`, under its lock.
///
/// # Errors
/// `Cancelled`; when the disk refuses.
pub fn clear(store: &Arc<Store>, cancel: &Cancel) -> Result<()> {
    let top = match store.dir().child(ASIDE) {
        Err(e) if e.kind() == Kind::NotFound => return Ok(()),
        other => other?,
    };
    for scope in top.names()? {
        let dir = top.child(&scope)?;
        for name in dir.names()? {
            let is_file =
                |stat: &rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
            if !dir.stat(&name)?.is_some_and(|stat| is_file(&stat)) {
                continue;
            }
            if name.starts_with(b"w") || is_stored(store, &dir, &name, cancel)? {
                store.disk().unlink(&dir, &name)?;
                continue;
            }
            let saved = make_dir(store.disk(), store.dir(), SAVED)?;
            let mut number = 0;
            while saved.stat(&numbered(&name, number))?.is_some() {
                number += 1;
            }
            store.disk().rename_noreplace(&dir, &name, &saved, &numbered(&name, number))?;
        }
    }
    Ok(())
}

/// What is kept in `saved/`: how many files, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Left {
    /// Entries.
    pub files: u64,
    /// Bytes of them.
    pub bytes: u64,
}

/// What is kept in `saved/` of the store at `dir`.
///
/// # Errors
/// When it cannot be read.
pub fn saved(dir: &Dir) -> Result<Left> {
    let Some(saved) = saved_in(dir)? else { return Ok(Left::default()) };
    saved.names()?.iter().try_fold(Left::default(), |left, name| left.with(&saved, name))
}

/// Removes from `saved/` what is stored and nobody has open; the rest is returned. Of files of
/// others nobody knows that: they go only where `all` is asked for.
///
/// # Errors
/// `Cancelled`; when the disk refuses.
pub fn clear_saved(store: &Arc<Store>, all: bool, cancel: &Cancel) -> Result<Left> {
    let mut left = Left::default();
    let Some(saved) = saved_in(store.dir())? else { return Ok(left) };
    let me = rustix::process::geteuid().as_raw();
    for name in saved.names()? {
        let Some(stat) = stat_in(&saved, &name)? else { continue };
        let is_free = || match saved.writers(&name) {
            Writers::Nobody => true,
            Writers::Somebody => false,
            Writers::Unknown => (all || stat.uid == me) && super::writers::of(&[stat.id()].into()).is_empty(),
        };
        if stat.is_file() && is_free() && is_stored(store, &saved, &name, cancel)? {
            store.disk().unlink(&saved, &name)?;
        } else {
            left = left.with(&saved, &name)?;
        }
    }
    Ok(left)
}

fn saved_in(dir: &Dir) -> Result<Option<Dir>> {
    match dir.child(SAVED) {
        Err(e) if e.kind() == Kind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

impl Left {
    fn with(self, dir: &Dir, name: &[u8]) -> Result<Self> {
        let bytes = stat_in(dir, name)?.map_or(0, |stat| stat.size);
        Ok(Self { files: self.files + 1, bytes: self.bytes.saturating_add(bytes) })
    }
}

fn numbered(name: &[u8], number: u32) -> Vec<u8> {
    [name, format!("-{number}").as_bytes()].concat()
}

/// Whether the content of the file `name` is stored.
pub(crate) fn is_stored(store: &Arc<Store>, dir: &Dir, name: &[u8], cancel: &Cancel) -> Result<bool> {
    let file = dir.open_file(name)?;
    let size = file.metadata().map_err(|e| Error::io(e, "could not look at", dir.join(name)))?.len();
    let scratch = store.scratch(false);
    let (key, _) = name_file(&mut scratch.lane(), &file, size, true, cancel)?;
    Ok(size == 0 || store.read(&key).is_ok())
}
