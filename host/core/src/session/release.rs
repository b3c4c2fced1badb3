//! What captures hold outside the store (a template database on a server) and goes with
//! them, by the backend that made it.
//!
//! Before a snapshot's record goes, what it holds outside is written down; it stays written
//! down, and its objects stay, until it is gone: what fails is tried again by the next `gc`,
//! shown by `status`, and keeps nothing else from going. A capture that no snapshot has in
//! the end, since it was only looked at or failed half-way, lets go when the command ends.
//!
//! Invariant: nothing is let go of that a snapshot still has, under whatever name, also in
//! another project that is known here: one that was copied has the same snapshots.

mod orphaned;

pub(super) use orphaned::Held;

use super::{Environment, Project, Session, snapshots, twin};
use crate::backend::{Backend, Call, Cancel, Part, Target};
use crate::disk::Dir;
use crate::error::{Kind, Result};
use crate::history::snapshot::{self, Captured, Snapshot};
use crate::history::{Id, sealed};
use crate::object::Key;
use crate::project::STORE;
use crate::project::registry::{Known, Registry};
use crate::store::{Store, Writer};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// What is to be let go of.
const RELEASES: &[u8] = b"releases";
/// Bytes that such a list has at most: it is made of records.
const MOST_BYTES: u64 = 64 << 20;

/// What a snapshot that is dropped held outside the store and could not be let go of yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Release {
    /// The snapshot.
    pub snapshot: Id,
    /// The target, with its settings frozen.
    pub target: Target,
    /// What stands for it.
    pub parts: Vec<Part>,
    /// What kept it from going the last time.
    pub reason: Option<String>,
}

impl Project {
    /// What dropped snapshots still hold outside the store.
    ///
    /// # Errors
    /// When the list cannot be read.
    pub fn releases(&self) -> Result<Vec<Release>> {
        self.store().map_or_else(|| Ok(Vec::new()), |store| read(store.dir()))
    }

    /// The objects that are needed to let go of what is written down.
    pub(super) fn held_for_release(&self) -> Result<impl Iterator<Item = Key>> {
        Ok(self.releases()?.into_iter().flat_map(|release| release.parts).map(|part| part.content))
    }
}

impl Session {
    /// Writes down what the snapshots `ids`, which are about to go, hold outside the store.
    pub(super) fn note_releases(&self, ids: &[Id]) -> Result<()> {
        let mut all = self.releases()?;
        let before = all.len();
        for record in ids.iter().filter_map(|id| self.load(id).ok()) {
            for Captured { target, parts, .. } in record.targets.into_iter().filter(|c| c.releases) {
                all.push(Release { snapshot: record.id.clone(), target, parts, reason: None });
            }
        }
        if all.len() > before { self.write_releases(&all) } else { Ok(()) }
    }

    /// Lets go of what was written down for snapshots that are `meant`, as far as possible.
    pub(super) fn release(&self, meant: impl Fn(&Id) -> bool) -> Result<()> {
        let all = self.releases()?;
        if !all.iter().any(|release| meant(&release.snapshot)) {
            return Ok(());
        }
        let (there, mut kept) = (self.ids()?, kept(self.opened())?);
        let root = &self.env().root;
        kept.extend(kept_by_others(&self.env().state, |known| known.root.path() == root)?);
        let mut left = Vec::new();
        for mut release in all {
            // It did not go after all.
            if there.contains(&release.snapshot) {
                continue;
            }
            if meant(&release.snapshot) {
                let Err(error) = self.let_go(&release, &kept) else { continue };
                let doing =
                    format!("what `{}` of a dropped snapshot holds is not gone yet", release.target.name);
                self.env().report.troubled(&doing, &error);
                release.reason = Some(error.to_string());
            }
            left.push(release);
        }
        self.write_releases(&left)
    }

    fn let_go(&self, release: &Release, kept: &HashSet<Key>) -> Result<()> {
        let parts = without(&release.parts, kept);
        if parts.is_empty() {
            return Ok(());
        }
        let env = self.env();
        let backend = env.backends.get(&release.target.backend)?;
        backend.discard(&Call::new(env, &release.target, Some(self.opened())), &parts)
    }

    fn write_releases(&self, all: &[Release]) -> Result<()> {
        let disk = &self.env().disk;
        match (all.is_empty(), self.dir.stat(RELEASES)?.is_some()) {
            (true, false) => Ok(()),
            (true, true) => disk.unlink(&self.dir, RELEASES),
            // Nothing that frees space may fail because there is none.
            (false, _) => match disk.write_synced(&self.dir, RELEASES, &sealed::seal(&all), 0o600) {
                Err(error) if error.kind() == Kind::NoSpace => Ok(()),
                done => done,
            },
        }
    }
}

fn read(dir: &Dir) -> Result<Vec<Release>> {
    match dir.read(RELEASES, MOST_BYTES) {
        Err(error) if error.kind() == Kind::NotFound => Ok(Vec::new()),
        bytes => sealed::open(&bytes?, "the list of what is to be let go of"),
    }
}

/// All that the snapshots of `store` have. One that cannot be read may have anything.
fn kept(store: &Store) -> Result<HashSet<Key>> {
    let mut kept = HashSet::new();
    add(&mut kept, &snapshots(store))?;
    Ok(kept)
}

/// All that the snapshots of other projects have which are known here, but those that are
/// `own`: in their stores, and in what is kept of these outside.
fn kept_by_others(state: &Path, own: impl Fn(&Known) -> bool) -> Result<HashSet<Key>> {
    let mut kept = HashSet::new();
    for known in Registry::new(state).all().iter().filter(|known| !own(known)) {
        let stores = [Some(known.root.path().join(STORE)), twin::place_in(state, &known.store)];
        stores.iter().flatten().try_for_each(|store| add(&mut kept, &store.join("snapshots")))?;
    }
    Ok(kept)
}

fn add(kept: &mut HashSet<Key>, snapshots: &Path) -> Result<()> {
    for id in snapshot::ids(snapshots)? {
        let record = match Snapshot::load(snapshots, &id) {
            // It went meanwhile.
            Err(error) if error.kind() == Kind::NotFound => continue,
            record => record?,
        };
        let parts = record.targets.into_iter().flat_map(|captured| captured.parts);
        kept.extend(parts.map(|part| part.content));
    }
    Ok(())
}

fn without(parts: &[Part], kept: &HashSet<Key>) -> Vec<Part> {
    parts.iter().filter(|part| !kept.contains(&part.content)).cloned().collect()
}

/// The captures of one command that hold something outside the store: what no snapshot has
/// when this is dropped is let go of.
#[derive(Default)]
pub(super) struct Unkept(Mutex<Vec<Capture>>);

struct Capture {
    /// The user's state directory.
    state: PathBuf,
    backend: Arc<dyn Backend>,
    call: Call,
    parts: Vec<Part>,
}

impl Unkept {
    /// One more of them.
    pub fn note(
        &self,
        env: &Environment,
        target: &Target,
        writer: &Arc<Writer>,
        backend: &Arc<dyn Backend>,
        parts: &[Part],
    ) {
        let call = Call { writer: Some(writer.clone()), ..Call::new(env, target, Some(writer.store())) };
        // It must go also when the user asked to stop.
        let call = Call { cancel: Cancel::default(), ..call };
        let state = env.state.clone();
        let capture = Capture { state, backend: backend.clone(), call, parts: parts.to_vec() };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(capture);
    }
}

impl Drop for Unkept {
    fn drop(&mut self) {
        let all = std::mem::take(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
        let Some(first) = all.first() else { return };
        // The same parts may have been captured again.
        let mut gone = first.call.store().and_then(|store| {
            let own = |known: &Known| known.root.path() == first.call.root;
            Ok(&kept(store)? | &kept_by_others(&first.state, own)?)
        });
        for Capture { backend, call, parts, .. } in all {
            let done = gone.as_mut().map_err(|error| error.clone()).and_then(|gone| {
                let parts = without(&parts, gone);
                gone.extend(parts.iter().map(|part| part.content));
                if parts.is_empty() { Ok(()) } else { backend.discard(&call, &parts) }
            });
            if let Err(error) = done {
                let doing = format!("what `{}` made for a look is not gone", call.target.name);
                call.report.troubled(&doing, &error);
            }
        }
    }
}
