//! The identity of an image: its content without what counts commits.
//!
//! SQLite counts commits in the first page and never lets the numbers go back, since
//! open connections tell by them that what they remember is stale. So a database that
//! was put back differs from the stored image there, and is the same state.

use crate::error::Result;
use crate::object::Key;
use crate::store::{Source, content};
use std::ops::Range;

/// Bytes of the first page that are no state: the change counter, the schema cookie,
/// the change counter for which the version is valid, the version of the library that
/// wrote last.
const COUNTERS: [Range<usize>; 4] = [24..28, 40..44, 92..96, 96..100];

/// The versions of the format for writing and reading: they say whether there is a log.
const VERSIONS: Range<usize> = 18..20;

/// The hash of the key that the content `key` of `size` bytes would have with zeros for
/// its counters.
///
/// # Errors
/// `NotFound` and `Corrupt` when the content is not whole.
pub fn state(source: &(impl Source + ?Sized), key: &Key, size: u64) -> Result<[u8; 32]> {
    state_but(source, key, size, &[])
}

/// The state that the content would have with the versions of `like`, the beginning of
/// another image: what leaving the log changes.
///
/// # Errors
/// As [`state`] has them.
pub fn state_like(source: &(impl Source + ?Sized), key: &Key, size: u64, like: &[u8]) -> Result<[u8; 32]> {
    state_but(source, key, size, like.get(VERSIONS).unwrap_or_default())
}

fn state_but(source: &(impl Source + ?Sized), key: &Key, size: u64, versions: &[u8]) -> Result<[u8; 32]> {
    let same = content::with_first_block(source, key, size, &mut |block| {
        for counter in COUNTERS {
            if let Some(bytes) = block.get_mut(counter) {
                bytes.fill(0);
            }
        }
        if let Some(bytes) = block.get_mut(VERSIONS).filter(|_| !versions.is_empty()) {
            bytes.copy_from_slice(versions);
        }
    })?;
    Ok(*same.hash())
}
