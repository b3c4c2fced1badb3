//! The paths to which the user narrowed a comparison or a restore.
//!
//! A path names an entry or everything under it. Refuses paths that lead out.

use crate::error::{Error, Kind, Result};
use crate::tree::node::is_name;

/// Selected paths; none means everything.
#[derive(Debug, Clone, Default)]
pub struct Only {
    /// Sorted, each without `.` and doubled or trailing slashes.
    paths: Vec<Vec<u8>>,
}

/// How a place in a tree lies to the selected paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// It is selected, and so is all that is in it.
    Selected,
    /// Something in it is selected.
    Passage,
    /// Nothing in it is selected.
    Outside,
}

impl Only {
    /// Everything.
    pub fn all() -> Self {
        Self::default()
    }

    /// The paths `paths`, each from the captured directory.
    ///
    /// # Errors
    /// `Invalid` for a path that is absolute or has `..` in it.
    pub fn new(paths: &[Vec<u8>]) -> Result<Self> {
        let mut clean = Vec::with_capacity(paths.len());
        for path in paths {
            let names: Vec<&[u8]> =
                path.split(|&b| b == b'/').filter(|name| !name.is_empty() && *name != b".").collect();
            if path.first() == Some(&b'/') || !names.iter().all(|name| is_name(name)) {
                let shown = crate::error::show_bytes(path);
                return Err(Error::new(Kind::Invalid, format!("{shown} is not a path inside the tree")));
            }
            if names.is_empty() {
                return Ok(Self::all());
            }
            clean.push(names.join(&b'/'));
        }
        clean.sort();
        clean.dedup();
        Ok(Self { paths: clean })
    }

    /// Whether everything is selected.
    pub fn is_all(&self) -> bool {
        self.paths.is_empty()
    }

    /// The selected paths, sorted; none means everything.
    pub fn paths(&self) -> &[Vec<u8>] {
        &self.paths
    }

    /// Whether `path` or a directory above it is selected.
    pub fn contains(&self, path: &[u8]) -> bool {
        self.is_all()
            || self.has(path)
            || path.iter().enumerate().any(|(at, &b)| b == b'/' && self.has(&path[..at]))
    }

    fn has(&self, path: &[u8]) -> bool {
        self.paths.binary_search_by(|p| p.as_slice().cmp(path)).is_ok()
    }

    /// Where `path` lies, given where its directory lies.
    pub(super) fn place(&self, parent: Place, path: &[u8]) -> Place {
        if parent != Place::Passage || self.is_all() || self.has(path) {
            return if parent == Place::Outside { parent } else { Place::Selected };
        }
        // All paths that begin with `path/` stand together in the sorted list.
        let mut start = path.to_vec();
        start.push(b'/');
        let at = self.paths.partition_point(|p| p.as_slice() < start.as_slice());
        match self.paths.get(at) {
            Some(p) if p.starts_with(&start) => Place::Passage,
            _ => Place::Outside,
        }
    }

    /// Where the captured directory itself lies.
    pub(super) fn top(&self) -> Place {
        if self.is_all() { Place::Selected } else { Place::Passage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_selects_itself_and_what_is_in_it() {
        let only = Only::new(&[b"a/b/".to_vec(), b"./c".to_vec()]).unwrap();
        assert!(only.contains(b"a/b") && only.contains(b"a/b/x/y") && only.contains(b"c"));
        assert!(!only.contains(b"a") && !only.contains(b"a/bc") && !only.contains(b"cc"));
        assert_eq!(only.place(Place::Passage, b"a"), Place::Passage);
        assert_eq!(only.place(Place::Passage, b"a/b"), Place::Selected);
        assert_eq!(only.place(Place::Selected, b"a/b/x"), Place::Selected);
        assert_eq!(only.place(Place::Passage, b"a/bc"), Place::Outside);
    }

    #[test]
    fn a_path_that_leads_out_is_refused() {
        for path in ["..", "a/../b", "/a"] {
            assert_eq!(Only::new(&[path.into()]).unwrap_err().kind(), Kind::Invalid, "{path}");
        }
        assert!(Only::new(&[b".".to_vec(), b"a".to_vec()]).unwrap().is_all());
    }
}
