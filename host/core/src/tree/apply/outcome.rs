//! What a restore did, and what it did not do and why.

use crate::error::{show, show_bytes};
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
    /// Files that were replaced or removed, and that somebody wrote to since, or still can: kept,
    /// and where. Their paths are as they should be.
    pub saved: Vec<Saved>,
}

/// Something that was not done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// Path from the restored directory; empty for itself.
    pub path: Vec<u8>,
    /// SavedFor, in a few words.
    pub reason: String,
    /// What would mend it, such as a command.
    pub hint: Option<String>,
    /// Only something of it was not done: its content is what it should be.
    pub in_part: bool,
}

impl Refusal {
    /// `path` is left as it is because of `reason`.
    pub fn new(path: &[u8], reason: impl Into<String>) -> Self {
        Self { path: path.to_vec(), reason: reason.into(), hint: None, in_part: false }
    }

    /// Of `path`, something other than its content is left as it is because of `reason`.
    pub fn partly(path: &[u8], reason: impl Into<String>) -> Self {
        Self { in_part: true, ..Self::new(path, reason) }
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
    /// What it is kept for.
    pub why: SavedFor,
}

/// SavedFor a file is kept that was taken out of the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SavedFor {
    /// Somebody wrote to it after it was captured.
    Written,
    /// Somebody has it open for writing.
    Open,
    /// It is another user's, of whom nobody knows what they have open.
    Unknown,
}

/// What is said of `saved`, which is not empty: a line for each, or one for many of a kind.
pub fn lines(saved: &[Saved]) -> Vec<String> {
    let mut lines = Vec::new();
    for kind in [SavedFor::Written, SavedFor::Open, SavedFor::Unknown] {
        let of_kind: Vec<&Saved> = saved.iter().filter(|saved| saved.why == kind).collect();
        if of_kind.len() <= EACH {
            lines.extend(of_kind.iter().map(|saved| {
                format!("{}{}; it is kept as {}", show_bytes(&saved.path), kind.words(true), show(&saved.at))
            }));
        } else {
            let (first, dir) = (of_kind[0], of_kind[0].at.parent().unwrap_or(&of_kind[0].at));
            let (count, path) = (of_kind.len(), show_bytes(&first.path));
            lines.push(format!(
                "{count} files, such as {path},{}; they are kept in {}",
                kind.words(false),
                show(dir)
            ));
        }
    }
    lines
}

/// At most this many of a kind have a line each.
const EACH: usize = 3;

impl SavedFor {
    fn words(self, one: bool) -> &'static str {
        match (self, one) {
            (Self::Written, true) => ": somebody wrote to the file that stood there",
            (Self::Written, false) => " were written to after they were captured",
            (Self::Open, true) => ": somebody has the file that stood there open for writing",
            (Self::Open, false) => " are open for writing somewhere",
            (Self::Unknown, true) => {
                ": the file that stood there is another user's, who may have it open for writing"
            }
            (Self::Unknown, false) => " are another user's, who may have them open for writing",
        }
    }
}
