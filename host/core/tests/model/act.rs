//! Doing on a disk what the reference does in memory.

use crate::deed::{Deed, HOLE, Make, xattr};
use crate::tree::{Content, Node, Path, Tree};
use rustix::fs::{AtFlags, CWD, FileType, Mode, RenameFlags, Timespec, Timestamps, XattrFlags};
use std::fs::{self, File, Permissions};
use std::io::Write;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::PathBuf;

/// A directory on the disk that is changed like a reference tree.
pub struct Actor {
    pub root: PathBuf,
    /// Who may do everything opens nothing up first.
    pub is_root: bool,
}

impl Actor {
    /// Does `deed`, which leads from `before` to `after`.
    pub fn act(&self, deed: &Deed, before: &Tree, after: &Tree) {
        self.open_up(before);
        self.change(deed, after);
        self.close(after);
    }

    fn at(&self, path: &Path) -> PathBuf {
        self.root.join(path.path())
    }

    /// Gives this user the rights that modes deny.
    fn open_up(&self, tree: &Tree) {
        if !self.is_root {
            for path in tree.paths() {
                if let Some(inode) = tree.get(path).filter(|inode| inode.mode & 0o200 == 0) {
                    set_mode(&self.at(path), inode.mode | 0o700);
                }
            }
        }
    }

    fn close(&self, tree: &Tree) {
        if !self.is_root {
            for path in tree.paths().rev() {
                let inode = tree.get(path).expect("a path of the tree");
                if !matches!(inode.node, Node::Symlink(_)) {
                    set_mode(&self.at(path), inode.mode);
                }
            }
        }
    }

    fn make(&self, path: &Path, make: &Make) {
        let at = self.at(path);
        match make {
            Make::File(fill) => fs::write(&at, fill.bytes()).unwrap(),
            Make::Dir => fs::create_dir(&at).unwrap(),
            Make::Symlink(to) => return symlink(to.path(), &at).unwrap(),
            Make::Fifo => rustix::fs::mknodat(CWD, &at, FileType::Fifo, Mode::RUSR, 0).unwrap(),
        }
        set_mode(&at, make.mode());
    }

    fn remove(&self, path: &Path) {
        let at = self.at(path);
        let is_dir = fs::symlink_metadata(&at).unwrap().is_dir();
        if is_dir { fs::remove_dir_all(&at).unwrap() } else { fs::remove_file(&at).unwrap() }
    }

    fn open(&self, path: &Path) -> File {
        File::options().write(true).open(self.at(path)).unwrap()
    }

    fn change(&self, deed: &Deed, after: &Tree) {
        match deed {
            Deed::Make(path, make) => self.make(path, make),
            Deed::Turn(path, make) => {
                self.remove(path);
                self.make(path, make);
            }
            Deed::Write(path, fill) => {
                let mut file = self.open(path);
                file.set_len(0).unwrap();
                file.write_all(&fill.bytes()).unwrap();
            }
            Deed::Rewrite(path, _) => {
                let file = self.open(path);
                let old = file.metadata().unwrap().modified().unwrap();
                let bytes = content(after, path);
                for data in bytes.split(|&b| b == 0).filter(|data| !data.is_empty()) {
                    let start = data.as_ptr() as usize - bytes.as_ptr() as usize;
                    file.write_all_at(data, start as u64).unwrap();
                }
                file.set_modified(old).unwrap();
            }
            Deed::Append(path, fill) => {
                File::options().append(true).open(self.at(path)).unwrap().write_all(&fill.bytes()).unwrap();
            }
            Deed::Shorten(path, _) => self.open(path).set_len(content(after, path).len() as u64).unwrap(),
            Deed::Extend(path) => {
                let file = self.open(path);
                let len = file.metadata().unwrap().len();
                file.set_len(len + HOLE as u64).unwrap();
            }
            Deed::Remove(path) => self.remove(path),
            Deed::Rename(from, to) => fs::rename(self.at(from), self.at(to)).unwrap(),
            Deed::Exchange(a, b) => {
                rustix::fs::renameat_with(CWD, self.at(a), CWD, self.at(b), RenameFlags::EXCHANGE).unwrap();
            }
            Deed::Link(path, new) => {
                rustix::fs::linkat(CWD, self.at(path), CWD, self.at(new), AtFlags::empty()).unwrap();
            }
            Deed::Chmod(path, _) => set_mode(&self.at(path), after.get(path).expect("it is there").mode),
            Deed::Chown(path, uid) => {
                std::os::unix::fs::lchown(self.at(path), Some(*uid), None).unwrap();
                // Whoever gives a file away gives no rights with it.
                let inode = after.get(path).expect("it is there");
                if !matches!(inode.node, Node::Symlink(_)) {
                    set_mode(&self.at(path), inode.mode);
                }
            }
            Deed::SetXattr(path, number, value) => {
                let value = vec![*value; usize::from(*value)];
                let name = String::from_utf8(xattr(*number)).unwrap();
                rustix::fs::lsetxattr(self.at(path), name, &value, XattrFlags::empty()).unwrap();
            }
            Deed::RemoveXattr(path, number) => {
                let name = String::from_utf8(xattr(*number)).unwrap();
                rustix::fs::lremovexattr(self.at(path), name).unwrap();
            }
            Deed::Touch(path, sec) => {
                let time = Timespec { tv_sec: i64::from(*sec), tv_nsec: 5 };
                let times = Timestamps { last_access: time, last_modification: time };
                rustix::fs::utimensat(CWD, self.at(path), &times, AtFlags::SYMLINK_NOFOLLOW).unwrap();
            }
        }
    }
}

fn set_mode(path: &std::path::Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn content<'a>(tree: &'a Tree, path: &Path) -> &'a [u8] {
    match &tree.get(path).expect("it is there").node {
        Node::File(Content(bytes)) => bytes,
        other => panic!("{path} is {other:?}"),
    }
}
