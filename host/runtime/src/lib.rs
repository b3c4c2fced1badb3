//! snapback's runtime: backends are WebAssembly components, and this runs them.
//!
//! Rooms: `engine` (wasmtime), `artifact` (compiled once, kept), `builtin` and `discover`
//! (where components are), `inspect` (what can be seen of one that was never run), `encode` (a
//! component of a module), `manifest` (what one says about
//! itself), `grant` (what one may reach), `reach` (what that leads to), `trust` (what the user
//! agreed to), `component` (one call), `laws` (what every backend keeps), `abi` (the host's side
//! of `wit/`), `sqlite` (databases, without any component), `docker` (volumes), `process`
//! (programs) and `file` (single files) likewise, `propose` (targets for files that are known),
//! `registry` (all of it together). Knows objects and trees, not history; never prints; reads
//! no environment.

mod abi;
mod artifact;
mod builtin;
mod component;
mod digest;
mod discover;
pub mod docker;
mod encode;
mod engine;
mod file;
pub mod grant;
mod inspect;
pub mod laws;
pub mod manifest;
mod patience;
mod process;
pub mod propose;
pub mod reach;
mod registry;
pub mod sqlite;
#[cfg(test)]
mod testing;
pub mod trust;

pub use digest::of as digest_of;
pub use discover::read as read_component;
pub use encode::component_of;
pub use manifest::Manifest;
pub use patience::Slow;
pub use registry::{Examined, Info, Registry, Setup, Status, builtin_names};
