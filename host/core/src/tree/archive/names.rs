//! Paths in archives: names between slashes, in one order.

use crate::error::{Error, Result, show_bytes};
use crate::tree::node::is_name;
use std::cmp::Ordering;

/// The path of a member from the directory that the archive is of: without `.`, empty names
/// and its first `above` names, those of the directory itself.
///
/// # Errors
/// `Corrupt` for one that leads out.
pub fn inside(path: &[u8], above: usize) -> Result<Vec<u8>> {
    let names: Vec<&[u8]> =
        path.split(|&b| b == b'/').filter(|name| !name.is_empty() && *name != b".").collect();
    if names.len() < above || !names.iter().all(|name| is_name(name)) {
        return Err(Error::corrupt(format!(
            "the archive has a path that leads out of it: {}",
            show_bytes(path)
        )));
    }
    Ok(names[above..].join(&b'/'))
}

/// A directory before what is in it, that before its next sibling, names by their bytes.
pub fn order(a: &[u8], b: &[u8]) -> Ordering {
    // No name holds a NUL.
    let low = |&b: &u8| if b == b'/' { 0 } else { b };
    a.iter().map(low).cmp(b.iter().map(low))
}

/// The directory of a path, and its last name; the directory itself has none.
pub fn split(path: &[u8]) -> Option<(&[u8], &[u8])> {
    if path.is_empty() {
        return None;
    }
    Some(match path.iter().rposition(|&b| b == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    })
}

/// Whether `path` is beneath `dir`.
pub fn is_beneath(path: &[u8], dir: &[u8]) -> bool {
    dir.is_empty() && !path.is_empty() || path.strip_prefix(dir).is_some_and(|rest| rest.starts_with(b"/"))
}
