//! The store is its owner's alone, whatever a command did to its permissions.
//!
//! `chmod -R 644 .` takes from the owner what it needs to enter the store, `chmod -R 777 .`
//! shows everybody what is in it. Both are mended before the store is opened for writing.
//! Who takes only the permission to write, and only from the store, wants it to stay as it
//! is: it is read then. Refuses to touch what belongs to somebody else, and follows no link.

use super::open::DIR_MODE;
use crate::disk::{Dir, Disk};
use crate::error::Result;
use rustix::fs::{FileType, Stat};

/// What the owner has of a file of the store at least, and what it may have.
const READ: u32 = 0o400;
const OWNER: u32 = 0o600;
/// Files that every store has.
const FIRST: [&[u8]; 3] = [b"format", b"id", b"lock"];
/// Files that are written in place: without them nothing can be written.
const IN_PLACE: [&[u8]; 2] = [b"lock", b"tick"];

/// Whether the directory `name` of `parent`, a store, is only to be read: its owner may
/// not write in it, and may in `parent`.
///
/// # Errors
/// When the system refuses.
pub fn is_read_only(parent: &Dir, name: &[u8]) -> Result<bool> {
    const READ_ONLY: u32 = 0o500;
    const WRITE: u32 = 0o200;
    let is_so = |stat: &Stat| kind(stat) == FileType::Directory && bits(stat) & 0o700 == READ_ONLY;
    Ok(parent.stat(name)?.as_ref().is_some_and(is_so) && bits(&parent.stat_self()?) & WRITE != 0)
}

/// Gives the directory `name` of `parent`, a store, and all that is in it back to its
/// owner, and to it alone. Looks at nothing inside as long as its own mode and those of its first
/// files are right.
///
/// # Errors
/// When the system refuses.
pub fn mend(disk: &Disk, parent: &Dir, name: &[u8]) -> Result<()> {
    let me = rustix::process::geteuid().as_raw();
    let own_dir = |stat: &Stat| stat.st_uid == me && kind(stat) == FileType::Directory;
    let Some(stat) = parent.stat(name)?.filter(own_dir) else { return Ok(()) };
    if bits(&stat) == DIR_MODE && !is_closed(&parent.child(name)?, me)? {
        return Ok(());
    }
    // Its own mode is set last: as long as that is wrong, not all in it is right.
    if bits(&stat) & DIR_MODE != DIR_MODE {
        disk.set_mode(parent, name, bits(&stat) | DIR_MODE)?;
    }
    inside(disk, &parent.child(name)?, me)?;
    disk.set_mode(parent, name, DIR_MODE)
}

/// Whether its owner may not read what every store has.
fn is_closed(dir: &Dir, me: u32) -> Result<bool> {
    for name in FIRST {
        if dir.stat(name)?.is_some_and(|stat| stat.st_uid == me && bits(&stat) & READ == 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn inside(disk: &Disk, dir: &Dir, me: u32) -> Result<()> {
    for name in dir.names()? {
        let Some(stat) = dir.stat(&name)?.filter(|stat| stat.st_uid == me) else { continue };
        match kind(&stat) {
            FileType::Directory => {
                if bits(&stat) != DIR_MODE {
                    disk.set_mode(dir, &name, DIR_MODE)?;
                }
                inside(disk, &dir.child(&name)?, me)?;
            }
            FileType::RegularFile => {
                let least = if IN_PLACE.contains(&&name[..]) { OWNER } else { READ };
                let wanted = bits(&stat) & OWNER | least;
                if bits(&stat) != wanted {
                    disk.set_mode(dir, &name, wanted)?;
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn bits(stat: &Stat) -> u32 {
    stat.st_mode & 0o7777
}
