//! What the lines of a timeline say, one after the other.
//!
//! A step that is taken back or done again is found by its name and not searched for: what
//! a stranger wrote must not take a time that grows with the square of its length.

use super::{Record, Step, Timeline, decode};
use crate::history::id::Id;
use crate::history::snapshot::SnapshotKind;
use std::collections::HashMap;

/// Steps, the newest last.
#[derive(Default)]
struct Stack {
    /// What was taken out from below leaves a gap, so that the others stay where they are.
    steps: Vec<Option<Step>>,
    /// Where the steps of a name are.
    places: HashMap<Id, Vec<usize>>,
    /// How many of `steps` are older than the last damage.
    doubt: Option<usize>,
}

impl Stack {
    fn of(steps: Vec<Step>, doubt: Option<usize>) -> Self {
        let mut stack = Self { doubt, ..Self::default() };
        steps.into_iter().for_each(|step| stack.push(step));
        stack
    }

    fn push(&mut self, step: Step) {
        self.places.entry(step.before.clone()).or_default().push(self.steps.len());
        self.steps.push(Some(step));
    }

    /// Takes out the newest step of this name: after damage it may not be on top.
    fn take(&mut self, before: &Id) -> Option<Step> {
        let at = self.places.get_mut(before)?.pop()?;
        let step = self.steps[at].take();
        while let Some(None) = self.steps.last() {
            self.steps.pop();
        }
        self.doubt = self.doubt.map(|older| older.min(self.steps.len()));
        step
    }

    /// One that is lost may stand above those that are there.
    fn lose(&mut self) {
        self.doubt = Some(self.steps.len());
    }

    /// The steps, and how many of them are older than the last damage.
    fn into_parts(self) -> (Vec<Step>, Option<usize>) {
        let older = |older: usize| self.steps[..older].iter().flatten().count();
        let doubt = self.doubt.map(older);
        (self.steps.into_iter().flatten().collect(), doubt)
    }
}

/// A timeline as far as it was replayed.
struct Replay {
    done: Stack,
    undone: Stack,
    /// All but the steps.
    rest: Timeline,
}

impl Replay {
    fn from(mut timeline: Timeline) -> Self {
        Self {
            done: Stack::of(std::mem::take(&mut timeline.done), timeline.doubt.0),
            undone: Stack::of(std::mem::take(&mut timeline.undone), timeline.doubt.1),
            rest: timeline,
        }
    }

    fn apply(&mut self, number: u64, record: Record) {
        // Numbers go up, whatever a damaged file says.
        self.rest.number = number.max(self.rest.number.saturating_add(1));
        if self.rest.newest.as_ref().is_none_or(|newest| newest < record.newest()) {
            self.rest.newest = Some(record.newest().clone());
        }
        if !matches!(record, Record::Noted { .. }) {
            self.rest.last = Some(record.clone());
        }
        match record {
            Record::Noted { .. } => {}
            Record::Did { kind, before } => {
                if kind == SnapshotKind::Run {
                    self.undone = Stack::default();
                }
                self.done.push(Step { kind, before, after: None });
            }
            Record::Undid { before, saved } => {
                if let Some(step) = self.done.take(&before) {
                    self.undone.push(Step { after: Some(saved), ..step });
                }
            }
            Record::Redid { before, saved } => {
                if let Some(step) = self.undone.take(&before) {
                    self.done.push(Step { before: saved, after: None, ..step });
                }
            }
        }
    }

    /// A line is lost.
    fn lose(&mut self) {
        self.rest.damaged += 1;
        self.done.lose();
        self.undone.lose();
    }

    fn end(self) -> Timeline {
        let ((done, first), (undone, second)) = (self.done.into_parts(), self.undone.into_parts());
        Timeline { done, undone, doubt: (first, second), ..self.rest }
    }
}

impl Timeline {
    /// What the lines in `bytes` say.
    pub fn replay(bytes: &[u8]) -> Self {
        let mut replay = Replay::from(Self::default());
        let mut lines: Vec<&[u8]> = bytes.split(|&b| b == b'\n').collect();
        // What follows the last newline is empty, or torn.
        let torn = lines.pop().filter(|rest| !rest.is_empty());
        for line in lines.into_iter().filter(|line| !line.is_empty()) {
            match decode(line) {
                Some(line) => replay.apply(line.number, line.record),
                None => replay.lose(),
            }
        }
        torn.into_iter().for_each(|_| replay.lose());
        replay.end()
    }

    /// With more lines, as they will be when they are written.
    #[must_use]
    pub fn with(self, records: impl IntoIterator<Item = Record>) -> Self {
        let mut replay = Replay::from(self);
        records.into_iter().for_each(|record| replay.apply(0, record));
        replay.end()
    }
}
