//! Taking what stands in the way aside, in one step, and looking at it there.
//!
//! Invariant: what leaves the tree is moved aside in one step and compared with what
//! was captured only then, when nobody can open it by its name any more; if it is
//! something else, it goes back in one step. So there is no moment between looking
//! and acting in which a change would be lost. Where both the old and the new got in
//! the way of somebody, the newest has the name and the other is saved.

use super::Run;
use super::aside::Aside;
use super::look::CHANGED_SINCE;
use super::outcome::{Refusal, SavedFor};
use super::place::{Place, split};
use crate::error::{Kind, Result};
use crate::tree::compare::Change;
use crate::tree::node::Time;
use crate::tree::scan::{Stat, stat_in};
use std::sync::Arc;

/// A displaced entry, as it was when it was compared.
pub(super) struct Displaced<'a> {
    pub(super) aside: Arc<Aside<'a>>,
    pub(super) path: Box<[u8]>,
    pub(super) stat: Stat,
}

/// Whether a change at this moment might not be seen in `mtime`: the clock of the file
/// system has not clearly moved on since. `now` is by the same clock.
fn too_young(mtime: Time, now: Time) -> bool {
    let nanos = |time: Time| i128::from(time.sec) * 1_000_000_000 + i128::from(time.nsec);
    // Some file systems count whole seconds, or two.
    let tick = if mtime.nsec == 0 { 2_500_000_000 } else { 50_000_000 };
    nanos(now) - nanos(mtime) < tick
}

impl<'a> Run<'a> {
    /// Exchanges what stands aside with what is in place, which was just seen as `stat`.
    /// False when it vanished in between.
    pub(super) fn exchange(
        &self,
        aside: &Arc<Aside<'a>>,
        name: &[u8],
        place: &Place<'_>,
        change: &Change,
        stat: &Stat,
    ) -> Result<bool> {
        let last = split(&change.path).1;
        match self.disk.exchange(&aside.dir, name, &place.dir, last) {
            Ok(true) => {}
            Ok(false) => return self.exchange_in_steps(aside, name, place, change, stat),
            Err(e) if e.kind() == Kind::NotFound => return Ok(false),
            Err(e) => return Err(e),
        }
        if self.displaced(aside, name, change, stat)? {
            self.count(change);
            return Ok(true);
        }
        self.refuse(Refusal::new(&change.path, CHANGED_SINCE));
        // Back; if our own comes out as we put it in, nobody lost anything.
        match self.disk.exchange(&aside.dir, name, &place.dir, last) {
            Ok(_) => {}
            Err(e) if e.kind() == Kind::NotFound => {
                if !self.bring_in(aside, name, place, last)? {
                    self.save(aside, name, &change.path, SavedFor::Written)?;
                }
                return Ok(true);
            }
            Err(e) => return Err(e),
        }
        let ours = match (stat_in(&aside.dir, name)?, &change.after) {
            (Some(back), Some(after)) => self.look().is(&aside.dir, name, &back, after)?,
            _ => false,
        };
        if ours {
            self.disk.unlink(&aside.dir, name)?;
            return Ok(true);
        }
        // Somebody was even newer: that gets the name again, and what is older is saved.
        if self.disk.exchange(&aside.dir, name, &place.dir, last).is_err() {
            self.bring_in(aside, name, place, last)?;
        }
        if stat_in(&aside.dir, name)?.is_some() {
            self.save(aside, name, &change.path, SavedFor::Written)?;
        }
        Ok(true)
    }

    /// The same where the file system cannot exchange: the name is free for a moment.
    fn exchange_in_steps(
        &self,
        aside: &Arc<Aside<'a>>,
        name: &[u8],
        place: &Place<'_>,
        change: &Change,
        stat: &Stat,
    ) -> Result<bool> {
        let last = split(&change.path).1;
        let new = [b"n", &name[1..]].concat();
        self.disk.rename(&aside.dir, name, &aside.dir, &new)?;
        let moved = self.disk.rename(&place.dir, last, &aside.dir, name);
        if let Err(e) = moved {
            self.disk.rename(&aside.dir, &new, &aside.dir, name)?;
            return if e.kind() == Kind::NotFound { Ok(false) } else { Err(e) };
        }
        let good = self.displaced(aside, name, change, stat)?;
        let comes = if good { &new } else { name };
        if self.bring_in(aside, comes, place, last)? {
            if good {
                self.count(change);
                return Ok(true);
            }
        } else if !good {
            self.save(aside, name, &change.path, SavedFor::Written)?;
        }
        self.refuse(Refusal::new(&change.path, CHANGED_SINCE));
        self.drop_staged(aside, &new)?;
        Ok(true)
    }

    /// Whether what stands aside now is what was seen as `stat` in its place; it is then
    /// to be removed at the end.
    pub(super) fn displaced(
        &self,
        aside: &Arc<Aside<'a>>,
        name: &[u8],
        change: &Change,
        stat: &Stat,
    ) -> Result<bool> {
        let Some(now) = stat_in(&aside.dir, name)? else { return Ok(false) };
        let Some(before) = &change.before else { return Ok(false) };
        // Some file systems give a file another identity when it is moved (an overlay
        // that copies it up): the content decides then.
        let good = same_but_for_inode(stat, &now)
            && ((stat.id() == now.id() && !too_young(stat.mtime, now.ctime))
                || self.look().is(&aside.dir, name, &now, before)?);
        if good {
            // Lending the permission to read it has moved its ctime; a write since then would
            // have moved its mtime as well (see `Look::is`).
            let lent = stat_in(&aside.dir, name)?.filter(|seen| self.rights.lacks_read(seen));
            let now = lent.filter(|seen| unmoved(&now, seen)).unwrap_or(now);
            if now.nlink > 1 {
                *super::lock(&self.displaced_names).entry(now.id()).or_default() += 1;
            }
            let path = change.path.clone().into_boxed_slice();
            let displaced = Displaced { aside: aside.clone(), path, stat: now };
            super::lock(&self.displaced).push(displaced);
        }
        Ok(good)
    }
}

/// Whether `now` is the inode that was `before`, moved to another name but else not
/// touched. Moving changes `ctime`.
pub(super) fn unmoved(before: &Stat, now: &Stat) -> bool {
    before.id() == now.id() && same_but_for_inode(before, now)
}

fn same_but_for_inode(before: &Stat, now: &Stat) -> bool {
    (before.mode, before.uid, before.gid) == (now.mode, now.uid, now.gid)
        && (before.size, before.mtime) == (now.size, now.mtime)
}
