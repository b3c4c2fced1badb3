//! A cache that is taken to where a capture runs, and brought back: it is of no use but
//! with the store that holds what it knows.

use super::{StatCache, file_name};
use crate::store::Store;
use crate::tree::capture::clock::cache_dir;
use std::path::Path;

/// The longest cache that is taken anywhere, in bytes; without one, everything is read.
const LONGEST: u64 = 256 << 20;

/// The cache of `target` and `setting` in the store at `store`, as it is.
pub fn fetch(store: &Path, target: &str, setting: &str) -> Option<Vec<u8>> {
    let dir = crate::disk::Dir::open(&store.join("cache")).ok()?;
    dir.read(file_name(target, setting).as_bytes(), LONGEST).ok()
}

/// Keeps `bytes` as the cache of `target` and `setting` in `store`, if they are one. A cache
/// that cannot be written costs time the next time, nothing else.
pub fn keep(store: &Store, target: &str, setting: &str, bytes: Vec<u8>) {
    if StatCache::read(bytes.clone()).is_none() {
        return;
    }
    let _ = cache_dir(store)
        .and_then(|dir| store.disk().write_cache(&dir, file_name(target, setting).as_bytes(), &bytes, 0o600));
}
