//! Executing a plan: save what is there, note in the journal what begins, put each
//! target back, add the step to the timeline.
//!
//! Invariant: nothing is touched before the present state is durable in a snapshot.
//! When a target fails, those already put back return to that state.

use super::Session;
use super::again::Going;
use super::diff::Difference;
use super::displaced;
use super::noted::Noted;
use super::plan::{Action, Plan, Saved, is_within};
use super::scope::inside;
use crate::backend::{Call, Cancel, Elsewhere, Hold};
use crate::error::{Error, Kind, Result};
use crate::history::Id;
use crate::history::journal::Journal;
use crate::history::snapshot::Snapshot;
use crate::history::timeline::{Record, Timeline};
use crate::report;
use crate::text::Bytes;
use crate::tree::Plans;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Something that a restore left as it was, or something of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotRestored {
    /// The target.
    pub target: String,
    /// Path inside the target, or the backend's name for the subject.
    pub path: Bytes,
    /// Why.
    pub reason: String,
    /// Only something besides its content: its owner, its mode, an attribute.
    pub in_part: bool,
}

impl NotRestored {
    /// How many things it stands for: those that were not named are told by their number.
    pub fn count(&self) -> u64 {
        report::more(&self.reason).filter(|_| self.path.0.is_empty()).unwrap_or(1)
    }

    /// Whether `change` is at its path or in it.
    pub(super) fn is_about(&self, change: &Difference) -> bool {
        *change.target == *self.target && is_within(&change.path, std::slice::from_ref(&self.path))
    }
}

/// `items` with each subject named once, as it was named first: what is known before a
/// restore is met again while it is done.
pub(super) fn distinct(items: Vec<NotRestored>) -> Vec<NotRestored> {
    let mut known = HashSet::new();
    let is_new = |item: &NotRestored| {
        known.insert((item.target.clone(), item.path.clone())) || report::more(&item.reason).is_some()
    };
    items.into_iter().filter(is_new).collect()
}

/// What a restore left as it was: some of it with all that is in it.
struct Left<'a> {
    whole: HashSet<At<'a>>,
    alone: HashSet<At<'a>>,
}

/// A target, and a path in it.
type At<'a> = (&'a str, &'a [u8]);

impl<'a> Left<'a> {
    fn of(whole: &'a [NotRestored], alone: &'a [NotRestored]) -> Self {
        let at = |item: &'a NotRestored| (&*item.target, &*item.path.0);
        let alone = alone.iter().filter(|item| !item.in_part);
        Self { whole: whole.iter().map(at).collect(), alone: alone.map(at).collect() }
    }

    fn has(&self, change: &Difference) -> bool {
        let (target, path) = (&*change.target, &*change.path);
        let mut above = path.iter().enumerate().filter(|(_, b)| **b == b'/').map(|(at, _)| &path[..at]);
        let is_whole = |path| self.whole.contains(&(target, path));
        self.alone.contains(&(target, path)) || is_whole(path) || is_whole(b"") || above.any(is_whole)
    }
}

/// What a restore goes on with.
#[derive(Default)]
pub(super) struct Ready {
    /// What the last capture of the target locked.
    pub hold: Option<Arc<Hold>>,
    /// How directories are put back, as far as that was planned.
    pub plans: Arc<Plans>,
    /// What the targets of the step capture by themselves: a database may have several names.
    pub together: Arc<Vec<Elsewhere>>,
    /// What stops it; none: whatever stops the command.
    pub cancel: Option<Cancel>,
}

impl Ready {
    /// With what is held, or with nothing that is held yet: what can be held is held
    /// from here on, since nobody captures it again.
    pub fn holding(hold: Option<Arc<Hold>>, together: &Arc<Vec<Elsewhere>>) -> Self {
        Self { hold: Some(hold.unwrap_or_default()), together: together.clone(), ..Self::default() }
    }

    /// The same, whoever asks the command to stop.
    pub fn unstopped(self) -> Self {
        Self { cancel: Some(Cancel::default()), ..self }
    }
}

/// What was done.
pub struct Outcome {
    /// What it was.
    pub action: Action,
    /// The snapshot that it went to.
    pub restored_to: Id,
    /// The snapshot that holds what was there before; none where a restore had nothing to
    /// change, and is no step then.
    pub saved_as: Option<Id>,
    /// What was changed.
    pub changes: Vec<Difference>,
    /// What was left as it was.
    pub not_restored: Vec<NotRestored>,
    /// Some of that could be put back once what was in the way is not any more.
    pub again: bool,
}

impl Session {
    /// Does what `plan` says. With `partial`, a target that fails does not take back
    /// the others.
    ///
    /// # Errors
    /// When the present state cannot be saved (nothing was touched), or a target
    /// cannot be put back (all are as they were, unless the error says otherwise).
    pub fn execute(&self, plan: Plan, partial: bool) -> Result<Outcome> {
        // All that was held for it is let go of when this is done.
        let mut outcome =
            self.carry_out(plan, partial).inspect_err(|_| self.late.tell(&*self.env().report))?;
        outcome.not_restored.extend(self.late.take());
        Ok(outcome)
    }

    fn carry_out(&self, plan: Plan, partial: bool) -> Result<Outcome> {
        let env = self.env();
        if !partial && !plan.blocked.is_empty() {
            return Err(blocked(&plan.blocked));
        }
        if plan.is_empty() && plan.action == Action::Restore {
            return Ok(Outcome {
                action: plan.action,
                restored_to: plan.to.id,
                saved_as: None,
                changes: Vec::new(),
                not_restored: plan.not_restored,
                again: false,
            });
        }
        // A step of which nothing could be put back is still to be taken back.
        if plan.is_empty() && !plan.in_the_way.is_empty() && !partial {
            return Err(in_the_way(&plan));
        }
        let mut again = !plan.in_the_way.is_empty();
        let own = matches!(plan.saved, Saved::New(_));
        let mut saved = match plan.saved {
            // Its times may be others: what is put back is what is there now.
            Saved::Existing(id) => {
                // Whatever becomes of the restore, the twin has what the store has.
                if plan.writer.seal()? > 0 {
                    self.mirror(None);
                }
                Snapshot { targets: plan.current, ..self.load(&id)? }
            }
            Saved::New(snapshot) => {
                let snapshot = self.commit(*snapshot, &plan.writer)?;
                self.mirror(None);
                snapshot
            }
        };
        // What it keeps at hand is not needed any more.
        drop(plan.writer);
        let (mut not_restored, mut changes) = (plan.not_restored, plan.changes);
        let nothing_to_do = changes.is_empty();
        if !nothing_to_do {
            let mut journal = Journal {
                format: Journal::FORMAT,
                verb: plan.verb,
                to: plan.to.id.clone(),
                saved: saved.id.clone(),
                targets: plan.targets,
                only: plan.only,
                record: plan.record,
                number: self.timeline()?.number + 1,
            };
            journal.begin(&env.disk, &self.dir)?;
            let (to, saved) = (&plan.to, &mut saved);
            let together = self.together(&journal, [to, saved])?;
            let mut going = Going {
                journal: &mut journal,
                to,
                saved,
                own,
                partial,
                plans: plan.plans,
                together,
                holds: HashMap::new(),
                failed: plan.blocked,
            };
            let refused = self.put_back(&mut going).inspect_err(|_| self.mirror(None))?;
            again |= refused.iter().any(|item| !item.in_part);
            not_restored.extend(refused);
            let left = Left::of(&going.failed, &not_restored);
            changes.retain(|change| !left.has(change));
            self.note(&journal)?;
        } else {
            // An undo that changes nothing still goes one step back.
            self.append(&plan.record)?;
        }
        self.retain();
        self.mirror(None);
        // Last of all: whoever was not told that it is done finds out when they ask again.
        if !nothing_to_do {
            Journal::end(&env.disk, &self.dir)?;
        }
        Ok(Outcome {
            action: plan.action,
            restored_to: plan.to.id,
            saved_as: Some(saved.id),
            changes,
            not_restored: distinct(not_restored),
            again,
        })
    }

    /// Puts the journal's targets back, all or (unless `partial`) none.
    fn put_back(&self, going: &mut Going<'_>) -> Result<Vec<NotRestored>> {
        let mut not_restored = Vec::new();
        let names = going.journal.targets.clone();
        for (at, name) in names.iter().enumerate() {
            match self.restore_or_again(going, name) {
                Ok(refused) => not_restored.extend(refused),
                Err(error) if going.partial => {
                    let (target, path) = (name.clone(), Bytes::default());
                    let failed = NotRestored { target, path, reason: error.to_string(), in_part: false };
                    going.failed.push(failed.clone());
                    not_restored.push(failed);
                }
                Err(error) => {
                    // By the law, who is in use or has changed was not touched.
                    let untouched = matches!(error.kind(), Kind::Busy | Kind::Changed);
                    let touched = if untouched { &names[..at] } else { &names[..=at] };
                    let Going { journal, to, saved, together, holds, .. } = &*going;
                    let is_stopped = error.kind() == Kind::Cancelled;
                    if is_stopped {
                        self.env().report.log(name, "warn", STOPPING);
                    }
                    let error = match error.kind() {
                        Kind::Busy => self.in_use_too(error, &names[at + 1..], saved),
                        _ => error,
                    };
                    let mut second = Ok(());
                    for name in touched.iter().rev() {
                        let ready = Ready::holding(holds.get(name).cloned(), together).unstopped();
                        let back = self.restore_target(journal, name, (saved, to), true, ready);
                        second = second.and(back.map(drop));
                    }
                    let ended = second.and_then(|()| Journal::end(&self.env().disk, &self.dir));
                    return Err(match ended {
                        Ok(()) if is_stopped => stopped(),
                        Ok(()) => error,
                        Err(second) => unfinished(&error, &second),
                    });
                }
            }
        }
        Ok(not_restored)
    }

    /// What the targets of a step capture by themselves in both `snapshots`: asked once for all of
    /// them, however many there are.
    pub(super) fn together(
        &self,
        journal: &Journal,
        snapshots: [&Snapshot; 2],
    ) -> Result<Arc<Vec<Elsewhere>>> {
        let names: HashSet<&String> = journal.targets.iter().collect();
        let all = snapshots.into_iter().flat_map(|snapshot| &snapshot.targets);
        let concerned = all.filter(|captured| names.contains(&captured.target.name));
        Ok(Arc::new(self.all_claims(concerned.map(|captured| &captured.target))?))
    }

    /// Makes one target as in `to`, where it is as in `now`; with `partial`, without what
    /// cannot be done.
    pub(super) fn restore_target(
        &self,
        journal: &Journal,
        name: &str,
        (to, now): (&Snapshot, &Snapshot),
        partial: bool,
        ready: Ready,
    ) -> Result<Vec<NotRestored>> {
        let env = self.env();
        let missing = || Error::corrupt(format!("snapshot {} has no target `{name}`", to.id));
        let like = to.target(name).or_else(|| now.target(name)).ok_or_else(missing)?;
        // What is handed over to a target is stored nowhere else.
        let handed = Arc::new(self.opened().scratch(true));
        let stored = self.of_target(to, like, &handed)?;
        let current = self.of_target(now, like, &handed)?;
        if stored.parts.is_empty() && self.is_cut_off(now, &stored.target)? {
            return Ok(Vec::new());
        }
        if self.displaced_of(&stored, &*handed)?.is_some() {
            let is_nothing = displaced::is_empty(&stored, &*handed)?;
            return Ok(if is_nothing { Vec::new() } else { vec![displaced::left(name)] });
        }
        self.make_again(&stored)?;
        let noted = Noted::new(&env.report, &self.late);
        // Of a target without paths in the project all is meant.
        let only = inside(&env.root, &stored, &journal.only).unwrap_or_default();
        let elsewhere = match self.claims(&stored.target)?.is_empty() {
            true => Arc::default(),
            false => ready.together,
        };
        let call = Call {
            only: Arc::new(only.into_iter().map(|path| path.0).collect()),
            carried: Arc::new(self.carried_since(&to.id, like)),
            writer: Some(handed),
            elsewhere,
            partial,
            hold: ready.hold,
            plans: ready.plans,
            report: noted.clone(),
            cancel: ready.cancel.unwrap_or_else(|| env.cancel.clone()),
            ..Call::new(env, &self.of_today(&stored.target), Some(self.opened()))
        };
        let backend = env.backends.get(&stored.target.backend)?;
        backend
            .restore(&call, &stored.parts, &current.parts)
            .map_err(|error| error.context(format_args!("could not put `{name}` back")))?;
        let mut list = noted.take_refused();
        list.iter_mut().for_each(|item| item.target = name.to_owned());
        Ok(list)
    }

    /// Adds the step to the timeline, unless it is there already.
    pub(super) fn note(&self, journal: &Journal) -> Result<()> {
        if journal.is_in(&self.timeline()?) {
            return Ok(());
        }
        self.append(&journal.record)
    }

    /// Adds a step to the timeline; before it, those that were taken and not noted.
    pub(super) fn append(&self, record: &Record) -> Result<()> {
        let timeline = Timeline::load(self.opened().path())?;
        let mut records = self.unnoted(timeline.newest(), &self.ids()?);
        records.retain(|unnoted| unnoted != record);
        records.push(record.clone());
        Timeline::append(&self.env().disk, &self.dir, &records)
    }
}

/// Why nothing is begun: at most this many paths are named.
const SHOWN: usize = 5;

/// `sentence`, and a line for each of `items`.
fn with_items(sentence: &str, items: &[NotRestored]) -> String {
    let mut text = sentence.to_owned();
    for item in items.iter().take(SHOWN) {
        text.push_str(&format!("\n  {}: {}", item.path, item.reason));
    }
    if items.len() > SHOWN {
        text.push_str(&format!("\n  and {} more", items.len() - SHOWN));
    }
    text
}

fn blocked(items: &[NotRestored]) -> Error {
    let text = with_items("it cannot be put back whole, so nothing was touched", items);
    Error::new(Kind::Denied, text).hint("mend that and try again, or go on without them with `--partial`")
}

/// What is said while what was done is taken back because somebody asked to stop.
const STOPPING: &str = "stopping: what was done is put back first; stopped once more, it stays as it is then, \
                        and `snapback undo --resume` or `--take-back` goes on";

fn stopped() -> Error {
    Error::new(Kind::Cancelled, "stopped as asked: what was done is put back, and all is as it was before")
        .hint("give the same command again when you want it after all")
}

/// Nothing of `plan` can be done.
fn in_the_way(plan: &Plan) -> Error {
    let text = with_items("nothing was put back, since something else is in the way:", &plan.in_the_way);
    let hint =
        "move that away and try again; `--partial` passes this step over, and the one before it is next";
    Error::new(Kind::Changed, text).hint(hint)
}

fn unfinished(first: &Error, second: &Error) -> Error {
    Error::new(first.kind(), format!("{first}; and it could not be taken back: {second}")).hint(
        "`snapback status` shows the unfinished step; `snapback undo --resume` or `--take-back` goes on, \
         and `--abandon TARGET` leaves one target as it is",
    )
}
