//! Whether SQLite may be let at what is there: whether all that it would write is the
//! database's own.
//!
//! SQLite opens by names, and writes whatever these lead to. A database whose file has other
//! names is theirs as well, also outside of what is covered; a file beside it that is a link,
//! or a name of something else, is overwritten or removed. What SQLite may not be let at is
//! read in a copy, and made room for by `put`.

use super::capture::SETTLES;
use super::open::At;
use super::route::is_locked;
use rustix::fs::FileType;
use snapback_core::backend::Call;
use snapback_core::database::{SIDES, Seen, is_side, side, to_setting};
use snapback_core::error::Result;
use snapback_core::object::{Key, ObjectKind};
use snapback_core::store::Store;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Whether all that lies beside it, called as SQLite calls it, was made by SQLite and has no
/// other name.
///
/// # Errors
/// When it cannot be looked at.
pub fn has_own_sides(at: At<'_>) -> Result<bool> {
    for suffix in SIDES {
        let Some(stat) = at.dir.stat(&side(at.place.name(), suffix))? else { continue };
        let alone = FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_nlink == 1;
        if !alone || is_side(at.dir, at.place.name(), suffix) == Some(false) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether anything is called as SQLite calls what it makes beside it.
///
/// # Errors
/// When it cannot be looked at.
pub fn has_sides(at: At<'_>) -> Result<bool> {
    for suffix in SIDES {
        if at.dir.stat(&side(at.place.name(), suffix))?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// How many names the file has; none when nothing is there.
///
/// # Errors
/// When it cannot be looked at.
pub fn names(at: At<'_>) -> Result<u64> {
    Ok(at.dir.stat(at.place.name())?.map_or(0, |stat| stat.st_nlink))
}

/// A number for the names that the file has, when it has several and all of them are databases
/// that `call` knows of.
///
/// # Errors
/// When it cannot be looked at.
pub fn group(at: At<'_>, call: &Call) -> Result<Option<u64>> {
    let Some(stat) = at.dir.stat(at.place.name())?.filter(|stat| stat.st_nlink > 1) else { return Ok(None) };
    let mut paths: Vec<&[u8]> = call.elsewhere.iter().map(|other| &other.path[..]).collect();
    paths.sort_unstable();
    paths.dedup();
    paths.retain(|path| {
        let place = super::place::Place::new(&call.root, &to_setting(path));
        let found = place.and_then(|place| match place.dir()? {
            Some(dir) => dir.stat(place.name()),
            None => Ok(None),
        });
        found.is_ok_and(|found| {
            found.is_some_and(|found| (found.st_dev, found.st_ino) == (stat.st_dev, stat.st_ino))
        })
    });
    let begin =
        *Key::of(ObjectKind::Blob, &paths.join(&0)).hash().first_chunk().expect("a hash has 32 bytes");
    Ok((paths.len() as u64 == stat.st_nlink).then_some(u64::from_le_bytes(begin)))
}

/// Whether a journal or a log was left beside it that whoever opens it next deals with: it
/// stays as it is, and nobody is at work on it. A transaction that ends while it is looked at
/// leaves nothing.
///
/// # Errors
/// When it cannot be looked at.
pub fn is_left(at: At<'_>, store: &Arc<Store>) -> Result<bool> {
    let (name, since) = (at.place.name(), Instant::now());
    loop {
        at.cancel.check()?;
        if is_locked(at)? {
            return Ok(false);
        }
        let before = Seen::look(store, at.dir, name)?;
        if before.log().is_none() && !is_begun(at, &before) {
            return Ok(false);
        }
        // Whoever began it before is done, or still has the lock.
        if is_locked(at)? {
            return Ok(false);
        }
        if before.still(&Seen::look(store, at.dir, name)?) {
            return Ok(true);
        }
        if since.elapsed() > SETTLES {
            return Ok(false);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether the journal that was seen has what it would bring back.
fn is_begun(at: At<'_>, seen: &Seen) -> bool {
    let mut begin = [0];
    seen.journal().is_some_and(|journal| journal.size > 0)
        && at
            .dir
            .open_file(&side(at.place.name(), SIDES[0]))
            .is_ok_and(|journal| journal.read_at(&mut begin, 0).is_ok() && begin != [0])
}
