//! What a restore of chosen paths must know of the names that were not chosen.
//!
//! Invariant: an inode that has such a name now is not changed, or what was not chosen would
//! change with it. A chosen name becomes one more name of it only if everything it holds
//! is as it is to be, and it has no names that do not belong to it.

use super::{Group, Links, group, inside};
use crate::error::Result;
use crate::object::Key;
use crate::store::Source;
use crate::tree::compare::Only;
use crate::tree::node::{Entry, decode_tree};
use crate::tree::root::Root;
use crate::tree::view::join;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;

/// The inodes that have a name now that was not chosen, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Outside {
    /// Of which group all names of each are to be, if of one.
    inodes: HashMap<u64, Option<u64>>,
}

/// A name that was not chosen and is as it is to be, its number aside.
struct Right {
    path: Vec<u8>,
    group: u64,
    inode: Option<u64>,
}

impl Outside {
    /// Whether the inode of `entry` has a name that was not chosen.
    pub fn has(&self, entry: Option<&Entry>) -> bool {
        group(entry).is_some_and(|inode| self.inodes.contains_key(&inode))
    }
}

impl Links {
    /// Takes note of the names that were not chosen: those of their inodes, and those that
    /// may be what a chosen one becomes a link to. The changes are then noted anew.
    ///
    /// # Errors
    /// When a stored directory cannot be read.
    pub fn leave_out(
        &mut self,
        source: &dyn Source,
        stored: &Root,
        current: &Root,
        only: &Only,
    ) -> Result<()> {
        let read = |key: &Key| decode_tree(&source.read(key)?);
        let wanted = std::mem::take(&mut self.groups);
        let mut inodes: HashMap<u64, Option<u64>> = HashMap::new();
        let mut right = Vec::new();
        let mut stack = vec![(Vec::new(), inside(&current.top), inside(&stored.top))];
        while let Some((path, tree, other)) = stack.pop() {
            let Some(tree) = tree else { continue };
            let others = other.as_ref().map(read).transpose()?.unwrap_or_default();
            for entry in read(&tree)? {
                let path = join(&path, &entry.name);
                if only.contains(&path) {
                    continue;
                }
                let other = others.binary_search_by(|other| other.name.cmp(&entry.name)).ok();
                let other = other.map(|at| &others[at]);
                if inside(&entry).is_some() {
                    stack.push((path, inside(&entry), other.and_then(inside)));
                    continue;
                }
                let (inode, to) = (group(Some(&entry)), group(other));
                if let Some(inode) = inode {
                    let one = inodes.entry(inode).or_insert(to);
                    *one = one.filter(|one| Some(*one) == to);
                }
                if let (Some(other), Some(group)) = (other, to.filter(|to| wanted.contains_key(to)))
                    && *other == (Entry { link: other.link, ..entry })
                {
                    right.push(Right { path, group, inode });
                }
            }
        }
        // Chosen names of these inodes belong to them as well, or leave them.
        right.retain(|name| name.inode.is_none_or(|inode| inodes.get(&inode) == Some(&Some(name.group))));
        self.outside = Outside { inodes };
        for Right { path, group, .. } in right {
            if let Slot::Vacant(slot) = self.groups.entry(group) {
                slot.insert(Group::untouched(path));
            }
        }
        Ok(())
    }
}
