//! Hard links: entries of one inode, wherever in the tree they are.
//!
//! Only at the end of the walk is it known which of them are captured. Until then
//! the directories that hold them wait. An inode is read once. Its number is made
//! from the path of the first of its names, so it is the same on any machine.

use super::finish::damaged;
use super::node::{Fresh, Node, Slot};
use super::scan::is_large;
use super::{Capture, Worker, lock};
use crate::error::Result;
use crate::object::{Key, ObjectKind};
use crate::tree::scan::Stat;
use crate::tree::statcache::CachedEntry;
use rayon::prelude::*;
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;

/// The entries with more than one name that were met, by inode.
#[derive(Default)]
pub(super) struct Links<'a> {
    groups: HashMap<(u64, u64), Vec<Member<'a>>>,
    /// Each directory that waits for them.
    waiting: Vec<Arc<Node<'a>>>,
}

/// One name of an inode.
struct Member<'a> {
    node: Arc<Node<'a>>,
    slot: u32,
    name: CString,
    stat: Stat,
}

impl<'a> Links<'a> {
    /// Adds names in `node`, which waits until they are resolved.
    pub fn add(&mut self, node: &Arc<Node<'a>>, names: Vec<(u32, CString, Stat)>) {
        for (slot, name, stat) in names {
            let member = Member { node: node.clone(), slot, name, stat };
            self.groups.entry(stat.id()).or_default().push(member);
        }
        self.waiting.push(node.clone());
    }
}

impl<'a> Member<'a> {
    fn path(&self) -> Vec<u8> {
        self.node.place.dir.path_of(self.name.to_bytes())
    }

    fn cached(&self) -> Option<(u32, CachedEntry<'a>)> {
        let record = self.node.record?;
        let at = record.find(self.name.to_bytes())?;
        Some((at as u32, record.at(at)?))
    }
}

impl<'a> Capture<'a> {
    /// Captures all inodes that have several names, and finishes what waited for them.
    pub(super) fn resolve_links(&self) -> Result<()> {
        let links = std::mem::take(&mut *lock(&self.links));
        // The content of a large one is read by all threads together.
        let (large, small): (Vec<Vec<Member<'a>>>, Vec<_>) =
            links.groups.into_values().partition(|group| group.iter().any(|member| is_large(&member.stat)));
        small.into_par_iter().for_each(|group| self.work(|worker| self.resolve(worker, group)));
        large.into_iter().for_each(|group| self.work(|worker| self.resolve(worker, group)));
        self.check()?;
        let waiting = links.waiting;
        waiting.into_par_iter().for_each(|node| self.work(|worker| self.arrived(worker, node)));
        Ok(())
    }

    fn resolve(&self, worker: &mut Worker<'a>, mut group: Vec<Member<'a>>) -> Result<()> {
        let link = match group.len() {
            1 => None,
            _ => {
                group.sort_by_cached_key(Member::path);
                let hash = Key::of(ObjectKind::Blob, &group[0].path());
                Some(u64::from_le_bytes(hash.hash()[..8].try_into().expect("a hash has more bytes")))
            }
        };
        // All as they were: nothing is read.
        let mut same = Vec::with_capacity(group.len());
        for member in &group {
            let trusted = member.node.record.is_some_and(|record| self.trust.covers(record.generation()));
            match member.cached() {
                Some((at, old)) if self.is_known(&old, &member.stat, trusted)? => same.push((at, old)),
                _ => break,
            }
        }
        if same.len() == group.len() {
            for (member, (at, old)) in group.iter().zip(same) {
                if old.link() == link {
                    self.count(&member.stat);
                    member.node.deliver(member.slot, Slot::Same(at));
                } else {
                    let (mut entry, time) = old.to_entry().ok_or_else(damaged)?;
                    entry.link = link;
                    let fresh = Fresh { entry, time, stat: member.stat };
                    member.node.deliver(member.slot, Slot::Fresh(Box::new(fresh)));
                }
            }
            return Ok(());
        }
        // Read once: what is true of one name is true of all that still are that inode.
        let mut first: Option<Fresh> = None;
        for member in &group {
            let Some(mut fresh) = self.read_member(worker, member, first.as_ref())? else { continue };
            if fresh.stat.id() == member.stat.id() {
                fresh.entry.link = link;
                first.get_or_insert_with(|| (*fresh).clone());
            }
            member.node.deliver(member.slot, Slot::Fresh(fresh));
        }
        Ok(())
    }

    fn read_member(
        &self,
        worker: &mut Worker<'a>,
        member: &Member<'a>,
        first: Option<&Fresh>,
    ) -> Result<Option<Box<Fresh>>> {
        let place = &member.node.place;
        let dir = match self.walk.kept.open(&place.dir) {
            Ok(dir) => dir,
            Err(error) => {
                self.walk.lost(place, member.name.to_bytes(), error)?;
                return Ok(None);
            }
        };
        if let Some(first) = first
            && Stat::of(&dir, &member.name).is_ok_and(|now| now.id() == first.stat.id())
        {
            let mut fresh = first.clone();
            fresh.entry.name = member.name.to_bytes().to_vec();
            return Ok(Some(Box::new(fresh)));
        }
        self.entry(worker, place, &dir, &member.name, Some(&member.stat))
    }
}
