//! Builds the backends into components, and tells when a checked-in one is stale.
//!
//! A component is checked in beside its sources, so that the host builds without a
//! WebAssembly toolchain. Inside it a custom section holds a digest over all that it
//! was made from; comparing that needs no toolchain either. What the digest covers:
//! `wit/`, `sdk/`, the plugin's own folder, the exact versions of everything it
//! depends on, and the profile it is built with. What it does not: the compiler.

mod build;
mod section;
mod sources;
mod toolchain;

pub use build::build;
pub use section::recorded_digest;
pub use sources::Workspace;
pub use toolchain::{Toolchain, find_toolchain};

use std::fmt;

/// The target that components are compiled for: no system interface at all.
pub const TARGET: &str = "wasm32-unknown-unknown";

/// What went wrong: a sentence and what to do.
#[derive(Debug)]
pub struct Failure {
    /// One sentence, lower case, without a period.
    pub message: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Failure {
    fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The result of everything here.
pub type Result<T, E = Failure> = std::result::Result<T, E>;

/// A digest over all that the component of plugin `name` is made from, in this workspace.
///
/// # Errors
/// When a source or the lock file cannot be read.
pub fn sources_digest(name: &str) -> Result<String> {
    Workspace::here().digest(name)
}
