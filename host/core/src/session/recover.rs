//! Finishing what an earlier command left unfinished.
//!
//! A journal means a restore that was begun. Doing it again completes it; doing it
//! with the two snapshots exchanged takes it back. Where neither is possible, the
//! targets that cannot be reached can be abandoned; nothing stored is lost by it.

use super::{NotRestored, Project, Session};
use crate::error::{Error, Kind, Result};
use crate::history::journal::Journal;
use crate::history::timeline::Timeline;

/// A step that was begun and not finished.
pub type Pending = Journal;

/// How an unfinished step is to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Recovery {
    /// Go on to its end.
    Resume,
    /// Go back to where it began.
    TakeBack,
    /// Leave this target as it is; the others go on to the end.
    Abandon(String),
}

impl Project {
    /// The step that was begun and not finished, if there is one.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn pending(&self) -> Result<Option<Pending>> {
        self.store().map_or(Ok(None), |store| Journal::load(store.path()))
    }
}

impl Session {
    /// Finishes what is pending, as every writing command does first.
    pub(super) fn recover(&self) -> Result<()> {
        let Some(journal) = Journal::load(self.opened().path())? else { return Ok(()) };
        self.end_pending(&Recovery::Resume).map_err(|error| {
            let doing = format!("an unfinished step (to snapshot {}) could not be finished", journal.to);
            error.context(doing).hint(
                "`snapback undo --resume` tries again, `--take-back` goes back to where it began, \
                 `--abandon TARGET` leaves one target as it is",
            )
        })?;
        self.env().report.recovered(&journal.to);
        Ok(())
    }

    /// Ends the pending step as `how` says.
    ///
    /// # Errors
    /// `NotFound` when nothing is pending; whatever keeps a target from being put back.
    pub fn end_pending(&self, how: &Recovery) -> Result<Vec<NotRestored>> {
        let env = self.env();
        let Some(mut journal) = Journal::load(self.opened().path())? else {
            return Err(Error::new(Kind::NotFound, "no step is unfinished").hint("there is nothing to do"));
        };
        let (to, saved) = (self.load(&journal.to)?, self.load(&journal.saved)?);
        if let Recovery::Abandon(name) = how {
            if !journal.targets.contains(name) {
                let why = format!("the unfinished step does not concern `{name}`");
                let hint = format!("it concerns: {}", journal.targets.join(", "));
                return Err(Error::new(Kind::NotFound, why).hint(hint));
            }
            journal.targets.retain(|target| target != name);
            journal.begin(&env.disk, &self.dir)?;
        }
        let (to, saved) = if *how == Recovery::TakeBack { (&saved, &to) } else { (&to, &saved) };
        let mut not_restored = Vec::new();
        for name in &journal.targets {
            not_restored.extend(self.restore_target(&journal, name, to, saved, true)?);
        }
        if *how == Recovery::TakeBack {
            let timeline = Timeline::load(self.opened().path())?;
            if timeline.last.as_ref() == Some(&journal.record) {
                let back = journal.record.taken_back(&journal.to, &journal.saved);
                Timeline::append(&env.disk, &self.dir, &back)?;
            }
            Journal::end(&env.disk, &self.dir)?;
        } else {
            self.close(&journal.record)?;
        }
        Ok(not_restored)
    }
}
