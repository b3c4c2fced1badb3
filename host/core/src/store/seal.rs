//! Sealing: what a writer wrote becomes durable, then visible.
//!
//! Order: tables are written, packs are synced, renamed into place, and the
//! directory is synced once. The index follows; it is a cache, and a failure to write
//! it is no failure. One sync a pack and one more; none when there is nothing new.

use super::append::OpenPack;
use super::catalog::DAMAGED;
use super::pack::{PackName, Table};
use super::write::Writer;
use crate::error::{Error, Kind, Result};
use std::sync::Arc;

impl Writer {
    /// Makes all that was put durable and visible; returns bytes added to the disk.
    /// With nothing new nothing is done at all.
    pub fn seal(&self) -> Result<u64> {
        Ok(self.seal_packs()?.iter().map(|(_, bytes)| bytes).sum())
    }

    /// Like [`Self::seal`]; returns the packs that were added, with their sizes.
    pub(super) fn seal_packs(&self) -> Result<Vec<(PackName, u64)>> {
        let mut packs = self.take()?;
        if self.is_scratch() && !packs.is_empty() {
            let error = Error::new(Kind::Invalid, "what was only to be looked at cannot be kept");
            return Err(self.give_up(packs, error));
        }
        if packs.is_empty() {
            self.store().upkeep();
            return Ok(Vec::new());
        }
        let mut sealed = Vec::with_capacity(packs.len());
        match self.seal_all(&mut packs, &mut sealed) {
            Ok(()) => {
                let names = sealed.iter().map(|(name, bytes, _)| (*name, *bytes)).collect();
                // Two lists of all that is new are enough: this one goes first. Nobody
                // looks for it meanwhile, since no lane is open.
                self.forget();
                let catalog = self.store().catalog()?.with(sealed);
                self.store().set_catalog(Arc::new(catalog));
                self.store().upkeep();
                Ok(names)
            }
            Err(e) => Err(self.give_up(packs, e)),
        }
    }

    /// Seals `packs`, which are taken out one by one: what is left could not be sealed.
    fn seal_all(&self, packs: &mut Vec<OpenPack>, sealed: &mut Vec<(PackName, u64, Table)>) -> Result<()> {
        let store = self.store();
        let mut names = Vec::with_capacity(packs.len());
        for pack in packs.iter_mut() {
            let (table, name) = Table::encode(&pack.frames, pack.end);
            store.disk.write_all(&pack.file, pack.end, &table)?;
            store.disk.sync_file(&pack.file)?;
            pack.end += table.len() as u64;
            names.push(name);
        }
        for name in names {
            let file_name = name.to_string().into_bytes();
            store.disk.rename(store.tmp()?, &packs[0].name, &store.packs, &file_name)?;
            let pack = packs.remove(0);
            sealed.push((name, pack.end, Table { frames: pack.frames }));
        }
        store.disk.sync_dir(&store.packs)?;
        // A damaged pack of the same name held the same objects.
        for (name, ..) in sealed.iter() {
            let damaged = [name.to_string().as_bytes(), DAMAGED].concat();
            if store.packs.stat(&damaged)?.is_some() {
                store.disk.unlink(&store.packs, &damaged)?;
            }
        }
        Ok(())
    }
}
