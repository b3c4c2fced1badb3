//! Snapshots during a run, by time: of the targets that may be taken then, with the
//! settings that the run's own snapshot froze, and only when one of them has changed.
//!
//! Never in the way: while another command is at work, or a step is unfinished, none is
//! taken; what is unfinished stays so for somebody to decide about.

use super::capture::{Job, holds_its_own};
use super::found::Stray;
use super::lock::Purpose;
use super::take::Selection;
use super::{Project, Session};
use crate::error::{Kind, Result};
use crate::history::snapshot::{Snapshot, SnapshotKind};
use crate::history::{Id, snapshot};

impl Project {
    /// The names of the targets of `run`, a run's own snapshot, that snapshots during it
    /// take. Asked before the command starts: it may write snapback.toml.
    ///
    /// # Errors
    /// When snapback.toml is wrong.
    pub fn taken_during(&self, run: &Snapshot) -> Result<Vec<String>> {
        let configured = self.config()?.targets.iter().filter(|c| c.every_interval);
        let names = configured.map(|c| c.target.name.clone());
        Ok(names.filter(|name| run.target(name).is_some()).collect())
    }

    /// Takes a snapshot of the targets called `names` during the run of `run`; none when
    /// nothing changed in them, or when this is not the time for it.
    ///
    /// # Errors
    /// When a target cannot be captured or the store cannot be written; nothing is kept
    /// then, and nobody else is concerned.
    pub fn take_during(self, run: &Id, names: &[String]) -> Result<Option<Snapshot>> {
        let session = match Session::lock(self, Purpose::Aside) {
            Err(error) if error.kind() == Kind::Busy => return Ok(None),
            other => other?,
        };
        let taken = session.take_during(run, names);
        drop(session.unlock());
        taken
    }
}

impl Session {
    fn take_during(&self, run: &Id, names: &[String]) -> Result<Option<Snapshot>> {
        if self.pending()?.is_some() || !self.is_running(run) {
            return Ok(None);
        }
        let start = self.load(run)?;
        let (taken, left): (Vec<_>, Vec<_>) =
            start.targets.iter().map(|c| &c.target).partition(|target| names.contains(&target.name));
        let mut skipped: Vec<String> = left.iter().map(|target| target.name.clone()).collect();
        skipped.extend(start.skipped.iter().cloned());
        // What the run left out is no tree's to take, either.
        let configured = self.config().map_or(&[][..], |config| &config.targets);
        let others = configured.iter().map(|c| &c.target).filter(|target| skipped.contains(&target.name));
        let known = start.targets.iter().map(|c| &c.target);
        let elsewhere = self.all_claims(known.chain(others))?;
        let writer = self.writer()?;
        let selection = Selection { allow_huge: true, ..Selection::default() };
        let jobs = taken.iter().map(|target| Job::of(target)).collect();
        let mut found = |stray: Stray| {
            skipped.push(stray.target.name);
            Ok(None)
        };
        let targets = self.capture(jobs, elsewhere, &writer, &selection, &mut found)?;
        skipped.sort();
        skipped.dedup();
        let own = |s: &Snapshot| s.id == *run || s.run.as_ref() == Some(run);
        let now =
            Snapshot { run: Some(run.clone()), skipped, ..self.record(SnapshotKind::Interval, targets) };
        if let Some(newest) = self.newest(own)?
            && holds_its_own(&*writer, &now, &newest.targets, true)?
        {
            return Ok(None);
        }
        let now = self.commit(now, &writer)?;
        self.retain_during(self.taken_so_far(run)?);
        self.mirror(None);
        Ok(Some(now))
    }

    /// How many snapshots were taken during the run of `run`.
    fn taken_so_far(&self, run: &Id) -> Result<usize> {
        let ids = snapshot::ids(self.snapshots.path())?;
        let since = ids.iter().take_while(|id| *id > run).filter_map(|id| self.load(id).ok());
        Ok(since.filter(|s| s.kind == SnapshotKind::Interval && s.run.as_ref() == Some(run)).count())
    }
}
