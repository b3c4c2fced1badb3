//! A captured directory as people look at it: find a path, list, walk, read.
//!
//! Invariant: a path is found by the names in stored directories alone; a stored
//! link is shown, never followed. Nothing of the real tree is looked at.

use super::node::{Entry, EntryTime, Node, Time, decode_times, decode_tree};
use super::root::Root;
use crate::error::{Error, Kind, Result, show_bytes};
use crate::object::Key;
use crate::store::Source;
use crate::store::content::{self, Piece};
use std::collections::VecDeque;

/// A stored tree to look at.
pub struct View<'a> {
    source: &'a dyn Source,
    root: Root,
}

/// One entry as it is stored.
#[derive(Debug, Clone)]
pub struct Seen {
    /// Path from the captured directory; empty for itself.
    pub path: Vec<u8>,
    /// The entry.
    pub entry: Entry,
    /// When it was last modified.
    pub mtime: Time,
    /// For a directory, the times of what is in it.
    inside: Option<Key>,
}

impl<'a> View<'a> {
    /// The tree of the captured directory `key`.
    ///
    /// # Errors
    /// When the object is not there, damaged, or no captured directory.
    pub fn open(source: &'a dyn Source, key: &Key) -> Result<Self> {
        Ok(Self::new(source, read_root(source, key)?))
    }

    /// The tree of `root`.
    pub fn new(source: &'a dyn Source, root: Root) -> Self {
        Self { source, root }
    }

    /// The captured directory.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// The captured directory itself, as an entry.
    pub fn top(&self) -> Seen {
        let Root { top, mtime, times, .. } = &self.root;
        Seen { path: Vec::new(), entry: top.clone(), mtime: *mtime, inside: Some(*times) }
    }

    /// What is stored at `path`, a link as itself; none when there is nothing. Empty
    /// names and `.` in the path mean nothing; `..` and a leading `/` find nothing.
    ///
    /// # Errors
    /// Only when what is stored cannot be read.
    pub fn find(&self, path: &[u8]) -> Result<Option<Seen>> {
        if path.first() == Some(&b'/') {
            return Ok(None);
        }
        let mut at = self.top();
        for name in path.split(|&b| b == b'/').filter(|name| !name.is_empty() && *name != b".") {
            if !matches!(at.entry.node, Node::Dir(_)) {
                return Ok(None);
            }
            let inside = self.children(&at)?;
            match inside.into_iter().find(|seen| seen.entry.name == name) {
                Some(seen) => at = seen,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// What is in the directory `dir`, sorted by name.
    ///
    /// # Errors
    /// `Invalid` when it is no directory, or when what is stored cannot be read.
    pub fn children(&self, dir: &Seen) -> Result<Vec<Seen>> {
        let (Node::Dir(tree), Some(times)) = (&dir.entry.node, &dir.inside) else {
            let shown = show_bytes(&dir.path);
            return Err(Error::new(Kind::Invalid, format!("{shown} is not a directory")));
        };
        let entries = decode_tree(&self.source.read(tree)?)?;
        let times = decode_times(&self.source.read(times)?)?;
        if entries.len() != times.len() {
            let shown = show_bytes(&dir.path);
            return Err(Error::corrupt(format!("the stored times of the directory {shown} do not fit it")));
        }
        let seen = |(entry, time): (Entry, EntryTime)| Seen {
            path: join(&dir.path, &entry.name),
            entry,
            mtime: time.mtime,
            inside: time.inside,
        };
        Ok(entries.into_iter().zip(times).map(seen).collect())
    }

    /// Everything in `from` (and not itself), a directory before what is in it.
    pub fn walk(&self, from: &Seen) -> impl Iterator<Item = Result<Seen>> + use<'_, 'a> {
        let mut next = VecDeque::new();
        let mut failed = None;
        match self.open_if_dir(from) {
            Ok(inside) => next.extend(inside),
            Err(error) => failed = Some(error),
        }
        std::iter::from_fn(move || {
            if let Some(error) = failed.take() {
                next.clear();
                return Some(Err(error));
            }
            let seen: Seen = next.pop_front()?;
            match self.open_if_dir(&seen) {
                Ok(inside) => inside.into_iter().rev().for_each(|child| next.push_front(child)),
                Err(error) => failed = Some(error),
            }
            Some(Ok(seen))
        })
    }

    fn open_if_dir(&self, seen: &Seen) -> Result<Vec<Seen>> {
        if matches!(seen.entry.node, Node::Dir(_)) { self.children(seen) } else { Ok(Vec::new()) }
    }

    /// Hands the bytes of the file `entry` to `sink`, checked, a piece at a time.
    ///
    /// # Errors
    /// `Invalid` when it is no file; whatever `sink` says; what is stored cannot be read.
    pub fn content(&self, entry: &Entry, sink: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()> {
        let Node::File { content: key, size, .. } = &entry.node else {
            let what = entry.node.word();
            return Err(Error::new(Kind::Invalid, format!("it is a {what}, not a file")));
        };
        let zeros = [0; 16 * 1024];
        content::load(self.source, key, *size, &mut |_, piece| match piece {
            Piece::Bytes(bytes) => sink(bytes),
            Piece::Zeros(mut length) => {
                while length > 0 {
                    let part = length.min(zeros.len() as u64);
                    sink(&zeros[..part as usize])?;
                    length -= part;
                }
                Ok(())
            }
        })
    }
}

/// The captured directory that `key` names.
///
/// # Errors
/// When it is not there, damaged, or something else.
pub fn read_root(source: &dyn Source, key: &Key) -> Result<Root> {
    if key.kind() != crate::object::ObjectKind::Root {
        return Err(Error::new(Kind::Incompatible, format!("{key} is not a captured directory")));
    }
    Root::decode(&source.read(key)?)
}

/// The path of `name` in the directory at `dir`.
pub(crate) fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(dir.len() + 1 + name.len());
    path.extend_from_slice(dir);
    if !dir.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::sample::{Objects, dir, file, link, sample_root};

    fn paths(view: &View<'_>, from: &Seen) -> Vec<String> {
        view.walk(from).map(|seen| String::from_utf8_lossy(&seen.unwrap().path).into_owned()).collect()
    }

    #[test]
    fn a_path_is_found_by_names_and_never_through_a_link() {
        let objects = Objects::default();
        let inside = vec![dir("d", vec![file("x", "one"), link("up", "..")]), file("f", "two")];
        let view = View::new(&objects, sample_root(&objects, inside));
        let word = |path: &str| view.find(path.as_bytes()).unwrap().map(|seen| seen.entry.node.word());
        assert_eq!(word(""), Some("directory"));
        assert_eq!(word("./d//x"), Some("file"));
        assert_eq!(word("d/up"), Some("symbolic link"));
        for path in ["d/up/f", "d/..", "/d", "d/x/y", "nothing", "../d"] {
            assert_eq!(word(path), None, "{path}");
        }
        assert_eq!(paths(&view, &view.top()), ["d", "d/up", "d/x", "f"]);
        assert_eq!(paths(&view, &view.find(b"d").unwrap().unwrap()), ["d/up", "d/x"]);
        assert_eq!(paths(&view, &view.find(b"f").unwrap().unwrap()), [""; 0]);
    }

    #[test]
    fn content_is_read_and_only_a_file_has_any() {
        let objects = Objects::default();
        let view = View::new(&objects, sample_root(&objects, vec![file("f", "two"), link("l", "f")]));
        let mut read = Vec::new();
        let mut sink = |bytes: &[u8]| {
            read.extend_from_slice(bytes);
            Ok(())
        };
        view.content(&view.find(b"f").unwrap().unwrap().entry, &mut sink).unwrap();
        let error = view.content(&view.find(b"l").unwrap().unwrap().entry, &mut sink).unwrap_err();
        assert_eq!((read.as_slice(), error.kind()), (&b"two"[..], Kind::Invalid));
    }

    #[test]
    fn a_damaged_tree_ends_a_walk_with_an_error() {
        let objects = Objects::default();
        let root = sample_root(&objects, vec![dir("d", vec![file("x", "one")]), file("f", "two")]);
        let view = View::new(&objects, root);
        let Node::Dir(tree) = view.find(b"d").unwrap().unwrap().entry.node else { panic!() };
        objects.forget(&tree);
        let seen: Vec<bool> = view.walk(&view.top()).map(|seen| seen.is_ok()).collect();
        assert_eq!(seen, [true, false]);
        assert!(view.find(b"d/x").is_err() && view.find(b"f").unwrap().is_some());
    }
}
