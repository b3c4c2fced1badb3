//! Whether a path stays inside the project.
//!
//! What leads out, by `..`, by an absolute path or through a link, needs the user's
//! consent. A path that does not exist leads nowhere and stays inside: a restore may
//! have to make it.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use snapback_core::error::{Error, Kind, Result, show};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};

/// Device and inode of what a path leads to; none when there is nothing yet.
pub type Place = Option<(u64, u64)>;

/// Where `value`, the setting `key`, leads, when it stays inside `root`.
///
/// # Errors
/// `Denied`, with the way that leads out.
pub fn resolve(root: &Path, key: &str, value: &str) -> Result<Place> {
    let path = Path::new(value);
    let relative = path.strip_prefix(root).unwrap_or(path);
    let outside = |how: &str| {
        Error::new(
            Kind::Denied,
            format!("the setting `{key}` leads out of the project {how}: {}", show(path)),
        )
        .hint("a snapshot covers what lies beneath the project's root; name a directory there")
    };
    let mut names = PathBuf::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir => return Err(outside("by `..`")),
            Component::RootDir | Component::Prefix(_) => return Err(outside("by an absolute path")),
        }
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let top = match rustix::fs::openat(CWD, root, flags | OFlags::DIRECTORY, Mode::empty()) {
        Ok(top) => top,
        Err(Errno::NOENT) => return Ok(None),
        Err(e) => return Err(Error::io(e, "could not open", root)),
    };
    if names.as_os_str().is_empty() {
        return place(&top, root);
    }
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(&top, &names, flags, Mode::empty(), beneath) {
        Ok(found) => place(&found, &root.join(names)),
        Err(Errno::NOENT) => Ok(None),
        Err(Errno::XDEV | Errno::LOOP) => Err(outside("through a link")),
        Err(Errno::NOSYS | Errno::PERM) => without_links(top, &names, &outside),
        Err(e) => Err(Error::io(e, "could not open", root.join(names))),
    }
}

/// Refuses what was opened when it is not what [`resolve`] found: somebody changed the
/// path in between.
///
/// # Errors
/// `Changed`.
pub fn still(place: &Place, opened: (u64, u64), key: &str) -> Result<()> {
    match place {
        Some(id) if *id != opened => Err(Error::new(
            Kind::Changed,
            format!("what the setting `{key}` names changed while it was opened"),
        )
        .hint("try again")),
        _ => Ok(()),
    }
}

fn place(found: &OwnedFd, path: &Path) -> Result<Place> {
    let stat = rustix::fs::fstat(found).map_err(|e| Error::io(e, "could not look at", path))?;
    Ok(Some((stat.st_dev, stat.st_ino)))
}

/// For systems that cannot resolve beneath a directory: refuses any link on the way.
fn without_links(top: OwnedFd, names: &Path, outside: &dyn Fn(&str) -> Error) -> Result<Place> {
    let mut at = top;
    for name in names {
        match rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(None),
            Err(e) => return Err(Error::io(e, "could not look at", name)),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => {
                return Err(outside("through a link, perhaps"));
            }
            Ok(_) => {}
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = rustix::fs::openat(&at, name, flags, Mode::empty())
            .map_err(|e| Error::io(e, "could not open", name))?;
    }
    place(&at, names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_stays_inside_is_allowed_and_what_leads_out_is_not() {
        let scratch = Scratch::new();
        let root = scratch.path().join("project");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(scratch.path().join("other")).unwrap();
        symlink("../other", root.join("out")).unwrap();
        symlink("/", root.join("abs")).unwrap();
        symlink("a/b", root.join("in")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        let absolute = root.join("a").to_str().unwrap().to_owned();
        for value in [".", "", "a", "./a/b", "a/b/", "in", "missing", "missing/more", &absolute] {
            resolve(&root, "path", value).unwrap_or_else(|e| panic!("{value}: {e}"));
        }
        for (value, how) in [
            ("..", "by `..`"),
            ("a/../..", "by `..`"),
            ("a/..", "by `..`"),
            ("/", "by an absolute path"),
            ("/etc", "by an absolute path"),
            ("out", "through a link"),
            ("out/x", "through a link"),
            ("abs/etc", "through a link"),
            ("loop", "through a link"),
        ] {
            let error = resolve(&root, "path", value).unwrap_err();
            assert!(error.message().contains(how), "{value}: {}", error.message());
            assert_eq!(error.kind(), Kind::Denied);
        }
        assert_eq!(resolve(&root.join("gone"), "path", "a").unwrap(), None);
        assert_eq!(resolve(&root, "path", "in").unwrap(), resolve(&root, "path", "a/b").unwrap());
    }

    #[test]
    fn what_changed_in_between_is_refused() {
        assert_eq!(still(&Some((1, 2)), (1, 3), "path").unwrap_err().kind(), Kind::Changed);
        still(&Some((1, 2)), (1, 2), "path").unwrap();
    }

    #[test]
    fn without_help_of_the_system_no_link_is_followed() {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.path().join("a/b")).unwrap();
        symlink("a", scratch.path().join("in")).unwrap();
        let top = || std::fs::File::open(scratch.path()).unwrap().into();
        let outside = |how: &str| Error::new(Kind::Denied, how);
        let found = without_links(top(), Path::new("a/b"), &outside).unwrap();
        assert_eq!(found, resolve(scratch.path(), "path", "a/b").unwrap());
        assert_eq!(without_links(top(), Path::new("a/missing/more"), &outside).unwrap(), None);
        assert!(without_links(top(), Path::new("in/b"), &outside).is_err());
    }
}
