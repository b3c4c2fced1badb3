//! What is done about damage that was found: what the twin has whole of it comes back from
//! there; packs of which it has no other copy are marked, so that later snapshots store
//! again what they still find in the tree.
//!
//! Invariant: what is damaged in the store is damaged in the twin as well where both are
//! names of one file; only a file of its own is looked into, and used when it is whole.

use super::twin::{Filling, same_file};
use super::{Session, Verification};
use crate::disk::Dir;
use crate::error::Result;
use crate::history::Id;
use crate::history::snapshot::{END, META, RunEnd, Snapshot};
use crate::store::{DAMAGED, PackName, verify};
use std::path::Path;

/// What is whole again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mended {
    /// Packs.
    pub packs: usize,
    /// Records of snapshots.
    pub records: usize,
}

/// Whether the file of a snapshot that a record is kept in is whole.
type IsWhole = fn(&Path, &Id) -> bool;

/// What is kept of a snapshot beside its objects.
const RECORDS: [(&str, IsWhole); 2] = [
    (META, |snapshots, id| Snapshot::load(snapshots, id).is_ok()),
    (END, |snapshots, id| RunEnd::read(snapshots, id).is_ok()),
];

impl Session {
    /// Does what can be done about the damage in `found`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn mend(&self, found: &Verification) -> Result<Mended> {
        let (mut mended, mut marked) = (Mended::default(), Vec::new());
        let twin = self.twin_dir();
        let theirs = twin.as_ref().and_then(|twin| twin.child(b"packs").ok());
        for name in &found.damaged {
            match &theirs {
                Some(theirs) if self.mend_pack(theirs, *name)? => mended.packs += 1,
                _ => marked.push(*name),
            }
        }
        let theirs = twin.as_ref().and_then(|twin| twin.child(b"snapshots").ok());
        for record in found.records.iter().filter(|_| theirs.is_some()) {
            let Some(theirs) = &theirs else { continue };
            mended.records += usize::from(self.mend_record(theirs, &record.id)?);
        }
        self.opened().mark(&marked)?;
        if found.timeline > 0 {
            // What cannot be read is told, once: from then on the rest is what there is.
            self.timeline()?.prune(&self.env().disk, &self.dir, |_| true)?;
        }
        self.opened().upkeep();
        self.mirror(None);
        Ok(mended)
    }

    /// Takes the twin's copy of a pack, if it is one and whole.
    fn mend_pack(&self, theirs: &Dir, name: PackName) -> Result<bool> {
        let (env, ours) = (self.env(), self.dir.child(b"packs")?);
        let plain = name.to_string().into_bytes();
        let marked = [&plain[..], DAMAGED].concat();
        let is_link = same_file(&ours, &plain, theirs, &plain)? || same_file(&ours, &marked, theirs, &plain)?;
        if is_link || theirs.stat(&plain)?.is_none() {
            return Ok(false);
        }
        if !verify::is_whole(theirs, name, &env.cancel)? {
            env.disk.unlink(theirs, &plain)?;
            return Ok(false);
        }
        self.take_from(theirs, &ours, &plain)?;
        if ours.stat(&marked)?.is_some() {
            env.disk.unlink(&ours, &marked)?;
        }
        self.opened().look_again();
        Ok(true)
    }

    /// Takes the twin's copies of what is damaged of a snapshot's records, if they are
    /// copies and whole; whether there was any.
    fn mend_record(&self, theirs: &Dir, id: &Id) -> Result<bool> {
        let name = id.as_str().as_bytes();
        let (ours, Ok(copy)) = (self.snapshots.child(name)?, theirs.child(name)) else { return Ok(false) };
        let mut any = false;
        for (file, is_whole) in RECORDS {
            let file = file.as_bytes();
            let is_copy = copy.stat(file)?.is_some() && !same_file(&ours, file, &copy, file)?;
            if is_copy && !is_whole(self.snapshots.path(), id) && is_whole(theirs.path(), id) {
                self.take_from(&copy, &ours, file)?;
                any = true;
            }
        }
        Ok(any)
    }

    fn take_from(&self, theirs: &Dir, ours: &Dir, name: &[u8]) -> Result<()> {
        let disk = &self.env().disk;
        Filling { disk, inward: true, budget: u64::MAX }.replace(theirs, ours, name)?;
        disk.sync_dir(ours)
    }
}
