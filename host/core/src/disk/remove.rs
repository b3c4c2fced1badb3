//! Removing a directory with all that is in it: for what is snapback's own.

use super::{Dir, Disk};
use crate::error::{Error, Kind, Result, show};

/// Nothing that is removed so has deeper directories than this.
const DEPTH: usize = 8;

impl Disk {
    /// Removes `name`, whatever it is, with all that is in it; links are not followed.
    /// What is gone already is no failure.
    ///
    /// # Errors
    /// The first thing that cannot be removed; `Corrupt` when directories lie in each
    /// other too deep.
    pub fn remove_all(&self, dir: &Dir, name: &[u8]) -> Result<()> {
        self.remove_to(dir, name, DEPTH)
    }

    fn remove_to(&self, dir: &Dir, name: &[u8], depth: usize) -> Result<()> {
        let inside = match dir.child(name) {
            Ok(inside) => inside,
            Err(error) if error.kind() == Kind::NotFound => return Ok(()),
            // No directory: a file, or a link.
            Err(error) if error.kind() == Kind::Invalid => return self.unlink(dir, name),
            Err(error) => return Err(error),
        };
        if depth == 0 {
            return Err(Error::corrupt(format!("{} is deeper than it can be", show(inside.path()))));
        }
        for name in inside.names()? {
            self.remove_to(&inside, &name, depth - 1)?;
        }
        self.rmdir(dir, name)
    }
}
