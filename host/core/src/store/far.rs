//! A store whose objects are kept elsewhere, by whoever is at the other end of a pipe: what
//! is written goes there, what is read comes from there, and nothing is kept here but what a
//! restore works with. So a capture or restore runs where the files are, and its objects
//! are where the history is.
//!
//! What comes from there is checked against its hash, as from a disk.

use super::{Store, Viewer};
use crate::disk::Disk;
use crate::error::{Error, Result};
use crate::object::Key;
use std::path::Path;
use std::sync::Arc;

/// Where objects really are.
pub trait Far: Send + Sync {
    /// Whether the object is there.
    ///
    /// # Errors
    /// When it cannot be asked.
    fn contains(&self, key: &Key) -> Result<bool>;

    /// The object's bytes.
    ///
    /// # Errors
    /// `NotFound` when it is not there.
    fn read(&self, key: &Key) -> Result<Vec<u8>>;

    /// Keeps the object, whose key is `key`, unless it is there.
    ///
    /// # Errors
    /// When it cannot be sent.
    fn put(&self, key: &Key, bytes: &[u8]) -> Result<()>;
}

impl Store {
    /// Makes a new, empty store at `path` whose objects are in `far`.
    ///
    /// # Errors
    /// As [`Store::create`] has them.
    pub fn create_far(path: &Path, disk: Disk, far: Arc<dyn Far>) -> Result<Arc<Self>> {
        let mut store = Self::create(path, disk)?;
        Arc::get_mut(&mut store).expect("nobody else has it yet").far = Some(far);
        Ok(store)
    }

    pub(super) fn view_far(far: &dyn Far, key: &Key, f: Viewer<'_>) -> Result<()> {
        let bytes = far.read(key)?;
        if Key::of(key.kind(), &bytes) != *key {
            return Err(Error::corrupt(format!("{key} came as something else")));
        }
        f(&bytes)
    }
}
