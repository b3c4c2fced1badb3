//! What a path leads to, and whether that is inside the project.
//!
//! What leads out, by `..`, by an absolute path or through a link, needs the user's
//! consent. A path beneath the root that does not exist leads nowhere and stays inside: a
//! restore may have to make it.
//!
//! Invariant: what is opened for a component is what was looked at, or, where nothing was
//! there, something beneath the root that no link leads to.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::project::root::plain;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Component, Path, PathBuf};

/// What a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path, from the root of the file system.
    pub path: PathBuf,
    /// The project's root.
    root: PathBuf,
    /// Whether it is a file, which is known by the directory that holds it.
    is_file: bool,
    /// Device and inode of the directory, or of the directory that holds the file; none
    /// when there is nothing yet.
    pub id: Option<(u64, u64)>,
    /// Where links on the way lead, when there are any: from the root where that is possible,
    /// so that it is the same for every copy of the project.
    pub leads_to: Option<PathBuf>,
    /// How it leads out of the project, if it does.
    pub leaves: Option<Way>,
}

/// How a path leads out of the project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// By `..`.
    Parent,
    /// By an absolute path.
    Absolute,
    /// Through a symbolic link.
    Link,
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Parent => "by `..`",
            Self::Absolute => "by an absolute path",
            Self::Link => "through a link",
        })
    }
}

/// Where `value`, a path that starts at `root` when it is relative, leads.
///
/// # Errors
/// When it cannot be looked at.
pub fn look(root: &Path, value: impl AsRef<Path>) -> Result<Place> {
    let path = value.as_ref();
    let relative = path.strip_prefix(root).unwrap_or(path);
    let mut names = PathBuf::new();
    for component in relative.components() {
        match component {
            Component::Normal(name) => names.push(name),
            Component::CurDir => {}
            Component::ParentDir => return outside(root, path, Way::Parent),
            Component::RootDir | Component::Prefix(_) => return outside(root, path, Way::Absolute),
        }
    }
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let (path_of, root_of) = (|| root.join(&names), || root.to_owned());
    let inside = |id, leads_to| {
        Ok(Place { path: path_of(), root: root_of(), is_file: false, id, leads_to, leaves: None })
    };
    let top = match rustix::fs::openat(CWD, root, flags | OFlags::DIRECTORY, Mode::empty()) {
        Ok(top) => top,
        Err(Errno::NOENT) => return inside(None, None),
        Err(e) => return Err(Error::io(e, "could not open", root)),
    };
    if names.as_os_str().is_empty() {
        return inside(Some(id(&top, root)?), None);
    }
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(&top, &names, flags, Mode::empty(), beneath) {
        Ok(found) => {
            let path = root.join(&names);
            inside(Some(id(&found, &path)?), leads_to(&found, root, &path))
        }
        Err(Errno::NOENT) => inside(None, None),
        Err(Errno::XDEV | Errno::LOOP) => outside(root, path, Way::Link),
        Err(Errno::NOSYS | Errno::PERM) => match without_links(top, &names)? {
            Some(id) => inside(id, None),
            None => outside(root, path, Way::Link),
        },
        Err(e) => Err(Error::io(e, "could not open", root.join(&names))),
    }
}

/// Where `value`, the path of a file that need not be there, leads: by the directory that
/// holds it. Whatever stands there itself is not followed.
///
/// # Errors
/// `Invalid` when it names no file; when it cannot be looked at.
pub fn look_above(root: &Path, key: &str, value: impl AsRef<Path>) -> Result<Place> {
    let path = value.as_ref();
    let Some(Component::Normal(name)) = path.components().next_back() else {
        let why = format!("the setting `{key}` names a file, not `{}`", path.display());
        return Err(Error::new(Kind::Invalid, why).hint("write the path of a file"));
    };
    let above = look(root, path.parent().unwrap_or(Path::new("")))?;
    let leads_to = above.leads_to.map(|path| path.join(name));
    Ok(Place { path: above.path.join(name), leads_to, is_file: true, ..above })
}

impl Place {
    /// Opens it, the directory that was looked at and no other; of a file, the directory that
    /// holds it. The setting `key` names it.
    ///
    /// # Errors
    /// `NotFound` when nothing is there. `Changed` when something else is: somebody changed the
    /// path in between. When it cannot be opened.
    pub fn open(&self, key: &str) -> Result<OwnedFd> {
        let dir = if self.is_file { self.path.parent().unwrap_or(Path::new("/")) } else { &self.path };
        let found = match (self.id, dir.strip_prefix(&self.root)) {
            // It was not there to be agreed to: a link would lead wherever somebody likes.
            (None, Ok(names)) if self.leaves.is_none() => self.beneath(names, dir, key)?,
            _ => rustix::fs::openat(CWD, dir, READ, Mode::empty())
                .map_err(|e| Error::io(e, "could not open", dir))?,
        };
        match self.id {
            Some(known) if known != id(&found, dir)? => Err(changed(key)),
            None if self.leaves.is_some() => Err(changed(key)),
            _ => Ok(found),
        }
    }

    /// Opens what lies at `names` beneath the root, `dir`, where no link is on the way.
    fn beneath(&self, names: &Path, dir: &Path, key: &str) -> Result<OwnedFd> {
        let failed = |e| match e {
            Errno::LOOP | Errno::XDEV | Errno::NOTDIR => changed(key),
            e => Error::io(e, "could not open", dir),
        };
        let top = rustix::fs::openat(CWD, &self.root, READ, Mode::empty()).map_err(failed)?;
        if names.as_os_str().is_empty() {
            return Ok(top);
        }
        let flags = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
        match rustix::fs::openat2(&top, names, READ, Mode::empty(), flags) {
            Err(Errno::NOSYS | Errno::PERM) => names.iter().try_fold(top, |at, name| {
                rustix::fs::openat(&at, name, READ | OFlags::NOFOLLOW, Mode::empty()).map_err(failed)
            }),
            found => found.map_err(failed),
        }
    }
}

const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// That the setting `key` leads to something else by now.
pub(super) fn changed(key: &str) -> Error {
    let why = format!("what the setting `{key}` names changed while it was opened");
    Error::new(Kind::Changed, why).hint("try again")
}

/// A place outside: what it leads to now, links followed, is what is asked for.
fn outside(root: &Path, value: &Path, way: Way) -> Result<Place> {
    let path = root.join(value);
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let plain = |flags| rustix::fs::openat(CWD, &path, flags, Mode::empty());
    let found = match rustix::fs::openat2(CWD, &path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        Err(Errno::NOSYS | Errno::PERM) => plain(flags),
        found => found,
    };
    let (id, leads_to) = match found {
        Ok(found) => (Some(id(&found, &path)?), leads_to(&found, root, &path)),
        // A loop of links leads nowhere, and will still be refused when it is opened.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => (None, None),
        Err(e) => return Err(Error::io(e, "could not look at", &path)),
    };
    Ok(Place { path, root: root.to_owned(), is_file: false, id, leads_to, leaves: Some(way) })
}

/// Where `found`, which was opened by `path`, is, when links led there: what is said of it is
/// of what was opened, not of what its path leads to a moment later.
fn leads_to(found: impl AsFd, root: &Path, path: &Path) -> Option<PathBuf> {
    let link = format!("/proc/self/fd/{}", found.as_fd().as_raw_fd());
    let real = std::fs::read_link(link).or_else(|_| path.canonicalize()).ok()?;
    (real != plain(path)).then(|| from(root, &real))
}

/// `path` as seen from `root`; as it is when the two have no directory in common.
fn from(root: &Path, path: &Path) -> PathBuf {
    let shared = root.components().zip(path.components()).take_while(|(a, b)| a == b).count();
    // The root of the file system is always shared.
    if shared < 2 {
        return path.to_owned();
    }
    let up = root.components().skip(shared).map(|_| Component::ParentDir);
    let seen: PathBuf = up.chain(path.components().skip(shared)).collect();
    if seen.as_os_str().is_empty() { ".".into() } else { seen }
}

/// Device and inode of something open.
pub(super) fn id(found: impl AsFd, path: &Path) -> Result<(u64, u64)> {
    let stat = rustix::fs::fstat(found).map_err(|e| Error::io(e, "could not look at", path))?;
    Ok((stat.st_dev, stat.st_ino))
}

/// For systems that cannot resolve beneath a directory: none when there is any link on
/// the way.
fn without_links(top: OwnedFd, names: &Path) -> Result<Option<Option<(u64, u64)>>> {
    let mut at = top;
    for name in names {
        match rustix::fs::statat(&at, name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(Some(None)),
            Err(e) => return Err(Error::io(e, "could not look at", name)),
            Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink => return Ok(None),
            Ok(_) => {}
        }
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        at = rustix::fs::openat(&at, name, flags, Mode::empty())
            .map_err(|e| Error::io(e, "could not open", name))?;
    }
    id(&at, names).map(|id| Some(Some(id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Scratch;
    use std::os::unix::fs::{MetadataExt, symlink};

    fn project(scratch: &Scratch) -> PathBuf {
        let root = scratch.path().join("project");
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::fs::create_dir(scratch.path().join("other")).unwrap();
        symlink("../other", root.join("out")).unwrap();
        symlink("/", root.join("abs")).unwrap();
        symlink("a/b", root.join("in")).unwrap();
        symlink("loop", root.join("loop")).unwrap();
        root
    }

    #[test]
    fn what_stays_inside_is_told_from_what_leads_out() {
        let scratch = Scratch::new();
        let root = project(&scratch);
        let absolute = root.join("a").to_str().unwrap().to_owned();
        for value in [".", "", "a", "./a/b", "a/b/", "in", "missing", "missing/more", &absolute] {
            assert_eq!(look(&root, value).unwrap().leaves, None, "{value}");
        }
        for (value, way) in [
            ("..", Way::Parent),
            ("a/../..", Way::Parent),
            ("a/..", Way::Parent),
            ("/", Way::Absolute),
            ("/etc", Way::Absolute),
            ("out", Way::Link),
            ("out/x", Way::Link),
            ("abs/etc", Way::Link),
            ("loop", Way::Link),
        ] {
            assert_eq!(look(&root, value).unwrap().leaves, Some(way), "{value}");
        }
        assert_eq!(look(&root.join("gone"), "a").unwrap().id, None);
        assert_eq!(look(&root, "in").unwrap().id, look(&root, "a/b").unwrap().id);
    }

    #[test]
    fn a_place_outside_is_what_it_leads_to_now() {
        let scratch = Scratch::new();
        let root = project(&scratch);
        let other = std::fs::metadata(scratch.path().join("other")).unwrap();
        for value in ["../other", "out", scratch.path().join("other").to_str().unwrap()] {
            assert_eq!(look(&root, value).unwrap().id, Some((other.dev(), other.ino())), "{value}");
        }
        assert_eq!(look(&root, "../missing").unwrap().id, None);
        assert_eq!(look(&root, "loop").unwrap().id, None);
    }

    #[test]
    fn where_links_lead_is_known_the_same_way_for_every_copy() {
        let scratch = Scratch::new();
        let root = project(&scratch);
        symlink("../..", root.join("a/top")).unwrap();
        let of = |value: &str| look(&root, value).unwrap().leads_to;
        for (value, expected) in [
            ("a", None),
            (".", None),
            ("../other", None),
            ("missing", None),
            ("in", Some("a/b")),
            ("out", Some("../other")),
            ("abs/etc", Some("/etc")),
            ("a/top", Some("..")),
            ("a/top/project", Some(".")),
            ("../project/out", Some("../other")),
        ] {
            assert_eq!(of(value), expected.map(PathBuf::from), "{value}");
        }
        let file = look_above(&root, "file", "out/x.db").unwrap().leads_to;
        assert_eq!(file, Some(PathBuf::from("../other/x.db")));
    }

    #[test]
    fn a_file_is_known_by_the_directory_that_holds_it() {
        let scratch = Scratch::new();
        let root = project(&scratch);
        let of = |value: &str| look_above(&root, "file", value).unwrap();
        assert_eq!((of("x.db").leaves, of("a/x.db").id), (None, look(&root, "a").unwrap().id));
        // A link at its own place is no way out, and never followed.
        assert_eq!((of("out").leaves, of("out").path), (None, root.join("out")));
        assert_eq!((of("out/x.db").leaves, of("../other/x.db").leaves), (Some(Way::Link), Some(Way::Parent)));
        assert_eq!(of("/etc/passwd").leaves, Some(Way::Absolute));
        for value in ["", ".", "..", "/", "a/.."] {
            assert_eq!(look_above(&root, "file", value).unwrap_err().kind(), Kind::Invalid, "{value}");
        }
    }

    #[test]
    fn what_was_looked_at_is_opened_and_nothing_else() {
        let scratch = Scratch::new();
        let root = project(&scratch);
        let opened = |place: &Place| place.open("path").map(|dir| id(dir, Path::new("it")).unwrap());
        for value in ["a", "in", "out", "../other", "."] {
            let place = look(&root, value).unwrap();
            assert_eq!(Some(opened(&place).unwrap()), place.id, "{value}");
        }
        let refuses = |place: &Place, kind| assert_eq!(opened(place).unwrap_err().kind(), kind, "{place:?}");
        // What is another directory by now, or leads to another.
        let (dir, link) = (look(&root, "a").unwrap(), look(&root, "in").unwrap());
        let file = look_above(&root, "file", "a/f").unwrap();
        std::fs::rename(root.join("a"), root.join("was")).unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        [dir, link, file].iter().for_each(|place| refuses(place, Kind::Changed));
        // What was not there, and is: beneath the root, and not through any link.
        let (gone, deep) = (look(&root, "gone").unwrap(), look(&root, "gone/deep").unwrap());
        let in_gone = look_above(&root, "file", "gone/f").unwrap();
        let outside = look(&root, "../gone").unwrap();
        [&gone, &deep, &in_gone].into_iter().for_each(|place| refuses(place, Kind::NotFound));
        for to in ["../other", "a", ".snapback", scratch.path().to_str().unwrap()] {
            symlink(to, root.join("gone")).unwrap();
            std::fs::create_dir_all(root.join("gone/deep")).unwrap_or_default();
            [&gone, &deep, &in_gone].into_iter().for_each(|place| refuses(place, Kind::Changed));
            std::fs::remove_file(root.join("gone")).unwrap();
        }
        std::fs::create_dir_all(root.join("gone/deep")).unwrap();
        std::fs::create_dir(scratch.path().join("gone")).unwrap();
        for (place, path) in [(&gone, "gone"), (&deep, "gone/deep"), (&in_gone, "gone")] {
            let meta = std::fs::metadata(root.join(path)).unwrap();
            assert_eq!(opened(place).unwrap(), (meta.dev(), meta.ino()), "{path}");
        }
        refuses(&outside, Kind::Changed);
    }

    #[test]
    fn without_help_of_the_system_no_link_is_followed() {
        let scratch = Scratch::new();
        std::fs::create_dir_all(scratch.path().join("a/b")).unwrap();
        symlink("a", scratch.path().join("in")).unwrap();
        let top = || std::fs::File::open(scratch.path()).unwrap().into();
        let found = without_links(top(), Path::new("a/b")).unwrap();
        assert_eq!(found, Some(look(scratch.path(), "a/b").unwrap().id));
        assert_eq!(without_links(top(), Path::new("a/missing/more")).unwrap(), Some(None));
        assert_eq!(without_links(top(), Path::new("in/b")).unwrap(), None);
    }
}
