//! Whether a database and its log have come apart under whoever uses them.
//!
//! Whoever writes ahead has locks on the database and on the index of its log, for as long as it
//! has them open. Where a process has a lock on the one that is here and not on the other, one of
//! them was removed, moved away or replaced under it: its log is brought into what it has open when
//! it ends, over whatever came there since; and what others write into the log that lies here may
//! be brought into a file that is gone. By the locks this is known of processes of others as well,
//! which cannot be looked into.

use super::fault;
use super::holders::{Holder, named};
use super::open::At;
use super::place::path_of;
use super::route::{INDEX_LOCKS, LOCKS, both_locked};
use super::system::System;
use rustix::fs::Stat;
use snapback_core::database::{SIDES, side};
use snapback_core::disk::Dir;
use snapback_core::error::{Error, Result};
use std::collections::BTreeSet;
use std::os::unix::ffi::OsStrExt;

/// Who uses one of the two without the other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Astray {
    /// The database, with a log that does not lie beside it.
    pub without_log: Vec<Holder>,
    /// The log that lies beside it, for another file.
    pub other_file: Vec<Holder>,
}

impl Astray {
    /// Who it is with the database `name` in `dir`; `ahead`: whoever uses that writes ahead.
    pub fn of(system: &System, dir: &Dir, name: &[u8], ahead: bool) -> Self {
        let stat = |suffix: &[u8]| dir.stat(&side(name, suffix)).ok().flatten();
        let locking = |stat: &Option<Stat>, bytes| {
            stat.as_ref().map(|stat| system.locking(dir, stat.st_ino, bytes)).unwrap_or_default()
        };
        let (database, log, index) = (stat(b""), stat(SIDES[1]), stat(SIDES[2]));
        let (on_database, on_index) = (locking(&database, LOCKS), locking(&index, INDEX_LOCKS));
        let users = &on_database | &on_index;
        if database.is_none() || users.is_empty() {
            return Self::default();
        }
        let having = |stat: &Option<Stat>| {
            stat.as_ref().map(|stat| system.having((stat.st_dev, stat.st_ino))).unwrap_or_default()
        };
        let (has_database, has_log, has_index) = (having(&database), having(&log), having(&index));
        let path = path_of(dir, name).map(|path| path.as_os_str().as_bytes().to_vec()).unwrap_or_default();
        let (lost, lost_index) =
            (system.having_removed(&path), system.having_removed(&side(&path, SIDES[2])));
        let (mut without_log, mut other_file) = (BTreeSet::new(), BTreeSet::new());
        for pid in users {
            // Of processes of others, the locks are all that is known.
            let (database, beside, removed) = match system.knows(pid) {
                true => {
                    // Whoever keeps all others away has no index.
                    let has_index = has_index.contains(&pid) || index.is_none() && !lost_index.contains(&pid);
                    let removed = lost.contains(&pid) && !lost_index.contains(&pid);
                    (has_database.contains(&pid), has_index && has_log.contains(&pid), removed)
                }
                false => (on_database.contains(&pid), on_index.contains(&pid), false),
            };
            if ahead && on_database.contains(&pid) && database && !beside {
                without_log.insert(pid);
            } else if on_index.contains(&pid) && beside && (!database || removed) {
                other_file.insert(pid);
            }
        }
        Self { without_log: named(without_log), other_file: named(other_file) }
    }

    /// The same of whoever the system's list does not have (in a container, say): nobody is named then.
    /// Not for whoever holds a lock here.
    ///
    /// # Errors
    /// When the database cannot be opened.
    pub fn is_with_somebody(at: At<'_>, ahead: bool) -> Result<bool> {
        let (database, index) = both_locked(at)?;
        Ok(index && !database || ahead && database && !index)
    }

    /// Whether all is as it should be.
    pub fn is_none(&self) -> bool {
        self.without_log.is_empty() && self.other_file.is_empty()
    }

    /// What to say of it.
    pub fn fault(&self, at: At<'_>) -> Error {
        match (&self.without_log[..], &self.other_file[..]) {
            ([], []) => fault::astray(at.place),
            ([], who) => fault::other_file(at.place, who),
            (who, _) => fault::other_log(at.place, who),
        }
    }
}
