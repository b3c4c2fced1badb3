//! Hard links: names that must be one inode again.
//!
//! For each group of which a name changed, one inode is chosen: that of a name which
//! did not change at all, else of one whose content is right, so that what was not
//! touched keeps its inode; else a fresh file is made for the first name. All other
//! changed names become links to it.

mod outside;

use self::outside::Outside;
use crate::error::Result;
use crate::object::Key;
use crate::store::Source;
use crate::tree::compare::Change;
use crate::tree::node::{Entry, Node, decode_tree};
use crate::tree::root::Root;
use crate::tree::scan::Stat;
use crate::tree::view::join;
use std::collections::hash_map::Entry as Slot;
use std::collections::{HashMap, HashSet};

/// What a changed name is in its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It has no other names.
    Alone,
    /// Its inode is right.
    Base,
    /// The fresh file is made here.
    Leader,
    /// It becomes a link to the chosen inode.
    Follower,
    /// Only its time is not right, and that belongs to names that were not chosen as well.
    Shared,
}

/// The groups of which a name changed.
#[derive(Debug, Default)]
pub struct Links {
    groups: HashMap<u64, Group>,
    outside: Outside,
    /// The inodes that a name leaves, by the numbers that they have now.
    left: HashSet<u64>,
}

#[derive(Debug)]
struct Group {
    rank: Rank,
    /// The name whose inode is chosen.
    chosen: Vec<u8>,
    /// The number that this inode has now, if it has other names.
    inode: Option<u64>,
    /// Its mode, owner or attributes are not right.
    in_place: bool,
    /// The inode there, once it was seen to be as it should be.
    seen: Option<Stat>,
}

/// How good a choice is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// To be made.
    Fresh,
    /// Content and attributes are right, but it belongs to another group.
    Alike,
    /// It is in the group, and its content is right.
    Kept,
    /// It did not change at all.
    Untouched,
}

impl Group {
    /// One whose name at `chosen` did not change.
    fn untouched(chosen: Vec<u8>) -> Self {
        Self { rank: Rank::Untouched, chosen, inode: None, in_place: false, seen: None }
    }
}

fn group(entry: Option<&Entry>) -> Option<u64> {
    entry.filter(|entry| !matches!(entry.node, Node::Dir(_))).and_then(|entry| entry.link)
}

/// What is in `entry`, where it is a directory.
fn inside(entry: &Entry) -> Option<Key> {
    match entry.node {
        Node::Dir(key) => Some(key),
        _ => None,
    }
}

impl Links {
    /// Takes note of a change, in the order of paths.
    pub fn note(&mut self, change: &Change) {
        let (inode, differs) = (group(change.before.as_ref()), change.aspects());
        if change.after.is_some() && differs.link {
            self.left.extend(inode);
        }
        let Some(id) = group(change.after.as_ref()).filter(|_| !change.passage) else { return };
        let (rank, chosen, in_place) = (self.rank(change), change.path.clone(), differs.metadata());
        let new = Group { rank, chosen, inode, in_place, seen: None };
        match self.groups.entry(id) {
            Slot::Vacant(slot) => drop(slot.insert(new)),
            Slot::Occupied(mut slot) if new.rank > slot.get().rank => drop(slot.insert(new)),
            Slot::Occupied(_) => {}
        }
    }

    fn rank(&self, change: &Change) -> Rank {
        let differs = change.aspects();
        let is_fresh = change.before.is_none() || differs.kind || differs.content;
        if is_fresh || self.outside.has(change.before.as_ref()) {
            Rank::Fresh
        } else if !differs.link {
            Rank::Kept
        } else if differs.metadata() {
            Rank::Fresh
        } else {
            Rank::Alike
        }
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Looks for names that did not change, everywhere in the tree.
    ///
    /// # Errors
    /// When a stored directory cannot be read.
    pub fn find_untouched(&mut self, source: &dyn Source, stored: &Root, current: &Root) -> Result<()> {
        let mut alike = self.claim();
        let mut missing = self.groups.values().filter(|g| g.rank < Rank::Untouched).count();
        let mut stack: Vec<(Vec<u8>, Option<Key>, Option<Key>)> =
            vec![(Vec::new(), inside(&stored.top), inside(&current.top))];
        while let Some((path, tree, other)) = stack.pop() {
            let Some(tree) = tree.filter(|_| missing > 0) else { continue };
            let entries = decode_tree(&source.read(&tree)?)?;
            let others = match other {
                Some(key) if key == tree => None,
                Some(key) => Some(decode_tree(&source.read(&key)?)?),
                None => continue,
            };
            for entry in &entries {
                let other = match &others {
                    None => Some(entry),
                    Some(list) => list.binary_search_by(|e| e.name.cmp(&entry.name)).ok().map(|at| &list[at]),
                };
                let Some(other) = other else { continue };
                if inside(entry).is_some() {
                    stack.push((join(&path, &entry.name), inside(entry), inside(other)));
                    continue;
                }
                if let Some(id) = other.link.filter(|_| entry == other).and_then(|id| alike.remove(&id)) {
                    self.make(id);
                }
                if let Some(id) = group(Some(entry)).filter(|_| entry == other)
                    && let Some(group) = self.groups.get_mut(&id)
                    && group.rank < Rank::Untouched
                {
                    *group = Group::untouched(join(&path, &entry.name));
                    missing -= 1;
                }
            }
        }
        Ok(())
    }

    /// Gives each inode to one group: to that whose number it has, else to the first by
    /// its path. Returns the others' inodes, and the groups that have them.
    fn claim(&mut self) -> HashMap<u64, u64> {
        let is_left =
            |id: &u64, group: &Group| group.rank == Rank::Kept && group.in_place && self.left.contains(id);
        let unfit: Vec<u64> =
            self.groups.iter().filter(|(id, group)| is_left(id, group)).map(|(id, _)| *id).collect();
        let mut alike: Vec<(&[u8], u64, u64)> = (self.groups.iter())
            .filter(|(_, group)| group.rank == Rank::Alike)
            .filter_map(|(id, group)| Some((&*group.chosen, group.inode?, *id)))
            .collect();
        alike.sort();
        let (mut claimed, mut others) = (HashMap::new(), Vec::new());
        for (_, inode, id) in alike {
            let is_kept = self.groups.get(&inode).is_some_and(|group| group.rank == Rank::Kept);
            match claimed.entry(inode) {
                Slot::Vacant(slot) if !is_kept => drop(slot.insert(id)),
                _ => others.push(id),
            }
        }
        unfit.into_iter().chain(others).for_each(|id| self.make(id));
        claimed
    }

    /// The inode that was chosen for the group `id` is not for it.
    fn make(&mut self, id: u64) {
        if let Some(group) = self.groups.get_mut(&id) {
            group.rank = Rank::Fresh;
        }
    }

    /// What the changed name is.
    pub fn role(&self, change: &Change) -> Role {
        let Some(id) = group(change.after.as_ref()) else { return Role::Alone };
        match self.groups.get(&id) {
            None => Role::Alone,
            Some(_) if self.outside.has(change.before.as_ref()) && !change.aspects().any_but_time() => {
                Role::Shared
            }
            // In the group already: the inode that all its names share is changed in place.
            Some(group) if self.rank(change) == Rank::Kept && group.rank != Rank::Fresh => Role::Base,
            Some(group) if group.chosen != change.path => Role::Follower,
            Some(group) if group.rank == Rank::Fresh => Role::Leader,
            Some(_) => Role::Base,
        }
    }

    /// The path of the name whose inode was chosen for the group of `entry`, and that
    /// inode, if it was seen to be as it should be.
    pub fn chosen(&self, entry: &Entry) -> Option<(&[u8], Option<&Stat>)> {
        self.groups.get(&entry.link?).map(|group| (group.chosen.as_slice(), group.seen.as_ref()))
    }

    /// The inode of `path`, as it should be, is the one for the group of `entry`.
    pub fn choose(&mut self, entry: &Entry, path: &[u8], seen: Option<Stat>) {
        if let Some(group) = entry.link.and_then(|id| self.groups.get_mut(&id)) {
            group.chosen = path.to_vec();
            group.seen = seen;
        }
    }
}
