//! Git's index, as far as it says what is tracked: the paths in it.
//!
//! Versions 2 to 4, and one that shares most of its entries with another file. Only
//! read; an index that is too large, of another form or damaged says nothing.

use super::settings::read;
use std::os::fd::AsFd;
use std::path::Path;

/// An index, and the paths in it, are not larger than this, in bytes: a million files.
const LARGEST: u64 = 128 << 20;
/// A path is not longer than this, in bytes; one entry may repeat most of the one before.
const LONGEST: usize = 4096;

/// Bytes of an entry before its flags: times, device, inode, mode, owner, size.
const FIXED: usize = 40;

/// Bytes of a hash: SHA-1, SHA-256.
const HASHES: [usize; 2] = [20, 32];

/// The flag of an entry that has more flags, and the bits that are the length of its name.
const EXTENDED: u16 = 0x4000;
const LENGTH: u16 = 0xfff;

/// The paths that a repository tracks.
#[derive(Debug, Default)]
pub struct Tracked {
    /// All of them, each with a zero behind it.
    paths: Vec<u8>,
    /// Where each begins, in the order of their bytes.
    starts: Vec<u32>,
}

impl Tracked {
    /// Those of the repository whose own directory is `git`.
    pub fn of(git: impl AsFd) -> Self {
        let mut tracked = Self::default();
        let git = git.as_fd();
        if let Some(index) = read(git, Path::new("index"), LARGEST)
            && let Some(shared) = tracked.add(&index)
            && let Some(index) = read(git, Path::new(&format!("sharedindex.{shared}")), LARGEST)
        {
            tracked.add(&index);
        }
        tracked.sorted()
    }

    /// Those in one file.
    #[cfg(any(test, feature = "fuzz"))]
    pub fn in_file(index: &[u8]) -> Self {
        let mut tracked = Self::default();
        tracked.add(index);
        assert!(tracked.paths.len() as u64 <= LARGEST + LONGEST as u64 + 1);
        tracked.sorted()
    }

    /// Knows where the paths begin: those of a second file, or of a damaged one, are in no
    /// order.
    fn sorted(mut self) -> Self {
        let mut at = 0;
        for path in self.paths.split_inclusive(|&b| b == 0) {
            self.starts.push(at);
            at += path.len() as u32;
        }
        let paths = &self.paths;
        self.starts.sort_unstable_by_key(|&start| one(paths, start));
        self
    }

    /// Whether something in the directory `path` is tracked.
    pub fn is_any_in(&self, path: &[u8]) -> bool {
        let below = [path, b"/"].concat();
        let first = self.starts.partition_point(|&start| one(&self.paths, start) < &below[..]);
        self.starts.get(first).is_some_and(|&start| one(&self.paths, start).starts_with(&below))
    }

    /// Takes the paths in `index`; returns the name of the one that it shares entries with.
    fn add(&mut self, index: &[u8]) -> Option<String> {
        // The length of hashes is the repository's; a wrong one does not fit the first entry.
        let before = self.paths.len();
        HASHES.into_iter().find_map(|hash| {
            self.paths.truncate(before);
            self.entries(index, hash)
        })?
    }

    fn entries(&mut self, index: &[u8], hash: usize) -> Option<Option<String>> {
        let number = |at: usize| Some(u32::from_be_bytes(index.get(at..at + 4)?.try_into().ok()?));
        let version = number(4)?;
        if !index.starts_with(b"DIRC") || !(2..=4).contains(&version) {
            return None;
        }
        let (mut at, mut last) = (12, Vec::new());
        for _ in 0..number(8)? {
            let (begin, flags) = (at, at + FIXED + hash);
            let bits = u16::from_be_bytes(index.get(flags..flags + 2)?.try_into().ok()?);
            at = flags + if bits & EXTENDED == 0 { 2 } else { 4 };
            if version == 4 {
                let (strip, length) = varint(index.get(at..)?)?;
                at += length;
                last.truncate(last.len().checked_sub(strip)?);
            } else {
                last.clear();
            }
            let name = index.get(at..)?;
            let end = name.iter().position(|&b| b == 0)?;
            last.extend_from_slice(&name[..end]);
            if last.len() > LONGEST || self.paths.len() as u64 > LARGEST {
                return None;
            }
            if last.len().min(usize::from(LENGTH)) != usize::from(bits & LENGTH) {
                return None;
            }
            self.paths.extend_from_slice(&last);
            self.paths.push(0);
            at += end;
            // Padded with one to eight zeros to a multiple of eight; not in version 4.
            at = if version == 4 { at + 1 } else { begin + (at - begin + 8) / 8 * 8 };
        }
        while at + hash < index.len() {
            let (name, length) = (index.get(at..at + 4)?, number(at + 4)? as usize);
            if name == b"link" {
                let of = index.get(at + 8..at + 8 + hash)?;
                return Some(Some(of.iter().map(|byte| format!("{byte:02x}")).collect()));
            }
            at = at.checked_add(8 + length)?;
        }
        Some(None)
    }
}

/// The path that begins at `start` among `paths`, each with a zero behind it.
fn one(paths: &[u8], start: u32) -> &[u8] {
    let rest = &paths[start as usize..];
    &rest[..rest.iter().position(|&b| b == 0).unwrap_or(rest.len())]
}

/// A number of version 4, and how many bytes it takes.
fn varint(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = 0usize;
    for (at, &byte) in bytes.iter().enumerate().take(9) {
        value = (value << 7) | usize::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
        value += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use std::collections::BTreeSet;
    use std::fs::File;
    use std::process::Command;

    /// What git says it tracks, and what is read from its index.
    fn both(dir: &Path, script: &str) -> Option<(BTreeSet<Vec<u8>>, Tracked)> {
        let mut sh = Command::new("sh");
        sh.current_dir(dir).env("HOME", dir).env("GIT_CONFIG_NOSYSTEM", "1");
        let done = sh.args(["-ec", &format!("{script} >/dev/null; git ls-files -z")]).output().ok()?;
        let theirs = done.stdout.split(|&b| b == 0).filter(|path| !path.is_empty()).map(<[u8]>::to_vec);
        let theirs: BTreeSet<_> = theirs.collect();
        Some((theirs, Tracked::of(File::open(dir.join(".git")).ok()?)))
    }

    #[test]
    fn what_git_tracks_is_tracked() {
        if Command::new("git").arg("--version").output().is_err() {
            return;
        }
        let files = "mkdir -p d/e dist; for n in $(seq 30); do echo $n > d/e/f$n; done; echo > dist/kept; echo > 'o dd'; echo > $(printf 'n%.0s' $(seq 200))";
        for script in [
            "git init -q .; git add .",
            "git init -q .; git update-index --index-version 4; git add .; git update-index --index-version 4",
            "git init -q --object-format=sha256 .; git add .",
            "git init -q .; git add .; git update-index --index-version 3; git update-index --skip-worktree dist/kept",
            "git init -q .; git add d; git update-index --split-index; git add .",
            "git init -q .; git add .; git rm -q --cached dist/kept",
            "git init -q .; : > .git/index",
        ] {
            let temp = TempDir::new();
            let (theirs, ours) = both(temp.path(), &format!("{files}; {script}")).unwrap();
            let told: BTreeSet<_> = ours.paths.split(|&b| b == 0).filter(|path| !path.is_empty()).collect();
            assert!(theirs.iter().all(|path| told.contains(&path[..])), "{script}: {theirs:?}");
            assert_eq!(ours.is_any_in(b"dist"), theirs.contains(&b"dist/kept"[..]), "{script}");
            assert_eq!(ours.is_any_in(b"d/e"), !theirs.is_empty(), "{script}");
            assert!(!ours.is_any_in(b"dis") && !ours.is_any_in(b"d/e/f1"), "{script}");
        }
    }

    #[test]
    fn what_is_no_index_says_nothing() {
        let temp = TempDir::new();
        let of = |bytes: &[u8]| {
            std::fs::write(temp.path().join("index"), bytes).unwrap();
            Tracked::of(File::open(temp.path()).unwrap()).paths
        };
        let mut many = b"DIRC\0\0\0\x02\xff\xff\xff\xff".to_vec();
        many.resize(500, 0);
        for bytes in [&b""[..], b"DIRC", b"DIRC\0\0\0\x09\0\0\0\x01", &many, &many[..60]] {
            assert!(of(bytes).split(|&b| b == 0).all(<[u8]>::is_empty), "{bytes:?}");
        }
    }
}
