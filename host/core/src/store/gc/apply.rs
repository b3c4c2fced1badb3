//! Applying a plan: remove, then write, then remove what was rewritten.

use super::{Freed, Pack, Plan, Sweep};
use crate::backend::Cancel;
use crate::disk::Dir;
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use crate::report::Report;
use crate::store::catalog::DAMAGED;
use crate::store::lane::FRAME;
use crate::store::pack::{Encoding, FrameTable, decode_frame, read_stored};
use crate::store::share::Run;
use crate::store::{Lane, Store, Writer};
use std::collections::HashSet;
use std::fs::File;
use std::sync::Arc;

/// Old packs that are rewritten at once, in bytes: what a rewrite needs in free space.
const BATCH: u64 = 64 << 20;

impl Plan {
    /// Does what was planned, under the store's lock.
    ///
    /// # Errors
    /// `Cancelled`, and what kept packs from being removed. That the space for
    /// rewriting is missing is a problem that is told, unless something must really
    /// be gone: then it is an error.
    pub fn apply(self, store: &Arc<Store>, cancel: &Cancel, report: &dyn Report) -> Result<Freed> {
        store.remove_leftovers()?;
        let count = (self.remove.len() + self.rewrite.len()) as u64;
        let freed = Freed { problems: self.problems, ..Freed::default() };
        let mut cleaning = Cleaning { store, twins: self.twins, live: self.live, freed, cancel };
        report.begin("cleaning packs", Some(count), "items");
        let done =
            cleaning.remove(&self.remove).and_then(|()| cleaning.rewrite(self.rewrite, self.sweep, report));
        report.end();
        store.look_again();
        store.upkeep();
        done.map(|()| cleaning.freed)
    }
}

/// A plan that is being applied.
struct Cleaning<'a> {
    store: &'a Arc<Store>,
    twins: Vec<Dir>,
    live: HashSet<Key>,
    freed: Freed,
    cancel: &'a Cancel,
}

impl Cleaning<'_> {
    /// Removes packs of which nothing is needed.
    fn remove(&mut self, packs: &[Pack]) -> Result<()> {
        let mut removed = false;
        for pack in packs {
            // The copy that stays is read before this one goes.
            if let Some(problem) = only_copy(self.store, pack)? {
                self.freed.problems.push(problem);
                continue;
            }
            self.unlink(pack)?;
            self.freed.bytes += pack.size;
            self.freed.removed += 1;
            removed = true;
        }
        if removed { self.sync() } else { Ok(()) }
    }

    /// The directories that packs are in, the twins' first: until the store itself has
    /// lost a pack, it has all that there is elsewhere.
    fn places(&self) -> impl Iterator<Item = &Dir> {
        self.twins.iter().chain([&self.store.packs])
    }

    fn unlink(&self, pack: &Pack) -> Result<()> {
        let plain = pack.name.to_string().into_bytes();
        for place in self.places() {
            for name in [&[&plain[..], DAMAGED].concat(), &plain] {
                if place.stat(name)?.is_some() {
                    self.store.disk.unlink(place, name)?;
                }
            }
        }
        Ok(())
    }

    fn sync(&self) -> Result<()> {
        self.places().try_for_each(|place| self.store.disk.sync_dir(place))
    }

    /// Rewrites packs, some at a time.
    fn rewrite(&mut self, packs: Vec<Pack>, sweep: Sweep, report: &dyn Report) -> Result<()> {
        let mut packs = packs.into_iter().peekable();
        while let Some(first) = packs.next() {
            self.cancel.check()?;
            let mut size = first.size;
            let mut batch = vec![first];
            while let Some(next) = packs.next_if(|pack| size + pack.size <= BATCH) {
                size += next.size;
                batch.push(next);
            }
            match self.rewrite_batch(&batch) {
                Err(e) if e.kind() == Kind::NoSpace && sweep == Sweep::Worthwhile => {
                    self.freed.problems.push(e);
                    return Ok(());
                }
                done => done?,
            }
            report.advance(batch.len() as u64);
        }
        Ok(())
    }

    fn rewrite_batch(&mut self, packs: &[Pack]) -> Result<()> {
        let store = self.store;
        let writer = store.writer()?;
        let mut rewritten = Vec::new();
        for pack in packs {
            let mut lane = writer.lane();
            let lost = copy(store, &writer, &mut lane, pack, &self.live, self.cancel)?;
            lane.flush()?;
            match lost.map_or_else(|| only_copy(store, pack), |e| Ok(Some(e)))? {
                Some(problem) => self.freed.problems.push(problem),
                None => rewritten.push(pack),
            }
        }
        let sealed = writer.seal_packs()?;
        let mut old = 0;
        for pack in &rewritten {
            // What was written may be just what was there, and then has its name.
            if sealed.iter().all(|(name, _)| *name != pack.name) {
                self.unlink(pack)?;
            }
            old += pack.size;
            self.freed.rewritten += 1;
        }
        self.freed.bytes += old.saturating_sub(sealed.iter().map(|(_, bytes)| bytes).sum());
        if rewritten.is_empty() { Ok(()) } else { self.sync() }
    }
}

/// What speaks against removing a pack, when what it alone is the home of is not
/// needed or was copied: other copies of the rest cannot be read.
fn only_copy(store: &Store, pack: &Pack) -> Result<Option<Error>> {
    let catalog = store.catalog()?;
    let only = pack.elsewhere.iter().find(|key| !store.is_whole_outside(&catalog, key, pack.number));
    Ok(only.map(|key| {
        Error::corrupt(format!("pack {} is kept: it has the only whole copy of {key}", pack.name))
    }))
}

/// Copies what is live in a pack; says what could not be copied, for which it is kept.
fn copy(
    store: &Store,
    writer: &Writer,
    lane: &mut Lane<'_>,
    pack: &Pack,
    live: &HashSet<Key>,
    cancel: &Cancel,
) -> Result<Option<Error>> {
    let file = store.open_pack(pack.name)?;
    let elsewhere: HashSet<&Key> = pack.elsewhere.iter().collect();
    let mut lost = None;
    let mut raw = Vec::new();
    for table in &pack.table.frames {
        cancel.check()?;
        let wanted = |key: &Key| live.contains(key) && !elsewhere.contains(key);
        let count = table.objects.iter().filter(|(key, _)| wanted(key)).count();
        if count == 0 {
            continue;
        }
        let name = pack.name;
        let kept = |e: Error| e.context(format_args!("pack {name} is kept, though it is damaged"));
        let read = read_stored(&file, &table.frame)
            .and_then(|stored| decode_frame(&stored, &table.frame, &mut raw).map(|()| stored));
        let stored = match read {
            Ok(stored) => stored,
            Err(e) => {
                lost = lost.or(Some(kept(e)));
                continue;
            }
        };
        let mut start = 0;
        let mut objects = Vec::with_capacity(table.objects.len());
        for (key, len) in &table.objects {
            let bytes = &raw[start..start + *len as usize];
            start += *len as usize;
            if !wanted(key) {
                continue;
            }
            if Key::of(key.kind(), bytes) == *key {
                objects.push((*key, bytes));
            } else {
                lost = lost.or_else(|| Some(kept(Error::corrupt(format!("{key} is not what was written")))));
            }
        }
        if table.frame.encoding == Encoding::Aligned {
            share(writer, &file, table, &objects.iter().map(|(key, _)| *key).collect())?;
            continue;
        }
        if objects.len() == table.objects.len() && raw.len() >= FRAME / 2 {
            // All of it stays: as it is.
            writer
                .append(table.frame.encoding, &stored, raw.len(), table.objects.clone())
                .map_err(|e| writer.fail(e))?;
            continue;
        }
        for (key, bytes) in objects {
            lane.put_again(key, bytes)?;
        }
    }
    Ok(lost)
}

/// Shares with the new pack those objects of a frame that are `wanted`.
fn share(writer: &Writer, file: &File, table: &FrameTable, wanted: &HashSet<Key>) -> Result<()> {
    let mut run = Run::new(writer, file);
    let mut at = u64::from(table.frame.offset);
    for (key, len) in &table.objects {
        if wanted.contains(key) && writer.claim_again(key) {
            run.add(at, *key, *len)?;
        }
        at += u64::from(*len);
    }
    run.end()
}
