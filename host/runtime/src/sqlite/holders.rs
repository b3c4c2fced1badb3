//! Who uses a database, as far as the system tells: processes that hold locks on it or
//! on the index of its log, or have it open.
//!
//! Processes of others cannot be looked into; what holds a lock is still named.

use super::place::path_of;
use super::route::{INDEX_LOCKS, LOCKS};
use super::system::{System, open_by};
use snapback_core::database::{SIDES, side};
use snapback_core::disk::Dir;
use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::os::unix::ffi::OsStrExt;

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

/// All of them, as a sentence has them.
pub fn list(holders: &[Holder]) -> String {
    holders.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Who uses the database `name` in `dir`, this process aside.
pub fn of(dir: &Dir, name: &[u8]) -> Vec<Holder> {
    let system = System::now();
    let named_so = [(name.to_vec(), LOCKS), (side(name, SIDES[2]), INDEX_LOCKS)];
    let stats = named_so.map(|(name, bytes)| dir.stat(&name).ok().flatten().map(|stat| (stat, bytes)));
    let files = || stats.iter().flatten();
    let mut pids: BTreeSet<u32> =
        files().flat_map(|(stat, bytes)| system.locking(dir, stat.st_ino, *bytes)).collect();
    if pids.is_empty() {
        pids = files().flat_map(|(stat, _)| system.having((stat.st_dev, stat.st_ino))).collect();
    }
    named(pids)
}

/// Who still has a database open that was `name` in `dir` and was removed from there, with its
/// log or without: what these write goes with it.
pub fn of_removed(system: &System, dir: &Dir, name: &[u8]) -> Vec<Holder> {
    // Where it was, as the system knows it of who opened it.
    let Ok(path) = path_of(dir, name) else { return Vec::new() };
    let itself = path.as_os_str().as_bytes();
    let sides = SIDES.map(|suffix| side(itself, suffix));
    let called = [itself].into_iter().chain(sides.iter().map(Vec::as_slice));
    let pids: BTreeSet<u32> = called.flat_map(|path| system.having_called(path)).collect();
    let has_removed = |pid: &u32| {
        let (mut beside, mut here) = (false, false);
        for file in open_by(*pid).unwrap_or_default() {
            if file.path == itself && file.is_gone {
                return true;
            }
            beside |= file.is_gone && sides.contains(&file.path);
            // Whoever has what is there open lost nothing but what lay beside it.
            here |= file.path == itself;
        }
        beside && !here
    };
    named(pids.into_iter().filter(has_removed).collect())
}

/// Who has the file with this device and inode open, this process aside.
pub fn of_file(system: &System, id: (u64, u64)) -> Vec<Holder> {
    let has = |pid: &u32| open_by(*pid).unwrap_or_default().iter().any(|file| file.id == id);
    named(system.having(id).into_iter().filter(has).collect())
}

/// The first of `pids`, this process aside, as they are named.
pub fn named(pids: BTreeSet<u32>) -> Vec<Holder> {
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
        let of_removed = |name: &[u8]| of_removed(&System::now(), &dir, name);
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
            let there = of_removed(b"a.db");
            fs::remove_file(scratch.path().join(name)).unwrap();
            let found = loop {
                let found = of_removed(b"a.db");
                if is(&found) || fs::read(format!("/proc/{pid}/comm")).unwrap() == b"sleep\n" {
                    break of_removed(b"a.db");
                }
            };
            let other = of_removed(b"b.db");
            holder.kill().unwrap();
            holder.wait().unwrap();
            assert_eq!((there.len(), other.len()), (0, 0), "{name}");
            assert!(is(&found), "{name}: {found:?}");
        }
    }
}
