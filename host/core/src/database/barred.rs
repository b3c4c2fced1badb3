//! What keeps this user from a database, and the command that mends all of it.
//!
//! SQLite writes into the file and into what it made beside it, and makes and removes a journal or a
//! log in the directory; what is moved out of the way needs the directory. Each of them may belong to
//! somebody else. What belongs to this user is opened up for the work, so its mode is no bar. Only
//! looked at: no file is opened, since closing it lets go of the locks that this process has on it.

use super::{SIDES, side};
use crate::disk::Dir;
use crate::error::{Error, Result, shell_word, show_bytes};
use crate::tree::scan::{Stat, stat_in};
use rustix::fs::{Access, AtFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// What this user is to do with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// Read it, and what holds content beside it.
    Read,
    /// Write it where it is.
    Write,
    /// Move it out of the way, whatever lies beside it.
    Move,
}

/// What is in the way of this user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Barred {
    /// Why, as the rest of a sentence on the database.
    pub why: String,
    /// The command that takes all of it out of the way; none where no command does.
    pub mend: Option<String>,
}

/// Something that a deed needs.
struct Piece {
    /// As a sentence on the database names it.
    shown: String,
    path: PathBuf,
    stat: Stat,
    /// Whether this user may do with it what is needed.
    access: std::result::Result<(), Errno>,
}

/// What keeps this user from doing `deed` with what stands in `dir` as `name`.
///
/// # Errors
/// When it cannot be looked at.
pub fn barred(dir: &Dir, name: &[u8], deed: Deed) -> Result<Option<Barred>> {
    let pieces = pieces(dir, name, deed)?;
    if pieces.iter().any(|piece| piece.access == Err(Errno::ROFS)) {
        return Ok(Some(Barred { why: "its file system is read-only".to_owned(), mend: None }));
    }
    let (mut why, mut mend) = (Vec::new(), Vec::new());
    for (word, flag) in [("immutable", 'i'), ("append-only", 'a')] {
        let is_fixed = |p: &&Piece| deed != Deed::Read && p.stat.fixed() == Some((word, flag));
        let fixed: Vec<&Piece> = pieces.iter().filter(is_fixed).collect();
        if !fixed.is_empty() {
            why.push(format!("{} {word}", these(&fixed, "is", "are")));
            mend.push(format!("sudo chattr -{flag} {}", paths(&fixed)));
        }
    }
    let uid = rustix::process::geteuid().as_raw();
    let denied = |p: &&Piece| matches!(p.access, Err(Errno::ACCESS | Errno::PERM)) && p.stat.uid != uid;
    let foreign: Vec<&Piece> = pieces.iter().filter(denied).collect();
    if !foreign.is_empty() {
        let belong = these(&foreign, "belongs", "belong");
        let what = if deed == Deed::Read { "read" } else { "written" };
        why.push(format!("{belong} to somebody else, and may not be {what} by this user"));
        mend.push(format!("sudo chown {uid} {}", paths(&foreign)));
    }
    Ok((!why.is_empty()).then(|| Barred { why: why.join("; "), mend: Some(mend.join(" && ")) }))
}

/// What `deed` needs.
fn pieces(dir: &Dir, name: &[u8], deed: Deed) -> Result<Vec<Piece>> {
    let (mut pieces, mut beside) = (Vec::new(), Vec::new());
    let (sides, access) = match deed {
        Deed::Read => (&SIDES[..2], Access::READ_OK),
        _ => (&SIDES[..], Access::WRITE_OK),
    };
    let file = stat_in(dir, name)?.filter(|stat| stat.is_file());
    if let Some(stat) = file.filter(|_| deed != Deed::Move) {
        pieces.push(file_in(dir, name, "it".to_owned(), stat, access));
        for suffix in sides {
            let name = side(name, suffix);
            if let Some(stat) = stat_in(dir, &name)? {
                pieces.push(file_in(dir, &name, show_bytes(&name), stat, access));
                beside.push(*suffix);
            }
        }
    }
    // Whoever has the log and its index open made both: nothing comes or goes then.
    if deed != Deed::Read && !beside.ends_with(&SIDES[1..]) {
        let stat = Stat::of_open(dir).map_err(|e| Error::io(e, "could not look at", dir.path()))?;
        let access = accessible(dir, b".", Access::WRITE_OK | Access::EXEC_OK);
        pieces.push(Piece { shown: "its directory".to_owned(), path: dir.path().to_owned(), stat, access });
    }
    Ok(pieces)
}

fn file_in(dir: &Dir, name: &[u8], shown: String, stat: Stat, access: Access) -> Piece {
    Piece { shown, path: dir.join(name), stat, access: accessible(dir, name, access) }
}

fn accessible(dir: &Dir, name: &[u8], access: Access) -> std::result::Result<(), Errno> {
    rustix::fs::accessat(dir, OsStr::from_bytes(name), access, AtFlags::EACCESS)
}

/// All of them with the verb that goes with so many.
fn these(pieces: &[&Piece], one: &str, several: &str) -> String {
    let names: Vec<&str> = pieces.iter().map(|piece| &piece.shown[..]).collect();
    match names.split_last() {
        Some((last, [])) => format!("{last} {one}"),
        Some((last, rest)) => format!("{} and {last} {several}", rest.join(", ")),
        None => String::new(),
    }
}

fn paths(pieces: &[&Piece]) -> String {
    pieces.iter().map(|piece| shell_word(&piece.path)).collect::<Vec<_>>().join(" ")
}
