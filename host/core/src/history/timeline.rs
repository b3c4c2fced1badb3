//! The timeline: every step, in the order in which they were taken.
//!
//! A file of lines, each a checksum, a space, and a numbered step in JSON. It is written
//! anew with each line more (and by retention without steps that lost their snapshot), so
//! no other name of the file changes with it. Replaying the lines gives two stacks, as in
//! an editor: steps that can be undone, and steps that can be redone. The same step may be
//! taken twice in a row, so only its number tells whether a line was added already.
//!
//! Invariant: a line that is damaged or torn is skipped and counted, and nothing that
//! could have stood above a step because of it is taken for not having been there: what
//! the last step was is then refused to be said.

mod replay;

use super::id::Id;
use super::snapshot::{SnapshotKind, read};
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result};
use crate::object::{Key, ObjectKind};
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "timeline";

/// Retention keeps it far below this many bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Far more steps than anybody takes: a line of a higher number is damaged.
const MOST_STEPS: u64 = 1 << 48;

/// One line.
#[derive(Serialize, Deserialize)]
struct Line {
    /// One more than that of the line before.
    number: u64,
    #[serde(flatten)]
    record: Record,
}

/// What a line says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Record {
    /// Something changed, or was about to: a run, a manual snapshot, a restore of
    /// chosen things. `before` is the state that an undo goes back to.
    Did {
        /// What it was.
        kind: SnapshotKind,
        /// The state before.
        before: Id,
    },
    /// The newest step was taken back; `saved` is the state it was taken back from.
    Undid {
        /// The step, named by the state before it.
        before: Id,
        /// What was there until then.
        saved: Id,
    },
    /// The step that was undone last was done again; `saved` is what was there until then.
    Redid {
        /// The step, named by the state before it as it was until now.
        before: Id,
        /// What was there until then: from now on the state before the step.
        saved: Id,
    },
    /// No step: the snapshots up to `state` were noted, though the lines that did are gone.
    Noted {
        /// The newest of them.
        state: Id,
    },
}

impl Record {
    /// The newest state that it names.
    fn newest(&self) -> &Id {
        match self {
            Self::Did { before, .. } => before,
            Self::Undid { before, saved } | Self::Redid { before, saved } => before.max(saved),
            Self::Noted { state } => state,
        }
    }

    /// The line that takes this one back, when the step that went from `saved` to `to`
    /// was itself taken back after it had been added.
    pub fn taken_back(&self, to: &Id, saved: &Id) -> Self {
        match self {
            Self::Undid { before, .. } => Self::Redid { before: before.clone(), saved: before.clone() },
            Self::Redid { .. } | Self::Did { .. } => Self::Undid { before: saved.clone(), saved: to.clone() },
            Self::Noted { .. } => self.clone(),
        }
    }
}

/// A step that can be taken back or done again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// What it was.
    pub kind: SnapshotKind,
    /// The state that an undo goes back to.
    pub before: Id,
    /// The state that a redo goes to; known once it was undone.
    pub after: Option<Id>,
}

/// What the timeline says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Timeline {
    /// Steps that can be undone, the next one last.
    pub done: Vec<Step>,
    /// Steps that can be redone, the next one last.
    pub undone: Vec<Step>,
    /// Lines that were damaged and skipped.
    pub damaged: usize,
    /// The last whole line.
    pub last: Option<Record>,
    /// Its number: how many steps were taken in all.
    pub number: u64,
    /// What the newest step began from, when that is not there any more: what stands on top is
    /// older.
    lost: Option<Id>,
    /// The newest state that a line names: no snapshot up to it is unknown here.
    newest: Option<Id>,
    /// How many steps of `done` and of `undone` are older than the last damage, if there
    /// is any: one that is lost may have stood above them.
    doubt: (Option<usize>, Option<usize>),
}

impl Timeline {
    /// Reads the timeline of the store at `store`.
    ///
    /// # Errors
    /// When the file cannot be read; damage is counted instead.
    pub fn load(store: &Path) -> Result<Self> {
        match read(store, FILE, "the timeline", MOST_BYTES) {
            Err(error) if error.kind() == Kind::NotFound => Ok(Self::default()),
            bytes => Ok(Self::replay(&bytes?)),
        }
    }

    /// The step that an undo takes back; none when there is nothing to undo.
    ///
    /// # Errors
    /// `Corrupt` when it may be one whose line is lost.
    pub fn last_done(&self) -> Result<Option<&Step>> {
        Self::certain(&self.done, self.doubt.0)
    }

    /// The newest step that was more than putting chosen things back; none when there is none.
    ///
    /// # Errors
    /// `Corrupt` when it may be one whose line is lost.
    pub fn last_change(&self) -> Result<Option<&Step>> {
        self.last_done()?;
        Ok(self.done.iter().rev().find(|step| step.kind != SnapshotKind::PreRestore))
    }

    /// The step that a redo does again; none when there is nothing to redo.
    ///
    /// # Errors
    /// `Corrupt` when it may be one whose line is lost.
    pub fn last_undone(&self) -> Result<Option<&Step>> {
        Self::certain(&self.undone, self.doubt.1)
    }

    fn certain(steps: &[Step], doubt: Option<usize>) -> Result<Option<&Step>> {
        if doubt.is_none_or(|older| steps.len() > older) {
            return Ok(steps.last());
        }
        let why = "the timeline is damaged, so what the last step was is not known";
        Err(Error::corrupt(why).hint(
            "`snapback list` shows the snapshots, and `snapback restore ID` goes to one; \
             `snapback verify` drops what cannot be read and goes on with the rest",
        ))
    }

    /// Adds `records`, durable afterwards.
    ///
    /// # Errors
    /// When the disk refuses; the lines then count as never written.
    pub fn append(disk: &Disk, store: &Dir, records: &[Record]) -> Result<()> {
        let mut text = match store.read(FILE.as_bytes(), MOST_BYTES) {
            Err(error) if error.kind() == Kind::NotFound => Vec::new(),
            other => other?,
        };
        // A torn line of an earlier crash must not swallow this one.
        if text.last().is_some_and(|&b| b != b'\n') {
            text.push(b'\n');
        }
        let first = Self::replay(&text).number.saturating_add(1);
        (first..).zip(records).for_each(|(number, record)| text.extend(encode(number, record)));
        // Written anew, not in place: other names of the file (the twin's, a copy's made
        // of links) must not change with it.
        disk.write_sealed(store, FILE.as_bytes(), &text, 0o600)
    }

    /// Forgets the steps whose snapshots are not there.
    pub fn keep(&mut self, exists: impl Fn(&Id) -> bool) {
        let kept = |step: &Step| exists(&step.before) && step.after.as_ref().is_none_or(&exists);
        let older = |steps: &[Step], older: usize| steps[..older].iter().filter(|step| kept(step)).count();
        self.lost = self.done.last().filter(|step| !kept(step)).map(|step| step.before.clone());
        self.doubt.0 = self.doubt.0.map(|n| older(&self.done, n));
        self.doubt.1 = self.doubt.1.map(|n| older(&self.undone, n));
        self.done.retain(&kept);
        self.undone.retain(&kept);
    }

    /// What a step newer than `step` began from, where that cannot be gone back to: its snapshot
    /// was lost, not dropped.
    pub fn lost_above(&self, step: &Step) -> Option<&Id> {
        self.lost.as_ref().filter(|lost| **lost > step.before)
    }

    /// The newest state that a line names, also one that names no step any more.
    pub fn newest(&self) -> Option<&Id> {
        self.newest.as_ref()
    }

    /// Writes the timeline anew with only the steps whose snapshots `exists`.
    ///
    /// # Errors
    /// When the disk refuses; the old one then stays.
    pub fn prune(&self, disk: &Disk, store: &Dir, exists: impl Fn(&Id) -> bool) -> Result<()> {
        disk.write_sealed(store, FILE.as_bytes(), &self.lines(exists), 0o600)
    }

    /// The lines that say the same with only the steps whose snapshots `exists`; the newest
    /// state that was noted stays so, or its snapshot would seem never to have been noted.
    pub(crate) fn lines(&self, exists: impl Fn(&Id) -> bool) -> Vec<u8> {
        let kept = |step: &&Step| exists(&step.before) && step.after.as_ref().is_none_or(&exists);
        let did = |step: &Step| Record::Did { kind: step.kind, before: step.before.clone() };
        let undone: Vec<_> = self.undone.iter().filter(kept).collect();
        // Undone steps were done once, the next to be redone first of them all.
        let all = self.done.iter().filter(kept).chain(undone.iter().rev().copied());
        let mut records: Vec<Record> = all.map(did).collect();
        records.extend(undone.iter().map(|step| {
            let saved = step.after.clone().expect("an undone step has a state after it");
            Record::Undid { before: step.before.clone(), saved }
        }));
        // A line that named it is among those that are gone, so there is room for its number.
        if let Some(state) = &self.newest
            && records.iter().all(|record| record.newest() < state)
        {
            records.insert(0, Record::Noted { state: state.clone() });
        }
        let first = (self.number + 1).saturating_sub(records.len() as u64);
        (first..).zip(&records).flat_map(|(number, record)| encode(number, record)).collect()
    }

    /// The snapshots that the next undo and the next redo need.
    pub fn needed(&self) -> Vec<&Id> {
        let undo = self.done.last().map(|step| &step.before);
        let redo = self.undone.last().into_iter().flat_map(|step| step.after.iter().chain([&step.before]));
        undo.into_iter().chain(redo).collect()
    }
}

fn encode(number: u64, record: &Record) -> Vec<u8> {
    let line = Line { number, record: record.clone() };
    let json = serde_json::to_vec(&line).expect("a record can be written as JSON");
    let mut line = check(&json).into_bytes();
    line.push(b' ');
    line.extend(json);
    line.push(b'\n');
    line
}

fn decode(line: &[u8]) -> Option<Line> {
    let (sum, json) = line.split_at_checked(16)?;
    let json = json.strip_prefix(b" ")?;
    if check(json).as_bytes() != sum {
        return None;
    }
    serde_json::from_slice(json).ok().filter(|line: &Line| line.number <= MOST_STEPS)
}

/// The first 16 hex digits of the SHA-256.
fn check(json: &[u8]) -> String {
    let key = Key::of(ObjectKind::Blob, json);
    key.hash()[..8].iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests;
