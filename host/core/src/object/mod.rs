//! Objects: content at rest, named by its kind and the SHA-256 of its bytes.
//!
//! Invariant: a key is made only by hashing (`Key::of`) or by decoding something
//! whose own hash was checked. The kind is part of the key, so that no bytes a
//! component stores can pass for a tree that the host captured.

pub mod codec;
mod key;

pub use key::{Hasher, Key, ObjectKind};
