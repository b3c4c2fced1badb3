//! Finishing what an earlier command left unfinished.
//!
//! A journal means a restore that was begun. Doing it again completes it; doing it
//! with the two snapshots exchanged takes it back. Where neither is possible, the
//! targets that cannot be reached can be abandoned; nothing stored is lost by it.

use super::again::Going;
use super::diff::Difference;
use super::execute::Ready;
use super::plan::Ask;
use super::scope::Meant;
use super::{NotRestored, Project, Session};
use crate::error::{Error, Kind, Result};
use crate::history::journal::{Journal, Verb};
use crate::history::timeline::Record;
use crate::tree::apply;
use std::collections::HashMap;

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

/// An unfinished step that a session finished when it began.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The step.
    pub step: Pending,
    /// What was left as it was.
    pub not_restored: Vec<NotRestored>,
}

impl Ask {
    /// Whether whoever asks for this, `narrowed` to paths or targets, while `step` is
    /// unfinished means that one, and no step more: the same command given again after
    /// it was cut short. What names where it goes can be done after it as well.
    pub fn means(&self, step: &Pending, narrowed: bool) -> bool {
        match self {
            Self::Undo | Self::UndoStep => {
                // Chosen things come back from where they would have before.
                let chosen = narrowed && matches!(step.record, Record::Did { .. });
                step.verb == Verb::Undo && !chosen
            }
            Self::Redo => step.verb == Verb::Redo,
            Self::Restore(_) => false,
        }
    }
}

impl Project {
    /// The step that was begun and not finished, if there is one.
    ///
    /// # Errors
    /// When its record cannot be read.
    pub fn pending(&self) -> Result<Option<Pending>> {
        self.store().map_or(Ok(None), |store| Journal::load(store.path()))
    }

    /// What is still to be done of an unfinished step: from the present to where it goes.
    ///
    /// # Errors
    /// When the present cannot be captured, or the snapshot cannot be read.
    pub fn rest_of(&self, step: &Pending) -> Result<Vec<Difference>> {
        let to = self.load(&step.to)?;
        let present = self.present(&to, false)?;
        let mut rest = Vec::new();
        // As the snapshot has a target, where it has it.
        let all = present.targets.iter().chain(&to.targets);
        let meant = |of: &crate::history::snapshot::Captured| {
            (of.target.name.clone(), Meant::of(&self.env.root, of, &step.only, &[]))
        };
        let meant: HashMap<String, Meant> = all.map(meant).collect();
        self.differences(Some(&present.source), &present.targets, &to.targets, &mut |difference, _| {
            if step.targets.iter().any(|name| **name == *difference.target)
                && meant.get(&*difference.target).is_none_or(|meant| meant.has(&difference))
            {
                rest.push(difference);
            }
            Ok(())
        })?;
        Ok(rest)
    }
}

impl Session {
    /// Finishes what is pending, as every command does first that takes a snapshot or
    /// puts one back; what that was.
    pub(super) fn recover(&self) -> Result<Option<Finished>> {
        let Some(step) = self.pending()? else { return Ok(None) };
        let not_restored = self.end_pending(&Recovery::Resume).map_err(|error| {
            let verb = step.verb.word();
            let doing = format!("the unfinished {verb} (to snapshot {}) could not be finished", step.to);
            error.context(doing).hint(
                "`snapback undo --resume` tries again, `--take-back` goes back to where it began, \
                 `--abandon TARGET` leaves one target as it is",
            )
        })?;
        let finished = Finished { step, not_restored };
        self.env().report.recovered(&finished);
        Ok(Some(finished))
    }

    /// Ends the pending step as `how` says.
    ///
    /// # Errors
    /// `NotFound` when nothing is pending; whatever keeps a target from being put back.
    pub fn end_pending(&self, how: &Recovery) -> Result<Vec<NotRestored>> {
        let ended = self.end_step(how);
        let mut not_restored = ended.inspect_err(|_| self.late.tell(&*self.env().report))?;
        not_restored.extend(self.late.take());
        Ok(not_restored)
    }

    fn end_step(&self, how: &Recovery) -> Result<Vec<NotRestored>> {
        let env = self.env();
        let journal = match Journal::load(self.opened().path()) {
            // Of which nothing is known, nothing can be finished, whatever its targets were.
            Err(error) if error.kind() == Kind::Corrupt && matches!(how, Recovery::Abandon(_)) => {
                return Journal::set_aside(&env.disk, &self.dir).map(|()| Vec::new());
            }
            journal => journal?,
        };
        let Some(mut journal) = journal else {
            return Err(Error::new(Kind::NotFound, "no step is unfinished").hint("there is nothing to do"));
        };
        let (to, mut saved) = (self.load(&journal.to)?, self.load(&journal.saved)?);
        if let Recovery::Abandon(name) = how {
            if !journal.targets.contains(name) {
                let why = format!("the unfinished step does not concern `{name}`");
                let hint = format!("it concerns: {}", journal.targets.join(", "));
                return Err(Error::new(Kind::NotFound, why).hint(hint));
            }
            journal.targets.retain(|target| target != name);
            journal.begin(&env.disk, &self.dir)?;
        }
        let mut not_restored = Vec::new();
        let mut names = journal.targets.clone();
        let together = self.together(&journal, [&to, &saved])?;
        if *how == Recovery::TakeBack {
            // What came last goes first: it may stand where something else was.
            names.reverse();
        }
        for name in &names {
            let done = match how {
                Recovery::TakeBack => {
                    self.restore_target(&journal, name, (&saved, &to), true, Ready::holding(None, &together))
                }
                _ => {
                    let (to, saved) = (&to, &mut saved);
                    let journal = &mut journal;
                    let plans = Default::default();
                    // What was saved when the step began is what a redo brings back: it is not captured
                    // again, half put back as it may be.
                    let holds = [(name.clone(), Default::default())].into();
                    let (together, failed) = (together.clone(), Vec::new());
                    let mut going = Going {
                        journal,
                        to,
                        saved,
                        own: false,
                        partial: true,
                        plans,
                        together,
                        holds,
                        failed,
                    };
                    self.restore_or_again(&mut going, name)
                }
            };
            not_restored.extend(done?);
        }
        if *how == Recovery::TakeBack {
            if journal.is_in(&self.timeline()?) {
                let back = journal.record.taken_back(&journal.to, &journal.saved);
                self.append(&back)?;
            }
        } else {
            self.note(&journal)?;
        }
        Journal::end(&env.disk, &self.dir)?;
        if matches!(how, Recovery::Abandon(_)) {
            // What of its own stood aside is needed by no step any more.
            apply::clear(self.opened(), &env.cancel)?;
        }
        Ok(not_restored)
    }
}
