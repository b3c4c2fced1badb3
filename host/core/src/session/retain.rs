//! Keeping the history within bounds: which snapshots go, and giving their space back.
//!
//! Never dropped: what an unfinished step needs, what the next undo and redo need, the
//! newest run, runs that are going on, and pinned snapshots. Unless it was asked for, by age
//! goes only what was too old when the snapshot before the newest was taken: the clock may be
//! wrong this once, and nobody would get back what that drops. A record goes in one step
//! (a rename); a crash after that leaves only what the next command removes.

use super::capture::holds_with_git;
use super::twin::hide;
use super::{Project, Session};
use crate::error::{Error, Kind, Result};
use crate::history::journal::Journal;
use crate::history::snapshot::{Snapshot, SnapshotKind};
use crate::history::timeline::Timeline;
use crate::history::{Id, snapshot};
use crate::object::Key;
use crate::project::user::Retention;
use crate::store::gc::{self, Sweep};
use crate::tree::apply::{self, Left};
use jiff::{SignedDuration, Timestamp};
use std::collections::{HashMap, HashSet};
use std::time::Duration;

/// Bounds that one `gc` is asked to keep instead of the user's.
#[derive(Debug, Clone, Default)]
pub struct Bounds {
    /// Snapshots to keep.
    pub keep: Option<usize>,
    /// Age to keep.
    pub keep_within: Option<Duration>,
    /// Bytes of the store.
    pub max_size: Option<u64>,
}

/// What a gc did, or would do.
#[derive(Debug, Clone, Default)]
pub struct Freed {
    /// Snapshots dropped.
    pub dropped: Vec<Id>,
    /// Bytes given back.
    pub bytes: u64,
    /// What kept more from being given back.
    pub problems: Vec<Error>,
    /// What restores kept, and is in no snapshot, or somebody may still write to.
    pub left: Left,
}

/// Remembers how many snapshots were dropped since objects were collected: a cache.
const UNCOLLECTED: &[u8] = b"uncollected";

/// After this many dropped snapshots their objects are collected.
const COLLECT_AFTER: usize = 10;

impl Session {
    /// Drops what is out of the user's bounds; space is given back once it is worth it.
    /// It comes after what was asked for: that is done, whatever becomes of this.
    pub(super) fn retain(&self) {
        self.retain_during(0);
    }

    /// The same after a snapshot during a run that has `taken` so many.
    pub(super) fn retain_during(&self, taken: usize) {
        if let Err(error) = self.try_retain(taken > self.env().user.retention.interval_keep) {
            self.env().report.troubled("old snapshots could not be dropped", &error);
        }
    }

    fn try_retain(&self, crowded: bool) -> Result<()> {
        let kept = &self.env().user.retention;
        let bounds = self.bounds(&Bounds::default());
        let over = self.opened().usage()?.1 > self.max_size();
        let ids = snapshot::ids(self.snapshots.path())?;
        if ids.len() <= kept.keep && !over && !crowded && !self.has_old(&ids, kept) {
            return Ok(());
        }
        let dropped = self.drop_all(self.surplus(&bounds, over, self.settled(&ids))?)?;
        let uncollected = self.uncollected() + dropped.len();
        if over || uncollected >= COLLECT_AFTER {
            self.collect(Sweep::Worthwhile)?;
            return Ok(());
        }
        self.count_uncollected(uncollected);
        Ok(())
    }

    /// Keeps the history within `bounds` (what they leave open: the user's), and gives
    /// all unused space back.
    ///
    /// # Errors
    /// When the store cannot be read or written.
    pub fn gc(&self, bounds: &Bounds) -> Result<Freed> {
        // First: what is to be dropped may be what they are stored in.
        let left = match self.pending()? {
            None => apply::clear_saved(self.opened(), false, &self.env().cancel)?,
            Some(_) => apply::saved(self.opened().dir())?,
        };
        let dropped = self.drop_all(self.out_of(bounds)?)?;
        self.release(|id| !dropped.contains(id))?;
        let freed = self.collect(Sweep::Worthwhile)?;
        Ok(Freed { dropped, bytes: freed.bytes, problems: freed.problems, left })
    }

    fn has_old(&self, ids: &[Id], kept: &Retention) -> bool {
        let Ok(within) = SignedDuration::try_from(kept.keep_within) else { return false };
        let oldest = ids.last().and_then(|id| self.load(id).ok());
        oldest.is_some_and(|s| self.settled(ids).duration_since(s.created.0) > within)
    }

    pub(super) fn drop_all(&self, ids: Vec<Id>) -> Result<Vec<Id>> {
        if ids.is_empty() {
            return Ok(ids);
        }
        let disk = &self.env().disk;
        self.note_releases(&ids)?;
        self.count_drop()?;
        let names: Vec<Vec<u8>> = ids.iter().map(|id| id.as_str().as_bytes().to_vec()).collect();
        // The twin first: a store that lacked what its twin has would be taken for one that
        // something else removed it from, and the twin, which is behind, be read instead.
        for theirs in self.in_twins(b"snapshots")? {
            let have: HashSet<Vec<u8>> = theirs.names()?.into_iter().collect();
            let kept: Vec<_> = names.iter().filter(|name| have.contains(*name)).cloned().collect();
            hide(disk, &theirs, &kept)?;
        }
        hide(disk, &self.snapshots, &names)?;
        self.mirror_removal()?;
        self.sweep()?;
        self.release(|id| ids.contains(id))?;
        // Steps without their snapshots are passed over anyway: nothing that frees space
        // may fail because there is none.
        let left: HashSet<Id> = snapshot::ids(self.snapshots.path())?.into_iter().collect();
        let timeline = Timeline::load(self.opened().path())?;
        if timeline.damaged > 0 {
            // What is lost of it must not be forgotten before somebody was told.
            return Ok(ids);
        }
        match timeline.prune(disk, &self.dir, |id| left.contains(id)) {
            Err(error) if error.kind() == Kind::NoSpace => Ok(ids),
            done => done.map(|()| ids),
        }
    }

    /// Removes records that were dropped, or never committed, and are still there.
    pub(super) fn sweep(&self) -> Result<()> {
        let disk = &self.env().disk;
        let mut names = self.snapshots.names()?;
        names.retain(|name| name.starts_with(b"."));
        names.iter().try_for_each(|name| disk.remove_all(&self.snapshots, name))
    }

    /// How many snapshots were dropped since objects were collected.
    fn uncollected(&self) -> usize {
        let text = self.dir.read(UNCOLLECTED, 20).unwrap_or_default();
        std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Remembers that number; it only says when collecting is worth it.
    fn count_uncollected(&self, count: usize) {
        let text = count.to_string();
        let _ = self.env().disk.write_cache(&self.dir, UNCOLLECTED, text.as_bytes(), 0o600);
    }

    /// Removes objects that no snapshot needs.
    pub(super) fn collect(&self, sweep: Sweep) -> Result<gc::Freed> {
        let env = self.env();
        self.count_drop()?;
        let plan = self.sweep_plan(sweep, &[])?.also_in(self.in_twins(b"packs")?);
        let freed = plan.apply(self.opened(), &env.cancel, &*env.report)?;
        self.count_uncollected(0);
        self.mirror_removal()?;
        self.mirror(None);
        Ok(freed)
    }
}

impl Project {
    /// What [`Session::gc`] would drop and give back.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn would_free(&self, bounds: &Bounds) -> Result<Freed> {
        let dropped = self.out_of(bounds)?;
        let plan = self.sweep_plan(Sweep::Worthwhile, &dropped)?;
        let left = apply::saved(self.need_store()?.dir())?;
        Ok(Freed { dropped, bytes: plan.bytes(), problems: plan.problems, left })
    }

    /// `asked`, and what it leaves open as the user has it.
    fn bounds(&self, asked: &Bounds) -> Bounds {
        let kept = &self.env.user.retention;
        Bounds {
            keep: asked.keep.or(Some(kept.keep)),
            keep_within: asked.keep_within.or(Some(kept.keep_within)),
            max_size: asked.max_size.or(Some(self.max_size())),
        }
    }

    /// Which snapshots are out of what is `asked`, and of the user's bounds where that leaves
    /// them open.
    fn out_of(&self, asked: &Bounds) -> Result<Vec<Id>> {
        let now = match asked.keep_within {
            Some(_) => self.env.clock.now(),
            None => self.settled(&self.ids()?),
        };
        self.surplus(&self.bounds(asked), true, now)
    }

    /// The time that ages are counted to: that of the snapshot before the newest of `ids`, if
    /// that is in the past.
    fn settled(&self, ids: &[Id]) -> Timestamp {
        let now = self.env.clock.now();
        let before = ids.get(1).and_then(|id| self.load(id).ok());
        before.map_or(now, |before| before.created.0.min(now))
    }

    /// Which snapshots are out of `bounds` at the time `now`, oldest last.
    fn surplus(&self, bounds: &Bounds, by_size: bool, now: Timestamp) -> Result<Vec<Id>> {
        let ids = self.ids()?;
        let records: Vec<Snapshot> = ids.iter().filter_map(|id| self.load(id).ok()).collect();
        let needed = self.needed(&records)?;
        let mut surplus = Vec::new();
        let mut kept_bytes = 0u64;
        let total = self.need_store()?.usage()?.1;
        let listed = records.iter().map(|s| s.bytes_added).fold(0u64, u64::saturating_add);
        let source = self.need_store()?;
        let repeats = |old: &Snapshot, new: &Snapshot| {
            !needed.contains(&old.id) && holds_with_git(&**source, old, &new.targets).unwrap_or(false)
        };
        let during = self.env.user.retention.interval_keep;
        let crowd = too_many(&records, bounds.keep, during, repeats);
        for (place, record) in records.iter().enumerate() {
            let age = now.duration_since(record.created.0);
            let too_many = crowd.contains(&record.id);
            let too_old = bounds
                .keep_within
                .is_some_and(|within| SignedDuration::try_from(within).is_ok_and(|within| age > within));
            kept_bytes = kept_bytes.saturating_add(record.bytes_added);
            // What older snapshots added is shared by newer ones: an estimate that errs
            // on the side of keeping.
            let too_large = by_size
                && bounds
                    .max_size
                    .is_some_and(|max| total > max && kept_bytes > listed.min(max) && place > 0);
            if (too_many || too_old || too_large) && !needed.contains(&record.id) {
                surplus.push(record.id.clone());
            }
        }
        // What was taken during a run goes with it; not where its record is damaged.
        let mut dropped: HashSet<Id> = surplus.iter().cloned().collect();
        let known: HashSet<&Id> = ids.iter().collect();
        let is_lost = |s: &Snapshot| match inside(s) {
            Some(run) => dropped.contains(run) || s.kind == SnapshotKind::Interval && !known.contains(run),
            None => s.kind == SnapshotKind::Interval,
        };
        let of_lost = records.iter().filter(|s| is_lost(s) && !needed.contains(&s.id));
        let of_lost: Vec<Id> = of_lost.map(|s| s.id.clone()).collect();
        dropped.extend(of_lost);
        Ok(records.into_iter().map(|record| record.id).filter(|id| dropped.contains(id)).collect())
    }

    fn needed(&self, records: &[Snapshot]) -> Result<HashSet<Id>> {
        let timeline = self.timeline()?;
        let mut needed: HashSet<Id> = timeline.needed().into_iter().cloned().collect();
        if let Some(journal) = Journal::load(self.need_store()?.path())? {
            needed.extend([journal.to, journal.saved]);
        }
        needed.extend(self.running()?);
        needed.extend(records.first().map(|s| s.id.clone()));
        needed.extend(records.iter().find(|s| s.kind == SnapshotKind::Run).map(|s| s.id.clone()));
        needed.extend(records.iter().filter(|s| s.pinned).map(|s| s.id.clone()));
        Ok(needed)
    }

    fn max_size(&self) -> u64 {
        self.env.user.retention.max_size.unwrap_or_else(|| self.share_of_disk(10 << 30))
    }

    /// Bytes of the disk that snapshots leave free.
    pub(super) fn min_free(&self) -> u64 {
        self.env.user.retention.min_free.unwrap_or_else(|| self.share_of_disk(1 << 30))
    }

    /// `most` or a tenth of the disk, the smaller.
    fn share_of_disk(&self, most: u64) -> u64 {
        let disk = self.store().and_then(|store| rustix::fs::statvfs(store.path()).ok());
        let disk = disk.map_or(u64::MAX, |s| s.f_blocks * s.f_frsize);
        most.min(disk / 10)
    }

    /// What would be removed if the snapshots `without` were not there.
    fn sweep_plan(&self, sweep: Sweep, without: &[Id]) -> Result<gc::Plan> {
        let mut live: Vec<Key> = self.held_for_release()?.collect();
        for id in self.ids()?.iter().filter(|id| !without.contains(id)) {
            // A snapshot whose record is damaged may be mended by hand: while it is
            // there, nothing that it may need is removed.
            let record = self.load(id).map_err(|error| {
                error.hint(format!("`snapback forget {id}` drops it; until then no space is given back"))
            })?;
            live.extend(record.targets.iter().flat_map(|t| t.parts.iter().map(|part| part.content)));
        }
        gc::plan(self.need_store()?, &live, sweep, &self.env.cancel)
    }
}

/// The run that `snapshot` was taken in, when it is not that run's own.
fn inside(snapshot: &Snapshot) -> Option<&Id> {
    snapshot.run.as_ref().filter(|run| **run != snapshot.id)
}

/// Those of `records`, newest first, that are more than `keep`. Those that were taken during a
/// run are counted apart, run by run, those by time (of which `by_time` are kept) once more: the
/// work of an hour does not push out what was there before.
///
/// One whose state `repeats` in the next newer one goes before any other, the oldest first:
/// whatever runs change nothing, what the others held stays.
fn too_many(
    records: &[Snapshot],
    keep: Option<usize>,
    by_time: usize,
    repeats: impl Fn(&Snapshot, &Snapshot) -> bool,
) -> HashSet<Id> {
    let known: HashSet<&Id> = records.iter().map(|record| &record.id).collect();
    let mut crowds: HashMap<(Option<&Id>, bool), Vec<&Snapshot>> = HashMap::new();
    for record in records {
        let run = inside(record).filter(|run| known.contains(run));
        let is_timed = run.is_some() && record.kind == SnapshotKind::Interval;
        crowds.entry((run, is_timed)).or_default().push(record);
    }
    let mut surplus = HashSet::new();
    for ((_, is_timed), crowd) in crowds {
        let Some(keep) = (if is_timed { Some(by_time) } else { keep }) else { continue };
        let over = crowd.len().saturating_sub(keep);
        let oldest_first = (1..crowd.len()).rev();
        let repeated = oldest_first.filter(|at| repeats(crowd[*at], crowd[*at - 1])).take(over);
        let mut gone: HashSet<&Id> = repeated.map(|at| &crowd[at].id).collect();
        let others = crowd.iter().rev().map(|record| &record.id).filter(|id| !gone.contains(*id));
        let others: Vec<&Id> = others.take(over - gone.len()).collect();
        gone.extend(others);
        surplus.extend(gone.into_iter().cloned());
    }
    surplus
}
