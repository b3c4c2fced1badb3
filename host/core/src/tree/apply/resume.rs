//! What a restore that was cut short left aside: used, removed, or saved.
//!
//! Invariant: nothing is removed that is neither known from the two trees nor in the store,
//! nor can only be what was being made.

use super::Run;
use super::aside::{Aside, unfinished};
use super::attributes::On;
use super::look::Found;
use super::outcome::SavedFor;
use super::place::split;
use super::settle::has_attributes;
use crate::error::Result;
use crate::tree::compare::Change;
use crate::tree::node::{Entry, Node};
use crate::tree::scan::{Stat, stat_in};
use std::sync::Arc;

impl<'a> Run<'a> {
    /// Deals with what an earlier restore left aside for `change`. True when it is what
    /// is to be put in place, whole; unless it is not `wanted`, it stays then.
    pub(super) fn left_aside(
        &self,
        aside: &Arc<Aside<'a>>,
        name: &[u8],
        change: &Change,
        wanted: bool,
    ) -> Result<bool> {
        let part = unfinished(name);
        if aside.is_left(&part) {
            self.drop_staged(aside, &part)?;
            aside.dealt_with(&part);
        }
        if !aside.is_left(name) {
            return Ok(false);
        }
        let Some(stat) = stat_in(&aside.dir, name)? else {
            aside.dealt_with(name);
            return Ok(false);
        };
        if stat.is_dir() {
            self.save(aside, name, &change.path, SavedFor::Written)?;
            return Ok(false);
        }
        let is = |entry: Option<&Entry>| match entry {
            Some(entry) => self.look().is(&aside.dir, name, &stat, entry),
            None => Ok(false),
        };
        let is_after = is(change.after.as_ref())?;
        if is_after && wanted {
            aside.dealt_with(name);
            let (Some(after), Some(held)) = (&change.after, aside.dir.hold(name)?) else { return Ok(false) };
            let on = On::Held(&held);
            // The original on its way back keeps its time; a copy made earlier is as new as now.
            let original = stat.mtime == change.after_time || self.options.stored_times;
            if original && has_attributes(&stat, &on.xattrs(), after) && stat.mtime == change.after_time {
                return Ok(true);
            }
            if stat.nlink > 1 {
                // What is set on it would be set on its other names as well.
                self.disk.unlink(&aside.dir, name)?;
                return Ok(false);
            }
            let mtime = if original { change.after_time } else { super::now() };
            self.attributes().settle(on, &stat, &on.xattrs(), after, Some(mtime), &change.path)?;
            return Ok(true);
        }
        let is_known = is_after || is(change.before.as_ref())?;
        if is_known || self.is_beginning(aside, name, &stat, change)? || self.is_draft(change)? {
            self.disk.unlink(&aside.dir, name)?;
            aside.dealt_with(name);
            return Ok(false);
        }
        self.discard_or_save(aside, name, &stat, &change.path)?;
        Ok(false)
    }

    /// Whether a leftover is no more than the beginning of what was being written.
    fn is_beginning(&self, aside: &Aside<'_>, name: &[u8], stat: &Stat, change: &Change) -> Result<bool> {
        let Some(Entry { node: Node::File { content, size, .. }, .. }) = &change.after else {
            return Ok(stat.is_file() && stat.size == 0);
        };
        if !stat.is_file() || stat.size > *size || *size > crate::store::BLOCK as u64 {
            return Ok(false);
        }
        let have = aside.dir.read(name, stat.size)?;
        let whole = self.source.read(content)?;
        Ok(whole.starts_with(&have))
    }

    /// Whether what stands aside for `change` can only be what was being made, perhaps torn
    /// by a power cut: its place is as it was captured, so nothing was displaced from it.
    pub(super) fn is_draft(&self, change: &Change) -> Result<bool> {
        if change.after.is_none() {
            return Ok(false);
        }
        let (dir, last) = split(&change.path);
        let Some(place) = self.places.enter(dir)? else { return Ok(change.before.is_none()) };
        let stat = place.stat_of(last)?;
        Ok(match self.look().at(&place, last, stat.as_ref(), change)? {
            Found::Current => true,
            Found::Missing => change.before.is_none(),
            // It was only to lose its other names, and still has them.
            Found::Stored => {
                change.after.as_ref().is_some_and(|after| after.link.is_none())
                    && stat.is_some_and(|stat| stat.is_file() && stat.nlink > 1)
            }
            Found::Foreign(_) => false,
        })
    }
}
