//! SQLite databases: captured while others use them, put back under their feet.
//!
//! Everything goes through SQLite's own locks and journals, so other processes see one
//! committed state or another and never anything between. A capture changes no file of
//! the application: not the log, not the journal, not what a killed process left of
//! them. A restore writes only the pages that differ, in one transaction, and only over
//! what was captured; other connections see the stored state at their next query.
//!
//! The law of locks: the system lets go of all locks that a process has on a file as
//! soon as that process closes any descriptor of it. So while a connection here holds a
//! lock, nothing in this process opens and closes the database or a file beside it:
//! descriptors of our own are closed after the connection, two works on one database
//! come one after the other (`claim`), and trees are captured before databases.
//!
//! Databases and what lies beside them may come from strangers: schemas are not
//! trusted, nothing is loaded, no link is followed, and no file is touched but the
//! database and its own.
//!
//! Rooms: `place` (where it is), `open` (connections), `route` (how it is to be read), `own`
//! (whether SQLite may be let at it), `image` (reading it), `copy` (what was left behind,
//! recovered elsewhere), `capture`; `recover` and `stored` (what is to come back, checked),
//! `lock` (what is there, held fast), `restore`, `pages`, `whole`, `put` (three ways to put it
//! back); `compare` (what differs between two); `system` (what it tells of processes), `holders`
//! (who uses a database), `astray` (whether that and its log have come apart).

mod astray;
mod capture;
mod claim;
mod compare;
mod copy;
mod fault;
mod holders;
mod image;
mod lock;
mod open;
mod options;
mod own;
mod pages;
mod place;
mod put;
mod recover;
mod restore;
mod route;
mod stored;
mod system;
mod whole;

pub use compare::{Change, Comparison, Object, Table, compare};
pub use options::Options;

use place::Place;
use snapback_core::backend::Call;
use snapback_core::error::Result;
use snapback_core::object::Key;
use std::path::Path;

/// A database that was granted: where it is, and how it is treated.
pub struct Database {
    place: Place,
    setting: String,
    options: Options,
}

impl Database {
    /// The database that `setting` names by `value`: a path inside `root`. It need not
    /// be there.
    ///
    /// # Errors
    /// `Denied` when the path leads out, `Invalid` when an option makes no sense.
    pub fn open(root: &Path, setting: &str, value: &str, options: &[(String, String)]) -> Result<Self> {
        open::able()?;
        let place = Place::new(root, value)?;
        Ok(Self { place, setting: setting.to_owned(), options: Options::parse(options)? })
    }

    /// The setting that it was opened with.
    pub fn setting(&self) -> &str {
        &self.setting
    }

    /// Stores what is there; none when nothing is. `previous` is a captured database that
    /// is known to be in the store.
    ///
    /// # Errors
    /// `Busy`, naming who holds it, when it cannot be read within the timeout; what kept
    /// it from being read or stored.
    pub fn capture(&self, call: &Call, previous: Option<&Key>) -> Result<Option<Key>> {
        capture::run(self, call, previous)
    }

    /// Makes what is there the stored one, if it is still as `current` says; none stands
    /// for nothing there.
    ///
    /// # Errors
    /// `Changed` when it is something else, `Busy` when it cannot be locked within the
    /// timeout, `Corrupt` when what is stored is not what was stored: nothing was touched then.
    pub fn restore(&self, call: &Call, stored: Option<&Key>, current: Option<&Key>) -> Result<()> {
        restore::run(self, call, stored, current)
    }
}

#[cfg(test)]
mod tests;
