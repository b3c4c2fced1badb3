//! Where `undo --step` goes: one snapshot back, of those before steps and of those inside runs.
//!
//! No cursor says where in between the present is: after a restore the states are compared.

use super::Project;
use super::capture::holds_its_own;
use super::plan::nothing;
use crate::error::Result;
use crate::history::Id;
use crate::history::snapshot::{Captured, Snapshot, SnapshotKind};
use crate::history::timeline::Timeline;
use crate::store::Writer;
use std::collections::HashSet;
use std::sync::Arc;

impl Project {
    /// The snapshot that `undo --step` goes to: of those before steps that were not undone,
    /// and of those inside runs, the newest that does not hold the present state and, once
    /// something was put back, is not newer than one that does.
    ///
    /// # Errors
    /// `NotFound` when nothing was done; when the present cannot be captured.
    pub(super) fn one_back(&self, timeline: &Timeline) -> Result<Snapshot> {
        let last = timeline.last_done()?.ok_or_else(|| nothing(timeline, "undo"))?;
        let went_back = last.kind == SnapshotKind::PreRestore;
        let steps = timeline.done.iter().filter(|step| step.kind != SnapshotKind::PreRestore);
        let begins: HashSet<&Id> = steps.map(|step| &step.before).collect();
        let mut snapshots = self.on_the_way(&begins)?;
        let like =
            snapshots.iter().find(|s| begins.contains(&s.id)).ok_or_else(|| nothing(timeline, "undo"))?;
        let writer = Arc::new(self.need_store()?.scratch(false));
        let current = self.capture_like(like, &self.usable(like)?.0, &writer, &|_| true, None)?;
        let is_here = |s: &Snapshot| self.is_here(s, &current, &writer).unwrap_or(false);
        let here = if went_back { snapshots.iter().position(&is_here) } else { None };
        // A newer one that differs only in what this one lacks stands between it and the present.
        let between = here.and_then(|here| {
            let names: Vec<&str> = snapshots[here].targets.iter().map(|c| c.target.name.as_str()).collect();
            snapshots[..here].iter().position(|s| {
                let mut part = s.clone();
                part.targets.retain(|c| names.contains(&c.target.name.as_str()));
                part.targets.len() == names.len() && is_here(&part)
            })
        });
        let from = here.map_or(0, |here| here + 1);
        let older = (from..snapshots.len()).find(|at| !is_here(&snapshots[*at]));
        let at = between.or(older).unwrap_or(snapshots.len() - 1);
        Ok(snapshots.swap_remove(at))
    }

    /// The snapshots called `begins`, and those that were taken inside them when they are runs,
    /// newest first.
    fn on_the_way(&self, begins: &HashSet<&Id>) -> Result<Vec<Snapshot>> {
        let mut known: HashSet<Id> = begins.iter().map(|id| (*id).clone()).collect();
        let mut snapshots = Vec::new();
        for snapshot in self.ids()?.iter().rev().filter_map(|id| self.load(id).ok()) {
            // Also of the runs inside runs.
            if known.contains(&snapshot.id) || snapshot.run.as_ref().is_some_and(|run| known.contains(run)) {
                known.insert(snapshot.id.clone());
                snapshots.push(snapshot);
            }
        }
        snapshots.reverse();
        Ok(snapshots)
    }

    /// Whether the present, captured as `current`, is what `snapshot` holds; by its own
    /// settings where they are others.
    fn is_here(&self, snapshot: &Snapshot, current: &[Captured], writer: &Arc<Writer>) -> Result<bool> {
        let fits = |own: &Captured| current.iter().any(|now| now.target == own.target);
        if snapshot.targets.iter().all(fits) {
            return holds_its_own(&**writer, snapshot, current, false);
        }
        let current = self.capture_like(snapshot, &self.usable(snapshot)?.0, writer, &|_| true, None)?;
        holds_its_own(&**writer, snapshot, &current, false)
    }
}
