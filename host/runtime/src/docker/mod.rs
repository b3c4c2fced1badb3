//! Volumes of a Docker engine: found, captured, put back, and those who use them held.
//!
//! What a volume holds is captured and restored by core, as the directory that it is:
//! here where this process may enter it, else by this program itself at the other end of a
//! pipe, in a container that has the volume and nothing more. So both are as exact. Nothing
//! is ever pulled from a registry, nothing inside a container is run but this program,
//! and what is made on the engine is marked, and removed again.
//!
//! Rooms: `endpoint` (which engine), `daemon` (talking to it), `fault` (what it answers, in
//! sentences), `find` (a volume by its name), `compose` (those that its files name), `project`
//! (what compose calls a folder), `users` (who uses it), `hold` (holding them), `restart` (and not by the engine either), `memory` (and
//! what lies in memory goes on being there), `let_go` (and letting them go), `record` and `marker` (the record of that, on the engine), `watch` (letting go when this
//! process is gone), `place` (where the files are), `remote`, `inside` and `pipe` (this program
//! in a container, seen from both ends), `image` and `elf` (what that is started from), `volume`
//! (capture and restore), `outlives` (which files go with it). Knows no history; reads no
//! environment but what it is lent.

mod archive;
pub(crate) mod compose;
mod daemon;
mod elf;
mod endpoint;
mod fault;
mod find;
mod hold;
mod image;
pub mod inside;
mod let_go;
mod marker;
mod memory;
mod mount;
mod outlives;
mod owner;
mod pipe;
mod place;
mod project;
mod record;
mod remote;
mod restart;
mod users;
mod volume;
pub mod watch;

pub use daemon::{Daemon, Lent};
pub use find::{Meant, captured_from, resolve};
pub use hold::{Held, Tell, Wanted};
pub use let_go::{give_up, sweep};
pub use marker::{Kept, kept};
pub use outlives::{LOCAL, elsewhere};
pub use record::How;
pub use users::names;
pub use volume::{Volume, made_with};
