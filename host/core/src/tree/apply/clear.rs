//! Removing what restores that were cut short left aside in the store, once there is none
//! to complete.
//!
//! Invariant: a file goes only when its content is stored, or when it was never whole;
//! any other goes to `saved/` and stays. What is no regular file stays where it is.

use super::aside::{ASIDE, SAVED, make_dir};
use crate::backend::Cancel;
use crate::disk::Dir;
use crate::error::{Error, Kind, Result};
use crate::store::Store;
use crate::store::content::name_file;
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

fn numbered(name: &[u8], number: u32) -> Vec<u8> {
    [name, format!("-{number}").as_bytes()].concat()
}

/// Whether the content of the file `name` is stored.
pub(super) fn is_stored(store: &Arc<Store>, dir: &Dir, name: &[u8], cancel: &Cancel) -> Result<bool> {
    let file = dir.open_file(name)?;
    let size = file.metadata().map_err(|e| Error::io(e, "could not look at", dir.join(name)))?.len();
    let scratch = store.scratch(false);
    let (key, _) = name_file(&mut scratch.lane(), &file, size, true, cancel)?;
    Ok(size == 0 || store.read(&key).is_ok())
}
