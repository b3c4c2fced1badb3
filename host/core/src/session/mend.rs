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
use crate::history::snapshot::{META, Snapshot};
use crate::store::{DAMAGED, PackName, verify};

/// What is whole again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Mended {
    /// Packs.
    pub packs: usize,
    /// Records of snapshots.
    pub records: usize,
}

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
            mended.records += usize::from(self.mend_record(theirs, record.id.as_str().as_bytes())?);
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

    /// Takes the twin's copy of a snapshot's record, if it is one and whole.
    fn mend_record(&self, theirs: &Dir, name: &[u8]) -> Result<bool> {
        let (ours, meta) = (self.snapshots.child(name)?, META.as_bytes());
        let Some(id) = std::str::from_utf8(name).ok().and_then(crate::history::Id::parse) else {
            return Ok(false);
        };
        let Ok(copy) = theirs.child(name) else { return Ok(false) };
        if same_file(&ours, meta, &copy, meta)? || Snapshot::load(theirs.path(), &id).is_err() {
            return Ok(false);
        }
        self.take_from(&copy, &ours, meta)?;
        Ok(true)
    }

    fn take_from(&self, theirs: &Dir, ours: &Dir, name: &[u8]) -> Result<()> {
        let disk = &self.env().disk;
        Filling { disk, inward: true, budget: u64::MAX }.replace(theirs, ours, name)?;
        disk.sync_dir(ours)
    }
}
