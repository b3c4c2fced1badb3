//! What was done, and what would be, in JSON.

use super::list::{Excluded, Lacks};
use super::names::{Named, path};
use serde::{Serialize, Serializer};
use snapback_core::session::{Difference, Freed, NotRestored};
use snapback_core::text::Bytes;

/// One difference, as `diff` and `undo` have it.
pub struct Change {
    target: String,
    kind: &'static str,
    path: Bytes,
}

impl From<&Difference> for Change {
    fn from(difference: &Difference) -> Self {
        Self {
            target: difference.target.clone(),
            kind: difference.kind.word(),
            path: Bytes(difference.path.clone()),
        }
    }
}

impl Serialize for Change {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Form<'a> {
            target: &'a str,
            kind: &'static str,
            #[serde(flatten)]
            path: Named<'a, 1>,
        }
        Form { target: &self.target, kind: self.kind, path: path(&self.path) }.serialize(s)
    }
}

/// What an undo, a redo or a restore did, or would do.
#[derive(Serialize)]
pub struct Restored<'a> {
    restored_to: &'a str,
    saved_as: Option<&'a str>,
    changes: Vec<Change>,
    not_restored: Vec<Refused<'a>>,
}

impl<'a> Restored<'a> {
    /// `saved_as` is none when nothing was done.
    pub fn new(
        restored_to: &'a str,
        saved_as: Option<&'a str>,
        changes: &[Difference],
        not_restored: &'a [NotRestored],
    ) -> Self {
        Self {
            restored_to,
            saved_as,
            changes: changes.iter().map(Change::from).collect(),
            not_restored: refused(not_restored),
        }
    }
}

/// What was left as it was, for JSON.
pub fn refused(items: &[NotRestored]) -> Vec<Refused<'_>> {
    items
        .iter()
        .map(|item| Refused { target: &item.target, path: path(&item.path), reason: &item.reason })
        .collect()
}

/// Something that was not restored.
#[derive(Serialize)]
pub struct Refused<'a> {
    target: &'a str,
    #[serde(flatten)]
    path: Named<'a, 1>,
    reason: &'a str,
}

/// What a gc or a forget did, or would do.
#[derive(Serialize)]
pub struct FreedReport<'a> {
    dropped: Vec<&'a str>,
    bytes: u64,
}

impl<'a> FreedReport<'a> {
    /// For JSON.
    pub fn new(freed: &'a Freed) -> Self {
        Self { dropped: freed.dropped.iter().map(|id| id.as_str()).collect(), bytes: freed.bytes }
    }
}

/// What `run --report` writes.
#[derive(Serialize)]
pub struct RunReport<'a> {
    /// The run.
    id: &'a str,
    /// The snapshot that was taken before it.
    snapshot: &'a str,
    exit_code: u8,
    /// None when it could not be found out.
    changes: Option<&'a [Change]>,
    not_covered: Vec<Excluded<'a>>,
}

impl<'a> RunReport<'a> {
    /// For JSON.
    pub fn new(id: &'a str, exit_code: u8, changes: Option<&'a [Change]>, lacks: &'a Lacks) -> Self {
        Self { id, snapshot: id, exit_code, changes, not_covered: lacks.items() }
    }
}
