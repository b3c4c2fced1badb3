//! The store of one project: objects in packs, found through an index.
//!
//! Invariant: what was sealed is never changed. A pack appears whole (written aside,
//! synced, renamed) and goes whole. Everything read is checked against its hash. All
//! that is not a pack and not a snapshot can be made again.
//! docs/FORMAT.md has every byte.

mod append;
pub mod birth;
mod catalog;
pub mod content;
mod far;
mod frames;
pub mod gc;
pub(crate) mod index;
mod lane;
mod lock;
pub mod opaque;
mod open;
pub(crate) mod pack;
pub(crate) mod private;
mod read;
mod seal;
mod share;
pub mod verify;
mod walk;
mod workspace;
mod write;

pub(crate) use catalog::DAMAGED;
pub use far::Far;
pub use lane::Lane;
pub use lock::Lock;
pub(crate) use open::FORMAT;
pub use pack::PackName;
pub use read::Viewer;
pub use share::{Extent, Still};
pub use workspace::Workspace;
pub use write::Writer;

use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use catalog::Catalog;
use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, RwLock};

/// Content of at most this many bytes is one `Blob`; larger content is a `List` of
/// blocks of exactly this many (the last one shorter).
pub const BLOCK: usize = 64 * 1024;

/// Somewhere objects can be read from: a store, or a writer with what it has not sealed.
pub trait Source: Sync {
    /// Shows the object's bytes, checked against its hash, to `f` without a copy.
    ///
    /// # Errors
    /// `NotFound` when it is not there, `Corrupt` when it is damaged, and what `f` returns.
    fn view(&self, key: &Key, f: Viewer<'_>) -> Result<()>;

    /// A copy of the object's bytes, checked against its hash.
    ///
    /// # Errors
    /// As `view` has them.
    fn read(&self, key: &Key) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        self.view(key, &mut |bytes| {
            out.extend_from_slice(bytes);
            Ok(())
        })?;
        Ok(out)
    }

    /// Where the object lies at a place that files can share; none when it does not.
    /// What is there is not checked.
    fn extent(&self, key: &Key) -> Option<Extent> {
        let _ = key;
        None
    }
}

/// Objects in memory, believed to be what their keys say.
impl Source for HashMap<Key, Vec<u8>> {
    fn view(&self, key: &Key, f: Viewer<'_>) -> Result<()> {
        let missing = || Error::new(Kind::NotFound, format!("no object {key}"));
        f(self.get(key).ok_or_else(missing)?)
    }
}

/// An open store.
pub struct Store {
    disk: Disk,
    dir: Dir,
    packs: Dir,
    tmp: std::sync::OnceLock<Dir>,
    /// Made when it is first needed: listing snapshots needs none.
    catalog: RwLock<Option<Arc<Catalog>>>,
    open_packs: Mutex<Vec<(PackName, Arc<File>)>>,
    frames: frames::Frames,
    /// Where its objects are, when they are not here.
    far: Option<Arc<dyn Far>>,
}

impl Store {
    /// The store's directory.
    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The store's directory, open.
    pub fn dir(&self) -> &Dir {
        &self.dir
    }

    /// The store's door to the disk.
    pub fn disk(&self) -> &Disk {
        &self.disk
    }

    /// Takes the store's lock, for one writing command at a time; `waiting` is called
    /// once when another process holds it.
    pub fn lock(&self, waiting: &mut dyn FnMut()) -> Result<Lock> {
        let lock = Lock::take(&self.disk, &self.dir, waiting).map_err(|e| open::odd(self.path(), e))?;
        self.look_again();
        Ok(lock)
    }

    /// Takes the store's lock if nobody holds it.
    pub fn try_lock(&self) -> Result<Option<Lock>> {
        let lock = Lock::try_take(&self.disk, &self.dir)?;
        self.look_again();
        Ok(lock)
    }

    /// How many packs there are, and their bytes.
    pub fn usage(&self) -> Result<(u64, u64)> {
        let mut usage = (0, 0);
        for name in self.packs.names()? {
            if let Some(stat) = self.packs.stat(&name)? {
                usage = (usage.0 + 1, usage.1 + u64::try_from(stat.st_size).unwrap_or(0));
            }
        }
        Ok(usage)
    }

    /// Writes the index anew when it has fallen behind. It is a cache: failing is no failure.
    pub(crate) fn upkeep(&self) {
        let Ok(catalog) = self.catalog() else { return };
        if catalog.wants_index() && catalog.write_index(&self.disk, &self.dir).is_ok() {
            self.look_again();
        }
    }
}

/// `bytes` random bytes from the system, in hexadecimal.
fn random_hex(bytes: usize) -> Result<String> {
    use std::io::Read;
    let mut random = vec![0; bytes];
    File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut random))
        .map_err(|e| Error::io(e, "could not read", "/dev/urandom"))?;
    Ok(random.iter().map(|b| format!("{b:02x}")).collect())
}

/// What a store that is not whole is told with.
fn not_a_store(path: &Path, how: &str) -> Error {
    Error::new(Kind::Corrupt, format!("{} is not a whole store: {how}", crate::error::show(path)))
}

#[cfg(test)]
mod tests;
