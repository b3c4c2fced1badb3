//! Applying a plan: remove, then write, then remove what was rewritten.

use super::{Freed, Pack, Plan, Sweep};
use crate::backend::Cancel;
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use crate::report::Report;
use crate::store::catalog::DAMAGED;
use crate::store::lane::FRAME;
use crate::store::pack::{decode_frame, read_stored};
use crate::store::{Lane, Store, Writer};
use std::collections::HashSet;
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
        let mut freed = Freed { problems: self.problems, ..Freed::default() };
        store.remove_leftovers()?;
        let count = (self.remove.len() + self.rewrite.len()) as u64;
        report.begin("cleaning packs", Some(count), "items");
        let done =
            clean(store, &self.remove, self.rewrite, &self.live, self.sweep, &mut freed, cancel, report);
        report.end();
        store.look_again();
        store.upkeep();
        done.map(|()| freed)
    }
}

#[allow(clippy::too_many_arguments)]
fn clean(
    store: &Arc<Store>,
    useless: &[Pack],
    rewrite: Vec<Pack>,
    live: &HashSet<Key>,
    sweep: Sweep,
    freed: &mut Freed,
    cancel: &Cancel,
    report: &dyn Report,
) -> Result<()> {
    remove(store, useless, freed)?;
    report.advance(useless.len() as u64);
    let mut rewrite = rewrite.into_iter().peekable();
    while let Some(first) = rewrite.next() {
        cancel.check()?;
        let mut size = first.size;
        let mut batch = vec![first];
        while let Some(next) = rewrite.next_if(|pack| size + pack.size <= BATCH) {
            size += next.size;
            batch.push(next);
        }
        match rewrite_all(store, &batch, live, freed, cancel) {
            Err(e) if e.kind() == Kind::NoSpace && sweep == Sweep::Worthwhile => {
                freed.problems.push(e);
                return Ok(());
            }
            done => done?,
        }
        report.advance(batch.len() as u64);
    }
    Ok(())
}

/// Removes packs of which nothing is needed.
fn remove(store: &Store, packs: &[Pack], freed: &mut Freed) -> Result<()> {
    let mut removed = false;
    for pack in packs {
        // The copy that stays is read before this one goes.
        let catalog = store.catalog()?;
        if let Some(key) =
            pack.elsewhere.iter().find(|key| !store.is_whole_outside(&catalog, key, pack.number))
        {
            let name = pack.name;
            freed
                .problems
                .push(Error::corrupt(format!("pack {name} is kept: it has the only whole copy of {key}")));
            continue;
        }
        unlink(store, pack)?;
        freed.bytes += pack.size;
        freed.removed += 1;
        removed = true;
    }
    if removed { store.disk.sync_dir(&store.packs) } else { Ok(()) }
}

fn unlink(store: &Store, pack: &Pack) -> Result<()> {
    let plain = pack.name.to_string().into_bytes();
    for name in [[&plain[..], DAMAGED].concat(), plain] {
        if store.packs.stat(&name)?.is_some() {
            store.disk.unlink(&store.packs, &name)?;
        }
    }
    Ok(())
}

fn rewrite_all(
    store: &Arc<Store>,
    packs: &[Pack],
    live: &HashSet<Key>,
    freed: &mut Freed,
    cancel: &Cancel,
) -> Result<()> {
    let writer = store.writer()?;
    let mut rewritten = Vec::new();
    for pack in packs {
        let mut lane = writer.lane();
        let lost = copy(store, &writer, &mut lane, pack, live, cancel)?;
        lane.flush()?;
        let unsafe_to_go = match lost {
            Some(e) => Some(e),
            None => only_copy(store, pack)?,
        };
        match unsafe_to_go {
            Some(e) => freed.problems.push(e),
            None => rewritten.push(pack),
        }
    }
    let sealed = writer.seal_packs()?;
    let mut old = 0;
    for pack in &rewritten {
        // What was written may be just what was there, and then has its name.
        if sealed.iter().all(|(name, _)| *name != pack.name) {
            unlink(store, pack)?;
        }
        old += pack.size;
        freed.rewritten += 1;
    }
    freed.bytes += old.saturating_sub(sealed.iter().map(|(_, bytes)| bytes).sum());
    if rewritten.is_empty() { Ok(()) } else { store.disk.sync_dir(&store.packs) }
}

/// What speaks against removing a pack after the objects whose home it is were copied.
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
