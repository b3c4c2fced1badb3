//! Git, seen from a work tree: where the repository is, where it stood, and what moved
//! since. Only read; git itself is not started. What `.git` says may come from a
//! stranger: everything that is read because of it has a limit, and nothing but
//! directories and regular files is opened.

mod index;
mod locate;
pub(in crate::tree) mod look;
mod moved;
mod operation;
mod position;
mod present;
mod settings;
mod staged;
mod tracked;
mod way_back;

pub use locate::{Located, locate, locate_around};
pub use moved::{Moved, State, moved, short};
pub use operation::Operation;
pub use position::{Head, Position};
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use position::{Ref, parse};
pub use present::{Standing, present};
pub use settings::GitUser;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use settings::each;
pub(in crate::tree) use settings::read;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) use staged::staged_in;
pub use staged::{By, Mark, Staged};
pub(crate) use tracked::Tracked;
pub use way_back::Step;

#[cfg(test)]
mod tests;
