//! Hard links: making names one inode, and giving one an inode of its own.
//!
//! Invariant: a name is joined only to an inode that was just seen to be as it should be.

use super::Run;
use super::displace::unmoved;
use super::look::{CHANGED_SINCE, Found, MADE_SINCE};
use super::outcome::Refusal;
use super::place::{Place, split};
use crate::error::Result;
use crate::tree::compare::Change;
use crate::tree::node::{Entry, Node};
use crate::tree::scan::{Stat, stat_in};
use crate::tree::view::join;
use std::sync::Arc;

/// Where the chosen name of a group of hard links is: its directory, its name, what it is.
type Base<'a> = (Arc<Place<'a>>, Vec<u8>, Stat);

impl<'a> Run<'a> {
    /// Makes `change` one more name of the inode that was chosen for its group.
    pub(super) fn link(&self, change: &Change) -> Result<()> {
        let Some(entry) = &change.after else { return Ok(()) };
        let Some(mut base) = self.base(entry)? else {
            // None is as it should be any more: this one becomes the one.
            self.stage(change)?;
            self.put(change)?;
            if !self.is_refused(&change.path) {
                super::lock(&self.links).choose(entry, &change.path, None);
            }
            return Ok(());
        };
        let Some(aside) = self.aside(change)? else { return Ok(()) };
        let name = self.asides.name_of(&change.path);
        let Some(place) = self.parent(&change.path)? else { return Ok(()) };
        let last = split(&change.path).1;
        let stat = place.stat_of(last)?;
        if stat.is_some_and(|stat| stat.id() == base.2.id()) {
            return self.drop_staged(&aside, &name);
        }
        let found = self.look().at(&place, last, stat.as_ref(), change)?;
        if let Found::Foreign(why) = found {
            self.refuse(Refusal::new(&change.path, why));
            return Ok(());
        }
        let differs = change.aspects();
        if matches!(entry.node, Node::File { .. }) && (differs.kind || differs.content) {
            // Whoever builds from this name has built from something else.
            base.2 = self.renew(&base.0, &base.1, base.2, &change.path)?;
            super::lock(&self.links).choose(entry, &join(&base.0.path, &base.1), Some(base.2));
        }
        self.left_aside(&aside, &name, change, false)?;
        self.drop_staged(&aside, &name)?;
        self.disk.link(&base.0.dir, &base.1, &aside.dir, &name)?;
        if stat_in(&aside.dir, &name)?.is_none_or(|now| now.id() != base.2.id()) {
            self.refuse(Refusal::new(&change.path, CHANGED_SINCE));
            return self.drop_staged(&aside, &name);
        }
        match (found, stat) {
            (Found::Current | Found::Stored, Some(stat)) => {
                // What is right but not the same inode is displaced like what is not right.
                let change = match found {
                    Found::Stored => &Change { before: change.after.clone(), ..change.clone() },
                    _ => change,
                };
                if !self.exchange(&aside, &name, &place, change, &stat)? {
                    self.drop_staged(&aside, &name)?;
                    self.refuse(Refusal::new(&change.path, CHANGED_SINCE));
                }
            }
            _ => {
                if self.bring_in(&aside, &name, &place, last)? {
                    self.count(change);
                } else {
                    self.refuse(Refusal::new(&change.path, MADE_SINCE));
                    self.drop_staged(&aside, &name)?;
                }
            }
        }
        Ok(())
    }

    /// The directory, the name and the inode that was chosen for the group of `entry`,
    /// if it is as it should be.
    fn base(&self, entry: &Entry) -> Result<Option<Base<'a>>> {
        let chosen =
            super::lock(&self.links).chosen(entry).map(|(path, seen)| (path.to_vec(), seen.copied()));
        let Some((path, seen)) = chosen else { return Ok(None) };
        let (dir, last) = split(&path);
        let Some(place) = self.places.enter(dir)? else { return Ok(None) };
        let Some(stat) = place.stat_of(last)? else { return Ok(None) };
        // What was just put in place is not known to the witness: it is compared, once.
        let good = seen.is_some_and(|seen| unmoved(&seen, &stat))
            || (super::look::kind_is(&stat, entry) && place.unchanged(last, &stat))
            || self.look().is(&place.dir, last, &stat, entry)?;
        if good {
            super::lock(&self.links).choose(entry, &path, Some(stat));
        }
        Ok(good.then(|| (place.clone(), last.to_vec(), stat)))
    }

    /// Whether what is as `stat` has more names than those that were displaced, and one.
    pub(super) fn has_others(&self, stat: Option<&Stat>) -> bool {
        let displaced =
            |stat: &Stat| super::lock(&self.displaced_names).get(&stat.id()).copied().unwrap_or(0);
        stat.is_some_and(|stat| !stat.is_dir() && stat.nlink.saturating_sub(displaced(stat)) > 1)
    }

    /// Gives the entry an inode of its own, unless by now it is the only name of it.
    pub(super) fn unshare(&self, change: &Change) -> Result<()> {
        let Some(place) = self.parent(&change.path)? else { return Ok(()) };
        let stat = place.stat_of(split(&change.path).1)?;
        if self.has_others(stat.as_ref()) {
            // As it is in content, it is not as it should be: only what was captured goes.
            let found = self.look().at(&place, split(&change.path).1, stat.as_ref(), change)?;
            if let (Found::Stored | Found::Current, Some(stat), Some(aside)) =
                (found, stat, self.aside(change)?)
            {
                let name = self.asides.name_of(&change.path);
                if stat_in(&aside.dir, &name)?.is_none() && !self.stage(change)? {
                    return Ok(());
                }
                self.exchange(&aside, &name, &place, change, &stat)?;
                return Ok(());
            }
        }
        if let Some(aside) = self.aside(change)? {
            self.drop_staged(&aside, &self.asides.name_of(&change.path))?;
        }
        self.settle(change)
    }
}
