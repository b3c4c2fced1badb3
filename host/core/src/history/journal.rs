//! The journal: the restore that is going on, written before anything is touched and
//! removed when its step is in the timeline.
//!
//! Its presence means that a restore was begun and perhaps not finished. Restores are
//! idempotent, so finishing it is doing it again, and taking it back is the same with
//! the two snapshots exchanged.

use super::id::Id;
use super::sealed;
use super::snapshot::{MOST_BYTES, newer, read};
use super::timeline::{Record, Timeline};
use crate::disk::{Dir, Disk};
use crate::error::{Kind, Result};
use crate::text::Bytes;
use serde::{Deserialize, Serialize};
use std::path::Path;

const FILE: &str = "journal";
const FORMAT: u32 = 1;

/// The command that began a restore, so that the same command given again is known to
/// mean that one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verb {
    /// `undo`, of whatever.
    Undo,
    /// `redo`.
    Redo,
    /// `restore`.
    #[default]
    Restore,
}

impl Verb {
    /// As people see it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Undo => "undo",
            Self::Redo => "redo",
            Self::Restore => "restore",
        }
    }
}

/// A restore that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Journal {
    /// The record's version.
    pub format: u32,
    /// The command that began it.
    #[serde(default)]
    pub verb: Verb,
    /// The snapshot that it goes to.
    pub to: Id,
    /// The snapshot of what was there before.
    pub saved: Id,
    /// The targets that it concerns, in order.
    pub targets: Vec<String>,
    /// Subjects to which it is narrowed; empty: all.
    pub only: Vec<Bytes>,
    /// The line for the timeline once it is done.
    pub record: Record,
    /// The number of that line.
    pub number: u64,
}

impl Journal {
    /// The version to write.
    pub const FORMAT: u32 = FORMAT;

    /// The pending restore of the store at `store`, if there is one.
    ///
    /// # Errors
    /// `Corrupt` or `Incompatible` when there is one that cannot be read.
    pub fn load(store: &Path) -> Result<Option<Self>> {
        const WHAT: &str = "the journal";
        let bytes = match read(store, FILE, WHAT, MOST_BYTES) {
            Err(error) if error.kind() == Kind::NotFound => return Ok(None),
            other => other?,
        };
        let journal: Self = sealed::open(&bytes, WHAT).map_err(|error| {
            error.hint(
                "`snapback undo --abandon TARGET` sets it aside: everything stays as it is, and \
                     `snapback list` shows what was kept before the step began",
            )
        })?;
        if journal.format > FORMAT {
            return Err(newer(WHAT));
        }
        Ok(Some(journal))
    }

    /// Whether its line was added to `timeline`, and not taken back by the next one.
    pub fn is_in(&self, timeline: &Timeline) -> bool {
        timeline.number.checked_sub(self.number).is_some_and(|since| since % 2 == 0)
    }

    /// Writes it, durable afterwards.
    ///
    /// # Errors
    /// When the disk refuses; there is none then.
    pub fn begin(&self, disk: &Disk, store: &Dir) -> Result<()> {
        disk.write_sealed(store, FILE.as_bytes(), &sealed::seal(self), 0o600)
    }

    /// Sets one that cannot be read aside: nothing is known of the step any more.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn set_aside(disk: &Disk, store: &Dir) -> Result<()> {
        let aside = format!("{FILE}.damaged");
        disk.rename(store, FILE.as_bytes(), store, aside.as_bytes())?;
        disk.sync_dir(store)
    }

    /// Removes it: the step is in the timeline, or was taken back.
    ///
    /// # Errors
    /// When the disk refuses; it is still there then.
    pub fn end(disk: &Disk, store: &Dir) -> Result<()> {
        disk.unlink(store, FILE.as_bytes())?;
        // One that is there again after a power cut is taken for a step that was cut short:
        // that costs time, and is no reason to call what is done not done.
        let _ = disk.sync_dir(store);
        Ok(())
    }
}
