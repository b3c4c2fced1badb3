//! Where the repository of a work tree stands now, before anything of it is recorded.

use super::look::{Found, Item, LARGEST_FILE};
use super::{Position, locate_around};
use crate::tree::scan::read_small;
use std::os::fd::AsFd;
use std::path::Path;

/// Where a repository stands, and what of it a capture would record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Where HEAD is.
    pub position: Position,
    /// Whether all refs and reflogs would be recorded, rather than as much as the limits
    /// allow.
    pub whole: bool,
    /// Whether it is the directory `.git` itself rather than one elsewhere.
    pub inside: bool,
}

/// Where the repository stands whose work tree `dir`, which is at `path`, is or lies in; none
/// when there is none.
pub fn present(dir: impl AsFd, path: &Path) -> Option<Standing> {
    let located = locate_around(dir, path)?;
    let found = Found::look(&located);
    let read = |item: Item| {
        let text = match item.stat.is_file() {
            true => read_small(&item.dir, item.name.as_c_str(), LARGEST_FILE)?,
            false => {
                let to = rustix::fs::readlinkat(&item.dir, &item.name, Vec::new()).ok()?;
                [b"ref: ", to.to_bytes()].concat()
            }
        };
        Some((item.path, text))
    };
    let refs = found.files.into_iter().filter(|item| !item.path.starts_with(b"logs/"));
    let position = Position::of(refs.filter_map(read).collect());
    Some(Standing { position, whole: found.whole, inside: located.is_inside() })
}
