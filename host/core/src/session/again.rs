//! A target that changed between its capture and its restore: captured once more, this
//! time held, and then put back. What was written in between is in that capture.

use super::Session;
use super::capture::Job;
use super::execute::{NotRestored, Ready};
use super::take::Selection;
use crate::backend::{Elsewhere, Hold};
use crate::error::{Error, Kind, Result};
use crate::history::Id;
use crate::history::journal::Journal;
use crate::history::snapshot::{Captured, Snapshot, SnapshotKind};
use crate::history::timeline::Record;
use crate::tree::Plans;
use std::collections::HashMap;
use std::sync::Arc;

/// How often a target is captured again: one that can be held, once is enough for.
const TRIES: usize = 3;

/// A restore that is going on.
pub(super) struct Going<'a> {
    pub journal: &'a mut Journal,
    pub to: &'a Snapshot,
    pub saved: &'a mut Snapshot,
    /// Whether `saved` was committed for this restore alone.
    pub own: bool,
    pub partial: bool,
    /// How directories are put back, as far as that was planned.
    pub plans: Arc<Plans>,
    /// What the targets of the step capture by themselves.
    pub together: Arc<Vec<Elsewhere>>,
    /// What targets hold that were captured again: until all are put back, or back where
    /// they were.
    pub holds: HashMap<String, Arc<Hold>>,
    /// What cannot be done, with all that is in it.
    pub failed: Vec<NotRestored>,
}

impl Session {
    /// Makes one target as it is to be. If it is no longer as it was saved, what is there
    /// is captured once more: what is saved is that capture then, also in the journal.
    pub(super) fn restore_or_again(&self, going: &mut Going<'_>, name: &str) -> Result<Vec<NotRestored>> {
        let restore = |going: &Going<'_>, hold: Option<&Arc<Hold>>| {
            let (plans, together) = (going.plans.clone(), going.together.clone());
            let ready = Ready { hold: hold.cloned(), plans, together, cancel: None };
            self.restore_target(going.journal, name, (going.to, going.saved), going.partial, ready)
        };
        let mut done = restore(going, going.holds.get(name));
        for _ in 0..TRIES {
            if !matches!(&done, Err(error) if error.kind() == Kind::Changed) {
                break;
            }
            let hold = Arc::new(Hold::default());
            going.holds.insert(name.to_owned(), hold.clone());
            self.save_again(going, name, &hold)?;
            done = restore(going, Some(&hold));
        }
        done
    }

    /// Captures one target once more and makes it part of what is saved.
    fn save_again(&self, going: &mut Going<'_>, name: &str, hold: &Arc<Hold>) -> Result<()> {
        let Going { journal, to, saved, own, .. } = going;
        let missing = || Error::corrupt(format!("snapshot {} has no target `{name}`", saved.id));
        let at = saved.targets.iter().position(|c| c.target.name == name).ok_or_else(missing)?;
        let target = saved.targets[at].target.clone();
        let cover = to.target(name).map_or(Vec::new(), |stored| stored.parts.clone());
        let through = to.target(name).and_then(|stored| stored.through.clone());
        let jobs = vec![Job { target, cover, through, hold: Some(hold.clone()) }];
        let writer = self.writer()?;
        let elsewhere = self.all_claims(saved.targets.iter().map(|c| &c.target))?;
        let selection = Selection { allow_huge: true, ..Selection::default() };
        let captured: Vec<Captured> =
            self.capture(jobs, elsewhere, &writer, &selection, &mut |_| Ok(None))?;
        let kind = match journal.record {
            Record::Undid { .. } => SnapshotKind::PreUndo,
            Record::Redid { .. } => SnapshotKind::PreRedo,
            Record::Did { .. } | Record::Noted { .. } => SnapshotKind::PreRestore,
        };
        let mut targets = saved.targets.clone();
        targets.splice(at..=at, captured);
        let next = Snapshot { skipped: saved.skipped.clone(), ..self.record(kind, targets) };
        let next = self.commit(next, &writer)?;
        journal.record = journal.record.saved_as(&saved.id, &next.id);
        journal.saved = next.id.clone();
        journal.begin(&self.env().disk, &self.dir)?;
        let old = std::mem::replace(*saved, next);
        // What was captured once more holds all that it held.
        if std::mem::replace(own, true) {
            self.drop_all(vec![old.id])?;
        }
        Ok(())
    }
}

impl Record {
    /// The same, with `new` for the snapshot `old` of what was there.
    fn saved_as(&self, old: &Id, new: &Id) -> Self {
        let is = |id: &Id| if id == old { new.clone() } else { id.clone() };
        match self {
            Self::Did { kind, before } => Self::Did { kind: *kind, before: is(before) },
            Self::Undid { before, saved } => Self::Undid { before: before.clone(), saved: is(saved) },
            Self::Redid { before, saved } => Self::Redid { before: before.clone(), saved: is(saved) },
            Self::Noted { .. } => self.clone(),
        }
    }
}
