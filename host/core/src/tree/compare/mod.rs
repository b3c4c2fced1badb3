//! The difference of two captured directories, one change at a time.
//!
//! Invariant: both trees are walked together in one order (a directory before what
//! is in it, names by their bytes), sub-trees with equal keys are never read, and no
//! more is held than the directories from the top to the present place. What one
//! side left out and the other has is no change: it is told as not comparable.
//! Refuses trees whose stored forms are damaged or whose times do not fit them.

mod change;
mod only;
mod tape;
mod traits;
mod uncovered;
mod walk;

pub use change::{Aspects, Change, ChangeKind};
pub use only::Only;
pub use tape::{Kept, Tape};
pub use traits::Traits;
pub use uncovered::{Fate, Uncovered, uncovered};
pub use walk::{Side, Step, Walk};

use super::root::Root;
use crate::error::Result;
use crate::store::Source;

/// The changes that lead from `before` to `after`, sorted by path: times aside, but where
/// both count those of files.
pub fn compare<'a>(
    source: &'a dyn Source,
    before: &Root,
    after: &Root,
    only: &Only,
) -> Result<impl Iterator<Item = Result<Change>> + use<'a>> {
    let times = before.counts_times() && after.counts_times();
    let walk = match times {
        true => Walk::with_times(source, before, after, only)?,
        false => Walk::new(source, before, after, only)?,
    };
    Ok(walk.filter_map(move |step| match step {
        Ok(Step::Change(change)) if !change.passage && (!times || change.is_told(true)) => Some(Ok(change)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    }))
}

#[cfg(test)]
mod tests;
