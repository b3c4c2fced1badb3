//! Planning an undo, a redo or a restore: what it will do, before it does anything.
//!
//! A plan holds the capture of what is there now (not yet committed), so that what is
//! shown is what will be done; executing it commits that capture first.

use super::beyond::Beyond;
use super::capture::{Uncaptured, directories, holds_with_git};
use super::diff::{By, Difference};
use super::execute::distinct;
use super::preflight::Preflight;
use super::scope::{Meant, Narrow, inside, is_volume};
use super::{NotRestored, Project, Session};
use crate::database::bases;
use crate::error::{Error, Kind, Result};
use crate::history::Id;
use crate::history::journal::Verb;
use crate::history::snapshot::{Captured, Snapshot, SnapshotKind};
use crate::history::timeline::{Record, Step, Timeline};
use crate::object::ObjectKind;
use crate::project::nearest;
use crate::store::{Store, Writer};
use crate::text::Bytes;
use crate::tree::Plans;
use crate::tree::compare::{ChangeKind, Fate};
use std::collections::HashSet;
use std::sync::{Arc, PoisonError};

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// Take back the newest step.
    Undo,
    /// Go one snapshot back, be it inside a run.
    UndoStep,
    /// Do the step that was undone last again.
    Redo,
    /// Go to a snapshot.
    Restore(Id),
}

/// What a plan will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Take back a step.
    Undo,
    /// Do a step again.
    Redo,
    /// Put chosen things back, as a step of its own.
    Restore,
}

/// Where the state that is replaced is kept.
pub enum Saved {
    /// In a snapshot that exists.
    Existing(Id),
    /// In a snapshot that is committed before anything is touched.
    New(Box<Snapshot>),
}

/// What will be done.
pub struct Plan {
    /// What it is.
    pub action: Action,
    /// The step that is taken back or done again.
    pub step: Option<Step>,
    /// The snapshot that it goes to.
    pub to: Snapshot,
    /// Where the present state is kept.
    pub saved: Saved,
    /// What will change: from the present to `to`.
    pub changes: Vec<Difference>,
    /// What lies beyond the snapshot, and is not as it was then.
    pub beyond: Beyond,
    /// What a newer step began from: its snapshot is lost, so it is passed over.
    pub lost: Option<Id>,
    /// Targets that the snapshot was taken without: they stay as they are.
    pub lacks: Vec<String>,
    /// What will not come back, as far as the snapshot says.
    pub not_restored: Vec<NotRestored>,
    /// Of that, what does not come back since something else is in the way.
    pub in_the_way: Vec<NotRestored>,
    /// What cannot be done: nothing is begun then, unless what is left is wanted.
    pub blocked: Vec<NotRestored>,
    /// What the next undo would take back after this one.
    pub next: Option<Step>,
    /// Runs that are going on.
    pub running: Vec<Id>,
    /// Paths to which it is narrowed.
    pub(super) only: Vec<Bytes>,
    /// Names of the targets concerned, in the order of `to`.
    pub(super) targets: Vec<String>,
    pub(super) verb: Verb,
    pub(super) record: Record,
    /// What is there now.
    pub(super) current: Vec<Captured>,
    pub(super) writer: Arc<Writer>,
    /// How directories are put back.
    pub(super) plans: Arc<Plans>,
}

impl Ask {
    fn verb(&self) -> Verb {
        match self {
            Self::Undo | Self::UndoStep => Verb::Undo,
            Self::Redo => Verb::Redo,
            Self::Restore(_) => Verb::Restore,
        }
    }
}

impl Plan {
    /// Whether there is nothing to put back.
    pub fn is_empty(&self) -> bool {
        self.changes.is_empty()
    }

    /// Those of `changes` that nobody expects to be part of the step: edits made after the
    /// run that is taken back had ended, or since the step that is done again was undone.
    pub fn edits(&self) -> impl Iterator<Item = &Difference> {
        self.changes.iter().filter(|change| change.by.is_some_and(By::is_edit))
    }
}

impl Session {
    /// Plans `ask`, narrowed to `targets` and to `paths` of the project (empty: all).
    ///
    /// # Errors
    /// As [`Self::plan_part`] has them.
    pub fn plan(&self, ask: &Ask, targets: &[String], paths: &[Bytes]) -> Result<Plan> {
        let narrow = Narrow { targets: targets.to_vec(), paths: paths.to_vec(), ..Narrow::default() };
        self.plan_part(ask, &narrow)
    }

    /// Plans the part of `ask` that `narrow` means.
    ///
    /// # Errors
    /// `NotFound` when there is nothing to undo or redo; whatever keeps the present
    /// state from being captured, or the stored one from being read.
    pub fn plan_part(&self, ask: &Ask, narrow: &Narrow) -> Result<Plan> {
        self.plan_with(ask, narrow, self.writer()?)
    }
}

impl Project {
    /// What [`Session::plan_part`] would plan: only to be looked at, so nothing is written for
    /// it, and nobody's lock is waited for.
    ///
    /// # Errors
    /// As that one has them.
    pub fn foresee(&self, ask: &Ask, narrow: &Narrow) -> Result<Plan> {
        self.plan_with(ask, narrow, Arc::new(self.need_store()?.scratch(false)))
    }

    fn plan_with(&self, ask: &Ask, narrow: &Narrow, writer: Arc<Writer>) -> Result<Plan> {
        let Narrow { targets, paths, whole, partial } = narrow;
        let (timeline, root) = (self.timeline()?, &self.env.root);
        let narrowed = narrow.is_any();
        let (action, step, to) = match ask {
            Ask::Undo => {
                let last = timeline.last_done()?;
                // Chosen things come back from where the whole would, whatever else was
                // chosen before: that does not move the cursor.
                let step = if narrowed { timeline.last_change()?.or(last) } else { last };
                let step = step.ok_or_else(|| nothing(&timeline, "undo"))?;
                let action = if narrowed { Action::Restore } else { Action::Undo };
                (action, Some(step.clone()), self.load(&step.before)?)
            }
            Ask::Redo => {
                let step = timeline.last_undone()?.ok_or_else(|| nothing(&timeline, "redo"))?;
                let after = step.after.clone().expect("an undone step has a state after it");
                (Action::Redo, Some(step.clone()), self.load(&after)?)
            }
            Ask::UndoStep => (Action::Restore, None, self.one_back(&timeline)?),
            Ask::Restore(id) => (Action::Restore, None, self.load(id)?),
        };
        let names = chosen(&to, targets)?;
        let meant: Vec<&Captured> =
            to.targets.iter().filter(|c| names.is_empty() || names.contains(&c.target.name)).collect();
        let (names, mut trees) = match paths.is_empty() && whole.is_empty() {
            true => (names, Vec::new()),
            false => self.narrowed(&to, &meant, narrow)?,
        };
        let all = paths.is_empty() && whole.is_empty();
        let wanted = |path: &[u8]| targets.is_empty() && (all || !paths.is_empty() && is_within(path, paths));
        let uncaptured = Uncaptured::default();
        let left = partial.then_some(&uncaptured);
        let mut current = self.capture_like(&to, &names, &writer, &wanted, left).map_err(others)?;
        self.leave_to_databases(&to, &mut current, &mut trees)?;
        let kind = match action {
            Action::Undo => SnapshotKind::PreUndo,
            Action::Redo => SnapshotKind::PreRedo,
            Action::Restore => SnapshotKind::PreRestore,
        };
        // A redo tells where git stood, so the state is stored only with that.
        let holds = |snapshot: &Snapshot| holds_with_git(&*writer, snapshot, &current).unwrap_or(false);
        // A step that is done again begins where it began the first time, if that still holds:
        // another snapshot of the same state would name another command.
        let begun = match (action, &step) {
            (Action::Redo, Some(step)) => self.load(&step.before).ok(),
            _ => None,
        };
        let own = begun.clone().filter(holds);
        let since = match (&begun, &own) {
            (Some(begun), None) => self.since(begun, &current, &writer)?,
            _ => HashSet::new(),
        };
        let existing = match own {
            Some(own) => Some(own),
            None => self.newest(holds)?,
        };
        let saved = match existing {
            Some(snapshot) => Saved::Existing(snapshot.id),
            None => Saved::New(Box::new(self.record(kind, current.clone()))),
        };
        let saved_id = saved.id().clone();
        let record = match (action, &step) {
            (Action::Undo, Some(step)) => Record::Undid { before: step.before.clone(), saved: saved_id },
            (Action::Redo, Some(step)) => Record::Redid { before: step.before.clone(), saved: saved_id },
            _ => Record::Did { kind: SnapshotKind::PreRestore, before: saved_id },
        };
        let apart = (*ask == Ask::Undo).then(|| self.apart(&to));
        let mut changes = Vec::new();
        let (mut not_restored, mut preflight) = (Vec::new(), Preflight::default());
        for (target, error) in uncaptured.into_inner().unwrap_or_else(PoisonError::into_inner) {
            let (path, reason) = (Bytes::default(), error.to_string());
            not_restored.push(NotRestored { target, path, reason, in_part: false });
        }
        let stored = current.iter().map(|now| self.of_target(&to, now, &writer));
        let stored: Vec<Captured> = stored.collect::<Result<_>>()?;
        // Of what is narrowed, the plans know less than the paths are about.
        let none = Plans::default();
        let mut differing = HashSet::new();
        for (now, stored) in current.iter().zip(&stored) {
            self.preflight((&to.id, stored), now, &trees, &writer, &mut preflight)?;
            self.taken_places((&to, &current), stored, &trees, &writer, &mut preflight)?;
            let known = if all && trees.is_empty() { &preflight.plans } else { &none };
            let meant = Meant::of(root, now, paths, whole);
            self.in_target(Some(&writer), (now, stored), known, &mut |mut difference, change| {
                differing.insert(difference.target.clone());
                if meant.has(&difference) {
                    // It leads from the present to the snapshot: the present is `before`.
                    let (target, path) = (&difference.target, &difference.path);
                    let present = change.and_then(|change| change.before.as_ref());
                    let present = difference.known(&*writer, present)?;
                    difference.by =
                        apart.as_ref().and_then(|apart| apart.by(target, path, present.as_deref()));
                    if since.contains(&(target.clone(), path.clone())) {
                        difference.by = Some(By::Since);
                    }
                    changes.push(difference);
                }
                Ok(())
            })?;
            if let Some(inside) = inside(root, stored, paths) {
                not_restored.extend(holes(self.need_store()?, stored, &inside)?);
            }
            not_restored.extend(lost_with(stored, paths));
        }
        self.all_known(paths, &changes, &*writer, (&to, &current))?;
        // A step that did nothing has nothing to do again.
        if begun.is_some_and(|begun| holds_with_git(&*writer, &begun, &to.targets).unwrap_or(false)) {
            changes.clear();
        }
        // Not what would only be removed.
        let comes = |left: &&NotRestored| {
            changes.iter().any(|change| change.kind != ChangeKind::Deleted && left.is_about(change))
        };
        let in_the_way = preflight.left.iter().filter(comes).cloned().collect();
        changes.retain(|change| !preflight.left.iter().any(|left| left.is_about(change)));
        changes.shrink_to_fit();
        not_restored.extend(preflight.left);
        not_restored.extend(preflight.notes);
        let mut beyond = Beyond::between(&*writer, &to.targets, &current, (root, paths))?;
        // What is hidden is among what will not come back.
        beyond.uncovered.retain(|item| item.fate != Fate::Hidden);
        not_restored.extend(beyond.holes());
        let not_restored = distinct(not_restored);
        // A volume that is to the byte as it was, times among it, and a database that is as it was
        // are not touched: nobody who uses them is held or waited for. Trees are, since databases in
        // them leave traces in times.
        let is_idle = |now: &Captured, stored: &Captured| match is_volume(stored) {
            true => now.parts == stored.parts,
            false => {
                let known = is_database(now) && is_database(stored) && now.omitted.is_empty();
                known && !differing.contains(&*stored.target.name)
            }
        };
        let stored: Vec<Captured> = current
            .iter()
            .zip(stored)
            .filter(|(now, stored)| !is_idle(now, stored))
            .map(|(_, stored)| stored)
            .collect();
        let targets = self.in_order(&*writer, &stored)?;
        let next = match action {
            Action::Undo => timeline.done.iter().rev().nth(1).cloned(),
            _ => None,
        };
        let undone = step.as_ref().filter(|_| *ask == Ask::Undo);
        let lost = undone.and_then(|step| timeline.lost_above(step)).cloned();
        Ok(Plan {
            action,
            step,
            lost,
            saved,
            changes,
            beyond,
            lacks: if narrowed { Vec::new() } else { to.skipped.clone() },
            not_restored,
            in_the_way,
            blocked: preflight.blocked,
            next,
            running: self.running()?,
            only: trees,
            targets,
            verb: ask.verb(),
            record,
            current,
            writer,
            plans: Arc::new(preflight.plans),
            to,
        })
    }

    /// What is not as in `begun`, the state from which a step is done again, although that
    /// was gone to.
    fn since(&self, begun: &Snapshot, current: &[Captured], writer: &Arc<Writer>) -> Result<HashSet<At>> {
        let mut since = HashSet::new();
        self.differences(Some(writer), &begun.targets, current, &mut |difference, _| {
            since.insert((difference.target, difference.path));
            Ok(())
        })?;
        Ok(since)
    }
}

/// A target that cannot be captured keeps the others back, unless that is not wanted.
fn others(error: Error) -> Error {
    // Who may be asked, or waits for something, has other ways.
    if matches!(error.kind(), Kind::Cancelled | Kind::Busy) {
        return error;
    }
    let way = "`--partial` leaves it as it is and goes on with the others, `--target NAME` takes one alone";
    let hint = error.hint_text().map_or_else(|| way.to_owned(), |hint| format!("{hint}; {way}"));
    error.hint(hint)
}

/// A target, and a path that a difference in it has.
type At = (Arc<str>, Vec<u8>);

impl Saved {
    /// The snapshot's name.
    pub fn id(&self) -> &Id {
        match self {
            Self::Existing(id) => id,
            Self::New(snapshot) => &snapshot.id,
        }
    }
}

pub(super) fn nothing(timeline: &Timeline, what: &str) -> Error {
    let error = Error::new(Kind::NotFound, format!("there is nothing to {what}"));
    match what {
        "undo" if !timeline.undone.is_empty() => {
            error.hint("`snapback redo` does the last undone step again; `snapback restore ID` goes to any snapshot that `snapback list` shows")
        }
        "undo" => error.hint(
            "`snapback run -- COMMAND` makes a step that can be undone; `snapback list` shows what is stored",
        ),
        _ => error.hint(
            "only a step that was undone can be redone, and a new run ends that; what an undo replaced is in \
             `snapback list`, and `snapback restore ID` goes there",
        ),
    }
}

fn chosen(to: &Snapshot, targets: &[String]) -> Result<Vec<String>> {
    for name in targets {
        if to.target(name).is_none() {
            let names: Vec<_> = to.targets.iter().map(|c| c.target.name.as_str()).collect();
            let why = format!("snapshot {} has no target `{name}`", to.id);
            let error = Error::new(Kind::NotFound, why);
            return Err(match nearest(name, names.iter().copied()) {
                Some(near) => error.hint(format!("did you mean `{near}`?")),
                None if names.is_empty() => error.hint("it has none: nothing was covered when it was taken"),
                None => error.hint(format!("it has: {}", names.join(", "))),
            });
        }
    }
    Ok(targets.to_vec())
}

/// Whether `path` is one of `paths` or beneath one; all are when there are none.
pub(super) fn is_within(path: &[u8], paths: &[Bytes]) -> bool {
    paths.is_empty()
        || paths.iter().any(|Bytes(of)| {
            of.is_empty() || path.strip_prefix(&of[..]).is_some_and(|rest| rest.is_empty() || rest[0] == b'/')
        })
}

/// Whether `captured` is a database.
fn is_database(captured: &Captured) -> bool {
    matches!(&captured.parts[..], [part] if part.content.kind() == ObjectKind::Database)
}

/// What was not captured with a database, where `paths` of the project are about that.
fn lost_with<'a>(stored: &'a Captured, paths: &'a [Bytes]) -> impl Iterator<Item = NotRestored> + use<'a> {
    let concerned = |path: &&(Bytes, String)| {
        is_database(stored)
            && (is_within(&path.0.0, paths) || bases(&path.0.0).any(|(of, _)| is_within(of, paths)))
    };
    stored.omitted.iter().filter(concerned).map(|(path, reason)| NotRestored {
        target: stored.target.name.clone(),
        path: path.clone(),
        reason: format!("not in the snapshot: {reason}"),
        in_part: false,
    })
}

/// What should have been captured and was not, where it is concerned.
fn holes(store: &Arc<Store>, stored: &Captured, paths: &[Bytes]) -> Result<Vec<NotRestored>> {
    let mut holes = Vec::new();
    for root in directories(&**store, &stored.parts) {
        for item in root?.left_out.into_iter().filter(|item| item.why.is_hole()) {
            if is_within(&item.path, paths) {
                holes.push(NotRestored {
                    target: stored.target.name.clone(),
                    path: Bytes(item.path),
                    reason: format!("not in the snapshot: {}", item.why.word()),
                    in_part: false,
                });
            }
        }
    }
    Ok(holes)
}
