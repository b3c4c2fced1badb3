//! Git, seen from a work tree: where the repository is, where it stood, and what moved
//! since. Only read; git itself is not started. What `.git` says may come from a
//! stranger: everything that is read because of it has a limit, and nothing but
//! directories and regular files is opened.

mod index;
mod locate;
pub(in crate::tree) mod look;
mod moved;
mod position;
mod present;
mod settings;

pub(crate) use index::Tracked;
pub use locate::{Located, locate, locate_around};
pub use moved::{Moved, State, moved, short};
pub use position::{Head, Position};
pub use present::{Standing, present};
pub use settings::GitUser;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use settings::each;
pub(in crate::tree) use settings::read;

#[cfg(test)]
mod tests;
