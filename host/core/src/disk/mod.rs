//! The one door to the file system for everything that changes it.
//!
//! Invariant: nothing else in this crate creates, writes, renames, links, removes,
//! syncs or changes attributes. Every operation is relative to an open directory
//! handle and takes one name, so no path is ever resolved through a link.
//! Refuses nothing by itself: what may be touched is decided by the callers.
//!
//! A `Hook` sees each operation before it happens and may fail it; that is how tests
//! make the n-th operation fail and how they model a power cut.

/// The door.
#[derive(Clone, Default)]
pub struct Disk {}
