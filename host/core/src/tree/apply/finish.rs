//! The end of a restore: all is made durable, then looked at again, and only then is
//! removed what was displaced.

use super::action::Action;
use super::aside::{Aside, is_kept};
use super::displace::Displaced;
use super::outcome::{Refusal, SavedFor};
use super::place::split;
use super::{Run, lock};
use crate::disk::Writers;
use crate::error::Result;
use crate::tree::compare::{Change, Kept};
use crate::tree::scan::{Stat, stat_in};
use rayon::prelude::*;
use std::sync::Arc;

impl<'a> Run<'a> {
    /// Whether what `change` brings about is there already: an earlier call was cut short.
    pub(super) fn is_there(&self, change: &Change) -> Result<bool> {
        let Some(place) = self.places.open(split(&change.path).0).unwrap_or(None) else { return Ok(false) };
        let last = split(&change.path).1;
        let Some(stat) = place.stat_of(last)? else { return Ok(false) };
        let Some(after) = &change.after else { return Ok(false) };
        if place.unchanged(last, &stat) {
            return Ok(false);
        }
        let same_content = change.before.as_ref().is_some_and(|before| before.node == after.node);
        Ok(!same_content && self.look().is(&place.dir, last, &stat, after)?)
    }

    /// Looks for what earlier calls left in the tree itself, once.
    pub(super) fn notice(&self) {
        self.noticed.call_once(|| {
            // What cannot be opened now is told when it is needed.
            let _ = self.tape.each(|step| {
                if step.leaves
                    && step.traits.becomes_dir()
                    && let Ok(Some(place)) = self.places.open(step.path)
                {
                    let _ = self.asides.notice(&place);
                }
                Ok(())
            });
        });
    }

    /// Whether earlier calls left something aside.
    pub(super) fn has_leftovers(&self) -> bool {
        if !self.asides.is_main(self.places.root()) {
            self.notice();
        }
        self.asides.all().iter().any(|aside| !aside.left().is_empty())
    }

    /// Makes all durable, looks at it again, and removes what was displaced.
    pub(super) fn complete(&self) -> Result<()> {
        self.disk.sync_filesystem(&self.places.root().dir)?;
        for aside in self.asides.all().iter().skip(1) {
            self.disk.sync_filesystem(&aside.dir)?;
        }
        self.look_again()?;
        // The tree is as it should be: what cannot be removed now is dealt with by the
        // next call, and is no failure of this one.
        let _ = self.remove_displaced();
        let _ = self.remove_unused();
        let _ = self.remove_leftovers();
        let _ = self.asides.clear(&self.places);
        self.places.close_again()
    }

    /// Tells what is not as it should be by now: somebody works in the tree.
    fn look_again(&self) -> Result<()> {
        let wanted = |step: &Kept<'_>| Ok(!step.traits.passage() || step.traits.is_new_dir());
        self.each(wanted, |change| {
            if let Some(how) = self.check(change)? {
                self.refuse(Refusal::new(&change.path, how));
            }
            Ok(())
        })
    }

    /// Removes what was displaced, unless somebody wrote to it since, or still can.
    fn remove_displaced(&self) -> Result<()> {
        let displaced = std::mem::take(&mut *lock(&self.displaced));
        // Nobody can open by its name what stands aside: who has no handle now gets none.
        let asked: Vec<Writers> = displaced.par_iter().map(|old| self.writers(old)).collect();
        let unknown = displaced.iter().zip(&asked).filter(|(_, asked)| **asked == Writers::Unknown);
        let open = super::writers::of(&unknown.map(|(old, _)| old.stat.id()).collect());
        let me = rustix::process::geteuid().as_raw();
        displaced.par_iter().zip(&asked).try_for_each(|(old, asked)| {
            let Displaced { aside, path, stat } = old;
            let name = &self.asides.name_of(path);
            let why = match asked {
                Writers::Nobody => None,
                Writers::Somebody => Some(SavedFor::Open),
                Writers::Unknown if open.contains(&stat.id()) => Some(SavedFor::Open),
                // Processes of others cannot be looked into, and they may have others' files.
                Writers::Unknown => (stat.uid != me).then_some(SavedFor::Unknown),
            };
            let Some(now) = stat_in(&aside.dir, name)? else { return Ok(()) };
            match if quiet(stat, &now) { why } else { Some(SavedFor::Written) } {
                None => self.disk.unlink(&aside.dir, name),
                Some(why) => self.save(aside, name, path, why),
            }
        })
    }

    fn writers(&self, old: &Displaced<'_>) -> Writers {
        if old.stat.is_file() {
            old.aside.dir.writers(&self.asides.name_of(&old.path))
        } else {
            Writers::Nobody
        }
    }

    /// Removes what was made aside for what was refused afterwards, with all in it.
    fn remove_unused(&self) -> Result<()> {
        if lock(&self.outcome).refused.is_empty() {
            return Ok(());
        }
        self.tape.each(|step| {
            if step.leaves
                || !self.is_refused(step.path)
                || !matches!(self.action(step)?, Action::Put | Action::Unshare)
            {
                return Ok(());
            }
            let change = step.change()?;
            let (Some(entry), name) = (&change.after, self.asides.name_of(&change.path)) else {
                return Ok(());
            };
            for aside in self.asides.all() {
                if let Some(stat) = stat_in(&aside.dir, &name)?
                    && !aside.is_left(&name)
                    && self.look().is(&aside.dir, &name, &stat, entry)?
                {
                    self.disk.unlink(&aside.dir, &name)?;
                }
            }
            Ok(())
        })
    }

    /// Deals with what earlier calls left aside and this one had no use for.
    fn remove_leftovers(&self) -> Result<()> {
        for aside in self.asides.all() {
            if aside.left().is_empty() {
                continue;
            }
            // Most belong to changes: whoever cut the call short left them where they were.
            self.tape.each(|step| {
                let name = self.asides.name_of(step.path);
                let is_left = aside.is_left(&name) || aside.is_left(&super::aside::unfinished(&name));
                if step.leaves || !is_left { Ok(()) } else { self.left_over(&aside, &name, &step.change()?) }
            })?;
            for name in aside.left() {
                self.orphan(&aside, &name)?;
            }
        }
        Ok(())
    }

    fn left_over(&self, aside: &Arc<Aside<'a>>, name: &[u8], change: &Change) -> Result<()> {
        self.left_aside(aside, name, change, false).map(drop)
    }

    /// What a restore of other trees, which is over, displaced and did not remove.
    fn orphan(&self, aside: &Arc<Aside<'a>>, name: &[u8]) -> Result<()> {
        match stat_in(&aside.dir, name)? {
            Some(stat) => self.discard_or_save(aside, name, &stat, name),
            None => Ok(()),
        }
    }

    /// Deals with a leftover that this restore has no use for: a file goes if it was never
    /// whole or is stored, else it is saved. What is neither a file nor a directory cannot have
    /// been written to since it was compared; no directory ever stands aside but one of somebody's.
    pub(super) fn discard_or_save(
        &self,
        aside: &Aside<'_>,
        name: &[u8],
        stat: &Stat,
        path: &[u8],
    ) -> Result<()> {
        let known = !stat.is_dir()
            && (name.starts_with(b"w")
                || !stat.is_file()
                || super::clear::is_stored(self.store, &aside.dir, name, self.cancel)?);
        if !known {
            return self.save(aside, name, path, SavedFor::Written);
        }
        self.disk.unlink(&aside.dir, name)?;
        aside.dealt_with(name);
        Ok(())
    }

    /// Nothing in the tree was touched: what was made aside goes.
    pub(super) fn discard(&self) {
        for aside in self.asides.all() {
            for name in aside.dir.names().unwrap_or_default() {
                if !aside.is_left(&name) && !is_kept(&name) {
                    // What stays is dealt with by the next call.
                    let _ = self.disk.unlink(&aside.dir, &name);
                }
            }
        }
        let _ = self.asides.clear(&self.places);
        let _ = self.places.close_again();
    }
}

/// Whether nobody wrote to what was displaced since it was compared. Other names of it
/// that go change its `ctime` as well.
fn quiet(before: &Stat, now: &Stat) -> bool {
    before.id() == now.id()
        && (before.size, before.mtime, before.mode) == (now.size, now.mtime, now.mode)
        && (before.ctime == now.ctime || before.nlink > 1)
}
