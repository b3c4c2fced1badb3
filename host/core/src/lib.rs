//! snapback's core: objects, packs, trees, history. Synchronous and silent.
//!
//! Rooms: `disk` (the one door to the file system), `object` (keys and bytes),
//! `store` (packs and index), `tree` (directories), `database` (what is captured of
//! one, not how it is opened), `volume` (the same of a container engine's), `backend` (what the runtime
//! implements), `journal`, `timeline` and `session` (history), `project`
//! (snapback.toml and the root). Knows nothing of WebAssembly, of a command line or
//! of the environment; never prints.

pub mod backend;
pub mod database;
pub mod disk;
pub mod error;
#[cfg(any(test, feature = "fuzz"))]
#[doc(hidden)]
pub mod fuzz;
pub mod history;
pub mod object;
pub mod pace;
pub mod project;
pub mod report;
pub mod session;
pub mod store;
#[cfg(test)]
mod testing;
pub mod text;
pub mod tree;
pub mod volume;

pub use error::{Error, Kind, Result};
