//! The state of a project in JSON.

use super::list::{Excluded, Lacks};
use super::names::Named;
use super::survey::SurveyItem;
use serde::Serialize;
use snapback_core::history::Id;
use snapback_core::session::{Damaged, Pending, Release};
use snapback_core::text::Bytes;
use snapback_core::tree::apply::Left;
use snapback_runtime::docker::Kept;

/// What `status` says.
#[derive(Serialize)]
pub struct Status<'a> {
    /// The project's root.
    #[serde(flatten)]
    pub root: Named<'a, 1>,
    /// The kind of the file system, where other machines may have it as well.
    pub over_network: Option<&'a str>,
    /// The store; none when nothing was ever captured.
    pub store: Option<StoreItem<'a>>,
    /// What restores kept in the store.
    pub saved: SavedItem,
    /// Whole snapshots.
    pub snapshots: usize,
    /// Snapshots whose records cannot be read.
    pub damaged: Vec<DamagedItem<'a>>,
    /// A step that was cut short.
    pub pending: Option<PendingItem<'a>>,
    /// Containers that stay held until that step goes on.
    pub held: Vec<HeldItem<'a>>,
    /// What dropped snapshots still hold outside the store.
    pub releases: Vec<ReleaseItem<'a>>,
    /// What undo would take back.
    pub undo: Option<StatusStep>,
    /// What redo would do again.
    pub redo: Option<StatusStep>,
    /// Runs that are going on.
    pub running: &'a [Id],
    /// What the project asks for.
    pub targets: Vec<TargetItem<'a>>,
    /// What the newest snapshot lacks.
    pub excluded: Vec<Excluded<'a>>,
    /// What a snapshot would hold and leave out now; none when that is not known.
    pub survey: Option<Vec<SurveyItem>>,
    /// Why it is not known.
    pub survey_problem: Option<&'a str>,
}

/// The store.
#[derive(Serialize)]
pub struct StoreItem<'a> {
    /// Where it is.
    #[serde(flatten)]
    pub path: Named<'a, 1>,
    /// Bytes that its packs take on the disk.
    pub bytes: u64,
    /// Whether all of it is kept outside the project's folder as well.
    pub outlives_folder: bool,
    /// Whether it came from elsewhere, and is only read.
    pub foreign: bool,
}

/// Files that restores kept because somebody wrote to them, or may.
#[derive(Serialize)]
pub struct SavedItem {
    files: u64,
    bytes: u64,
}

impl From<Left> for SavedItem {
    fn from(left: Left) -> Self {
        Self { files: left.files, bytes: left.bytes }
    }
}

/// A snapshot whose record cannot be read.
#[derive(Serialize)]
pub struct DamagedItem<'a> {
    id: &'a Id,
    problem: &'a str,
}

/// A step that was cut short.
#[derive(Serialize)]
pub struct PendingItem<'a> {
    to: &'a Id,
    saved_as: &'a Id,
    targets: &'a [String],
}

/// Containers that stay held while a volume is half put back.
#[derive(Serialize)]
pub struct HeldItem<'a> {
    volume: &'a str,
    containers: &'a str,
    /// Those of them that somebody started all the same.
    running: &'a str,
    how: &'static str,
}

impl<'a> From<&'a Kept> for HeldItem<'a> {
    fn from(kept: &'a Kept) -> Self {
        Self {
            volume: &kept.volume,
            containers: &kept.containers,
            running: &kept.running,
            how: kept.how.done(),
        }
    }
}

/// A step that undo or redo would take.
#[derive(Serialize)]
pub struct StatusStep {
    /// What it was.
    pub kind: &'static str,
    /// The snapshot that it goes to.
    pub to: String,
    /// In words.
    pub what: String,
}

/// What a dropped snapshot still holds outside the store.
#[derive(Serialize)]
pub struct ReleaseItem<'a> {
    /// The target.
    pub target: &'a str,
    /// The snapshot.
    pub snapshot: &'a Id,
    /// What kept it from going; none when that was not tried yet.
    pub reason: Option<&'a str>,
}

impl<'a> From<&'a Release> for ReleaseItem<'a> {
    fn from(release: &'a Release) -> Self {
        let Release { snapshot, target, reason, .. } = release;
        Self { target: &target.name, snapshot, reason: reason.as_deref() }
    }
}

/// A target.
#[derive(Serialize)]
pub struct TargetItem<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its backend.
    pub backend: &'a str,
}

impl<'a> StoreItem<'a> {
    /// At `path`, of so many bytes.
    pub fn new(path: &'a Bytes, bytes: u64, outlives_folder: bool, foreign: bool) -> Self {
        Self { path: super::names::path(path), bytes, outlives_folder, foreign }
    }
}

impl<'a> From<&'a Damaged> for DamagedItem<'a> {
    fn from(damaged: &'a Damaged) -> Self {
        Self { id: &damaged.id, problem: damaged.error.message() }
    }
}

impl<'a> From<&'a Pending> for PendingItem<'a> {
    fn from(pending: &'a Pending) -> Self {
        Self { to: &pending.to, saved_as: &pending.saved, targets: &pending.targets }
    }
}

/// The root under its key.
pub fn root(root: &Bytes) -> Named<'_, 1> {
    Named([("root", "root_b64", root)])
}

/// What the newest snapshot lacks, if there is one.
pub fn excluded(lacks: Option<&Lacks>) -> Vec<Excluded<'_>> {
    lacks.map(Lacks::items).unwrap_or_default()
}
