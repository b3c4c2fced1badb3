//! Finding the repository of a work tree: `.git` itself, or where it points.
//!
//! A linked work tree and a submodule have a file `.git` that names the directory, and
//! a linked work tree's directory names (`commondir`) the one that it shares with the
//! others. Both may lie anywhere, so a directory that another user owns is refused, as
//! git refuses it. A work tree may also begin above the directory that is captured.

use crate::tree::scan::{Stat, read_small};
use rustix::fs::{CWD, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A file that names a directory is not longer than this, in bytes.
const LONGEST_LINK: u64 = 16 << 10;

/// A repository, open.
#[derive(Debug)]
pub struct Located {
    own: OwnedFd,
    common: Option<OwnedFd>,
    inside: bool,
}

impl Located {
    /// What belongs to this work tree: `HEAD`, the index.
    pub fn own(&self) -> BorrowedFd<'_> {
        self.own.as_fd()
    }

    /// What all work trees of the repository share: refs, objects.
    pub fn common(&self) -> BorrowedFd<'_> {
        self.common.as_ref().unwrap_or(&self.own).as_fd()
    }

    /// Whether it is the directory `.git` itself.
    pub fn is_inside(&self) -> bool {
        self.inside
    }

    /// Whether it belongs to the user `owner`, to root, or to whoever asks.
    pub fn is_of(&self, owner: u32) -> bool {
        is_of(self.own(), owner)
    }
}

/// The repository whose work tree begins at `dir`; `None` when there is none, or when
/// what is called `.git` there is not one.
pub fn locate(dir: impl AsFd) -> Option<Located> {
    let dir = dir.as_fd();
    let stat = Stat::of(dir, c".git").ok()?;
    let own = match stat.kind() {
        FileType::Directory => open(dir, b".git", OFlags::NOFOLLOW)?,
        FileType::RegularFile => {
            let text = read_small(dir, ".git", LONGEST_LINK)?;
            theirs(dir, text.strip_prefix(b"gitdir:")?.trim_ascii(), &stat)?
        }
        FileType::Symlink => theirs(dir, b".git", &stat)?,
        _ => return None,
    };
    let head = Stat::of(&own, c"HEAD").ok()?;
    if !matches!(head.kind(), FileType::RegularFile | FileType::Symlink) {
        return None;
    }
    let common = match read_small(&own, "commondir", LONGEST_LINK) {
        Some(text) => Some(theirs(own.as_fd(), text.trim_ascii(), &stat)?),
        None => None,
    };
    Some(Located { own, common, inside: stat.is_dir() })
}

/// The repository of the work tree that `dir` is, or lies in: the nearest above, not beyond
/// the file system that `dir` lies on, of the same owner, of root, or of whoever asks. `path`
/// is where `dir` is, absolute and without links.
pub fn locate_around(dir: impl AsFd, path: &Path) -> Option<Located> {
    let dir = dir.as_fd();
    if !matches!(Stat::of(dir, c".git"), Err(Errno::NOENT)) {
        return locate(dir);
    }
    let here = Stat::of_open(dir).ok()?;
    for above in path.ancestors().skip(1) {
        let above = open(CWD, above.as_os_str().as_bytes(), OFlags::empty())?;
        if Stat::of_open(&above).ok()?.dev != here.dev {
            return None;
        }
        if let Some(found) = locate(&above) {
            return found.is_of(here.uid).then_some(Located { inside: false, ..found });
        }
    }
    None
}

/// A directory that something in the work tree points to: that of the same owner, of
/// root, or of whoever asks.
fn theirs(at: BorrowedFd<'_>, path: &[u8], link: &Stat) -> Option<OwnedFd> {
    let dir = open(at, path, OFlags::empty())?;
    is_of(&dir, link.uid).then_some(dir)
}

fn is_of(dir: impl AsFd, owner: u32) -> bool {
    let trusted = [owner, 0, rustix::process::geteuid().as_raw()];
    Stat::of_open(dir).is_ok_and(|stat| trusted.contains(&stat.uid))
}

fn open(at: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Option<OwnedFd> {
    let flags = flags | OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(at, OsStr::from_bytes(path), flags, Mode::empty()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use std::fs::{self, File};
    use std::path::Path;

    fn repository(at: &Path) {
        fs::create_dir_all(at).unwrap();
        fs::write(at.join("HEAD"), "ref: refs/heads/main\n").unwrap();
    }

    #[test]
    fn a_repository_is_found_where_it_is_and_where_it_is_pointed_to() {
        let temp = TempDir::new();
        let at = |path: &str| temp.path().join(path);
        repository(&at("plain/.git"));
        repository(&at("plain/.git/worktrees/w"));
        fs::write(at("plain/.git/worktrees/w/commondir"), "../..\n").unwrap();
        fs::create_dir(at("w")).unwrap();
        fs::write(at("w/.git"), format!("gitdir: {}\n", at("plain/.git/worktrees/w").display())).unwrap();
        fs::create_dir(at("link")).unwrap();
        std::os::unix::fs::symlink("../plain/.git", at("link/.git")).unwrap();
        let id = |fd: BorrowedFd<'_>| Stat::of_open(fd).unwrap().ino;
        let ino = |path: &str| std::os::unix::fs::MetadataExt::ino(&fs::metadata(at(path)).unwrap());
        for (tree, own, inside) in [
            ("plain", "plain/.git", true),
            ("w", "plain/.git/worktrees/w", false),
            ("link", "plain/.git", false),
        ] {
            let found = locate(File::open(at(tree)).unwrap()).unwrap();
            let want = (ino(own), ino("plain/.git"), inside);
            assert_eq!((id(found.own()), id(found.common()), found.is_inside()), want, "{tree}");
        }
    }

    #[test]
    fn what_is_no_repository_is_none() {
        let temp = TempDir::new();
        let at = |path: &str| temp.path().join(path);
        let none = |name: &str| locate(File::open(at(name)).unwrap()).is_none();
        fs::create_dir_all(at("empty/.git")).unwrap();
        fs::create_dir_all(at("dir/.git/HEAD")).unwrap();
        for (name, text) in [
            ("text", "hello"),
            ("nowhere", "gitdir: ../nowhere\n"),
            ("device", "gitdir: /dev/null\n"),
            ("process", "gitdir: /proc/self\n"),
        ] {
            fs::create_dir(at(name)).unwrap();
            fs::write(at(name).join(".git"), text).unwrap();
            assert!(none(name), "{name}");
        }
        fs::create_dir(at("long")).unwrap();
        let long = format!("gitdir: {}.\n", "./".repeat(LONGEST_LINK as usize));
        fs::write(at("long/.git"), long).unwrap();
        fs::create_dir(at("pipe")).unwrap();
        let mode = Mode::from_raw_mode(0o644);
        rustix::fs::mknodat(rustix::fs::CWD, at("pipe/.git"), FileType::Fifo, mode, 0).unwrap();
        fs::create_dir(at("headless")).unwrap();
        fs::create_dir(at("headless/.git")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("headless/.git/HEAD"), FileType::Fifo, mode, 0).unwrap();
        for name in ["empty", "dir", "long", "pipe", "headless"] {
            assert!(none(name), "{name}");
        }
        assert!(locate(File::open(temp.path()).unwrap()).is_none());
    }

    #[test]
    fn a_directory_of_another_user_is_not_followed() {
        if !rustix::process::geteuid().is_root() {
            return;
        }
        let temp = TempDir::new();
        let at = |path: &str| temp.path().join(path);
        repository(&at("theirs"));
        fs::create_dir(at("w")).unwrap();
        fs::write(at("w/.git"), "gitdir: ../theirs\n").unwrap();
        let found = || locate(File::open(at("w")).unwrap()).is_some();
        assert!(found());
        let chown = |path: &str, uid| std::os::unix::fs::chown(at(path), Some(uid), None).unwrap();
        chown("theirs", 65534);
        assert!(!found());
        chown("w/.git", 65534);
        assert!(found(), "whoever owns the link owns what it names");
    }
}
