//! What a restore did, and what it did not do and why.

use std::path::PathBuf;

/// What a restore did.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// Entries that were made again.
    pub added: u64,
    /// Entries that were changed back.
    pub modified: u64,
    /// Entries that were removed.
    pub deleted: u64,
    /// What was left as it is.
    pub refused: Vec<Refusal>,
    /// What came back in content but not in everything (an owner that only root can give).
    pub notes: Vec<Refusal>,
    /// Files that somebody still wrote to after they were captured: kept, and where.
    pub saved: Vec<Saved>,
}

/// Something that was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Path from the restored directory; empty for itself.
    pub path: Vec<u8>,
    /// Why, in a few words.
    pub reason: String,
    /// What would mend it, such as a command.
    pub hint: Option<String>,
}

impl Refusal {
    /// `path` is left as it is because of `reason`.
    pub fn new(path: &[u8], reason: impl Into<String>) -> Self {
        Self { path: path.to_vec(), reason: reason.into(), hint: None }
    }

    /// The same with what would mend it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// A file that was taken out of the tree but not removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Saved {
    /// The path that it had in the tree.
    pub path: Vec<u8>,
    /// Where it is.
    pub at: PathBuf,
}
