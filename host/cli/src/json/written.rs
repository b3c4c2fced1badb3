//! What `init` wrote, in JSON.

use super::names::{Named, path};
use serde::Serialize;
use snapback_core::text::Bytes;

/// A file that was written.
#[derive(Serialize)]
pub struct Written<'a> {
    #[serde(flatten)]
    path: Named<'a, 1>,
    /// Databases that were found.
    databases: usize,
    /// Targets that backends propose there.
    proposed: usize,
}

impl<'a> Written<'a> {
    /// The file at `at`, for so many databases and proposals.
    pub fn new(at: &'a Bytes, databases: usize, proposed: usize) -> Self {
        Self { path: path(at), databases, proposed }
    }
}
