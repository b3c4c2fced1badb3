//! Where the project is: the nearest root that is known or marked, from here upwards.
//!
//! Order: a root that the registry knows, or one whose store is known there as that of another
//! place (it was moved or copied), at or above here; else the nearest
//! directory with `snapback.toml`, `.snapback/` or `.git`; else here. The search does
//! not go above the home directory or across a mount point, and passes over markers
//! that belong to another user (a stranger's file above us must not decide what is
//! captured); those are returned so that they can be named.

use super::registry::Registry;
use super::{STORE, config};
use crate::error::{Error, Kind, Result, show};
use crate::store::Store;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// A found root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The project's root, absolute.
    pub root: PathBuf,
    /// Markers that were passed over because another user owns them.
    pub passed_over: Vec<PathBuf>,
}

/// An absolute path without `.` and `..`. No link is looked at.
pub fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            Component::Normal(name) => plain.push(name),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => {}
        }
    }
    plain
}

/// Finds the root for the absolute path `here`, which need not exist any more.
/// `home` bounds the search; `uid` is the user whose markers count.
pub fn find(here: &Path, home: Option<&Path>, uid: u32, registry: &Registry) -> Found {
    let mut passed_over = Vec::new();
    let known = here.ancestors().find(|dir| registry.get(dir).is_some());
    // Only what lies in one is looked at for another that came there: else its marker says it.
    let inside = |dir: &&Path| known.is_some_and(|known| *dir != known && dir.starts_with(known));
    let moved = here.ancestors().take_while(inside).find(|dir| came_from_elsewhere(dir, uid, registry));
    if let Some(known) = moved.or(known) {
        return Found { root: known.to_owned(), passed_over };
    }
    let device = fs::metadata(here).ok().map(|m| m.dev());
    for dir in here.ancestors() {
        if fs::metadata(dir).ok().map(|m| m.dev()) != device {
            break;
        }
        for marker in [config::FILE, STORE, ".git"] {
            let path = dir.join(marker);
            match fs::symlink_metadata(&path) {
                // Root's own markers are trusted by everybody: root could change ours as well.
                Ok(meta) if meta.uid() == uid || meta.uid() == 0 => {
                    return Found { root: dir.to_owned(), passed_over };
                }
                Ok(_) => passed_over.push(path),
                Err(_) => {}
            }
        }
        if Some(dir) == home {
            break;
        }
    }
    Found { root: here.to_owned(), passed_over }
}

/// Whether `dir` has a store of this user's that is known as that of a place elsewhere.
fn came_from_elsewhere(dir: &Path, uid: u32, registry: &Registry) -> bool {
    let store = dir.join(STORE);
    let is_own = fs::symlink_metadata(&store).is_ok_and(|meta| meta.is_dir() && meta.uid() == uid);
    is_own && Store::identity(&store).is_some_and(|id| registry.all().iter().any(|known| known.store == id))
}

/// Whether the project's folder is there: a directory, and reached without a link, which
/// a command may have put in its place.
pub fn is_there(root: &Path) -> bool {
    root.is_dir() && fs::canonicalize(root).is_ok_and(|real| real == root)
}

/// Refuses a root that is no directory or cannot be read.
///
/// # Errors
/// A sentence that says which, with a hint.
pub fn check(root: &Path) -> Result<()> {
    let meta = fs::metadata(root).map_err(|error| {
        Error::io(error, "could not open the project", root)
            .hint("name the project with `--root DIR`, or change into it")
    })?;
    if !meta.is_dir() {
        let why = format!("the project {} is not a directory", show(root));
        return Err(Error::new(Kind::Invalid, why).hint("give the directory that holds it"));
    }
    fs::read_dir(root).map(drop).map_err(|error| {
        Error::io(error, "could not read the project", root)
            .hint("snapback must be able to read what it is to put back; check the directory's permissions")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Disk;
    use crate::testing::TempDir;

    #[test]
    fn the_nearest_marker_wins_and_a_known_root_wins_over_markers() {
        let temp = TempDir::new();
        let top = temp.path().join("project");
        let deep = top.join("a/b");
        fs::create_dir_all(&deep).unwrap();
        let registry = Registry::new(&temp.path().join("state"));
        let uid = rustix::process::getuid().as_raw();
        let root = |here: &Path| find(here, None, uid, &registry).root;

        fs::write(top.join("snapback.toml"), "").unwrap();
        assert_eq!(root(&deep), top);
        fs::create_dir(top.join("a/.git")).unwrap();
        assert_eq!(root(&deep), top.join("a"));
        registry.put(&Disk::default(), &top, "id", None).unwrap();
        assert_eq!(root(&deep), top);
        assert_eq!(registry.all().len(), 1);
        registry.remove(&Disk::default(), &top).unwrap();
        assert_eq!(root(&deep), top.join("a"));
    }

    #[test]
    fn the_search_stops_at_home_and_survives_a_missing_start() {
        let temp = TempDir::new();
        let home = temp.path().join("home");
        let here = home.join("x");
        fs::create_dir_all(&here).unwrap();
        fs::write(temp.path().join("snapback.toml"), "").unwrap();
        let registry = Registry::new(&temp.path().join("state"));
        let uid = rustix::process::getuid().as_raw();
        assert_eq!(find(&here, Some(&home), uid, &registry).root, here);
        let gone = here.join("gone");
        registry.put(&Disk::default(), &here, "id", None).unwrap();
        assert_eq!(find(&gone, Some(&home), uid, &registry).root, here);
    }

    #[test]
    fn markers_of_others_are_passed_over() {
        let temp = TempDir::new();
        let here = temp.path().join("x");
        fs::create_dir_all(&here).unwrap();
        fs::write(temp.path().join("snapback.toml"), "").unwrap();
        let uid = rustix::process::getuid().as_raw();
        if uid == 0 {
            std::os::unix::fs::chown(temp.path().join("snapback.toml"), Some(4711), None).unwrap();
            let registry = Registry::new(&temp.path().join("state"));
            let found = find(&here, None, uid, &registry);
            assert_eq!(found.root, here);
            assert_eq!(found.passed_over, [temp.path().join("snapback.toml")]);
        }
    }

    #[test]
    fn what_is_no_directory_is_refused_with_a_hint() {
        let temp = TempDir::new();
        let file = temp.path().join("f");
        fs::write(&file, "").unwrap();
        assert!(check(&file).unwrap_err().to_string().ends_with("is not a directory"));
        assert!(check(&temp.path().join("none")).unwrap_err().hint_text().is_some());
        check(temp.path()).unwrap();
    }
}
