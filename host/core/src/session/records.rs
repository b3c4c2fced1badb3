//! The records of snapshots, newest first: each is read when it is first asked for, and once for
//! all targets of a command. A record that cannot be read is passed over.

use super::Project;
use crate::error::Result;
use crate::history::Id;
use crate::history::snapshot::Snapshot;
use std::sync::{Arc, Mutex, PoisonError};

/// The records of a project as they were when this was made.
pub(super) struct Records<'a> {
    project: &'a Project,
    ids: Vec<Id>,
    read: Mutex<Vec<Option<Arc<Snapshot>>>>,
}

impl Project {
    /// All records.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub(super) fn records(&self) -> Result<Records<'_>> {
        Ok(Records { project: self, ids: self.ids()?, read: Mutex::default() })
    }
}

impl Records<'_> {
    /// The newest that is `wanted`.
    pub fn newest(&self, wanted: impl Fn(&Snapshot) -> bool) -> Option<Arc<Snapshot>> {
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, id) in self.ids.iter().enumerate() {
            if at == read.len() {
                read.push(self.project.load(id).ok().map(Arc::new));
            }
            if let Some(snapshot) = read[at].as_ref().filter(|snapshot| wanted(snapshot)) {
                return Some(snapshot.clone());
            }
        }
        None
    }
}
