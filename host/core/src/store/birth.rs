//! The mark of birth: which directory a store was made in.
//!
//! A file in the store says the inode number and the time of birth of the store's own
//! directory. Nobody can choose these for a directory that is unpacked or copied, so a
//! store whose mark fits was made on this file system, and has only been moved since.
//! It proves that without anything outside the store: where the user's state directory
//! was removed, or cannot be written, this user's stores stay theirs. File systems that
//! know no time of birth leave the inode number, which is worth less and better than
//! nothing.

use crate::disk::{Dir, Disk};
use crate::error::{Error, Result};
use rustix::fs::{AtFlags, StatxFlags};

/// The mark's file in the store.
pub const FILE: &[u8] = b"birth";

/// What the mark of `dir` says when it fits.
fn mark_of(dir: &Dir) -> Result<String> {
    let flags = AtFlags::EMPTY_PATH;
    let stat = rustix::fs::statx(dir, c"", flags, StatxFlags::INO | StatxFlags::BTIME)
        .map_err(|error| Error::io(error, "could not look at", dir.path()))?;
    let born = match stat.stx_mask & StatxFlags::BTIME.bits() {
        0 => String::from("unknown"),
        _ => format!("{}.{:09}", stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec),
    };
    Ok(format!("inode {}, born {born}\n", stat.stx_ino))
}

/// Marks the store in `dir` as made where it lies.
pub fn mark(disk: &Disk, dir: &Dir) -> Result<()> {
    disk.write_synced(dir, FILE, mark_of(dir)?.as_bytes(), 0o400)
}

/// Whether the store in `dir` was made where it lies, by the user who runs this.
pub fn is_born_in(dir: &Dir) -> bool {
    let mark = mark_of(dir).ok();
    let owner = dir.stat_self().is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
    owner && mark.is_some() && dir.read(FILE, 256).ok() == mark.map(String::into_bytes)
}
