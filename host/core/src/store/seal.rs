//! Sealing: what a writer wrote becomes durable, then visible.
//!
//! Order: tables are written, packs are synced, renamed into place, and the
//! directory is synced once. The index follows; it is a cache, and a failure to write
//! it is no failure. One sync a pack and one more; none when there is nothing new.

use super::pack::Table;
use super::write::{OpenPack, Writer};
use crate::error::{Error, Kind, Result};
use std::sync::Arc;

impl Writer {
    /// Makes all that was put durable and visible; returns bytes added to the disk.
    /// With nothing new nothing is done at all.
    pub fn seal(&self) -> Result<u64> {
        let mut packs = self.take()?;
        if self.is_scratch() && !packs.is_empty() {
            let error = Error::new(Kind::Invalid, "what was only to be looked at cannot be kept");
            return Err(self.give_up(packs, error));
        }
        if packs.is_empty() {
            self.store().upkeep();
            return Ok(0);
        }
        let mut sealed = Vec::with_capacity(packs.len());
        match self.seal_all(&mut packs, &mut sealed) {
            Ok(bytes) => {
                let catalog = self.store().catalog()?.with(sealed);
                self.store().set_catalog(Arc::new(catalog));
                self.forget();
                self.store().upkeep();
                Ok(bytes)
            }
            Err(e) => Err(self.give_up(packs, e)),
        }
    }

    /// Seals `packs`, which are taken out one by one: what is left could not be sealed.
    fn seal_all(
        &self,
        packs: &mut Vec<OpenPack>,
        sealed: &mut Vec<(super::PackName, u64, Table)>,
    ) -> Result<u64> {
        let store = self.store();
        let mut names = Vec::with_capacity(packs.len());
        for pack in packs.iter_mut() {
            let (table, name) = Table::encode(&pack.frames, pack.end);
            store.disk.write_all(&pack.file, pack.end, &table)?;
            store.disk.sync_file(&pack.file)?;
            pack.end += table.len() as u64;
            names.push(name);
        }
        let mut bytes = 0;
        for name in names {
            let file_name = name.to_string().into_bytes();
            store.disk.rename(&store.tmp, &packs[0].name, &store.packs, &file_name)?;
            let pack = packs.remove(0);
            bytes += pack.end;
            sealed.push((name, pack.end, Table { frames: pack.frames }));
        }
        store.disk.sync_dir(&store.packs)?;
        Ok(bytes)
    }
}
