//! The project: its root, what it asks for, and what its user wants.

pub mod config;
pub mod consents;
pub mod mounts;
mod nearest;
pub mod registry;
pub mod root;
pub mod units;
pub mod user;

pub use nearest::nearest;

/// The name of the store's directory at the project's root.
pub const STORE: &str = ".snapback";
