//! Finishing directories, from the bottom up: by whoever brings the last thing that
//! one waits for.

use super::node::{Done, Fresh, Node, Own, Slot};
use super::special::fresh;
use super::{Capture, Worker, lock};
use crate::error::{Error, Result};
use crate::object::ObjectKind;
use crate::tree::node::{Entry, EntryTime, Node as EntryNode, encode_times, encode_tree};
use crate::tree::root::Why;
use crate::tree::statcache::{RecordBuilder, Remembered};
use std::sync::Arc;
use std::sync::atomic::Ordering;

impl<'a> Capture<'a> {
    /// One thing that `node` waited for has come; finishes what is complete by that.
    pub(super) fn arrived(&self, worker: &mut Worker<'a>, mut node: Arc<Node<'a>>) -> Result<()> {
        while node.is_last() {
            let done = self.finish(worker, &node)?;
            self.walk.kept.done(&node.place.dir);
            let Some((above, slot)) = node.above.clone() else {
                *lock(&self.top) = Some((done, self.as_entry(&node, done)?));
                return Ok(());
            };
            above.deliver(slot, self.as_slot(&node, done)?);
            node = above;
        }
        Ok(())
    }

    /// Stores a directory of which everything has come, unless it is as it was.
    fn finish(&self, worker: &mut Worker<'a>, node: &Arc<Node<'a>>) -> Result<Done> {
        let mut slots = node.take();
        self.leave_sides(node, &mut slots)?;
        let id = node.place.dir.id();
        let present = slots.iter().filter(|slot| !matches!(slot, Slot::Absent)).count();
        // What was left out only when it was entered (a store) is absent each time.
        if let Some(record) = node.record
            && record.len() == present
            && slots.iter().all(|slot| !matches!(slot, Slot::Fresh(_)))
        {
            let done = Done { tree: record.tree(), times: record.times() };
            if self.trust.covers(record.generation())
                || (self.writer.contains(&done.tree)? && self.writer.contains(&done.times)?)
            {
                self.unchanged.fetch_add(1, Ordering::Relaxed);
                lock(&self.update).keep(id, record);
                return Ok(done);
            }
        }
        self.encoded.fetch_add(1, Ordering::Relaxed);
        let mut entries: Vec<Entry> = Vec::with_capacity(slots.len());
        let mut times: Vec<EntryTime> = Vec::with_capacity(slots.len());
        let mut record = RecordBuilder::new(id, lock(&self.update).generation(), present);
        let (mut files, mut bytes) = (0, 0);
        for slot in slots {
            let (entry, time) = match slot {
                Slot::Absent => continue,
                Slot::Same(at) => {
                    let cached = node.record.and_then(|record| record.at(at as usize));
                    let cached = cached.ok_or_else(damaged)?;
                    record.copy(&cached);
                    cached.to_entry().ok_or_else(damaged)?
                }
                Slot::Fresh(fresh) => {
                    let Fresh { entry, time, stat } = *fresh;
                    if let EntryNode::File { size, .. } = entry.node {
                        bytes += size;
                    }
                    files += u64::from(!matches!(entry.node, EntryNode::Dir(_)));
                    let racy = self.clock.is_racy(&stat);
                    record.add(&Remembered { entry: &entry, time: &time, stat: &stat, racy });
                    (entry, time)
                }
            };
            entries.push(entry);
            times.push(time);
        }
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let lane = worker.lane();
        let done = Done {
            tree: lane.put(ObjectKind::Tree, &encode_tree(&entries))?,
            times: lane.put(ObjectKind::Times, &encode_times(&times))?,
        };
        if let Some(record) = record.finish(&done.tree, &done.times) {
            lock(&self.update).add(id, &record);
        }
        Ok(done)
    }

    /// Takes out what lies beside databases that were found only when they were read.
    fn leave_sides(&self, node: &Node<'a>, slots: &mut [Slot]) -> Result<()> {
        if !node.place.has_databases() {
            return Ok(());
        }
        for slot in slots {
            let entry = match slot {
                Slot::Absent => continue,
                Slot::Fresh(fresh) => fresh.entry.clone(),
                Slot::Same(at) => {
                    let cached = node.record.and_then(|record| record.at(*at as usize));
                    cached.and_then(|cached| cached.to_entry()).ok_or_else(damaged)?.0
                }
            };
            if entry.node.may_be_database()
                && let Some((target, _)) = self.walk.beside_database(&node.place, &entry.name)
            {
                let path = node.place.dir.path_of(&entry.name);
                self.walk.leave_out(path, Why::Elsewhere, &*target, None, None);
                *slot = Slot::Absent;
            }
        }
        Ok(())
    }

    /// A finished directory, for the directory above.
    fn as_slot(&self, node: &Node<'a>, done: Done) -> Result<Slot> {
        if let Own::Same(at, old) = &node.own
            && old.directory() == Some((done.tree, done.times))
        {
            return Ok(Slot::Same(*at));
        }
        Ok(Slot::Fresh(Box::new(self.as_entry(node, done)?)))
    }

    /// The entry that a finished directory is.
    fn as_entry(&self, node: &Node<'a>, done: Done) -> Result<Fresh> {
        let xattrs = match &node.own {
            Own::Same(_, old) => old.xattrs().ok_or_else(damaged)?,
            Own::Fresh(xattrs) => xattrs.clone(),
        };
        let mut fresh = fresh(node.place.dir.name(), node.stat, xattrs, EntryNode::Dir(done.tree));
        fresh.time.inside = Some(done.times);
        Ok(fresh)
    }
}

/// A record whose checksum holds but whose content does not: nothing that chance makes.
pub(super) fn damaged() -> Error {
    Error::corrupt("the cache of a directory's attributes is damaged")
        .hint("remove the `cache` directory in the store")
}
