//! What a repository tracks: the paths in its index, and in one that it shares most of its
//! entries with. Only read; an index that is too large, of another form or damaged says
//! nothing.

use super::index::{HASHES, LARGEST, each};
use super::settings::read;
use std::os::fd::AsFd;
use std::path::Path;

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
        assert!(tracked.paths.len() as u64 <= LARGEST + super::index::LONGEST as u64 + 1);
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
        let before = self.paths.len();
        let tail = HASHES.into_iter().find_map(|hash| {
            self.paths.truncate(before);
            each(index, hash, &mut |item| {
                self.paths.extend_from_slice(item.path);
                self.paths.push(0);
                self.paths.len() as u64 <= LARGEST
            })
        });
        tail?.shared
    }
}

/// The path that begins at `start` among `paths`, each with a zero behind it.
fn one(paths: &[u8], start: u32) -> &[u8] {
    let rest = &paths[start as usize..];
    &rest[..rest.iter().position(|&b| b == 0).unwrap_or(rest.len())]
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
