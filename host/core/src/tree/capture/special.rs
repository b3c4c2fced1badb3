//! Entries that are no regular files and no directories: recorded, never opened.

use super::node::Fresh;
use crate::tree::node::{Entry, EntryTime, Node};
use crate::tree::scan::Stat;
use crate::tree::xattr;
use rustix::fs::FileType;
use std::ffi::CStr;
use std::os::fd::AsFd;

/// The entry `name` of `dir`, of which `stat` was true just now.
///
/// # Errors
/// When a link cannot be read.
pub(super) fn special(dir: impl AsFd, name: &CStr, stat: Stat) -> rustix::io::Result<Fresh> {
    let node = match stat.kind() {
        FileType::Symlink => Node::Symlink(rustix::fs::readlinkat(&dir, name, Vec::new())?.into_bytes()),
        FileType::Fifo => Node::Fifo,
        FileType::Socket => Node::Socket,
        FileType::CharacterDevice => Node::CharDevice(stat.rdev.0, stat.rdev.1),
        FileType::BlockDevice => Node::BlockDevice(stat.rdev.0, stat.rdev.1),
        _ => return Err(rustix::io::Errno::INVAL),
    };
    let xattrs = xattr::of_name(&dir, name);
    Ok(fresh(name.to_bytes(), stat, xattrs, node))
}

/// An entry with the attributes that `stat` has.
pub(super) fn fresh(name: &[u8], stat: Stat, xattrs: Vec<crate::tree::node::Xattr>, node: Node) -> Fresh {
    let (mode, uid, gid) = (stat.permissions(), stat.uid, stat.gid);
    let entry = Entry { name: name.to_vec(), mode, uid, gid, xattrs, link: None, node };
    Fresh { entry, time: EntryTime { mtime: stat.mtime, inside: None }, stat }
}
