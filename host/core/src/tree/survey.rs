//! What a capture of a directory would hold and what it would leave out, found without
//! capturing anything: for whoever wants to know before.
//!
//! Nothing is opened but directories, the few files that rules ask for, and files of the
//! size of a database, for their first bytes. What is left out is counted, too. Ends at a limit:
//! a home directory is not read for a question.

use super::directory::Directory;
use super::git::{self, Standing};
use super::measure::{Measure, measure};
use super::root::{LeftOut, Why};
use super::scan::{Elsewhere, Next, Place, Scratch, Stat, Walk};
use super::select::Options;
use crate::backend::{Call, Cancel};
use crate::error::Result;
use rustix::fs::{Access, AtFlags, FileType};
use rustix::io::Errno;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::{Mutex, PoisonError};

/// Files that are counted in what is left out.
const MOST_LEFT_OUT: u64 = 1_000_000;

/// What a capture would hold and leave out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// How much it would hold.
    pub holds: Measure,
    /// What would be left out, with the files in it where they could be counted; sorted
    /// by path.
    pub left_out: Vec<LeftOut>,
    /// Single files that a pattern of `ignore` would leave out: pattern, how many.
    pub ignored: Vec<(String, u64)>,
    /// What git ignores and is covered all the same, in the order of the walk.
    pub precious: Vec<Precious>,
    /// Databases that would be targets of their own, sorted; each is one of the files.
    pub databases: Vec<Vec<u8>>,
    /// The repository that is not covered, if there is one.
    pub git: Option<Standing>,
}

/// Something that git ignores and that is covered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Precious {
    /// Its path in the directory.
    pub path: Vec<u8>,
    /// Whether it is a directory.
    pub directory: bool,
    /// Files: those in it, or itself.
    pub files: u64,
}

/// What a call that only surveys found, directory by directory as it opened them.
#[derive(Debug, Default)]
pub struct Surveys {
    found: Mutex<Vec<Survey>>,
    limit: u64,
    most_left_out: u64,
}

impl Surveys {
    /// For directories of up to `limit` files.
    pub fn new(limit: u64) -> Self {
        Self { found: Mutex::default(), limit, most_left_out: MOST_LEFT_OUT }
    }

    /// The same, and what is left out is not counted.
    pub fn brief(limit: u64) -> Self {
        Self { most_left_out: 0, ..Self::new(limit) }
    }

    /// Surveys one more.
    pub(super) fn add(&self, dir: &Directory, call: &Call) -> Result<()> {
        let survey = survey(dir, Elsewhere::new(dir, call), (self.limit, self.most_left_out), &call.cancel)?;
        self.found.lock().unwrap_or_else(PoisonError::into_inner).push(survey);
        Ok(())
    }

    /// What was found.
    pub fn take(&self) -> Vec<Survey> {
        std::mem::take(&mut *self.found.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Looks at `dir`, up to `limit` files, and counts `most_left_out` in what is left out.
///
/// # Errors
/// `Cancelled`; what would keep the directory from being captured at all.
fn survey(
    dir: &Directory,
    elsewhere: Elsewhere,
    (limit, most_left_out): (u64, u64),
    cancel: &Cancel,
) -> Result<Survey> {
    let walk = Walk::new(dir, None, elsewhere);
    let mut found = Survey::default();
    // The directories in something that git ignores: its place among the precious.
    let mut ignored: HashMap<Vec<u8>, usize> = HashMap::new();
    let complete = walk.each_directory(cancel, &mut |place, handle, scratch| {
        let next = found.look(&walk, place, handle, scratch, &mut ignored)?;
        Ok(if found.holds.files <= limit { next } else { Next::End })
    })?;
    found.holds.end(complete);
    found.databases.sort();
    found.ignored = walk.ignored();
    found.left_out = walk.take_left_out();
    // That a directory is left out is often known only once it was entered.
    let Survey { left_out, precious, .. } = &mut found;
    precious.retain(|item| left_out.binary_search_by(|left| left.path.cmp(&item.path)).is_err());
    let mut rest = most_left_out;
    if rest > 0 {
        for item in &mut found.left_out {
            item.files = item.files.or_else(|| count(dir, item, &mut rest, cancel));
        }
    }
    let is_left_out = found.left_out.iter().any(|item| item.path == b".git" || item.path == b".git/HEAD");
    found.git = git::present(dir.handle(), dir.path()).filter(|git| is_left_out || !git.inside);
    cancel.check()?;
    Ok(found)
}

impl Survey {
    /// Counts what is captured in `place`, and notes what of it git ignores.
    fn look(
        &mut self,
        walk: &Walk<'_>,
        place: &Place,
        handle: &OwnedFd,
        scratch: &Scratch,
        ignored: &mut HashMap<Vec<u8>, usize>,
    ) -> Result<Next> {
        let path = place.dir.path();
        let within = ignored.get(&path).copied();
        let mut seen = false;
        let selected = scratch.selected.iter().map(|selected| (selected.at, selected.kind, false));
        let databases = scratch.databases().map(|at| (at, FileType::RegularFile, true));
        for (at, kind, is_database) in selected.chain(databases) {
            let name = scratch.listing.name(at as usize);
            let directory = kind == FileType::Directory;
            let (mut files, mut bytes) = (0, 0);
            if !directory {
                let stat = match Stat::of(handle, name) {
                    Ok(stat) => stat,
                    Err(Errno::NOENT) => continue,
                    // It may be listed, and nothing in it be looked at.
                    Err(Errno::ACCESS) if !seen && let Some(above) = &place.above => {
                        walk.hole(above, place.dir.name(), Errno::ACCESS, "looked into")?;
                        return Ok(Next::Past);
                    }
                    Err(error) => {
                        walk.hole(place, name.to_bytes(), error, "looked at")?;
                        continue;
                    }
                };
                seen = true;
                if walk.is_other_mount(&stat) {
                    let path = place.dir.path_of(name.to_bytes());
                    walk.leave_out(path, Why::Mount, "", None, Some(&stat));
                    continue;
                }
                if stat.is_file()
                    && let Err(error) = rustix::fs::accessat(handle, name, Access::READ_OK, AtFlags::EACCESS)
                {
                    walk.hole(place, name.to_bytes(), error, "opened")?;
                    continue;
                }
                if is_database || walk.is_database(place, handle, name.to_bytes(), &stat) {
                    self.databases.push(place.dir.path_of(name.to_bytes()));
                }
                (files, bytes) = match (stat.is_dir(), stat.is_file()) {
                    (true, _) => (0, 0),
                    // Holes are neither read nor stored.
                    (_, true) => (1, stat.size.min(stat.allocated)),
                    _ => (1, 0),
                };
            }
            self.holds.add(&path, files, bytes);
            let of = match within {
                Some(of) => Some(of),
                None if walk.is_ignored_by_git(place, name.to_bytes(), directory)? => {
                    let path = place.dir.path_of(name.to_bytes());
                    self.precious.push(Precious { path, directory, files: 0 });
                    Some(self.precious.len() - 1)
                }
                None => None,
            };
            if let Some(of) = of {
                self.precious[of].files += files;
                if directory {
                    ignored.insert(place.dir.path_of(name.to_bytes()), of);
                }
            }
        }
        Ok(Next::Inside)
    }
}

/// The files in something that is left out, where they can be counted; no more than
/// `rest` in all.
fn count(dir: &Directory, item: &LeftOut, rest: &mut u64, cancel: &Cancel) -> Option<u64> {
    if matches!(item.why, Why::Store | Why::Mount | Why::Unreadable | Why::ChangedWhileRead) {
        return None;
    }
    let options = Options { git: true, max_files_per_dir: None, ..Options::default() };
    let path = dir.path().join(OsStr::from_bytes(&item.path));
    // Never through a link: only what was left out itself.
    if !path.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
        return None;
    }
    let inside = Directory::open(&path, "path", ".", &options).ok()?;
    let counted = measure(&inside, *rest, u64::MAX, cancel).ok()?;
    *rest = rest.saturating_sub(counted.files);
    counted.complete.then_some(counted.files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    fn write(temp: &TempDir, path: &str) {
        let path = temp.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "1234").unwrap();
    }

    fn look(temp: &TempDir, options: &[(&str, &str)], limit: u64) -> Survey {
        let options = Options::parse(options).unwrap();
        let dir = Directory::open(temp.path(), "path", ".", &options).unwrap();
        survey(&dir, Elsewhere::default(), (limit, 100), &Cancel::default()).unwrap()
    }

    #[test]
    fn what_is_left_out_is_counted_and_what_git_ignores_is_named() {
        let temp = TempDir::new();
        for path in [
            "src/main",
            "src/data.sqlite",
            "uploads/a/1",
            "uploads/2",
            ".env",
            "x.log",
            "node_modules/a/1",
            "node_modules/b/2",
            "deep/node_modules/3",
            ".git/HEAD",
            ".git/objects/4",
            "skip/5",
            "deep/.env",
        ] {
            write(&temp, path);
        }
        std::fs::write(temp.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(temp.path().join(".gitignore"), "*.sqlite\n/.env\nuploads/\nnode_modules\n*.log\n")
            .unwrap();
        let options = [("regenerable", "node_modules"), ("ignore", "/skip\n*.log")];
        let found = look(&temp, &options, 100);
        let left: Vec<_> = found.left_out.iter().map(|l| (l.path.as_slice(), l.why, l.files)).collect();
        let want: [(&[u8], _, _); 4] = [
            (b".git", Why::Git, Some(2)),
            (b"deep/node_modules", Why::Regenerable, Some(1)),
            (b"node_modules", Why::Regenerable, Some(2)),
            (b"skip", Why::Ignored, Some(1)),
        ];
        assert_eq!(left, want);
        assert_eq!(found.ignored, [("*.log".to_owned(), 1)]);
        let precious: Vec<_> =
            found.precious.iter().map(|p| (p.path.as_slice(), p.directory, p.files)).collect();
        let want: [(&[u8], _, _); 3] =
            [(b".env", false, 1), (b"uploads", true, 2), (b"src/data.sqlite", false, 1)];
        assert_eq!(precious, want, "a file that git would keep is not named");
        assert_eq!((found.holds.files, found.holds.complete), (7, true));
        assert_eq!(found.git.unwrap().position.head.branch(), Some(&b"main"[..]));
        let covered = look(&temp, &[("git", "true")], 100);
        assert_eq!((covered.git, covered.left_out), (None, vec![]));
    }

    #[test]
    fn what_is_left_out_once_it_was_entered_is_not_named_as_covered() {
        let temp = TempDir::new();
        for path in ["env/pyvenv.cfg", "many/1", "many/2", "many/3", "few/1", "few/env/pyvenv.cfg"] {
            write(&temp, path);
        }
        std::fs::create_dir(temp.path().join(".git")).unwrap();
        std::fs::write(temp.path().join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        std::fs::write(temp.path().join(".gitignore"), "env\nmany\nfew\n").unwrap();
        let options = [("regenerable", "env holding pyvenv.cfg"), ("max-files-per-dir", "2")];
        let found = look(&temp, &options, 100);
        let left: Vec<_> = found.left_out.iter().map(|left| left.path.as_slice()).collect();
        assert_eq!(left, [&b".git"[..], b"env", b"few/env", b"many"]);
        assert_eq!(found.precious, [Precious { path: b"few".to_vec(), directory: true, files: 1 }]);
    }

    #[test]
    fn databases_are_named_and_counted() {
        let temp = TempDir::new();
        let mut page = vec![0; 4096];
        page[..24].copy_from_slice(b"SQLite format 3\0\x10\x00\x01\x01\x00\x40\x20\x20");
        for name in ["b/app", "alone.db", "ign.log"] {
            write(&temp, name);
            std::fs::write(temp.path().join(name), &page).unwrap();
        }
        for name in ["b/app-wal", "b/app-shm", "b/notes-wal", "text.db"] {
            write(&temp, name);
        }
        std::fs::write(temp.path().join("b/app-wal"), [0x37, 0x7f, 0x06, 0x82]).unwrap();
        std::fs::write(temp.path().join("b/app-shm"), [0; 32]).unwrap();
        let found = look(&temp, &[("ignore", "*.log"), ("sqlite", "true")], 100);
        // The call of a test is about no project, in which targets could be made.
        assert_eq!((found.holds.files, found.databases.len()), (6, 0));
        let options = Options::parse(&[("ignore", "*.log"), ("sqlite", "true")]).unwrap();
        let dir = Directory::open(temp.path(), "path", ".", &options).unwrap();
        let mut elsewhere = Elsewhere::default();
        elsewhere.finds = true;
        let found = survey(&dir, elsewhere, (100, 100), &Cancel::default()).unwrap();
        assert_eq!(found.databases, [b"alone.db".to_vec(), b"b/app".to_vec()]);
        assert_eq!((found.holds.files, found.holds.bytes > 8192), (4, true), "without what lies beside one");
    }

    #[test]
    fn it_ends_at_the_limit() {
        let temp = TempDir::new();
        for file in ["a/1", "a/2", "b/3", "c/4"] {
            write(&temp, file);
        }
        let found = look(&temp, &[], 2);
        assert!(!found.holds.complete && found.holds.files == 3);
        assert!(look(&temp, &[], 4).holds.complete);
    }
}
