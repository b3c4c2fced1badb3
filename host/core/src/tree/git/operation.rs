//! What git may be in the middle of: told by the files that it keeps meanwhile.
//!
//! Each ends with a command that leaves the files and HEAD alone.

/// What git may be in the middle of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operation {
    /// `git rebase`.
    Rebase,
    /// `git am`.
    Patches,
    /// `git merge`.
    Merge,
    /// `git cherry-pick`.
    CherryPick,
    /// `git revert`.
    Revert,
    /// `git bisect`.
    Bisect,
}

use Operation::*;

impl Operation {
    /// The files that tell of one: where they lie, and what of.
    pub(super) const FILES: [(&str, Self); 7] = [
        ("rebase-merge/head-name", Rebase),
        ("rebase-apply/head-name", Rebase),
        ("rebase-apply/applying", Patches),
        ("MERGE_HEAD", Merge),
        ("CHERRY_PICK_HEAD", CherryPick),
        ("REVERT_HEAD", Revert),
        ("BISECT_LOG", Bisect),
    ];

    /// The one that the file at `path` in a repository tells of.
    pub(super) fn told_by(path: &[u8]) -> Option<Self> {
        Self::FILES.iter().find(|(file, _)| file.as_bytes() == path).map(|(_, of)| *of)
    }

    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Rebase => "rebase",
            Patches => "git am",
            Merge => "merge",
            CherryPick => "cherry-pick",
            Revert => "revert",
            Bisect => "bisect",
        }
    }

    /// The command that ends it and leaves files and HEAD as they are.
    pub(super) fn end(self) -> &'static [&'static [u8]] {
        match self {
            Rebase => &[b"rebase", b"--quit"],
            Patches => &[b"am", b"--quit"],
            Merge => &[b"merge", b"--quit"],
            CherryPick => &[b"cherry-pick", b"--quit"],
            Revert => &[b"revert", b"--quit"],
            // Without a commit it would go back to where it began, files and all.
            Bisect => &[b"bisect", b"reset", b"HEAD"],
        }
    }

    /// Whether all that git needs to be in the middle of it again is recorded.
    pub fn is_recorded(self) -> bool {
        self.file().is_some()
    }

    /// The file that is all that git needs to be in the middle of it again.
    pub(super) fn file(self) -> Option<&'static str> {
        match self {
            Merge => Some("MERGE_HEAD"),
            CherryPick => Some("CHERRY_PICK_HEAD"),
            Revert => Some("REVERT_HEAD"),
            Rebase | Patches | Bisect => None,
        }
    }
}
