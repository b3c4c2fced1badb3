//! One directory that is being captured: what is still awaited, and what came.

use super::lock;
use crate::object::Key;
use crate::tree::node::{Entry, EntryTime, Xattr};
use crate::tree::scan::{Place, Stat};
use crate::tree::statcache::{CachedEntry, DirRecord};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// One directory that is being captured.
pub(super) struct Node<'a> {
    pub place: Arc<Place>,
    /// The directory above, and this one's slot there; none for the top.
    pub above: Option<(Arc<Node<'a>>, u32)>,
    pub stat: Stat,
    pub own: Own<'a>,
    /// What the stat cache has of it.
    pub record: Option<DirRecord<'a>>,
    awaited: AtomicUsize,
    slots: Mutex<Vec<Slot>>,
}

/// What is known of a directory's own attributes.
pub(super) enum Own<'a> {
    /// They are as they were: its place in the record of the directory above.
    Same(u32, CachedEntry<'a>),
    /// They were read.
    Fresh(Vec<Xattr>),
}

/// What became of one selected entry.
#[derive(Default)]
pub(super) enum Slot {
    /// It is not captured, or not yet.
    #[default]
    Absent,
    /// It is as the record has it, at this place.
    Same(u32),
    /// It is new or changed.
    Fresh(Box<Fresh>),
}

/// An entry that is new or changed.
#[derive(Clone)]
pub(super) struct Fresh {
    pub entry: Entry,
    pub time: EntryTime,
    pub stat: Stat,
}

/// A directory that is finished.
#[derive(Clone, Copy)]
pub(super) struct Done {
    pub tree: Key,
    pub times: Key,
}

impl<'a> Node<'a> {
    pub fn new(
        place: Arc<Place>,
        above: Option<(Arc<Node<'a>>, u32)>,
        stat: Stat,
        own: Own<'a>,
        record: Option<DirRecord<'a>>,
    ) -> Self {
        Self { place, above, stat, own, record, awaited: AtomicUsize::new(1), slots: Mutex::default() }
    }

    /// Gives it its slots, and the number of things that it waits for.
    pub fn begin(&self, slots: Vec<Slot>, awaited: usize) {
        *lock(&self.slots) = slots;
        self.awaited.store(awaited, Ordering::Release);
    }

    /// Fills a slot.
    pub fn deliver(&self, at: u32, slot: Slot) {
        lock(&self.slots)[at as usize] = slot;
    }

    /// One thing that was awaited has come: whether it was the last.
    pub fn is_last(&self) -> bool {
        self.awaited.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// The slots, when all have come.
    pub fn take(&self) -> Vec<Slot> {
        std::mem::take(&mut lock(&self.slots))
    }
}

/// A chain of directories is let go one by one: a deep one must not take the stack.
impl Drop for Node<'_> {
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut node) = above.and_then(|(node, _)| Arc::into_inner(node)) {
            above = node.above.take();
        }
    }
}
