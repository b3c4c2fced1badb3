//! What people and programs do to a tree, and what each makes of the reference tree.

use crate::tree::{Content, Inode, Node, Path, Tree, is_beneath, parent};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a hole: far more than any file system's block.
pub const HOLE: usize = 1 << 20;

/// Bytes without a zero: `len` of them, the same for the same `seed`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fill {
    pub seed: u8,
    pub len: usize,
}

impl Fill {
    /// The bytes: of an even seed one byte again and again, of an odd one without a pattern.
    pub fn bytes(&self) -> Vec<u8> {
        let mut state = u32::from(self.seed) | 0x9e37_7900;
        let mut next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8 | 1
        };
        if self.seed.is_multiple_of(2) {
            vec![self.seed | 1; self.len]
        } else {
            (0..self.len).map(|_| next()).collect()
        }
    }
}

/// What something becomes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Make {
    File(Fill),
    Dir,
    Symlink(Path),
    Fifo,
}

/// One thing that is done to a tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Deed {
    /// Makes a new entry.
    Make(Path, Make),
    /// Puts something else in the place of an entry, with all that lies in it.
    Turn(Path, Make),
    /// Writes a file anew, in place.
    Write(Path, Fill),
    /// Writes as many other bytes as there are, and sets the old time.
    Rewrite(Path, u8),
    Append(Path, Fill),
    /// Cuts a file off where there are bytes, at this part (of 256) of them.
    Shorten(Path, u8),
    /// Appends a hole.
    Extend(Path),
    Remove(Path),
    Rename(Path, Path),
    Exchange(Path, Path),
    Link(Path, Path),
    Chmod(Path, u32),
    Chown(Path, u32),
    SetXattr(Path, u8, u8),
    RemoveXattr(Path, u8),
    /// Sets the time alone.
    Touch(Path, u32),
}

/// The name of attribute `number`.
pub fn xattr(number: u8) -> Vec<u8> {
    format!("user.{number}").into()
}

impl Make {
    /// The mode that it gets.
    pub fn mode(&self) -> u32 {
        match self {
            Self::File(_) => 0o644,
            Self::Dir => 0o755,
            Self::Symlink(_) => 0o777,
            Self::Fifo => 0o640,
        }
    }

    fn inode(&self, uid: u32) -> Inode {
        let node = match self {
            Self::File(fill) => Node::File(Content(Arc::new(fill.bytes()))),
            Self::Dir => Node::Dir,
            Self::Symlink(to) => Node::Symlink(to.clone()),
            Self::Fifo => Node::Fifo,
        };
        Inode { node, mode: self.mode(), uid, xattrs: BTreeMap::new() }
    }
}

impl Deed {
    /// Does it in `tree`, as the user `uid`; none where it is not possible.
    pub fn apply(&self, tree: &Tree, uid: u32) -> Option<Tree> {
        let mut new = tree.clone();
        let done = match self {
            Self::Make(path, make) => tree.is_free(path).then(|| new.add(path, make.inode(uid))),
            Self::Turn(path, make) => {
                tree.get(path).filter(|_| !path.0.is_empty())?;
                new.remove(path);
                new.add(path, make.inode(uid));
                Some(())
            }
            Self::Write(path, fill) => content(&mut new, path, |bytes| *bytes = fill.bytes()),
            Self::Rewrite(path, seed) => content(&mut new, path, |bytes| {
                let fresh = Fill { seed: *seed, len: bytes.len() }.bytes();
                bytes.iter_mut().zip(fresh).filter(|(old, _)| **old != 0).for_each(|(old, new)| *old = new);
            }),
            Self::Append(path, fill) => content(&mut new, path, |bytes| bytes.extend(fill.bytes())),
            Self::Shorten(path, part) => content(&mut new, path, |bytes| {
                let data = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
                bytes.truncate(data * usize::from(*part) / 256);
            }),
            Self::Extend(path) => content(&mut new, path, |bytes| bytes.resize(bytes.len() + HOLE, 0)),
            Self::Remove(path) => (tree.get(path).is_some() && !path.0.is_empty()).then(|| new.remove(path)),
            Self::Rename(from, to) => can_rename(tree, from, to).then(|| new.rename(from, to)),
            Self::Exchange(a, b) => can_exchange(tree, a, b).then(|| new.exchange(a, b)),
            Self::Link(path, other) => {
                let may = tree.get(path).is_some() && !tree.is_dir(path) && tree.is_free(other);
                may.then(|| new.link(path, other))
            }
            Self::Chmod(path, mode) => {
                let inode = new.get_mut(path).filter(|inode| !matches!(inode.node, Node::Symlink(_)))?;
                // What its owner cannot read cannot be captured; the store is made in the root.
                inode.mode = match inode.node {
                    Node::Dir if path.0.is_empty() => mode & 0o777 | 0o700,
                    Node::Dir => mode & 0o777 | 0o500,
                    _ => mode | 0o400,
                };
                Some(())
            }
            Self::Chown(path, owner) => {
                new.get_mut(path).filter(|_| uid == 0)?.uid = *owner;
                Some(())
            }
            Self::SetXattr(path, number, value) => {
                let inode = new.get_mut(path).filter(|inode| has_xattrs(inode))?;
                inode.xattrs.insert(xattr(*number), vec![*value; usize::from(*value)]);
                Some(())
            }
            Self::RemoveXattr(path, number) => {
                new.get_mut(path).and_then(|inode| inode.xattrs.remove(&xattr(*number))).map(drop)
            }
            Self::Touch(path, _) => tree.get(path).map(drop),
        };
        done.map(|()| new)
    }
}

fn has_xattrs(inode: &Inode) -> bool {
    matches!(inode.node, Node::File(_) | Node::Dir)
}

fn content(tree: &mut Tree, path: &Path, change: impl FnOnce(&mut Vec<u8>)) -> Option<()> {
    match &mut tree.get_mut(path)?.node {
        Node::File(Content(bytes)) => {
            change(Arc::make_mut(bytes));
            Some(())
        }
        _ => None,
    }
}

fn can_rename(tree: &Tree, from: &Path, to: &Path) -> bool {
    // Names of one inode: the system does nothing.
    let apart = !is_beneath(to, from) && !tree.are_linked(from, to);
    let fits = match tree.get(to) {
        None => tree.is_free(to),
        Some(_) => tree.is_dir(from) == tree.is_dir(to) && tree.is_empty(to),
    };
    parent(from).is_some() && tree.get(from).is_some() && apart && fits
}

fn can_exchange(tree: &Tree, a: &Path, b: &Path) -> bool {
    let there = |path: &Path| !path.0.is_empty() && tree.get(path).is_some();
    there(a) && there(b) && !tree.are_linked(a, b) && !is_beneath(a, b) && !is_beneath(b, a)
}
