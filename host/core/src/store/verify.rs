//! Reading everything: is what is stored what was written?
//!
//! Two steps: the packs (each table, each frame, each object's hash), which finds all
//! damage; then the roots of snapshots, which says who is concerned by it. Nothing
//! is changed. `Store::mark` then lets later snapshots store again what they can.

use super::catalog::{Catalog, DAMAGED, PackFile};
use super::pack::{FrameTable, HEAD, PackName, Table, read_frame};
use super::walk::references;
use super::{Source, Store};
use crate::backend::Cancel;
use crate::disk::Dir;
use crate::error::{Error, Kind, Result};
use crate::object::{Key, ObjectKind};
use crate::report::{Report, Silent};
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// What was found in the packs.
#[derive(Default)]
pub struct Verified {
    /// Packs that were read.
    pub packs: u64,
    /// Objects that were read and are what was written.
    pub objects: u64,
    /// Bytes of the packs.
    pub bytes: u64,
    /// What is damaged: in which pack (none: not in one), and how.
    pub problems: Vec<(Option<PackName>, Error)>,
    /// The objects of which a whole copy was read.
    whole: HashSet<Key>,
    /// What was found out about what roots refer to: whether all beneath is whole.
    walked: HashMap<Key, bool>,
}

impl Verified {
    /// Whether nothing is damaged.
    pub fn is_whole(&self) -> bool {
        self.problems.is_empty()
    }

    /// The packs that hold something damaged.
    pub fn damaged_packs(&self) -> Vec<PackName> {
        let mut names: Vec<PackName> = self.problems.iter().filter_map(|(pack, _)| *pack).collect();
        names.sort();
        names.dedup();
        names
    }

    /// Whether all that `root` refers to is whole; what is missing or damaged is added
    /// to `lost`, as far as it can be told, up to `limit`.
    pub fn root(
        &mut self,
        store: &Store,
        root: &Key,
        lost: &mut Vec<Key>,
        limit: usize,
        cancel: &Cancel,
    ) -> Result<bool> {
        // Depth first; a key is decided when all beneath it are.
        let mut stack = vec![(*root, None::<Vec<Key>>)];
        while let Some((key, beneath)) = stack.pop() {
            if self.walked.contains_key(&key) {
                continue;
            }
            if let Some(beneath) = beneath {
                let whole = beneath.iter().all(|key| self.walked.get(key).copied().unwrap_or(false));
                self.walked.insert(key, whole);
                continue;
            }
            cancel.check()?;
            let mut found = Vec::new();
            let whole = self.whole.contains(&key)
                && (key.kind() == ObjectKind::Blob
                    || store
                        .view(&key, &mut |bytes| {
                            found = references(key.kind(), bytes)?;
                            Ok(())
                        })
                        .is_ok());
            if found.is_empty() {
                self.walked.insert(key, whole);
                continue;
            }
            stack.push((key, Some(found.clone())));
            stack.extend(found.into_iter().map(|key| (key, None)));
        }
        let whole = self.walked.get(root).copied().unwrap_or(false);
        if !whole {
            self.name_lost(store, root, lost, limit);
        }
        Ok(whole)
    }

    /// Names what is lost beneath `root`, which is not whole.
    fn name_lost(&self, store: &Store, root: &Key, lost: &mut Vec<Key>, limit: usize) {
        let mut next = vec![*root];
        let mut seen = HashSet::new();
        while let Some(key) = next.pop() {
            if lost.len() >= limit {
                return;
            }
            if self.walked.get(&key).copied().unwrap_or(false) || !seen.insert(key) {
                continue;
            }
            let mut found = Vec::new();
            if key.kind() != ObjectKind::Blob && self.whole.contains(&key) {
                let _ = store.view(&key, &mut |bytes| {
                    found = references(key.kind(), bytes)?;
                    Ok(())
                });
            }
            if found.is_empty() {
                lost.push(key);
            }
            next.extend(found);
        }
    }
}

/// Reads all packs of the store.
///
/// # Errors
/// `Cancelled`, and what kept the packs from being listed; damage is no error here.
pub fn packs(store: &Store, cancel: &Cancel, report: &dyn Report) -> Result<Verified> {
    store.look_again();
    let catalog = store.catalog()?;
    let mut verified = Verified::default();
    verified.problems.extend(catalog.index_problem.iter().map(|e| (None, e.clone())));
    let total = catalog.packs.iter().map(|pack| pack.size).sum();
    report.begin("verifying packs", Some(total), "bytes");
    let mut numbers = 0..catalog.packs.len() as u32;
    let done = numbers.try_for_each(|number| one(store, &catalog, number, &mut verified, cancel, report));
    report.end();
    done.map(|()| verified)
}

fn one(
    store: &Store,
    catalog: &Catalog,
    number: u32,
    verified: &mut Verified,
    cancel: &Cancel,
    report: &dyn Report,
) -> Result<()> {
    let PackFile { name, size, .. } = catalog.packs[number as usize];
    let file = match store.open_pack(name) {
        Ok(file) => file,
        // The index knows it, but it is gone: what is missed shows in the roots.
        Err(e) if e.kind() == Kind::NotFound => return Ok(()),
        Err(e) => {
            verified.problems.push((Some(name), e));
            return Ok(());
        }
    };
    verified.packs += 1;
    verified.bytes += size;
    let (table, wrong) = catalog.table_of(number, &file);
    verified.problems.extend(check_head(&file, name).err().map(|e| (Some(name), e)));
    verified.problems.extend(wrong.map(|e| (Some(name), e)));
    for (whole, bad) in objects(&file, name, &table, cancel, report)? {
        verified.objects += whole.len() as u64;
        verified.whole.extend(whole);
        verified.problems.extend(bad.into_iter().map(|e| (Some(name), e)));
    }
    Ok(())
}

/// Reads all frames of a pack: for each, the objects that are what was written, and what is
/// wrong with the others.
fn objects(
    file: &File,
    name: PackName,
    table: &Table,
    cancel: &Cancel,
    report: &dyn Report,
) -> Result<Vec<(Vec<Key>, Vec<Error>)>> {
    let one = |frame: &FrameTable| {
        cancel.check()?;
        report.advance(u64::from(frame.frame.stored));
        let mut raw = Vec::new();
        if let Err(e) = read_frame(file, &frame.frame, &mut raw) {
            let what = format!("{} objects in pack {name} are damaged", frame.objects.len());
            return Ok((Vec::new(), vec![e.context(what)]));
        }
        let (mut whole, mut bad, mut start) = (Vec::new(), Vec::new(), 0);
        for (key, len) in &frame.objects {
            let bytes = &raw[start..start + *len as usize];
            start += *len as usize;
            if Key::of(key.kind(), bytes) == *key {
                whole.push(*key);
            } else {
                bad.push(Error::corrupt(format!("{key} in pack {name} is damaged")));
            }
        }
        Ok((whole, bad))
    };
    table.frames.par_iter().map(one).collect()
}

/// The first bytes of a pack: nothing that is read depends on them, and still they are not
/// what was written.
fn check_head(file: &File, name: PackName) -> Result<()> {
    let mut head = [0; HEAD.len()];
    match file.read_exact_at(&mut head, 0) {
        Ok(()) if head == *HEAD => Ok(()),
        _ => Err(Error::corrupt(format!("pack {name} is damaged: it does not begin like one"))),
    }
}

/// Whether the file of the pack `name` in `packs` is whole.
///
/// # Errors
/// `Cancelled`.
pub fn is_whole(packs: &Dir, name: PackName, cancel: &Cancel) -> Result<bool> {
    let Ok(file) = packs.open_file(name.to_string().as_bytes()) else { return Ok(false) };
    let (Ok(table), Ok(())) = (Table::read(&file, name), check_head(&file, name)) else { return Ok(false) };
    Ok(objects(&file, name, &table, cancel, &Silent)?.iter().all(|(_, bad)| bad.is_empty()))
}

impl Store {
    /// Marks packs in which damage was found: they are still read, but nothing relies
    /// on them, so later snapshots store again what they find in the tree. Under the
    /// store's lock.
    pub fn mark(&self, packs: &[PackName]) -> Result<()> {
        let mut marked = false;
        for name in packs {
            let plain = name.to_string().into_bytes();
            if self.packs.stat(&plain)?.is_some() {
                let damaged = [&plain[..], DAMAGED].concat();
                // Where both are names of one file, renaming would leave both.
                if self.packs.stat(&damaged)?.is_some() {
                    self.disk.unlink(&self.packs, &damaged)?;
                }
                self.disk.rename(&self.packs, &plain, &self.packs, &damaged)?;
                marked = true;
            }
        }
        if marked {
            self.disk.sync_dir(&self.packs)?;
            self.look_again();
        }
        Ok(())
    }
}
