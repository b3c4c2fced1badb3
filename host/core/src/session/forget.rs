//! Forgetting one snapshot: its record goes, and everything that only it held goes from
//! the disk, in both places.
//!
//! Invariant: what is to be forgotten is written down first, so a command that is cut
//! short is completed by the next one that holds the lock; nobody has to know which
//! snapshot it was. What restores left aside or kept goes too, if it is stored: who wants
//! something to be gone does not want a second file of it to stay. What is not stored is told.

use super::Session;
use super::retain::Freed;
use super::take::RUNNING;
use crate::error::{Error, Kind, Result};
use crate::history::Id;
use crate::history::journal::Journal;
use crate::store::gc::Sweep;
use crate::tree::apply;

/// The snapshot that is being forgotten.
const FORGETTING: &[u8] = b"forgetting";

impl Session {
    /// Drops one snapshot and removes from the disk what only it held.
    ///
    /// # Errors
    /// `Busy` when an unfinished step or a run that is going on needs it.
    pub fn forget(&self, id: &Id) -> Result<Freed> {
        let journal = Journal::load(self.opened().path())?;
        if let Some(step) = journal.filter(|step| step.to == *id || step.saved == *id) {
            let why = format!("snapshot {id} is needed by the {} that was cut short", step.verb.word());
            return Err(
                Error::new(Kind::Busy, why).hint("`snapback undo --resume` or `--take-back` ends that")
            );
        }
        if self.running()?.contains(id) {
            let why = format!("snapshot {id} is needed by its run, which is going on");
            return Err(
                Error::new(Kind::Busy, why).hint("wait until it has ended; `snapback status` shows it")
            );
        }
        let text = id.as_str().as_bytes();
        match self.env().disk.write_sealed(&self.dir, FORGETTING, text, 0o600) {
            // Nothing that frees space may fail because there is none.
            Err(error) if error.kind() == Kind::NoSpace => {}
            done => done?,
        }
        self.go_on_forgetting(id)
    }

    /// Completes what an earlier command began to forget.
    pub(super) fn finish_forgetting(&self) -> Option<Id> {
        let text = self.dir.read(FORGETTING, 64).ok()?;
        let id = std::str::from_utf8(&text).ok().and_then(Id::parse)?;
        match self.go_on_forgetting(&id) {
            Ok(_) => Some(id),
            Err(error) => {
                self.env().report.troubled("what is to be forgotten could not be removed yet", &error);
                None
            }
        }
    }

    fn go_on_forgetting(&self, id: &Id) -> Result<Freed> {
        let env = self.env();
        let mut left = apply::saved(self.opened().dir())?;
        // While a step is unfinished, what stands aside is needed for it.
        if self.pending()?.is_none() {
            apply::clear(self.opened(), &env.cancel)?;
            left = apply::clear_saved(self.opened(), true, &env.cancel)?;
        }
        let listed = self.ids()?.contains(id);
        let dropped = self.drop_all(if listed { vec![id.clone()] } else { Vec::new() })?;
        // What marked a run that is no more.
        if let Ok(marks) = self.dir.child(RUNNING)
            && marks.stat(id.as_str().as_bytes())?.is_some()
        {
            env.disk.unlink(&marks, id.as_str().as_bytes())?;
        }
        let freed = self.collect(Sweep::Thorough)?;
        if self.dir.stat(FORGETTING)?.is_some() {
            env.disk.unlink(&self.dir, FORGETTING)?;
        }
        Ok(Freed { dropped, bytes: freed.bytes, problems: freed.problems, left })
    }
}
