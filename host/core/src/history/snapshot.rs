//! A snapshot's record: `snapshots/<id>/meta.json`, and `end.json` beside it once the
//! run that it was taken for has ended.
//!
//! Invariant: a directory `snapshots/<id>/` with a whole `meta.json` is a committed
//! snapshot whose objects are durable; both files are written once and never changed.

use super::clock::Moment;
use super::id::Id;
use super::sealed;
use super::timeline::Record;
use crate::backend::{Part, Target};
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result};
use crate::report;
use crate::text::Bytes;
use crate::tree::node::Time;
use crate::tree::root::Stamp;
use crate::tree::scan::Stat;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The version of the record that this program writes.
const FORMAT: u32 = 1;

/// The name of a snapshot's record in its directory.
pub(crate) const META: &str = "meta.json";
/// How the run of a snapshot ended.
pub(crate) const END: &str = "end.json";

/// A record of more bytes than this was never written: the longest command line, and a
/// thousand things left out, with the longest paths.
pub(super) const MOST_BYTES: u64 = 64 << 20;

/// Why a snapshot was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SnapshotKind {
    /// Before a command.
    Run,
    /// By `snapback snap`.
    Manual,
    /// During a run, by time.
    Interval,
    /// What an undo replaced.
    PreUndo,
    /// What a redo replaced.
    PreRedo,
    /// What a restore of chosen things replaced.
    PreRestore,
}

impl SnapshotKind {
    /// As people see it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Manual => "manual",
            Self::Interval => "interval",
            Self::PreUndo => "pre-undo",
            Self::PreRedo => "pre-redo",
            Self::PreRestore => "pre-restore",
        }
    }
}

/// A committed snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The record's version.
    pub format: u32,
    /// Its name.
    pub id: Id,
    /// Why it was taken.
    pub kind: SnapshotKind,
    /// The run that it belongs to: itself for a run's own, none outside of runs.
    pub run: Option<Id>,
    /// When it was committed.
    pub created: Moment,
    /// What the user said about it.
    pub message: Option<String>,
    /// The command of a run, word by word.
    pub command: Option<Vec<Bytes>>,
    /// The project's root then.
    pub root: Bytes,
    /// Never dropped by retention.
    pub pinned: bool,
    /// What was captured.
    pub targets: Vec<Captured>,
    /// Targets that the project has and this snapshot lacks.
    pub skipped: Vec<String>,
    /// Bytes that it added to the store.
    pub bytes_added: u64,
}

/// One target in a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Captured {
    /// The target with its settings, frozen.
    pub target: Target,
    /// What the backend stored.
    pub parts: Vec<Part>,
    /// What a backend said is not in it: subject, reason.
    pub omitted: Vec<(Bytes, String)>,
    /// Bytes of the target, where the host knows.
    pub bytes: u64,
    /// Files of the target, where the host knows.
    pub files: u64,
    /// What captured directories left out, by reason. They have all of it themselves.
    #[serde(default)]
    pub left_out: Vec<LeftOut>,
    /// The parts stand for something outside the store, which goes with them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub releases: bool,
    /// Where its directory was, when links in the project led there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub through: Option<Bytes>,
    /// What an earlier snapshot left out and this one has under another name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub carried: Vec<Carried>,
}

/// Something that was left out, and was renamed since.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Carried {
    /// Its path in the captured directory.
    pub path: Bytes,
    /// Its path when it was left out.
    pub from: Bytes,
    /// What it looked like then.
    pub stamp: Seen,
}

/// What something looked like from outside: inode number, and when that was last changed, in
/// seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen(u64, Option<(i64, u32)>);

impl From<Stamp> for Seen {
    fn from(stamp: Stamp) -> Self {
        Self(stamp.ino, stamp.ctime.map(|time| (time.sec, time.nsec)))
    }
}

impl Seen {
    /// Whether what is as `now` may be the inode that was seen.
    pub fn is_of(&self, now: &Stat) -> bool {
        let ctime = self.1.map(|(sec, nsec)| Time { sec, nsec });
        Stamp { ino: self.0, ctime }.may_be_of(now)
    }
}

impl Captured {
    /// Nothing of `target`.
    pub fn nothing(target: Target) -> Self {
        let (parts, omitted, left_out) = (Vec::new(), Vec::new(), Vec::new());
        Self {
            target,
            parts,
            omitted,
            bytes: 0,
            files: 0,
            left_out,
            releases: false,
            through: None,
            carried: Vec::new(),
        }
    }

    /// How many things a backend left out, those among them that it did not name.
    pub fn omitted_count(&self) -> u64 {
        let count = |(subject, reason): &(Bytes, String)| match report::more(reason) {
            Some(more) if subject.0.is_empty() => more,
            _ => 1,
        };
        self.omitted.iter().map(count).fold(0, u64::saturating_add)
    }
}

/// What was left out for one reason.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeftOut {
    /// The reason, in words.
    pub reason: String,
    /// How many directories and entries.
    pub count: u64,
    /// How many files, where they were counted.
    pub files: Option<u64>,
    /// The first of them.
    pub paths: Vec<Bytes>,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEnd {
    /// When.
    pub ended: Moment,
    /// The command's exit code, 128+n for signal n, as the shell has it.
    pub exit_code: i32,
}

impl Snapshot {
    /// The version to write.
    pub const FORMAT: u32 = FORMAT;

    /// The captured target called `name`.
    pub fn target(&self, name: &str) -> Option<&Captured> {
        self.targets.iter().find(|captured| captured.target.name == name)
    }

    /// The line of the timeline for it, if it is a step by itself: a run or a manual
    /// snapshot outside of runs.
    pub fn step(&self) -> Option<Record> {
        let is_step = self.run.is_none() && matches!(self.kind, SnapshotKind::Run | SnapshotKind::Manual);
        is_step.then(|| Record::Did { kind: self.kind, before: self.id.clone() })
    }

    /// Commits the record into `snapshots`: whole or not at all, durable afterwards.
    ///
    /// # Errors
    /// When the disk refuses; nothing was committed then.
    pub fn commit(&self, disk: &Disk, snapshots: &Dir) -> Result<()> {
        let aside = format!(".{}", self.id);
        disk.mkdir(snapshots, aside.as_bytes(), 0o700)?;
        let dir = snapshots.child(aside.as_bytes())?;
        disk.write_sealed(&dir, META.as_bytes(), &sealed::seal(self), 0o400)?;
        disk.rename_noreplace(snapshots, aside.as_bytes(), snapshots, self.id.as_str().as_bytes())?;
        disk.sync_dir(snapshots)
    }

    /// Reads the record of `id`.
    ///
    /// # Errors
    /// `NotFound`, `Corrupt`, or `Incompatible` when a newer program wrote it.
    pub fn load(snapshots: &Path, id: &Id) -> Result<Self> {
        let what = format!("the record of snapshot {id}");
        let bytes = read(&snapshots.join(id.as_str()), META, &what, MOST_BYTES)?;
        #[derive(Deserialize)]
        struct Version {
            format: u32,
        }
        let version: Version = sealed::open(&bytes, &what)?;
        if version.format > FORMAT {
            return Err(newer(&what));
        }
        let snapshot: Self = sealed::open(&bytes, &what)?;
        if snapshot.id != *id {
            return Err(Error::corrupt(format!("{what} is damaged: it is that of {}", snapshot.id)));
        }
        Ok(snapshot)
    }
}

/// An error for something that a newer program wrote.
pub(crate) fn newer(what: &str) -> Error {
    Error::new(Kind::Incompatible, format!("{what} was written by a newer snapback"))
        .hint("update snapback to read it; nothing was changed")
}

impl RunEnd {
    /// Records the end of the run of snapshot `id`. A second end is no error: the
    /// first stays.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn record(&self, disk: &Disk, snapshots: &Dir, id: &Id) -> Result<()> {
        let dir = snapshots.child(id.as_str().as_bytes())?;
        if fs::exists(dir.path().join(END)).unwrap_or(false) {
            return Ok(());
        }
        disk.write_sealed(&dir, END.as_bytes(), &sealed::seal(self), 0o400)
    }

    /// How the run of snapshot `id` ended, when that was recorded. A damaged record
    /// counts as none: how a run ended decides nothing.
    pub fn load(snapshots: &Path, id: &Id) -> Option<Self> {
        Self::read(snapshots, id).ok()?
    }

    /// The same, with damage as an error.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn read(snapshots: &Path, id: &Id) -> Result<Option<Self>> {
        let what = "the record of how its run ended";
        match read(&snapshots.join(id.as_str()), END, what, MOST_BYTES) {
            Err(error) if error.kind() == Kind::NotFound => Ok(None),
            bytes => sealed::open(&bytes?, what).map(Some),
        }
    }
}

/// The names of all committed snapshots, newest first.
///
/// # Errors
/// When the directory cannot be read.
pub fn ids(snapshots: &Path) -> Result<Vec<Id>> {
    let names = match Dir::open(snapshots).and_then(|dir| dir.names()) {
        Err(error) if error.kind() == Kind::NotFound => return Ok(Vec::new()),
        other => other.map_err(odd)?,
    };
    let mut ids: Vec<Id> =
        names.iter().filter_map(|name| Id::parse(std::str::from_utf8(name).ok()?)).collect();
    ids.sort_by(|a, b| b.cmp(a));
    Ok(ids)
}

/// The file `name` in `dir`, which people know as `what`. Neither is followed when it is a
/// link, and nothing is waited for.
pub(super) fn read(dir: &Path, name: &str, what: &str, limit: u64) -> Result<Vec<u8>> {
    let bytes = Dir::open(dir).and_then(|dir| dir.read(name.as_bytes(), limit));
    bytes.map_err(|error| match error.kind() {
        Kind::NotFound => Error::new(Kind::NotFound, format!("{what} is missing")),
        _ => odd(error),
    })
}

/// What stands in the place of something of a store, and is none, is damage: nobody typed it.
pub(crate) fn odd(error: Error) -> Error {
    match (error.kind(), error.hint_text()) {
        (Kind::Invalid, Some(hint)) => Error::corrupt(error.message()).hint(hint),
        (Kind::Invalid, None) => Error::corrupt(error.message()),
        _ => error,
    }
}
