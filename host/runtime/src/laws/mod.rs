//! The law for backends, checked on any component: after a snapshot, any change, and a
//! restore of what was stored, the state is the stored one.
//!
//! The state is the author's: commands set it up, change it and look at it. What a
//! component cannot be tried with, for want of a command or a setting, is said, and not
//! counted as kept.

mod suite;
mod trial;

pub use trial::Trial;

use snapback_core::error::Result;

/// The state that a backend covers, as its author handles it.
pub trait World {
    /// Brings about the first state, whatever there is now: once at the beginning, and again
    /// where a law was not kept, which may have left anything.
    ///
    /// # Errors
    /// When that fails.
    fn set_up(&mut self) -> Result<()>;

    /// How many ways there are to change it.
    fn changes(&self) -> usize;

    /// Changes it in the way `which`, from 0.
    ///
    /// # Errors
    /// When that fails.
    fn change(&mut self, which: usize) -> Result<()>;

    /// What it looks like now.
    ///
    /// # Errors
    /// When that fails.
    fn probe(&mut self) -> Result<String>;
}

/// What came of one law.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// The law.
    pub law: &'static str,
    /// Whether it was kept.
    pub outcome: Outcome,
}

/// Whether a law was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It was.
    Kept,
    /// It was not, as can be seen by this.
    Broken(String),
    /// It could not be checked, for this reason.
    Unchecked(String),
}

/// Checks all laws on the component of `trial`, in the order in which one builds on
/// another; those about its state only with a `world`.
///
/// # Errors
/// When a command of the author's fails, which says nothing about the component.
pub fn check(trial: &Trial, world: Option<&mut dyn World>) -> Result<Vec<Verdict>> {
    suite::Suite::new(trial).run(world)
}

#[cfg(test)]
mod tests;
