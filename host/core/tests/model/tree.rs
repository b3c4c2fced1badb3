//! The reference tree: what a directory holds, in memory.
//!
//! Names lead to inodes, so that hard links are what they are on a disk. Invariant: every
//! name but the root's (the empty path) lies in a directory; every inode has a name.

use snapback_core::text::Bytes;
use snapback_core::tree::compare::ChangeKind;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// A path from the root, `/` between names; the root itself is empty.
pub type Path = Bytes;

/// What an inode is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    File(Content),
    Dir,
    Symlink(Path),
    Fifo,
}

/// The bytes of a file. Zeros stand in holes alone: nothing here writes any.
#[derive(Clone, PartialEq, Eq)]
pub struct Content(pub Arc<Vec<u8>>);

impl Content {
    /// Whether it has a hole.
    pub fn is_sparse(&self) -> bool {
        self.0.contains(&0)
    }
}

impl fmt::Debug for Content {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = self.0.iter().fold(0u32, |sum, &byte| sum.rotate_left(5) ^ u32::from(byte));
        write!(f, "{} bytes {sum:08x}", self.0.len())
    }
}

/// An inode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Inode {
    pub node: Node,
    /// Permissions, 12 bits.
    pub mode: u32,
    pub uid: u32,
    pub xattrs: BTreeMap<Vec<u8>, Vec<u8>>,
}

/// A tree that can be changed.
#[derive(Clone)]
pub struct Tree {
    names: BTreeMap<Path, u32>,
    inodes: BTreeMap<u32, Inode>,
    next: u32,
}

/// One name in a listing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Item {
    pub inode: Inode,
    /// Where the inode has several names: the first of them.
    pub link: Option<Path>,
}

/// A tree at rest: equal listings are equal states.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Listing(pub BTreeMap<Path, Item>);

/// The directory that holds `path`; none for the root.
pub fn parent(path: &Path) -> Option<Path> {
    if path.0.is_empty() {
        return None;
    }
    let end = path.0.iter().rposition(|&b| b == b'/').unwrap_or(0);
    Some(Bytes(path.0[..end].to_vec()))
}

/// Whether `path` lies in the directory `dir`, however deep.
pub fn is_beneath(path: &Path, dir: &Path) -> bool {
    match path.0.strip_prefix(&dir.0[..]) {
        Some(rest) if dir.0.is_empty() => !rest.is_empty(),
        Some(rest) => rest.first() == Some(&b'/'),
        None => false,
    }
}

impl Tree {
    /// An empty directory of the user `uid`.
    pub fn new(uid: u32) -> Self {
        let root = Inode { node: Node::Dir, mode: 0o755, uid, xattrs: BTreeMap::new() };
        Self { names: [(Bytes::default(), 0)].into(), inodes: [(0, root)].into(), next: 1 }
    }

    /// The tree that `listing` lists.
    pub fn of(listing: &Listing) -> Self {
        let mut tree = Self { names: BTreeMap::new(), inodes: BTreeMap::new(), next: 0 };
        for (path, item) in &listing.0 {
            match item.link.as_ref().and_then(|first| tree.names.get(first)) {
                Some(&number) => drop(tree.names.insert(path.clone(), number)),
                None => tree.add(path, item.inode.clone()),
            }
        }
        tree
    }

    /// All of it.
    pub fn listing(&self) -> Listing {
        let mut groups: BTreeMap<u32, (Path, usize)> = BTreeMap::new();
        for (path, &number) in &self.names {
            groups.entry(number).or_insert_with(|| (path.clone(), 0)).1 += 1;
        }
        let item = |number: &u32| {
            let (first, count) = &groups[number];
            Item { inode: self.inodes[number].clone(), link: (*count > 1).then(|| first.clone()) }
        };
        Listing(self.names.iter().map(|(path, number)| (path.clone(), item(number))).collect())
    }

    /// The inode of `path`.
    pub fn get(&self, path: &Path) -> Option<&Inode> {
        self.names.get(path).map(|number| &self.inodes[number])
    }

    /// The same, to be changed.
    pub fn get_mut(&mut self, path: &Path) -> Option<&mut Inode> {
        self.names.get(path).and_then(|number| self.inodes.get_mut(number))
    }

    /// All paths, the root's first.
    pub fn paths(&self) -> impl DoubleEndedIterator<Item = &Path> {
        self.names.keys()
    }

    /// Whether `path` is a directory.
    pub fn is_dir(&self, path: &Path) -> bool {
        self.get(path).is_some_and(|inode| inode.node == Node::Dir)
    }

    /// Whether `path` is not there, and could be made.
    pub fn is_free(&self, path: &Path) -> bool {
        !self.names.contains_key(path) && parent(path).is_some_and(|dir| self.is_dir(&dir))
    }

    /// Whether two paths are one inode.
    pub fn are_linked(&self, a: &Path, b: &Path) -> bool {
        self.names.contains_key(a) && self.names.get(a) == self.names.get(b)
    }

    /// Whether nothing lies in `path`.
    pub fn is_empty(&self, path: &Path) -> bool {
        !self.names.keys().any(|name| is_beneath(name, path))
    }

    /// A new inode at `path`, which must be free.
    pub fn add(&mut self, path: &Path, inode: Inode) {
        self.inodes.insert(self.next, inode);
        self.names.insert(path.clone(), self.next);
        self.next += 1;
    }

    /// One more name of the inode of `path`.
    pub fn link(&mut self, path: &Path, new: &Path) {
        self.names.insert(new.clone(), self.names[path]);
    }

    /// Removes `path` and all that lies in it.
    pub fn remove(&mut self, path: &Path) {
        self.take(path);
        self.sweep();
    }

    /// Moves `from` and all that lies in it to `to`, over what is there.
    pub fn rename(&mut self, from: &Path, to: &Path) {
        let moved = self.take(from);
        self.take(to);
        self.put(moved, from, to);
        self.sweep();
    }

    /// Exchanges two paths with all that lies in them.
    pub fn exchange(&mut self, a: &Path, b: &Path) {
        let (from_a, from_b) = (self.take(a), self.take(b));
        self.put(from_a, a, b);
        self.put(from_b, b, a);
    }

    fn take(&mut self, path: &Path) -> Vec<(Path, u32)> {
        self.names.extract_if(.., |name, _| name == path || is_beneath(name, path)).collect()
    }

    fn put(&mut self, names: Vec<(Path, u32)>, from: &Path, to: &Path) {
        for (name, number) in names {
            self.names.insert(Bytes([&to.0, &name.0[from.0.len()..]].concat()), number);
        }
    }

    /// Inodes without a name are gone.
    fn sweep(&mut self) {
        let named: BTreeSet<u32> = self.names.values().copied().collect();
        self.inodes.retain(|number, _| named.contains(number));
    }
}

impl Listing {
    /// What differs on the way from here to `other`, by path.
    pub fn changes(&self, other: &Self) -> BTreeMap<Path, ChangeKind> {
        let paths: BTreeSet<&Path> = self.0.keys().chain(other.0.keys()).collect();
        let kind = |path: &Path| match (self.0.get(path), other.0.get(path)) {
            (None, _) => Some(ChangeKind::Added),
            (_, None) => Some(ChangeKind::Deleted),
            (before, after) => (before != after).then_some(ChangeKind::Modified),
        };
        paths.into_iter().filter_map(|path| Some((path.clone(), kind(path)?))).collect()
    }

    /// The names of each inode.
    pub fn groups(&self) -> BTreeMap<&Path, BTreeSet<&Path>> {
        let mut groups: BTreeMap<&Path, BTreeSet<&Path>> = BTreeMap::new();
        for (path, item) in &self.0 {
            groups.entry(item.link.as_ref().unwrap_or(path)).or_default().insert(path);
        }
        groups
    }
}
