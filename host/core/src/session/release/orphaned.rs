//! Letting go of what the history of a removed project holds outside, before it goes.
//!
//! Nothing says for sure that a project is removed and not moved, where nobody used it
//! since; then its own store has the same snapshots, which need what they hold. A second
//! link to a record tells: so it is let go of only where the last link is the one that is
//! kept here, and where the project lay on the same file system, so that there were links.

use super::super::Environment;
use super::{kept_by_others, without};
use crate::backend::{Call, Part, Target};
use crate::error::{Error, Kind, Result};
use crate::history::snapshot::{self, META, Snapshot};
use crate::object::Key;
use crate::store::Store;
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What the snapshots of one history hold outside.
pub(in crate::session) struct Held {
    /// For each target with its settings what stands for it.
    items: Vec<(Target, Vec<Part>)>,
    /// Whether the project has the same snapshots, wherever it is.
    elsewhere: bool,
}

impl Held {
    /// What the history kept at `place` holds. A record that cannot be read holds nothing
    /// that anybody could find.
    pub fn of(place: &Path) -> Self {
        let snapshots = place.join("snapshots");
        let mut held = Self { items: Vec::new(), elsewhere: false };
        let mut known = HashSet::<Key>::new();
        for id in snapshot::ids(&snapshots).unwrap_or_default() {
            let Ok(record) = Snapshot::load(&snapshots, &id) else { continue };
            let links = fs::metadata(snapshots.join(id.as_str()).join(META)).map_or(1, |meta| meta.nlink());
            held.elsewhere |= links > 1;
            for captured in record.targets.into_iter().filter(|captured| captured.releases) {
                let parts: Vec<Part> =
                    captured.parts.into_iter().filter(|part| known.insert(part.content)).collect();
                if !parts.is_empty() {
                    held.items.push((captured.target, parts));
                }
            }
        }
        held
    }

    /// Whether there is anything to let go of.
    pub fn is_nothing(&self) -> bool {
        self.items.is_empty() || self.elsewhere
    }

    /// Lets go of all of it, for the project that was at `root`; returns what cannot go, and
    /// why. `linked`: whether the project's own store shared its records with the history.
    pub fn let_go(&self, env: &Environment, place: &Path, root: &Path, linked: bool) -> Vec<(String, Error)> {
        let mut stuck = Vec::new();
        let is_own = |store: &str| place.file_name().is_some_and(|name| name == store);
        let kept = kept_by_others(&env.state, |known| is_own(&known.store));
        for (target, parts) in &self.items {
            let needed = kept.as_ref().map(|kept| without(parts, kept));
            let done = match (needed, linked) {
                (Err(error), _) => Err(error.clone()),
                // A project that was copied has it still.
                (Ok(parts), _) if parts.is_empty() => Ok(()),
                (Ok(parts), true) => discard(env, place, root, target, &parts),
                (Ok(_), false) => Err(Error::new(
                    Kind::Other,
                    "the project may only have been moved away, and need it still",
                )
                .hint("if it was removed, remove by hand what the backend made for it")),
            };
            if let Err(error) = done {
                stuck.push((target.name.clone(), error));
            }
        }
        stuck
    }
}

fn discard(env: &Environment, place: &Path, root: &Path, target: &Target, parts: &[Part]) -> Result<()> {
    let store = Store::open(place, env.disk.clone())?;
    let backend = env.backends.get(&target.backend)?;
    let call = Call { root: root.to_owned(), ..Call::new(env, target, Some(&store)) };
    backend.discard(&call, parts)
}
