//! Reading everything that is stored, and naming the snapshots that are concerned by
//! what is damaged.

use super::{Damaged, Project};
use crate::error::{Error, Result};
use crate::history::Id;
use crate::history::snapshot::RunEnd;
use crate::object::Key;
use crate::store::{PackName, verify};
use std::collections::{BTreeSet, HashSet};

/// What was found.
#[derive(Debug, Default)]
pub struct Verification {
    /// Packs that were read.
    pub packs: u64,
    /// Objects that were read and are what was written.
    pub objects: u64,
    /// Bytes of the packs.
    pub bytes: u64,
    /// What is damaged in the packs or the index.
    pub problems: Vec<Error>,
    /// Snapshots that cannot be restored whole, with some of the objects they lack.
    pub concerned: Vec<(Id, Vec<Key>)>,
    /// Snapshots whose records are damaged, or those of how their runs ended.
    pub records: Vec<Damaged>,
    /// Lines of the timeline that are damaged.
    pub timeline: usize,
    /// Why the journal cannot be read, when it cannot.
    pub journal: Option<Error>,
    pub(super) damaged: Vec<PackName>,
}

/// At most this many objects are named for each snapshot.
const NAMED: usize = 5;

impl Verification {
    /// Whether nothing is damaged.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty()
            && self.concerned.is_empty()
            && self.records.is_empty()
            && self.timeline == 0
            && self.journal.is_none()
    }
}

impl Project {
    /// Reads everything that is stored. Changes nothing.
    ///
    /// Others may add and drop snapshots meanwhile: nothing is called damaged for that.
    ///
    /// # Errors
    /// When the store cannot be read at all; damage is in what is returned.
    pub fn verify(&self) -> Result<Verification> {
        let dir = self.need_store()?.dir();
        let packs = || -> Option<BTreeSet<Vec<u8>>> {
            Some(dir.child(b"packs").ok()?.names().ok()?.into_iter().collect())
        };
        let mut before = packs();
        loop {
            let found = self.verify_once()?;
            let after = packs();
            // What was read may have been moved to other packs, unless they are those that were.
            if found.is_whole() || before == after {
                return Ok(found);
            }
            before = after;
        }
    }

    /// Of the snapshots, those that were there before the packs were read, and still are.
    fn verify_once(&self) -> Result<Verification> {
        let (store, env) = (self.need_store()?, &self.env);
        let (snapshots, mut records) = self.list()?;
        let mut packs = verify::packs(store, &env.cancel, &*env.report)?;
        let ends = super::snapshots(store);
        let mut concerned = Vec::new();
        for listing in snapshots {
            let mut lost = Vec::new();
            let mut whole = true;
            for part in listing.snapshot.targets.iter().flat_map(|target| &target.parts) {
                whole &= packs.root(store, &part.content, &mut lost, NAMED, &env.cancel)?;
            }
            let id = listing.snapshot.id;
            // What a run changed is kept like a cache: a power cut may have torn it.
            let end = RunEnd::read(&ends, &id).err();
            records.extend(end.map(|error| Damaged { id: id.clone(), error }));
            if !whole {
                concerned.push((id, lost));
            }
        }
        let there: HashSet<Id> = self.ids()?.into_iter().collect();
        concerned.retain(|(id, _)| there.contains(id));
        records.retain(|record| there.contains(&record.id));
        Ok(Verification {
            packs: packs.packs,
            objects: packs.objects,
            bytes: packs.bytes,
            damaged: packs.damaged_packs(),
            problems: packs.problems.into_iter().map(|(_, error)| error).collect(),
            concerned,
            records,
            timeline: self.timeline()?.damaged,
            journal: self.pending().err(),
        })
    }
}
