//! What lies beyond two states of a snapshot's targets: repositories that stand elsewhere,
//! and things that are not covered and are not as they were. No restore brings any of it
//! back; it is told before and after.

use super::NotRestored;
use super::plan::is_within;
use super::scope::inside;
use crate::error::Result;
use crate::history::snapshot::Captured;
use crate::object::ObjectKind;
use crate::project::STORE;
use crate::store::Source;
use crate::text::Bytes;
use crate::tree::compare::{self, Fate};
use crate::tree::git::{Moved, State, moved};
use crate::tree::root::{Root, Why};
use std::path::Path;

/// What no restore brings back.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Beyond {
    /// Repositories that stand elsewhere, by the target whose work tree they belong to.
    pub git: Vec<(String, Moved)>,
    /// Things that are not covered and are not as they were.
    pub uncovered: Vec<Uncovered>,
}

/// Something that is not covered and is not as it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Uncovered {
    /// The target that it lies in.
    pub target: String,
    /// Its path there.
    pub path: Bytes,
    /// Why it is not covered.
    pub why: Why,
    /// What became of it.
    pub fate: Fate,
}

impl Beyond {
    /// What lies beyond the change from `before` to `after`, target by target, where it is
    /// at or in one of `paths` of `project` (empty: all). Of repositories only without `paths`.
    pub(super) fn between(
        source: &dyn Source,
        before: &[Captured],
        after: &[Captured],
        (project, paths): (&Path, &[Bytes]),
    ) -> Result<Self> {
        let mut all = Self::default();
        for before in before {
            let name = &before.target.name;
            let Some(paths) = inside(project, before, paths) else { continue };
            let Some(after) = after.iter().find(|after| after.target.name == *name) else { continue };
            for part in before.parts.iter().filter(|part| part.content.kind() == ObjectKind::Root) {
                let now = after.parts.iter().find(|now| now.name == part.name);
                let Some(now) = now.filter(|now| now.content != part.content) else { continue };
                if now.content.kind() == ObjectKind::Root {
                    let root = |key| Root::decode(&source.read(key)?);
                    all.add(source, name, &root(&part.content)?, &root(&now.content)?, &paths)?;
                }
            }
        }
        Ok(all)
    }

    fn add(
        &mut self,
        source: &dyn Source,
        target: &str,
        before: &Root,
        after: &Root,
        paths: &[Bytes],
    ) -> Result<()> {
        let git = moved(source, before, after)?;
        let git_tells = git.as_ref().is_some_and(|git| !matches!(git.state, State::Moved | State::Changed));
        for item in compare::uncovered(source, before, after)? {
            // Our own store is brought back, or made anew.
            let own = item.why == Why::Store && item.path == STORE.as_bytes();
            let told = git_tells && paths.is_empty() && item.path == b".git";
            if !own && !told && is_within(&item.path, paths) {
                let (target, path) = (target.to_owned(), Bytes(item.path));
                self.uncovered.push(Uncovered { target, path, why: item.why, fate: item.fate });
            }
        }
        if paths.is_empty() {
            self.git.extend(git.map(|git| (target.to_owned(), git)));
        }
        Ok(())
    }

    /// What should have been captured, was not, and is not as it was.
    pub(super) fn holes(&self) -> impl Iterator<Item = NotRestored> {
        self.uncovered.iter().filter(|item| item.why.is_hole()).map(|item| NotRestored {
            target: item.target.clone(),
            path: item.path.clone(),
            reason: format!("not captured, and left as it is: {}", item.why.word()),
            in_part: false,
        })
    }

    /// Whether there is nothing to tell.
    pub fn is_empty(&self) -> bool {
        self.git.is_empty() && self.uncovered.is_empty()
    }
}
