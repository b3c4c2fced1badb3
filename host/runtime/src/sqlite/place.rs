//! Where a database is: a directory inside the project, reached name by name and never
//! through a link, and a name in it.

use rustix::fs::FileType;
use snapback_core::database::of_setting;
use snapback_core::disk::{Dir, Disk};
use snapback_core::error::{Error, Kind, Result, show, show_bytes};
use std::ffi::OsStr;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// The place of one database.
#[derive(Debug, Clone)]
pub struct Place {
    root: PathBuf,
    above: Vec<Vec<u8>>,
    name: Vec<u8>,
}

impl Place {
    /// The place that `value`, a setting, names: a path inside `root`.
    ///
    /// # Errors
    /// `Denied` when it leads out, `Invalid` when it names no file.
    pub fn new(root: &Path, value: &str) -> Result<Self> {
        let path = of_setting(value);
        let path = Path::new(OsStr::from_bytes(&path));
        let inside = path.strip_prefix(root).unwrap_or(path);
        let mut names = Vec::new();
        for component in inside.components() {
            match component {
                Component::Normal(name) => names.push(name.as_bytes().to_vec()),
                Component::CurDir => {}
                _ => {
                    let text = format!("{} leads out of the project", show(path));
                    let hint = "a snapshot covers what lies beneath the project's root; name a file there";
                    return Err(Error::new(Kind::Denied, text).hint(hint));
                }
            }
        }
        let Some(name) = names.pop() else {
            return Err(Error::new(Kind::Invalid, format!("{} is not the name of a file", show(path))));
        };
        Ok(Self { root: root.to_owned(), above: names, name })
    }

    /// Its name in its directory.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Its path in the project, `/` between names.
    pub fn path(&self) -> Vec<u8> {
        let names: Vec<&[u8]> = self.above.iter().chain([&self.name]).map(Vec::as_slice).collect();
        names.join(&b'/')
    }

    /// Its path, for people.
    pub fn shown(&self) -> String {
        show_bytes(&self.path())
    }

    /// Its directory; none when that is not there, or something else is in its place.
    ///
    /// # Errors
    /// `Denied` when a link is on the way; when it cannot be opened.
    pub fn dir(&self) -> Result<Option<Dir>> {
        self.walk(None)
    }

    /// Its directory, made when it is not there.
    ///
    /// # Errors
    /// As [`Self::dir`] has them; `Changed` when something else is in its place.
    pub fn make_dir(&self, disk: &Disk) -> Result<Dir> {
        self.walk(Some(disk))?.ok_or_else(|| {
            let text = format!("the directory of {} cannot be made: a file is in its place", self.shown());
            Error::new(Kind::Changed, text).hint("move away what is there, and try again")
        })
    }

    fn walk(&self, make: Option<&Disk>) -> Result<Option<Dir>> {
        let mut dir = match Dir::open(&self.root) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            done => done?,
        };
        for name in &self.above {
            let kind = dir.stat(name)?.map(|stat| FileType::from_raw_mode(stat.st_mode));
            match (kind, make) {
                (Some(FileType::Directory), _) => {}
                (Some(FileType::Symlink), _) => {
                    let link = show(&dir.join(name));
                    let text = format!("{} lies behind a link, {link}", self.shown());
                    return Err(Error::new(Kind::Denied, text).hint("name the path without links"));
                }
                (None, Some(disk)) => {
                    disk.mkdir(&dir, name, 0o777)?;
                    disk.sync_dir(&dir)?;
                }
                _ => return Ok(None),
            }
            dir = dir.child(name)?;
        }
        Ok(Some(dir))
    }
}

/// The path of `name` in `dir` as the system has it now, without links: SQLite opens by
/// path, and is told to follow none.
///
/// # Errors
/// When the directory is no longer anywhere.
pub fn path_of(dir: &Dir, name: &[u8]) -> Result<PathBuf> {
    let link = format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd());
    let path = std::fs::read_link(&link).map_err(|e| Error::io(e, "could not find", dir.path()))?;
    Ok(path.join(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;

    #[test]
    fn a_place_is_inside_and_not_behind_a_link() {
        let scratch = Scratch::new();
        let root = scratch.path();
        std::fs::create_dir_all(root.join("data/inner")).unwrap();
        std::os::unix::fs::symlink("data", root.join("link")).unwrap();
        std::fs::write(root.join("file"), "").unwrap();
        let dir = |value: &str| Place::new(root, value).unwrap().dir();
        assert!(dir("a.db").unwrap().is_some() && dir("./data/inner/a.db").unwrap().is_some());
        assert!(dir(root.join("data/a.db").to_str().unwrap()).unwrap().is_some());
        assert!(dir("gone/a.db").unwrap().is_none() && dir("file/a.db").unwrap().is_none());
        assert!(dir("link/a.db").unwrap_err().message().contains("behind a link"));
        for value in ["../a.db", "data/../../a.db", "/etc/a.db", ".", ""] {
            assert!(Place::new(root, value).is_err(), "{value}");
        }
        let disk = Disk::default();
        Place::new(root, "x/y/a.db").unwrap().make_dir(&disk).unwrap();
        assert!(root.join("x/y").is_dir());
        let said = Place::new(root, "file/a.db").unwrap().make_dir(&disk).unwrap_err();
        assert_eq!(said.kind(), Kind::Changed);
        assert_eq!(Place::new(root, "./data//a.db").unwrap().shown(), "data/a.db");
    }
}
