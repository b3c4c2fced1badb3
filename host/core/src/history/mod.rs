//! History: snapshots as records, and the steps that led from one to the next.
//!
//! Nothing is ever popped: each step is a new line in the timeline, and what was
//! written once is never changed.

pub mod changes;
pub mod clock;
pub mod id;
pub mod journal;
pub(crate) mod sealed;
pub mod snapshot;
pub mod timeline;

pub use id::Id;
pub use snapshot::{Captured, Snapshot, SnapshotKind};
