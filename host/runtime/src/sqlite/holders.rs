//! Who uses a database, as far as the system tells: processes that hold locks on it or
//! on the index of its log, or have it open.
//!
//! Processes of others cannot be looked into; what holds a lock is still named.

use super::place::path_of;
use rustix::fs::AtFlags;
use snapback_core::database::{SIDES, side};
use snapback_core::disk::Dir;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// At most so many are named.
const NAMED: usize = 5;

/// A process that uses a database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    pid: u32,
    name: String,
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (pid {})", self.name, self.pid)
    }
}

/// Who uses the database `name` in `dir`, this process aside.
pub fn of(dir: &Dir, name: &[u8]) -> Vec<Holder> {
    let mut files = BTreeSet::new();
    for name in [name.to_vec(), side(name, SIDES[2])] {
        if let Ok(Some(stat)) = dir.stat(&name) {
            files.insert((stat.st_dev, stat.st_ino));
        }
    }
    let mut pids: BTreeSet<u32> = locking(&fs::read_to_string("/proc/locks").unwrap_or_default(), &files);
    if pids.is_empty() {
        pids = opening(&files);
    }
    named(pids)
}

/// Who still has a database open that was `name` in `dir` and was removed from there, with its
/// log or without: what these write goes with it.
pub fn of_removed(dir: &Dir, name: &[u8]) -> Vec<Holder> {
    // Where it was, as the system knows it of who opened it.
    let Ok(path) = path_of(dir, name) else { return Vec::new() };
    let path = path.as_os_str().as_bytes();
    let gone = |path: &[u8]| [path, b" (deleted)"].concat();
    let (itself, sides) = (gone(path), SIDES.map(|suffix| gone(&side(path, suffix))));
    let is_gone = |fd: &Path| fs::metadata(fd).is_ok_and(|meta| meta.nlink() == 0);
    named(using(&|fds| {
        let (mut beside, mut here) = (false, false);
        for fd in fds {
            let Ok(of) = fs::read_link(&fd) else { continue };
            let of = of.as_os_str().as_bytes();
            if of == itself && is_gone(&fd) {
                return true;
            }
            beside |= sides.iter().any(|side| side == of) && is_gone(&fd);
            // Whoever has what is there open lost nothing but what lay beside it.
            here |= of == path;
        }
        beside && !here
    }))
}

/// Who is at work on the database `name` in `dir`, which has a log, by another log than the one
/// that lies beside it: that was removed or moved away under it, and is brought into the
/// database when its user ends.
pub fn of_other_log(dir: &Dir, name: &[u8]) -> Vec<Holder> {
    let id = |name: &[u8]| dir.stat(name).ok().flatten().map(|stat| (stat.st_dev, stat.st_ino));
    let Some(database) = id(name) else { return Vec::new() };
    let beside = [SIDES[1], SIDES[2]].map(|suffix| id(&side(name, suffix)));
    // Whoever has a log holds a lock for as long as that is so.
    let locking = locking(&fs::read_to_string("/proc/locks").unwrap_or_default(), &[database].into());
    let is_other = |pid: &u32| {
        let fds = fs::read_dir(format!("/proc/{pid}/fd"));
        // Of processes of others nothing is known.
        let Ok(fds) = fds else { return false };
        let open: BTreeSet<(u64, u64)> = fds.flatten().filter_map(|fd| id_of(&fd.path())).collect();
        open.contains(&database) && !beside.iter().all(|side| side.is_some_and(|id| open.contains(&id)))
    };
    named(locking.into_iter().filter(is_other).collect())
}

/// The processes that hold locks on `files`. Devices are not compared: some file systems
/// have one for locks and another for all else.
fn locking(text: &str, files: &BTreeSet<(u64, u64)>) -> BTreeSet<u32> {
    let pid = |line: &str| {
        let fields: Vec<&str> = line.split_ascii_whitespace().filter(|field| *field != "->").collect();
        let inode: u64 = fields.get(5)?.rsplit(':').next()?.parse().ok()?;
        files.iter().any(|(_, known)| *known == inode).then(|| fields.get(4)?.parse().ok())?
    };
    text.lines().filter_map(pid).collect()
}

/// The processes that have one of `files` open.
fn opening(files: &BTreeSet<(u64, u64)>) -> BTreeSet<u32> {
    using(&|mut fds| Iterator::any(&mut fds, |fd| id_of(&fd).is_some_and(|id| files.contains(&id))))
}

/// Device and inode of what the link `fd` in /proc leads to.
fn id_of(fd: &Path) -> Option<(u64, u64)> {
    let stat = rustix::fs::statat(rustix::fs::CWD, fd, AtFlags::empty()).ok()?;
    Some((stat.st_dev, stat.st_ino))
}

/// The processes of which `is_meant` is true, by the links in /proc to what they have open.
fn using(is_meant: &dyn Fn(&mut dyn Iterator<Item = PathBuf>) -> bool) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    for process in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = process.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        let open = fs::read_dir(process.path().join("fd")).into_iter().flatten().flatten();
        if is_meant(&mut open.map(|fd| fd.path())) {
            found.insert(pid);
        }
    }
    found
}

/// Who has the file with this device and inode open, this process aside.
pub fn of_file(id: (u64, u64)) -> Vec<Holder> {
    named(opening(&BTreeSet::from([id])))
}

/// The first of `pids`, this process aside, as they are named.
fn named(pids: BTreeSet<u32>) -> Vec<Holder> {
    let others = pids.into_iter().filter(|pid| *pid != std::process::id());
    others.filter_map(holder).take(NAMED).collect()
}

fn holder(pid: u32) -> Option<Holder> {
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    let name: String = name.trim().chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    Some(Holder { pid, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_has_a_removed_database_open_is_found() {
        let scratch = crate::testing::Scratch::new();
        let dir = Dir::open(scratch.path()).unwrap();
        let held = |name: &str| {
            fs::write(scratch.path().join(name), "x").unwrap();
            let file = fs::File::open(scratch.path().join(name)).unwrap();
            std::process::Command::new("sleep").arg("600").stdin(file).spawn().unwrap()
        };
        for name in ["a.db", "a.db-wal"] {
            let mut holder = held(name);
            // Until it has become the program, it is a copy of this one.
            let pid = holder.id();
            let is = |found: &[Holder]| found.iter().any(|found| found.pid == pid && found.name == "sleep");
            let there = of_removed(&dir, b"a.db");
            fs::remove_file(scratch.path().join(name)).unwrap();
            let found = loop {
                let found = of_removed(&dir, b"a.db");
                if is(&found) || fs::read(format!("/proc/{pid}/comm")).unwrap() == b"sleep\n" {
                    break of_removed(&dir, b"a.db");
                }
            };
            let other = of_removed(&dir, b"b.db");
            holder.kill().unwrap();
            holder.wait().unwrap();
            assert_eq!((there.len(), other.len()), (0, 0), "{name}");
            assert!(is(&found), "{name}: {found:?}");
        }
    }

    #[test]
    fn locks_are_found_by_inode() {
        let text = "1: POSIX  ADVISORY  WRITE 4711 00:2d:99 1073741824 1073742335\n\
                    1: -> POSIX  ADVISORY  WRITE 4712 00:2d:99 0 EOF\n\
                    2: FLOCK  ADVISORY  WRITE 4713 00:2d:98 0 EOF\n\
                    3: OFDLCK ADVISORY  READ -1 00:2d:99 0 EOF\nnonsense\n";
        assert_eq!(locking(text, &BTreeSet::from([(7, 99)])), BTreeSet::from([4711, 4712]));
    }
}
