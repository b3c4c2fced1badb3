//! Putting entries in place and taking them out, one step of the file system each.
//!
//! Invariant: what leaves the tree is moved aside in one step and compared with what
//! was captured only then, when nobody can open it by its name any more; if it is
//! something else, it goes back in one step. So there is no moment between looking
//! and acting in which a change would be lost. Where both the old and the new got in
//! the way of somebody, the newest has the name and the other is saved.

use super::Run;
use super::aside::{Aside, unfinished};
use super::attributes::On;
use super::look::{CHANGED_SINCE, Found, MADE_SINCE};
use super::make::Draft;
use super::outcome::Refusal;
use super::place::{Place, split, stat_in};
use crate::error::{Error, Kind, Result};
use crate::tree::compare::Change;
use crate::tree::node::{Entry, Node, Time, Xattr};
use crate::tree::scan::Stat;
use rustix::io::Errno;
use std::sync::Arc;

/// A displaced entry, as it was when it was compared.
pub(super) struct Displaced<'a> {
    pub(super) aside: Arc<Aside<'a>>,
    pub(super) path: Box<[u8]>,
    pub(super) stat: Stat,
}

pub(super) fn is(error: &Error, errno: Errno) -> bool {
    error.os_error() == Some(errno.raw_os_error())
}

/// Whether a change at this moment might not be seen in `mtime`: the clock of the file
/// system has not clearly moved on since. `now` is by the same clock.
fn too_young(mtime: Time, now: Time) -> bool {
    let nanos = |time: Time| i128::from(time.sec) * 1_000_000_000 + i128::from(time.nsec);
    // Some file systems count whole seconds, or two.
    let tick = if mtime.nsec == 0 { 2_500_000_000 } else { 50_000_000 };
    nanos(now) - nanos(mtime) < tick
}

/// Where the chosen name of a group of hard links is: its directory, its name, what it is.
type Base<'a> = (Arc<Place<'a>>, Vec<u8>, Stat);

impl<'a> Run<'a> {
    /// The directory that holds `path`, to change names in it; a refusal when it is not
    /// there any more.
    pub(super) fn parent(&self, path: &[u8]) -> Result<Option<Arc<Place<'a>>>> {
        let place = self.places.enter_to_write(split(path).0)?;
        if place.is_none() {
            self.refuse(Refusal::new(path, "the directory that holds it is not the one that was recorded"));
        }
        Ok(place)
    }

    /// Where what `change` is about is put aside.
    pub(super) fn aside(&self, change: &Change) -> Result<Option<Arc<Aside<'a>>>> {
        match self.places.enter_to_write(&change.path[..change.common])? {
            Some(home) if self.asides.is_main(&home) => self.asides.of(&home, &home).map(Some),
            Some(home) => {
                self.notice();
                self.asides.of(&home, self.places.root()).map(Some)
            }
            None => {
                let reason = "the directory that holds it is not the one that was recorded";
                self.refuse(Refusal::new(&change.path, reason));
                Ok(None)
            }
        }
    }

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
            self.disk.unlink(&aside.dir, &part)?;
            aside.dealt_with(&part);
        }
        if !aside.is_left(name) {
            return Ok(false);
        }
        let Some(stat) = stat_in(&aside.dir, name)? else {
            aside.dealt_with(name);
            return Ok(false);
        };
        let is = |entry: Option<&Entry>| match entry {
            Some(entry) if !stat.is_dir() => self.look().is(&aside.dir, name, &stat, entry),
            _ => Ok(false),
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
    fn is_draft(&self, change: &Change) -> Result<bool> {
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

    /// Makes what `change` puts in place aside, unless it stands there from earlier.
    /// False when it cannot be made and was refused.
    pub(super) fn stage(&self, change: &Change) -> Result<bool> {
        let (Some(entry), Some(aside)) = (&change.after, self.aside(change)?) else { return Ok(false) };
        let name = self.asides.name_of(&change.path);
        if self.left_aside(&aside, &name, change, true)? {
            return Ok(true);
        }
        self.make(&aside, &Draft { path: &change.path, name: &name, entry, mtime: change.after_time })
    }

    /// Puts the entry that stands aside in its place.
    pub(super) fn put(&self, change: &Change) -> Result<()> {
        let Some(aside) = self.aside(change)? else { return Ok(()) };
        let name = self.asides.name_of(&change.path);
        let Some(place) = self.parent(&change.path)? else { return self.drop_staged(&aside, &name) };
        let last = split(&change.path).1;
        // Where nothing was, there is mostly nothing now.
        if change.before.is_none() && matches!(self.bring_in(&aside, &name, &place, last), Ok(true)) {
            self.count(change);
            return Ok(());
        }
        for _ in 0..3 {
            let stat = place.stat_of(last)?;
            let mut found = self.look().at(&place, last, stat.as_ref(), change)?;
            let right;
            let mut change = change;
            if let (Found::Stored, Some(stat), Some(after)) = (found, &stat, &change.after)
                && stat.nlink > 1
                && !place
                    .dir
                    .hold(last)?
                    .is_some_and(|held| has_attributes(stat, &On::Held(&held).xattrs(), after))
            {
                // What is set on it would be set on its other names as well: it is displaced
                // like what is not right.
                right = Change { before: change.after.clone(), ..change.clone() };
                (found, change) = (Found::Current, &right);
            }
            match found {
                Found::Stored => {
                    self.drop_staged(&aside, &name)?;
                    return self.settle_found(&place, change, stat.as_ref(), None).map(drop);
                }
                Found::Foreign(why) => {
                    self.refuse(Refusal::new(&change.path, why));
                    return self.drop_staged(&aside, &name);
                }
                Found::Missing => match self.bring_in(&aside, &name, &place, last) {
                    Ok(true) => {
                        self.count(change);
                        return Ok(());
                    }
                    Err(e) if e.kind() != Kind::NotFound => return Err(e),
                    _ => {}
                },
                Found::Current => {
                    let Some(stat) = stat else { continue };
                    if self.exchange(&aside, &name, &place, change, &stat)? {
                        return Ok(());
                    }
                }
            }
            // Something appeared or vanished; or it was thought to be in place already.
            if stat_in(&aside.dir, &name)?.is_none() && !self.stage(change)? {
                return Ok(());
            }
        }
        self.refuse(Refusal::new(&change.path, CHANGED_SINCE));
        self.drop_staged(&aside, &name)
    }

    /// Gives what stands aside the name, which must be free; false when it is not.
    pub(super) fn bring_in(
        &self,
        aside: &Aside<'_>,
        name: &[u8],
        place: &Place<'_>,
        last: &[u8],
    ) -> Result<bool> {
        match self.disk.rename_noreplace(&aside.dir, name, &place.dir, last) {
            Ok(()) => Ok(true),
            Err(e) if is(&e, Errno::EXIST) => Ok(false),
            // A file system without this: a link fails as well when the name is taken.
            Err(e) if is(&e, Errno::INVAL) => match self.disk.link(&aside.dir, name, &place.dir, last) {
                Ok(()) => self.disk.unlink(&aside.dir, name).map(|()| true),
                Err(e) if is(&e, Errno::EXIST) => Ok(false),
                Err(e) => Err(e),
            },
            Err(e) => Err(e),
        }
    }

    /// Exchanges what stands aside with what is in place, which was just seen as `stat`.
    /// False when it vanished in between.
    fn exchange(
        &self,
        aside: &Arc<Aside<'a>>,
        name: &[u8],
        place: &Place<'_>,
        change: &Change,
        stat: &Stat,
    ) -> Result<bool> {
        let last = split(&change.path).1;
        match self.disk.exchange(&aside.dir, name, &place.dir, last) {
            Ok(()) => {}
            Err(e) if e.kind() == Kind::NotFound => return Ok(false),
            Err(e) if is(&e, Errno::INVAL) => {
                return self.exchange_in_steps(aside, name, place, change, stat);
            }
            Err(e) => return Err(e),
        }
        if self.displaced(aside, name, change, stat)? {
            self.count(change);
            return Ok(true);
        }
        self.refuse(Refusal::new(&change.path, CHANGED_SINCE));
        // Back; if our own comes out as we put it in, nobody lost anything.
        match self.disk.exchange(&aside.dir, name, &place.dir, last) {
            Ok(()) => {}
            Err(e) if e.kind() == Kind::NotFound => {
                if !self.bring_in(aside, name, place, last)? {
                    self.save(aside, name, &change.path)?;
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
            self.save(aside, name, &change.path)?;
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
            self.save(aside, name, &change.path)?;
        }
        self.refuse(Refusal::new(&change.path, CHANGED_SINCE));
        self.disk.unlink(&aside.dir, &new)?;
        Ok(true)
    }

    /// Whether what stands aside now is what was seen as `stat` in its place; it is then
    /// to be removed at the end.
    fn displaced(&self, aside: &Arc<Aside<'a>>, name: &[u8], change: &Change, stat: &Stat) -> Result<bool> {
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

    /// Takes what was there (and is no directory) out of the tree.
    pub(super) fn remove(&self, change: &Change) -> Result<()> {
        let Some(aside) = self.aside(change)? else { return Ok(()) };
        let name = self.asides.name_of(&change.path);
        // Gone with the directory that held it.
        let Some(place) = self.places.enter_to_write(split(&change.path).0)? else { return Ok(()) };
        let last = split(&change.path).1;
        let stat = place.stat_of(last)?;
        match (self.look().at(&place, last, stat.as_ref(), change)?, stat) {
            (Found::Current, Some(stat)) => {
                self.left_aside(&aside, &name, change, false)?;
                match self.disk.rename(&place.dir, last, &aside.dir, &name) {
                    Err(e) if e.kind() == Kind::NotFound => return Ok(()),
                    done => done?,
                }
                if self.displaced(&aside, &name, change, &stat)? {
                    self.count(change);
                    return Ok(());
                }
                self.refuse(Refusal::new(&change.path, CHANGED_SINCE));
                if !self.bring_in(&aside, &name, &place, last)? {
                    self.save(&aside, &name, &change.path)?;
                }
                Ok(())
            }
            (Found::Foreign(why), _) => {
                self.refuse(Refusal::new(&change.path, why));
                Ok(())
            }
            _ => self.left_aside(&aside, &name, change, false).map(drop),
        }
    }

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
        if touched && super::lock(&self.displaced_names).contains_key(&now.id()) {
            // Other names of this inode were displaced: that it changed is our own doing.
            let now = on.stat(&change.path)?;
            let mut displaced = super::lock(&self.displaced);
            displaced.iter_mut().filter(|old| old.stat.id() == now.id()).for_each(|old| old.stat = now);
        }
        Ok(touched)
    }

    /// Removes what was made aside and is not needed.
    pub(super) fn drop_staged(&self, aside: &Aside<'_>, name: &[u8]) -> Result<()> {
        match self.disk.unlink(&aside.dir, name) {
            Err(e) if e.kind() == Kind::NotFound => Ok(()),
            done => done,
        }
    }

    /// Makes `change` one more name of the inode that was chosen for its group.
    pub(super) fn link(&self, change: &Change) -> Result<()> {
        let Some(entry) = &change.after else { return Ok(()) };
        let Some(base) = self.base(entry)? else {
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

    /// Gives the entry an inode of its own, unless by now it is the only name of it.
    pub(super) fn unshare(&self, change: &Change) -> Result<()> {
        let Some(place) = self.parent(&change.path)? else { return Ok(()) };
        let stat = place.stat_of(split(&change.path).1)?;
        let displaced =
            |stat: &Stat| super::lock(&self.displaced_names).get(&stat.id()).copied().unwrap_or(0);
        if stat.is_some_and(|stat| stat.nlink.saturating_sub(displaced(&stat)) > 1) {
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

/// Whether what is as in `stat`, with `xattrs`, has the attributes of `entry`, times aside.
fn has_attributes(stat: &Stat, xattrs: &[Xattr], entry: &Entry) -> bool {
    let mode = matches!(entry.node, Node::Symlink(_)) || stat.permissions() == entry.mode;
    mode && (stat.uid, stat.gid) == (entry.uid, entry.gid) && xattrs == entry.xattrs
}

/// Whether `now` is the inode that was `before`, moved to another name but else not
/// touched. Moving changes `ctime`.
fn unmoved(before: &Stat, now: &Stat) -> bool {
    before.id() == now.id() && same_but_for_inode(before, now)
}

fn same_but_for_inode(before: &Stat, now: &Stat) -> bool {
    (before.mode, before.uid, before.gid) == (now.mode, now.uid, now.gid)
        && (before.size, before.mtime) == (now.size, now.mtime)
}
