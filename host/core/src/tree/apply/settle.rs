//! Giving what is in place, and has the right content, its attributes and times.
//!
//! Invariant: only what was captured or stored is changed, held fast while that is done.

use super::Run;
use super::attributes::On;
use super::look::{CHANGED_SINCE, Found};
use super::outcome::Refusal;
use super::place::{Place, split};
use crate::error::{Kind, Result};
use crate::tree::compare::Change;
use crate::tree::node::{Entry, Node, Time, Xattr};
use crate::tree::scan::Stat;

impl<'a> Run<'a> {
    /// Changes attributes and times of what is in place and has the right content.
    pub(super) fn settle(&self, change: &Change) -> Result<()> {
        let Some(place) = self.places.enter(split(&change.path).0)? else {
            return self.parent(&change.path).map(drop);
        };
        let last = split(&change.path).1;
        let stat = place.stat_of(last)?;
        match self.look().at(&place, last, stat.as_ref(), change)? {
            Found::Missing => {
                self.refuse(Refusal::new(&change.path, "it was removed meanwhile"));
                Ok(())
            }
            Found::Foreign(why) => {
                self.refuse(Refusal::new(&change.path, why));
                Ok(())
            }
            // What is set on it would be set on names as well that nobody captured.
            Found::Stored | Found::Current
                if change.before.as_ref().is_some_and(|before| before.link.is_none())
                    && change.aspects().metadata()
                    && self.has_others(stat.as_ref()) =>
            {
                self.unshare(change)
            }
            Found::Stored | Found::Current => {
                if self.settle_found(&place, change, stat.as_ref(), Some(change.after_time))? {
                    self.count(change);
                }
                Ok(())
            }
        }
    }

    /// Gives the entry in place, seen as `stat`, the attributes that `change` asks for;
    /// whether it did not have them.
    pub(super) fn settle_found(
        &self,
        place: &Place<'_>,
        change: &Change,
        stat: Option<&Stat>,
        mtime: Option<Time>,
    ) -> Result<bool> {
        let held = place.dir.hold(split(&change.path).1)?;
        let (Some(held), Some(entry), Some(stat)) = (held, &change.after, stat) else { return Ok(false) };
        let on = On::Held(&held);
        let now = on.stat(&change.path)?;
        if now.id() != stat.id() {
            self.refuse(Refusal::new(&change.path, CHANGED_SINCE));
            return Ok(false);
        }
        let mtime = mtime.or(self.options.stored_times.then_some(change.after_time));
        let touched = self.attributes().settle(on, &now, &on.xattrs(), entry, mtime, &change.path)?;
        if touched {
            self.tell_displaced(on, &change.path)?;
        }
        Ok(touched)
    }

    /// Makes the inode seen as `stat` at `last` in `place` modified at the present time, for
    /// whoever builds from `path`, one more name of it where something else stood. Returns
    /// how it is then.
    pub(super) fn renew(&self, place: &Place<'_>, last: &[u8], stat: Stat, path: &[u8]) -> Result<Stat> {
        let Some(held) = place.dir.hold(last)? else { return Ok(stat) };
        let on = On::Held(&held);
        if self.options.stored_times || on.stat(path)?.id() != stat.id() {
            return Ok(stat);
        }
        // One of another user, which this one may link to but not touch, stays as it is.
        match self.disk.touch_held(&held) {
            Err(error) if error.kind() == Kind::Denied => return Ok(stat),
            done => done?,
        }
        self.tell_displaced(on, path)?;
        on.stat(path)
    }

    /// Where other names of the inode `on` were displaced: that it changed is our own doing.
    fn tell_displaced(&self, on: On<'_>, path: &[u8]) -> Result<()> {
        let now = on.stat(path)?;
        if super::lock(&self.displaced_names).contains_key(&now.id()) {
            let mut displaced = super::lock(&self.displaced);
            displaced.iter_mut().filter(|old| old.stat.id() == now.id()).for_each(|old| old.stat = now);
        }
        Ok(())
    }
}

/// Whether what is as in `stat`, with `xattrs`, has the attributes of `entry`, times aside.
pub(super) fn has_attributes(stat: &Stat, xattrs: &[Xattr], entry: &Entry) -> bool {
    let mode = matches!(entry.node, Node::Symlink(_)) || stat.permissions() == entry.mode;
    mode && (stat.uid, stat.gid) == (entry.uid, entry.gid) && xattrs == entry.xattrs
}
