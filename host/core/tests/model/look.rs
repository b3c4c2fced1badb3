//! Looking at a directory without our own code: what it holds, for comparison with the
//! reference, and the inodes and times that a restore must leave alone.

use crate::deed::HOLE;
use crate::tree::{Content, Inode, Item, Listing, Node, Path};
use snapback_core::text::Bytes;
use std::collections::BTreeMap;
use std::fs::{self, Metadata};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::Arc;

/// Inode number and modification time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stamp {
    pub ino: u64,
    pub mtime: (i64, i64),
}

/// All that is in a directory.
pub struct Look {
    pub listing: Listing,
    pub stamps: BTreeMap<Path, Stamp>,
}

/// Looks at `root`; what lies at its path `but` is passed over.
pub fn look(root: &std::path::Path, but: &str) -> Look {
    let mut found: BTreeMap<Path, (Metadata, Inode)> = BTreeMap::new();
    let mut todo = vec![Bytes::default()];
    while let Some(path) = todo.pop() {
        let at = root.join(path.path());
        let meta = fs::symlink_metadata(&at).unwrap();
        let kind = meta.file_type();
        let node = if kind.is_dir() {
            for entry in fs::read_dir(&at).unwrap() {
                let inner = path.path().join(entry.unwrap().file_name());
                if inner != std::path::Path::new(but) {
                    todo.push(Bytes(inner.as_os_str().as_bytes().to_vec()));
                }
            }
            Node::Dir
        } else if kind.is_symlink() {
            Node::Symlink(Bytes::from(&*fs::read_link(&at).unwrap()))
        } else if kind.is_file() {
            let content = Content(Arc::new(fs::read(&at).unwrap()));
            let holes = meta.len().saturating_sub(meta.blocks() * 512);
            assert!(!content.is_sparse() || holes > HOLE as u64 / 2, "{path:?} has lost its hole");
            Node::File(content)
        } else {
            assert!(kind.is_fifo(), "{path} is {kind:?}");
            Node::Fifo
        };
        let inode = Inode { node, mode: meta.mode() & 0o7777, uid: meta.uid(), xattrs: xattrs(&at) };
        found.insert(path, (meta, inode));
    }
    let mut first: BTreeMap<u64, Path> = BTreeMap::new();
    let mut all = Look { listing: Listing::default(), stamps: BTreeMap::new() };
    for (path, (meta, inode)) in found {
        let several = inode.node != Node::Dir && meta.nlink() > 1;
        let link = several.then(|| first.entry(meta.ino()).or_insert_with(|| path.clone()).clone());
        let stamp = Stamp { ino: meta.ino(), mtime: (meta.mtime(), meta.mtime_nsec()) };
        all.listing.0.insert(path.clone(), Item { inode, link });
        all.stamps.insert(path, stamp);
    }
    all
}

fn xattrs(path: &std::path::Path) -> BTreeMap<Vec<u8>, Vec<u8>> {
    let mut names = vec![0; 4096];
    let len = rustix::fs::llistxattr(path, &mut names[..]).unwrap_or(0);
    let names = names[..len].split(|&b| b == 0).filter(|name| name.starts_with(b"user."));
    let value = |name: &[u8]| {
        let mut value = vec![0; 4096];
        let len = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap();
        value[..len].to_vec()
    };
    names.map(|name| (name.to_vec(), value(name))).collect()
}

/// Whether attributes can be kept at `path`.
pub fn takes_xattrs(path: &std::path::Path) -> bool {
    rustix::fs::lsetxattr(path, "user.probe", b"x", rustix::fs::XattrFlags::empty()).is_ok()
        && rustix::fs::lremovexattr(path, "user.probe").is_ok()
}
