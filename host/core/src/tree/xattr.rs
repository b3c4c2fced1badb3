//! Extended attributes: of what is open, or of an entry that is never opened.
//!
//! All that this user may read, ACLs and file capabilities among them. One that
//! cannot be read is as good as not there; file systems without any say nothing.

use crate::tree::node::Xattr;
use rustix::io::Errno;
use std::ffi::{CStr, OsStr};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// Whether two attributes are the same but for what an ACL gives to the owner, which goes with
/// the mode. The form is the kernel's: a version, then for each entry tag, permissions and ID.
pub fn is_but_for_owner(a: &Xattr, b: &Xattr) -> bool {
    const VERSION: usize = 4;
    const ENTRY: usize = 8;
    const USER_OBJ: [u8; 2] = 1_u16.to_le_bytes();
    let is_acl = a.0 == b"system.posix_acl_access" && b.0 == a.0;
    if !is_acl || a.1.len() != b.1.len() || a.1.get(..VERSION) != b.1.get(..VERSION) {
        return a == b;
    }
    let mut pairs = a.1[VERSION..].chunks(ENTRY).zip(b.1[VERSION..].chunks(ENTRY));
    pairs.all(|(a, b)| a == b || (a.starts_with(&USER_OBJ) && b.starts_with(&USER_OBJ)))
}

/// The attributes of what is open, sorted by name.
pub fn of_open(fd: impl AsFd) -> Vec<Xattr> {
    let fd = fd.as_fd();
    read(|list| rustix::fs::flistxattr(fd, list), |name, value| rustix::fs::fgetxattr(fd, name, value))
}

/// The attributes of `name` in `dir`, which is not opened, nor followed if it is a link.
pub(crate) fn of_name(dir: impl AsFd, name: &CStr) -> Vec<Xattr> {
    // There is no call that takes a directory and a name; this path is one component
    // beneath a handle, so nothing else is resolved.
    let mut path = PathBuf::from(format!("/proc/self/fd/{}", dir.as_fd().as_raw_fd()));
    path.push(OsStr::from_bytes(name.to_bytes()));
    read(|list| rustix::fs::llistxattr(&path, list), |name, value| rustix::fs::lgetxattr(&path, name, value))
}

/// The attributes of what is held without being open, sorted by name.
pub(crate) fn of_held(fd: impl AsFd) -> Vec<Xattr> {
    // Calls on such a handle fail; this path leads to it, and to nothing else.
    let path = PathBuf::from(format!("/proc/self/fd/{}", fd.as_fd().as_raw_fd()));
    read(|list| rustix::fs::listxattr(&path, list), |name, value| rustix::fs::getxattr(&path, name, value))
}

/// Names and values mostly fit into this.
const FEW: usize = 512;
/// The kernel has no longer lists and no longer values.
const MOST: usize = 64 << 10;

fn read(
    list: impl Fn(&mut [u8]) -> rustix::io::Result<usize>,
    get: impl Fn(&CStr, &mut [u8]) -> rustix::io::Result<usize>,
) -> Vec<Xattr> {
    let names = whole(list).unwrap_or_default();
    let mut all: Vec<Xattr> = Vec::new();
    for name in names.split_inclusive(|&b| b == 0) {
        let Ok(name) = CStr::from_bytes_with_nul(name) else { continue };
        if let Some(value) = whole(|value| get(name, value)) {
            all.push((name.to_bytes().to_vec(), value));
        }
    }
    all.sort();
    all.dedup_by(|a, b| a.0 == b.0);
    all
}

/// What `call` writes, with a buffer that is large enough.
fn whole(call: impl Fn(&mut [u8]) -> rustix::io::Result<usize>) -> Option<Vec<u8>> {
    let mut few = [0; FEW];
    match call(&mut few) {
        Ok(len) => return Some(few[..len].to_vec()),
        Err(Errno::RANGE) => {}
        Err(_) => return None,
    }
    let mut most = vec![0; MOST];
    let len = call(&mut most).ok()?;
    most.truncate(len);
    most.shrink_to_fit();
    Some(most)
}
