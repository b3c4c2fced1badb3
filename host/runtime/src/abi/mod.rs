//! The host's side of `wit/`: for each version of the contract a module, in it for each
//! interface a file. These are thin: they turn handles into what core knows, check that
//! a handle may be had, and call core.

pub mod v0_1;
pub mod wasi;
