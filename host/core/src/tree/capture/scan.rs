//! The job for one directory: enter it, look at each selected entry, and see to it
//! that what is not known from the stat cache is read.

use super::node::{Node, Own, Slot};
use super::{Capture, Worker, lock};
use crate::error::Result;
use crate::store::content::LARGE;
use crate::tree::root::Why;
use crate::tree::scan::{Enter, Place, Scratch, Stat, Taken};
use crate::tree::statcache::{CachedEntry, DirRecord};
use rayon::Scope;
use rustix::fs::FileType;
use rustix::io::Errno;
use std::ffi::CString;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Files that one job reads: so many, or so many bytes.
const BATCH_FILES: usize = 32;
const BATCH_BYTES: u64 = 1 << 20;

/// A directory in a directory, still to be entered.
struct Below {
    slot: u32,
    name: CString,
    taken: Taken,
}

/// An entry that has to be read.
pub(super) struct Unread {
    slot: u32,
    name: CString,
    stat: Stat,
}

/// What was found in a directory, beside what is as it was.
#[derive(Default)]
struct Found {
    slots: Vec<Slot>,
    below: Vec<Below>,
    unread: Vec<Unread>,
    large: Vec<Unread>,
    linked: Vec<(u32, CString, Stat)>,
}

impl<'a> Capture<'a> {
    /// The job for the directory that is captured.
    pub(super) fn top<'s>(&'s self, scope: &Scope<'s>) {
        self.work(|worker| match self.walk.enter_top(&mut worker.scratch)? {
            Enter::In { place, handle, stat } => self.scan(scope, worker, None, None, place, handle, stat),
            _ => Ok(()),
        });
    }

    /// The job for the directory `below` in `above`.
    fn below<'s>(&'s self, scope: &Scope<'s>, above: Arc<Node<'a>>, below: &Below) {
        self.work(|worker| {
            let entered = self.walk.enter(&above.place, &below.name, &below.taken, &mut worker.scratch)?;
            match entered {
                Enter::In { place, handle, stat } => {
                    let old = above.record.and_then(|record| find(&record, below.name.to_bytes()));
                    self.scan(scope, worker, Some((above, below.slot)), old, place, handle, stat)
                }
                Enter::LeftOut | Enter::Gone => self.arrived(worker, above),
                // No directory any more: captured as what it is by now.
                Enter::Replaced => {
                    let name = &below.name;
                    let fresh = match self.walk.kept.open(&above.place.dir) {
                        Ok(handle) => self.entry(worker, &above.place, &handle, name, None)?,
                        Err(error) => {
                            self.walk.lost(&above.place, name.to_bytes(), error)?;
                            None
                        }
                    };
                    above.deliver(below.slot, fresh.map_or(Slot::Absent, Slot::Fresh));
                    self.arrived(worker, above)
                }
            }
        });
    }

    #[allow(clippy::too_many_arguments)]
    fn scan<'s>(
        &'s self,
        scope: &Scope<'s>,
        worker: &mut Worker<'a>,
        above: Option<(Arc<Node<'a>>, u32)>,
        old: Option<(u32, CachedEntry<'a>)>,
        place: Arc<Place>,
        handle: Arc<OwnedFd>,
        stat: Stat,
    ) -> Result<()> {
        let own = match old {
            Some((at, old)) if old.matches(&stat) => Own::Same(at, old),
            _ => Own::Fresh(crate::tree::xattr::of_open(&handle)),
        };
        let record = self.cache.dir(stat.dev, stat.ino);
        let node = Arc::new(Node::new(place, above, stat, own, record));
        let found = match self.look(&node, &handle, &worker.scratch)? {
            Some(found) => found,
            None => {
                // It may be listed but nothing in it may be looked at.
                let dir = &node.place.dir;
                match &node.above {
                    None => {
                        return Err(crate::error::Error::io(
                            Errno::ACCESS,
                            "could not look into",
                            self.walk.directory.path(),
                        ));
                    }
                    Some((above, _)) => {
                        self.walk.hole(&above.place, dir.name(), Errno::ACCESS, "looked into")?;
                        return self.arrived(worker, above.clone());
                    }
                }
            }
        };
        self.call.report.advance(found.slots.len() as u64);
        self.begin(scope, worker, node, handle, found)
    }

    /// Looks at each selected entry. `None` when nothing in the directory may be looked at.
    fn look(&self, node: &Arc<Node<'a>>, handle: &Arc<OwnedFd>, scratch: &Scratch) -> Result<Option<Found>> {
        let mut found = Found::default();
        found.slots.reserve_exact(scratch.selected.len());
        let mut cursor = Cursor { record: node.record, at: 0 };
        let trusted = node.record.is_some_and(|record| self.trust.covers(record.generation()));
        let (mut files, mut bytes, mut seen) = (0, 0, false);
        for selected in &scratch.selected {
            let slot = found.slots.len() as u32;
            let name = scratch.listing.name(selected.at as usize);
            found.slots.push(Slot::Absent);
            if selected.kind == FileType::Directory {
                found.below.push(Below { slot, name: name.to_owned(), taken: selected.taken.clone() });
                continue;
            }
            let stat = match Stat::of(handle, name) {
                Ok(stat) => stat,
                Err(Errno::NOENT) => continue,
                Err(Errno::ACCESS) if !seen => return Ok(None),
                Err(error) => {
                    self.walk.hole(&node.place, name.to_bytes(), error, "looked at")?;
                    continue;
                }
            };
            seen = true;
            if stat.is_dir() {
                found.below.push(Below { slot, name: name.to_owned(), taken: selected.taken.clone() });
                continue;
            }
            if self.walk.is_other_mount(&stat) {
                let path = node.place.dir.path_of(name.to_bytes());
                self.walk.leave_out(path, Why::Mount, "", None, Some(&stat));
                continue;
            }
            if stat.nlink > 1 {
                found.linked.push((slot, name.to_owned(), stat));
                continue;
            }
            if let Some((at, old)) = cursor.find(name.to_bytes())
                && self.is_known(&old, &stat, trusted)?
            {
                files += 1;
                bytes += if stat.is_file() { stat.size } else { 0 };
                found.slots[slot as usize] = Slot::Same(at);
            } else {
                let list = if is_large(&stat) { &mut found.large } else { &mut found.unread };
                list.push(Unread { slot, name: name.to_owned(), stat });
            }
        }
        self.files.fetch_add(files, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        Ok(Some(found))
    }

    /// Counts an entry that is as it was.
    pub(super) fn count(&self, stat: &Stat) {
        self.files.fetch_add(1, Ordering::Relaxed);
        self.bytes.fetch_add(if stat.is_file() { stat.size } else { 0 }, Ordering::Relaxed);
    }

    /// Whether the stat cache's `old` is what is there, and its content is stored.
    pub(super) fn is_known(&self, old: &CachedEntry<'_>, stat: &Stat, trusted: bool) -> Result<bool> {
        if !old.matches(stat) {
            return Ok(false);
        }
        match old.content() {
            Some(content) if !trusted => self.is_stored(&content),
            _ => Ok(true),
        }
    }

    /// Sets the jobs for a directory going.
    fn begin<'s>(
        &'s self,
        scope: &Scope<'s>,
        worker: &mut Worker<'a>,
        node: Arc<Node<'a>>,
        handle: Arc<OwnedFd>,
        found: Found,
    ) -> Result<()> {
        let Found { slots, below, mut unread, large, linked } = found;
        // The last batch is read here, the others by whoever has time.
        let here = unread.split_off(unread.len() - last_batch(&unread));
        let mut batches = Vec::new();
        while !unread.is_empty() {
            batches.push(unread.split_off(unread.len() - last_batch(&unread)));
        }
        if !(below.is_empty() && batches.is_empty()) {
            self.walk.kept.keep(&node.place.dir, handle.clone());
        }
        let waits = usize::from(!linked.is_empty()) + usize::from(!large.is_empty());
        node.begin(slots, 1 + below.len() + batches.len() + waits);
        if !large.is_empty() {
            lock(&self.large).push((node.clone(), large));
        }
        if !linked.is_empty() {
            lock(&self.links).add(&node, linked);
        }
        // What is spawned last is done first: so names come in order.
        for below in below.into_iter().rev() {
            let node = node.clone();
            scope.spawn(move |scope| self.below(scope, node, &below));
        }
        for batch in batches {
            let node = node.clone();
            scope.spawn(move |_| {
                self.work(|worker| {
                    self.read_batch(worker, &node, None, &batch)?;
                    self.arrived(worker, node)
                });
            });
        }
        self.read_batch(worker, &node, Some(&handle), &here)?;
        drop(handle);
        self.arrived(worker, node)
    }

    /// Captures the large files that were met, one by one: the content of each is read by
    /// all threads together.
    pub(super) fn read_large(&self) -> Result<()> {
        for (node, files) in std::mem::take(&mut *lock(&self.large)) {
            self.work(|worker| {
                self.read_batch(worker, &node, None, &files)?;
                self.arrived(worker, node)
            });
            self.check()?;
        }
        Ok(())
    }

    fn read_batch(
        &self,
        worker: &mut Worker<'a>,
        node: &Arc<Node<'a>>,
        handle: Option<&Arc<OwnedFd>>,
        batch: &[Unread],
    ) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        let handle = match handle {
            Some(handle) => Ok(handle.clone()),
            None => self.walk.kept.open(&node.place.dir),
        };
        for file in batch {
            self.call.cancel.check()?;
            let fresh = match &handle {
                Ok(handle) => self.entry(worker, &node.place, handle, &file.name, Some(&file.stat))?,
                Err(error) => {
                    self.walk.lost(&node.place, file.name.to_bytes(), *error)?;
                    None
                }
            };
            if let Some(fresh) = fresh {
                node.deliver(file.slot, Slot::Fresh(fresh));
            }
        }
        Ok(())
    }
}

/// Whether all threads together read its content.
pub(super) fn is_large(stat: &Stat) -> bool {
    stat.is_file() && stat.size > LARGE
}

/// How many files at the end of `unread` one job reads.
fn last_batch(unread: &[Unread]) -> usize {
    let mut bytes = 0;
    let fits = |file: &&Unread| {
        bytes += if file.stat.is_file() { file.stat.size } else { 0 };
        bytes <= BATCH_BYTES
    };
    let count = unread.iter().rev().take(BATCH_FILES).take_while(fits).count();
    count.max(1).min(unread.len())
}

/// Goes through a record in step with a listing: both are sorted.
struct Cursor<'a> {
    record: Option<DirRecord<'a>>,
    at: usize,
}

impl<'a> Cursor<'a> {
    fn find(&mut self, name: &[u8]) -> Option<(u32, CachedEntry<'a>)> {
        let record = self.record.as_ref()?;
        while let Some(entry) = record.at(self.at) {
            match entry.name().cmp(name) {
                std::cmp::Ordering::Less => self.at += 1,
                std::cmp::Ordering::Equal => return Some((self.at as u32, entry)),
                std::cmp::Ordering::Greater => return None,
            }
        }
        None
    }
}

fn find<'a>(record: &DirRecord<'a>, name: &[u8]) -> Option<(u32, CachedEntry<'a>)> {
    let at = record.find(name)?;
    Some((at as u32, record.at(at)?))
}
