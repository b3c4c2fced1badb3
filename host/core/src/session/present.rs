//! The present state of what a snapshot has, to be looked at and compared: of all that can be
//! captured. A backend that is away keeps nothing of the others' from being known.

use super::Project;
use super::capture::Uncaptured;
use crate::error::{Error, Kind, Result};
use crate::history::snapshot::{Captured, Snapshot};
use crate::store::Writer;
use std::sync::{Arc, PoisonError};

/// The present state of a snapshot's targets: captured, and gone with this value.
pub struct Present {
    /// What was captured.
    pub targets: Vec<Captured>,
    /// Its objects, and those of the store.
    pub source: Arc<Writer>,
}

impl Project {
    /// The present state of the targets of `like`, by the settings frozen in it.
    /// Nothing of it is kept. With `content`, what its files hold can be read.
    ///
    /// # Errors
    /// When it cannot be captured.
    pub fn present(&self, like: &Snapshot, content: bool) -> Result<Present> {
        self.present_with(like, content, None)
    }

    /// The same of those targets that can be captured; why the others cannot is told.
    ///
    /// # Errors
    /// When none can be.
    pub fn present_in_part(&self, like: &Snapshot, content: bool) -> Result<Present> {
        self.present_with(like, content, Some(&Uncaptured::default()))
    }

    fn present_with(&self, like: &Snapshot, content: bool, left: Option<&Uncaptured>) -> Result<Present> {
        let store = self.need_store()?;
        if self.foreign().is_some() {
            let why = "the present cannot be compared with what a foreign store holds";
            return Err(Error::new(Kind::Denied, why)
                .hint("`snapback diff ID ID` compares two snapshots; `snapback trust --store` trusts it"));
        }
        let source = Arc::new(store.scratch(content));
        let (names, mut away) = self.usable(like)?;
        let targets = self.capture_like(like, &names, &source, &|_| true, left)?;
        if let Some(left) = left {
            away.append(&mut left.lock().unwrap_or_else(PoisonError::into_inner));
        }
        if let (true, Some((_, error))) = (targets.is_empty(), away.first()) {
            return Err(error.clone());
        }
        for (name, error) in &away {
            self.env.report.troubled(&format!("what changed of `{name}` is not known"), error);
        }
        Ok(Present { targets, source })
    }
}
