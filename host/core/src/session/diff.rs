//! What differs between two states, target by target.

use super::{Project, Session};
use crate::error::Result;
use crate::history::snapshot::{Captured, Snapshot};
use crate::object::ObjectKind;
use crate::store::Source;
use crate::tree::compare::{self, ChangeKind};
use crate::tree::node::Entry;
use crate::tree::root::Root;
use std::sync::Arc;

/// One difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The target.
    pub target: String,
    /// Whether it came, changed, or went.
    pub kind: ChangeKind,
    /// Path inside the target, or the backend's name for the part.
    pub path: Vec<u8>,
    /// The entry before, where it is one of a tree.
    pub before: Option<Entry>,
    /// The entry after, where it is one of a tree.
    pub after: Option<Entry>,
}

/// One side of a comparison, with what its objects are read from.
pub struct Side {
    /// What was captured.
    pub targets: Vec<Captured>,
    /// Where its objects are.
    pub source: Arc<dyn Source + Send>,
}

impl Project {
    /// A snapshot as a side.
    ///
    /// # Errors
    /// When there is no store.
    pub fn side(&self, snapshot: &Snapshot) -> Result<Side> {
        Ok(Side { targets: snapshot.targets.clone(), source: self.need_store()?.clone() })
    }
}

impl Session {
    /// The present as a side: a snapshot of the targets of `like` with their frozen
    /// settings, which is not kept.
    ///
    /// # Errors
    /// When it cannot be captured.
    pub fn present(&self, like: &Snapshot) -> Result<Side> {
        let (targets, writer) = self.capture_like(like, &[])?;
        Ok(Side { targets, source: writer })
    }
}

impl Side {
    /// Calls `found` for each difference from this side to `other`, sorted by target
    /// as in this side, then by path. Targets that only one side has are not compared.
    ///
    /// # Errors
    /// When an object cannot be read, or `found` fails.
    pub fn differences(&self, other: &Self, found: &mut dyn FnMut(Difference) -> Result<()>) -> Result<()> {
        for before in &self.targets {
            let name = &before.target.name;
            if let Some(after) = other.targets.iter().find(|c| c.target.name == *name) {
                differences(&*self.source, before, &*other.source, after, found)?;
            }
        }
        Ok(())
    }
}

pub(super) fn differences(
    before_source: &dyn Source,
    before: &Captured,
    after_source: &dyn Source,
    after: &Captured,
    found: &mut dyn FnMut(Difference) -> Result<()>,
) -> Result<()> {
    let target = &before.target.name;
    for part in &before.parts {
        let Some(other) = after.parts.iter().find(|other| other.name == part.name) else {
            found(whole(target, &part.name, ChangeKind::Deleted))?;
            continue;
        };
        if part.content == other.content {
            continue;
        }
        if part.content.kind() == ObjectKind::Root && other.content.kind() == ObjectKind::Root {
            let a = Root::decode(&before_source.read(&part.content)?)?;
            let b = Root::decode(&after_source.read(&other.content)?)?;
            compare::compare(before_source, &a, after_source, &b, &mut |change| {
                found(Difference {
                    target: target.clone(),
                    kind: change.kind,
                    path: change.path,
                    before: change.before,
                    after: change.after,
                })
            })?;
        } else {
            found(whole(target, &part.name, ChangeKind::Modified))?;
        }
    }
    for part in &after.parts {
        if !before.parts.iter().any(|other| other.name == part.name) {
            found(whole(target, &part.name, ChangeKind::Added))?;
        }
    }
    Ok(())
}

fn whole(target: &str, part: &str, kind: ChangeKind) -> Difference {
    Difference { target: target.to_owned(), kind, path: part.as_bytes().to_vec(), before: None, after: None }
}
