//! Reading objects: found through the catalog, decoded with their neighbours, and
//! checked against their hash, always.
//!
//! A look-up that leads to nothing valid is never the end: a damaged index is gone on
//! without, packs that came or went meanwhile are looked at again, and another copy
//! of the object is tried, before it is called missing or damaged.

use super::catalog::{Catalog, DAMAGED};
use super::frames::{FrameId, Frames};
use super::index::Place;
use super::pack::{Encoding, PackName, read_frame, read_part};
use super::{Extent, Source, Store};
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use std::fs::File;
use std::sync::{Arc, PoisonError};

/// Packs that are kept open.
const OPEN_PACKS: usize = 32;
/// How often an object is looked for while packs go away under our feet.
const ATTEMPTS: usize = 5;

impl Store {
    /// Whether the object is stored (in a sealed pack that can be relied on).
    pub fn contains(&self, key: &Key) -> Result<bool> {
        if let Some(far) = &self.far {
            return far.contains(key);
        }
        let catalog = self.catalog()?;
        match catalog.contains(key) {
            Err(e) if e.kind() == Kind::Corrupt => {
                let catalog = self.catalog_without_index()?;
                self.set_catalog(catalog.clone());
                catalog.contains(key)
            }
            done => done,
        }
    }

    /// The object's bytes, checked against its hash.
    ///
    /// # Errors
    /// `NotFound` when it is not there, `Corrupt` when it is damaged.
    pub fn read(&self, key: &Key) -> Result<Vec<u8>> {
        Source::read(self, key)
    }

    /// Looks at the packs again when they are needed next: others may have come or gone.
    pub(crate) fn look_again(&self) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = None;
        self.open_packs.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) fn catalog(&self) -> Result<Arc<Catalog>> {
        if let Some(catalog) = &*self.catalog.read().unwrap_or_else(PoisonError::into_inner) {
            return Ok(catalog.clone());
        }
        let mut slot = self.catalog.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(catalog) = &*slot {
            return Ok(catalog.clone());
        }
        Ok(slot.insert(Arc::new(Catalog::load(&self.dir, &self.packs, true)?)).clone())
    }

    /// A catalog made from the tables of all packs, whatever the index says.
    fn catalog_without_index(&self) -> Result<Arc<Catalog>> {
        Ok(Arc::new(Catalog::load(&self.dir, &self.packs, false)?))
    }

    pub(super) fn set_catalog(&self, catalog: Arc<Catalog>) {
        *self.catalog.write().unwrap_or_else(PoisonError::into_inner) = Some(catalog);
    }

    pub(super) fn pack_file(&self, catalog: &Catalog, number: u32) -> Result<(PackName, Arc<File>)> {
        let pack = &catalog.packs[number as usize];
        let mut open = self.open_packs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = open.iter().rposition(|(name, _)| *name == pack.name) {
            let file = open[at].1.clone();
            return Ok((pack.name, file));
        }
        let file = Arc::new(self.open_pack(pack.name)?);
        if open.len() >= OPEN_PACKS {
            open.remove(0);
        }
        open.push((pack.name, file.clone()));
        Ok((pack.name, file))
    }

    /// Opens a pack's file, whether it is marked as damaged or not.
    pub(super) fn open_pack(&self, name: PackName) -> Result<File> {
        let plain = name.to_string().into_bytes();
        match self.packs.open_file(&plain) {
            Err(e) if e.kind() == Kind::NotFound => {
                self.packs.open_file(&[&plain[..], DAMAGED].concat()).map_err(|_| e)
            }
            done => done,
        }
    }

    fn view_at(&self, catalog: &Catalog, key: &Key, place: &Place, f: Viewer<'_>) -> Result<()> {
        let (name, file) = self.pack_file(catalog, place.pack)?;
        let id = (name.0, place.frame);
        view_frame(&self.frames, id, &file, key, place, f)
            .map_err(|Damage(e)| damaged(key, &name.to_string(), &e))?
    }

    /// Whether a whole copy of `key` can be read from another pack than number `pack`.
    pub(super) fn is_whole_outside(&self, catalog: &Catalog, key: &Key, pack: u32) -> bool {
        let places = catalog.find(key).unwrap_or_default();
        places
            .iter()
            .filter(|place| place.pack != pack)
            .any(|place| self.view_at(catalog, key, place, &mut |_| Ok(())).is_ok())
    }

    fn try_view(&self, catalog: &Catalog, key: &Key, f: Viewer<'_>) -> Result<bool> {
        let mut failed = None;
        for place in catalog.find(key)? {
            let mut seen = false;
            let done = self.view_at(catalog, key, &place, &mut |bytes| {
                seen = true;
                f(bytes)
            });
            match done {
                Err(e) if !seen => failed = failed.or(Some(e)),
                done => return done.map(|()| true),
            }
        }
        match failed {
            None => Ok(false),
            Some(e) => Err(e),
        }
    }
}

impl Source for Store {
    fn extent(&self, key: &Key) -> Option<Extent> {
        self.find_extent(key)
    }

    fn view(&self, key: &Key, f: Viewer<'_>) -> Result<()> {
        if let Some(far) = &self.far {
            return Self::view_far(&**far, key, f);
        }
        let shown = std::cell::Cell::new(false);
        let mut f = |bytes: &[u8]| {
            shown.set(true);
            f(bytes)
        };
        let mut failed = None;
        for attempt in 0..ATTEMPTS {
            // After the first time on the tables themselves. Only if they know better they are
            // kept: an index may still know what is in a pack whose table is lost.
            let catalog = if attempt == 0 { self.catalog()? } else { self.catalog_without_index()? };
            let done = self.try_view(&catalog, key, &mut f);
            if shown.get() || matches!(done, Ok(true)) {
                if attempt > 0 {
                    self.set_catalog(catalog);
                }
                return done.map(|_| ());
            }
            let went_away = matches!(&done, Err(e) if e.kind() == Kind::NotFound);
            failed = done.err().or(failed);
            if attempt > 0 && !went_away {
                break;
            }
        }
        Err(failed.unwrap_or_else(|| {
            Error::new(Kind::NotFound, format!("{key} is not in the store"))
                .hint("`snapback verify` names the snapshots that are concerned")
        }))
    }
}

/// What is done with an object's bytes while they are there.
pub type Viewer<'a> = &'a mut dyn FnMut(&[u8]) -> Result<()>;

/// Why an object could not be read from where it lies.
pub(super) struct Damage(pub Error);

/// Hands the object at `place` in `file` to `f`, with what `f` says; `id` names its frame.
pub(super) fn view_frame(
    frames: &Frames,
    id: FrameId,
    file: &File,
    key: &Key,
    place: &Place,
    f: Viewer<'_>,
) -> Result<Result<()>, Damage> {
    let (frame, start, len) = (place.frame, place.start as usize, place.len as usize);
    let show = |bytes: Option<&[u8]>, f: Viewer<'_>| match bytes {
        Some(bytes) if Key::of(key.kind(), bytes) == *key => Ok(f(bytes)),
        _ => Err(Damage(Error::corrupt("its bytes are not what was written"))),
    };
    // What lies there as it is and is large needs no neighbours.
    if frame.encoding == Encoding::Aligned {
        return read_part(file, &frame, start, len, &mut |bytes| show(Some(bytes), f)).map_err(Damage)?;
    }
    let frame = frames.get(id, frame.raw as usize, |out| read_frame(file, &frame, out)).map_err(Damage)?;
    show(frame.bytes().map_err(Damage)?.get(start..).and_then(|rest| rest.get(..len)), f)
}

pub(super) fn damaged(key: &Key, pack: &str, how: &Error) -> Error {
    Error::corrupt(format!("{key} in pack {pack} is damaged: {how}"))
        .hint("`snapback verify` names the snapshots that are concerned")
}
