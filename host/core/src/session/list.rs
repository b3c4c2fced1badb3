//! Listing snapshots: all whose records are whole, and by name those that are not.

use super::take::RUNNING;
use super::{Project, snapshots};
use crate::error::{Error, Result};
use crate::history::snapshot::{RunEnd, Snapshot, SnapshotKind};
use crate::history::{Id, snapshot};
use std::fs::TryLockError;

/// What became of a snapshot's run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Not a run: the snapshot is all there is.
    Complete,
    /// The command is running.
    Running,
    /// The command ended.
    Ended,
    /// The end of the command was not recorded: snapback was killed.
    Interrupted,
}

impl State {
    /// As `list` shows it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Running => "running",
            Self::Ended => "ended",
            Self::Interrupted => "interrupted",
        }
    }
}

/// A snapshot in a list.
#[derive(Debug, Clone)]
pub struct Listing {
    /// Its record.
    pub snapshot: Snapshot,
    /// What became of its run.
    pub state: State,
    /// How its run ended.
    pub end: Option<RunEnd>,
}

/// A snapshot whose record cannot be read.
#[derive(Debug, Clone)]
pub struct Damaged {
    /// Its name.
    pub id: Id,
    /// Why.
    pub error: Error,
}

impl Project {
    /// All snapshots, newest first, and those whose records are damaged.
    ///
    /// # Errors
    /// When they cannot be listed at all.
    pub fn list(&self) -> Result<(Vec<Listing>, Vec<Damaged>)> {
        let (mut whole, mut damaged) = (Vec::new(), Vec::new());
        let ids = self.ids()?;
        for id in ids {
            match self.load(&id) {
                Ok(snapshot) => whole.push(self.listing(snapshot)),
                // Retention may have dropped it since the names were read.
                Err(_) if !snapshots(self.need_store()?).join(id.as_str()).exists() => {}
                Err(error) => damaged.push(Damaged { id, error }),
            }
        }
        Ok((whole, damaged))
    }

    /// A snapshot with what became of its run.
    pub fn listing(&self, snapshot: Snapshot) -> Listing {
        let end = self.store().and_then(|store| RunEnd::load(&snapshots(store), &snapshot.id));
        let state = match (snapshot.kind, &end) {
            (SnapshotKind::Run, Some(_)) => State::Ended,
            (SnapshotKind::Run, None) if self.is_running(&snapshot.id) => State::Running,
            (SnapshotKind::Run, None) => State::Interrupted,
            _ => State::Complete,
        };
        Listing { snapshot, state, end }
    }

    /// Whether the run of `id` is going on: its snapback holds a kernel lock.
    pub(super) fn is_running(&self, id: &Id) -> bool {
        let Some(store) = self.store() else { return false };
        let marks = store.dir().child(RUNNING);
        let Ok(file) = marks.and_then(|dir| dir.open_file(id.as_str().as_bytes())) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// The runs that are going on.
    pub(super) fn running(&self) -> Result<Vec<Id>> {
        let Some(store) = self.store() else { return Ok(Vec::new()) };
        let Ok(marks) = store.dir().child(RUNNING).and_then(|dir| dir.names()) else { return Ok(Vec::new()) };
        let ids = marks.iter().filter_map(|mark| Id::parse(std::str::from_utf8(mark).ok()?));
        let known = snapshot::ids(&snapshots(store))?;
        Ok(ids.filter(|id| known.contains(id) && self.is_running(id)).collect())
    }
}
