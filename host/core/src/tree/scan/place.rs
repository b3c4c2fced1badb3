//! One directory of a walk: where it is, and which rules hold in it.

use super::{Dir, Walk};
use crate::error::Result;
use crate::tree::ignore::{Patterns, Repository};
use crate::tree::node::{Entry, Node, decode_tree};
use crate::tree::root::Why;
use std::sync::{Arc, Mutex, OnceLock};

/// One directory of a walk.
pub struct Place {
    /// The directory.
    pub dir: Arc<Dir>,
    /// The one that it lies in; none for the directory that is walked.
    pub above: Option<Arc<Place>>,
    pub(super) scope: Scope,
    /// Whether it holds something called `.git`, and `.gitignore`.
    pub(super) has_git: bool,
    pub(super) has_gitignore: bool,
    pub(super) repository: OnceLock<Option<Repository>>,
    pub(super) gitignore: OnceLock<Patterns>,
    /// Databases that were found in it, and the targets that they are left to.
    pub(super) databases: Mutex<Vec<(Vec<u8>, Arc<str>)>>,
    /// Its entries in the snapshot that must be covered.
    cover: OnceLock<Option<Vec<Entry>>>,
}

/// Which rules hold in a directory.
#[derive(Debug, Clone)]
pub enum Scope {
    /// All of them.
    Whole,
    /// It is captured only because something wanted lies beneath; all else in it is
    /// left out for this reason.
    Toward(Why, Arc<str>),
    /// It is a repository that is covered, or lies in one: names in it are git's own, and
    /// half a repository is none. Only patterns of `ignore` that are paths leave out.
    Git,
    /// None: it stands where a snapshot that must be covered has something else.
    All,
}

impl Place {
    pub(super) fn new(
        dir: Arc<Dir>,
        above: Option<Arc<Self>>,
        scope: Scope,
        has_git: bool,
        has_gitignore: bool,
    ) -> Self {
        Self {
            dir,
            above,
            scope,
            has_git,
            has_gitignore,
            repository: OnceLock::new(),
            gitignore: OnceLock::new(),
            databases: Mutex::default(),
            cover: OnceLock::new(),
        }
    }

    /// This place and those above it, the nearest first.
    pub(super) fn upwards(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |place| place.above.as_deref())
    }
}

impl Walk<'_> {
    /// What the snapshot that must be covered has at `name` in `place`.
    ///
    /// # Errors
    /// When that snapshot's tree cannot be read.
    pub(super) fn covered<'p>(&self, place: &'p Place, name: &[u8]) -> Result<Option<&'p Node>> {
        if self.cover.is_none() {
            return Ok(None);
        }
        Ok(self.cover_of(place)?.and_then(|entries| entry(entries, name)).map(|entry| &entry.node))
    }

    /// Whether the snapshot that must be covered has no directory at `place`, or above
    /// it, but something else.
    pub(super) fn stands_in_the_way(&self, place: &Place) -> Result<bool> {
        if self.cover.is_none() || self.cover_of(place)?.is_some() {
            return Ok(false);
        }
        for place in place.upwards() {
            let Some(above) = &place.above else { break };
            if let Some(entries) = self.cover_of(above)? {
                return Ok(entry(entries, place.dir.name()).is_some());
            }
        }
        Ok(false)
    }

    /// The entries of `place` in the snapshot that must be covered.
    pub(super) fn cover_of<'p>(&self, place: &'p Place) -> Result<Option<&'p Vec<Entry>>> {
        let Some(cover) = &self.cover else { return Ok(None) };
        // From the nearest that is known downwards, one by one: a tree may be deep.
        let mut missing: Vec<&'p Place> = Vec::new();
        for place in place.upwards() {
            if place.cover.get().is_some() {
                break;
            }
            missing.push(place);
        }
        while let Some(place) = missing.pop() {
            let node = match &place.above {
                None => Some(&cover.root.top.node),
                Some(above) => {
                    let entries = above.cover.get().and_then(Option::as_ref);
                    entries.and_then(|entries| entry(entries, place.dir.name())).map(|entry| &entry.node)
                }
            };
            let entries = match node {
                Some(Node::Dir(key)) => Some(decode_tree(&cover.source.read(key)?)?),
                _ => None,
            };
            let _ = place.cover.set(entries);
        }
        Ok(place.cover.get().and_then(Option::as_ref))
    }
}

fn entry<'p>(entries: &'p [Entry], name: &[u8]) -> Option<&'p Entry> {
    entries.binary_search_by(|entry| entry.name.as_slice().cmp(name)).ok().map(|at| &entries[at])
}

/// A chain of places is let go one by one: a deep one must not take the stack.
impl Drop for Place {
    fn drop(&mut self) {
        let mut above = self.above.take();
        while let Some(mut place) = above.and_then(Arc::into_inner) {
            above = place.above.take();
        }
    }
}
