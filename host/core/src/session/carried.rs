//! What a snapshot left out, under the name that it has in a later one: a command renamed it, and
//! so it is covered now.
//!
//! It is known by its inode as long as it is the same one. Once it was removed and came back by an
//! undo it is another, so each snapshot has it on record: an undo that goes on, to where it was
//! left out, must not remove it, for nothing brings it back there.

use super::Project;
use super::absent::{is_of, names};
use super::capture::roots;
use crate::backend::{Part, Target};
use crate::disk::Dir;
use crate::error::Result;
use crate::history::Id;
use crate::history::snapshot::{Captured, Carried};
use crate::object::ObjectKind;
use crate::store::Source;
use crate::text::Bytes;
use crate::tree::compare::{Only, compare};
use crate::tree::root::{Root, Stamp};
use crate::tree::scan::{Stat, stat_in};

impl Project {
    /// What `previous`, an earlier capture of `target`, left out and `parts`, a new one, have.
    ///
    /// # Errors
    /// When what is stored cannot be read.
    pub(super) fn carried(
        &self,
        source: &dyn Source,
        previous: &Captured,
        target: &Target,
        parts: &[Part],
    ) -> Result<Vec<Carried>> {
        let mut all = Vec::new();
        for now in roots(source, parts) {
            let now = now?;
            let then = roots(source, &previous.parts).find(|then| {
                then.as_ref().is_ok_and(|then| (&then.setting, &then.value) == (&now.setting, &now.value))
            });
            let (Some(then), true) = (then.transpose()?, is_of(target, &now)) else { continue };
            let known = then.left_out.iter().filter(|item| item.can_move());
            let known = known.filter_map(|item| Some(Carried::of(&item.path, &item.path, item.stamp?)));
            let mut gone: Vec<Carried> = known.chain(previous.carried.iter().cloned()).collect();
            gone.retain(|item| now.left_out.iter().all(|left| left.path != item.from.0));
            if !gone.is_empty() {
                self.find_carried(source, &gone, (&then, &now), &mut all)?;
            }
        }
        Ok(all)
    }

    /// Adds to `all` where what is `gone` from its place is now.
    fn find_carried(
        &self,
        source: &dyn Source,
        gone: &[Carried],
        (then, now): (&Root, &Root),
        all: &mut Vec<Carried>,
    ) -> Result<()> {
        let Some(top) = self.directory_at(&now.value) else { return Ok(()) };
        let mut find = |path: &[u8]| {
            let Some(stat) = stat_at(&top, path) else { return };
            if let Some(item) = gone.iter().find(|item| item.stamp.is_of(&stat)) {
                all.push(Carried { path: Bytes(path.to_vec()), ..item.clone() });
            }
        };
        // Where it was before, it need not be anything new.
        gone.iter().filter(|item| item.path != item.from).for_each(|item| find(&item.path.0));
        for change in compare(source, then, now, &Only::default())? {
            let change = change?;
            if change.before.is_none() && change.becomes_dir() {
                find(&change.path);
            }
        }
        Ok(())
    }

    fn directory_at(&self, value: &str) -> Option<Dir> {
        let top = Dir::open(&self.env.root).ok()?;
        names(&self.env.root, value)?.into_iter().try_fold(top, |dir, name| dir.child(name)).ok()
    }

    /// What snapshots that are newer than `id`, which has `stored`, have of what was left out of that
    /// target: its path there, and where it was. Only of directories something is left out, and of
    /// other targets there may be hundreds.
    pub(super) fn carried_since(&self, id: &Id, stored: &Captured) -> Vec<(Vec<u8>, Vec<u8>)> {
        if !stored.parts.iter().any(|part| part.content.kind() == ObjectKind::Root) {
            return Vec::new();
        }
        let ids = self.ids().unwrap_or_default();
        let newer = ids.iter().take_while(|newer| *newer > id).filter_map(|newer| self.load(newer).ok());
        let of_target =
            newer.filter_map(|snapshot| Some(snapshot.target(&stored.target.name)?.carried.clone()));
        of_target.flatten().map(|item| (item.path.0, item.from.0)).collect()
    }
}

fn stat_at(top: &Dir, path: &[u8]) -> Option<Stat> {
    let mut names: Vec<&[u8]> = path.split(|&b| b == b'/').collect();
    let name = names.pop()?;
    let mut names = names.into_iter();
    match names.next() {
        None => stat_in(top, name).ok()?,
        Some(first) => {
            let dir = names.try_fold(top.child(first).ok()?, |dir, name| dir.child(name)).ok()?;
            stat_in(&dir, name).ok()?
        }
    }
}

impl Carried {
    fn of(path: &[u8], from: &[u8], stamp: Stamp) -> Self {
        Self { path: Bytes(path.to_vec()), from: Bytes(from.to_vec()), stamp: stamp.into() }
    }
}
