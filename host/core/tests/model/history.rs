//! The reference history: an editor's undo stack over whole states, and the snapshots
//! that keep them, as DESIGN has it ("History", "Bounded by default").
//!
//! Snapshots are called by the order in which they were taken. Nothing is popped from
//! the snapshots but by retention and by `forget`.

use crate::tree::{Listing, Path, is_beneath, parent};
use snapback_core::history::SnapshotKind;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A snapshot: the how manieth it was.
pub type Number = usize;

/// What is known of a snapshot.
#[derive(Clone, Debug)]
pub struct Snap {
    pub number: Number,
    pub kind: SnapshotKind,
    /// The run inside which it was taken.
    pub run: Option<Number>,
    pub pinned: bool,
    pub state: Arc<Listing>,
}

/// A step that can be undone or redone.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Step {
    pub kind: SnapshotKind,
    pub before: Number,
    /// Once it was undone: what was there.
    pub after: Option<Number>,
}

/// The history.
#[derive(Clone, Debug, Default)]
pub struct History {
    /// Oldest first.
    pub snaps: Vec<Snap>,
    /// The next to be undone last.
    pub done: Vec<Step>,
    /// The next to be redone last.
    pub undone: Vec<Step>,
    /// Runs that go on, the innermost last.
    pub running: Vec<Number>,
    /// How many snapshots are kept.
    pub keep: usize,
    taken: usize,
}

/// Where a command goes, before it does.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// The snapshot that it goes to.
    pub to: Number,
    /// The step that is taken back or done again; a restore adds one.
    pub step: Option<Step>,
}

impl History {
    /// An empty one that keeps `keep` snapshots.
    pub fn new(keep: usize) -> Self {
        Self { keep, ..Self::default() }
    }

    /// The snapshot `number`.
    pub fn snap(&self, number: Number) -> &Snap {
        self.snaps.iter().find(|snap| snap.number == number).expect("only dropped snapshots are not there")
    }

    /// What it holds.
    pub fn state(&self, number: Number) -> &Arc<Listing> {
        &self.snap(number).state
    }

    /// The snapshot `back` before the newest, or the oldest.
    pub fn back(&self, back: usize) -> Option<Number> {
        let last = self.snaps.len().checked_sub(1)?;
        Some(self.snaps[last - back.min(last)].number)
    }

    fn add(&mut self, kind: SnapshotKind, run: Option<Number>, pinned: bool, now: &Arc<Listing>) -> Number {
        let number = self.taken;
        self.taken += 1;
        self.snaps.push(Snap { number, kind, run, pinned, state: now.clone() });
        number
    }

    /// A run begins.
    pub fn begin(&mut self, now: &Arc<Listing>) {
        let outer = self.running.last().copied();
        let before = self.add(SnapshotKind::Run, outer, false, now);
        if outer.is_none() {
            self.done.push(Step { kind: SnapshotKind::Run, before, after: None });
            self.undone.clear();
        }
        self.retain(self.keep, &[]);
        self.running.push(before);
    }

    /// A manual snapshot. One that is not asked for by name or pin is not taken of a state
    /// that the newest holds already.
    pub fn snap_now(&mut self, named: bool, pinned: bool, now: &Arc<Listing>) {
        let outer = self.running.last().copied();
        let newest = self.snaps.last();
        if !named && !pinned && newest.is_some_and(|newest| newest.run == outer && newest.state == *now) {
            return self.retain(self.keep, &[]);
        }
        let before = self.add(SnapshotKind::Manual, outer, pinned, now);
        if outer.is_none() {
            self.done.push(Step { kind: SnapshotKind::Manual, before, after: None });
        }
        self.retain(self.keep, &[]);
    }

    /// Where an undo goes.
    pub fn undo(&self) -> Option<Way> {
        self.done.last().map(|step| Way { to: step.before, step: Some(step.clone()) })
    }

    /// Where a redo goes.
    pub fn redo(&self) -> Option<Way> {
        let step = self.undone.last()?;
        Some(Way { to: step.after?, step: Some(step.clone()) })
    }

    /// Where an undo of chosen paths goes: what was chosen before does not matter.
    pub fn undo_paths(&self) -> Option<Way> {
        let step = self.done.iter().rfind(|step| step.kind != SnapshotKind::PreRestore);
        let step = step.or(self.done.last())?;
        Some(Way { to: step.before, step: Some(step.clone()) })
    }

    /// Where `undo --step` goes: one snapshot back, of those before what was done and of those
    /// inside runs.
    pub fn one_back(&self, now: &Listing) -> Option<Way> {
        let went_back = self.done.last()?.kind == SnapshotKind::PreRestore;
        let begins = self.done.iter().filter(|step| step.kind != SnapshotKind::PreRestore);
        let mut known: BTreeSet<Number> = begins.map(|step| step.before).collect();
        let mut own: Vec<&Snap> = Vec::new();
        for snap in &self.snaps {
            // Those of the runs inside a run are its own as well.
            if known.contains(&snap.number) || snap.run.is_some_and(|run| known.contains(&run)) {
                known.insert(snap.number);
                own.insert(0, snap);
            }
        }
        let is_here = |snap: &Snap| *snap.state == *now;
        let here = own.iter().position(|snap| is_here(snap)).filter(|_| went_back);
        let from = here.map_or(0, |here| here + 1);
        let at = (from..own.len()).find(|at| !is_here(own[*at])).unwrap_or(own.len().checked_sub(1)?);
        Some(Way { to: own[at].number, step: None })
    }

    /// A way is gone from the state `now`, of which `changes` says whether it is another.
    pub fn go(&mut self, way: &Way, kind: SnapshotKind, now: &Arc<Listing>, changes: bool) {
        if kind == SnapshotKind::PreRestore && !changes {
            return; // It is no step, and leaves nothing behind.
        }
        let holder = self.snaps.iter().rfind(|snap| snap.state == *now).map(|snap| snap.number);
        // A step that is done again begins where it did the first time, if that is still so.
        let own = way.step.as_ref().map(|step| step.before);
        let own = own.filter(|own| kind == SnapshotKind::PreRedo && *self.state(*own) == *now);
        let saved = own.or(holder).unwrap_or_else(|| self.add(kind, None, false, now));
        match (kind, &way.step) {
            (SnapshotKind::PreUndo, Some(step)) => {
                self.done.pop();
                self.undone.push(Step { after: Some(saved), ..step.clone() });
            }
            (SnapshotKind::PreRedo, Some(step)) => {
                self.undone.pop();
                self.done.push(Step { kind: step.kind, before: saved, after: None });
            }
            _ => self.done.push(Step { kind: SnapshotKind::PreRestore, before: saved, after: None }),
        }
        // Until all is done, recovery would need both.
        let recovery = [way.to, saved];
        self.retain(self.keep, if changes { &recovery } else { &[] });
    }

    /// Drops what is beyond `keep` and not needed, nor among `more`: outside of runs, and in each.
    /// What repeats the next newer state goes before any other; with a run all inside it.
    pub fn retain(&mut self, keep: usize, more: &[Number]) {
        let mut needed: BTreeSet<Number> = self.running.iter().chain(more).copied().collect();
        needed.extend(self.done.last().map(|step| step.before));
        needed.extend(
            self.undone.last().into_iter().flat_map(|step| step.after.into_iter().chain([step.before])),
        );
        needed.extend(self.snaps.last().map(|snap| snap.number));
        needed.extend(self.snaps.iter().rfind(|snap| snap.kind == SnapshotKind::Run).map(|snap| snap.number));
        let known: BTreeSet<Number> = self.snaps.iter().map(|snap| snap.number).collect();
        let inside = |snap: &Snap| snap.run.filter(|run| known.contains(run));
        let stays = |snap: &Snap| snap.pinned || needed.contains(&snap.number);
        let mut surplus = BTreeSet::new();
        for run in self.snaps.iter().map(inside).collect::<BTreeSet<_>>() {
            let crowd: Vec<&Snap> = self.snaps.iter().filter(|snap| inside(snap) == run).collect();
            let over = crowd.len().saturating_sub(keep);
            let repeats = crowd.windows(2).filter(|two| two[0].state == two[1].state && !stays(two[0]));
            let mut gone: BTreeSet<Number> = repeats.map(|two| two[0].number).take(over).collect();
            let others = crowd.iter().map(|snap| snap.number).filter(|number| !gone.contains(number));
            let others: Vec<Number> = others.take(over - gone.len()).collect();
            gone.extend(others);
            surplus.extend(gone);
        }
        let dropped = self.snaps.iter().filter(|snap| surplus.contains(&snap.number) && !stays(snap));
        let mut gone: BTreeSet<Number> = dropped.map(|snap| snap.number).collect();
        let lost =
            self.snaps.iter().filter(|snap| snap.run.is_some_and(|run| gone.contains(&run)) && !stays(snap));
        let lost: Vec<Number> = lost.map(|snap| snap.number).collect();
        gone.extend(lost);
        self.drop_all(&gone);
    }

    /// Drops one for good; not one that goes on.
    pub fn forget(&mut self, number: Number) -> Option<()> {
        (!self.running.contains(&number)).then(|| self.drop_all(&[number].into()))
    }

    /// A step without its states is none.
    fn drop_all(&mut self, gone: &BTreeSet<Number>) {
        self.snaps.retain(|snap| !gone.contains(&snap.number));
        let kept = |step: &Step| {
            !gone.contains(&step.before) && step.after.is_none_or(|after| !gone.contains(&after))
        };
        self.done.retain(kept);
        self.undone.retain(kept);
    }
}

/// What is there once `paths` of `now` are as in `stored`; none where the selection
/// cannot be put back, or parts names of one inode, of which only some would change.
pub fn chosen(now: &Listing, stored: &Listing, paths: &[Path]) -> Option<Listing> {
    let is_chosen = |path: &Path| paths.iter().any(|p| p == path || is_beneath(path, p));
    if !paths.iter().all(|path| now.0.contains_key(path) || stored.0.contains_key(path)) {
        return None;
    }
    for listing in [now, stored] {
        for group in listing.groups().values() {
            let count = group.iter().filter(|path| is_chosen(path)).count();
            if count != 0 && count != group.len() {
                return None;
            }
        }
    }
    let is_dir = |listing: &Listing, path: &Path| {
        listing.0.get(path).map(|item| item.inode.node == crate::tree::Node::Dir)
    };
    let mut then = now.clone();
    then.0.retain(|path, _| !is_chosen(path));
    then.0.extend(stored.0.iter().filter(|(path, _)| is_chosen(path)).map(|(p, i)| (p.clone(), i.clone())));
    for path in paths {
        let mut above = parent(path);
        while let Some(dir) = above {
            match (is_dir(now, &dir), is_dir(stored, &dir)) {
                (None, Some(true)) => drop(then.0.insert(dir.clone(), stored.0[&dir].clone())),
                (Some(false), Some(true)) => return None,
                _ => {}
            }
            above = parent(&dir);
        }
    }
    Some(then)
}
