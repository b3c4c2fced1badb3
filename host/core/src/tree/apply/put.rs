//! Putting entries in place and taking them out, one step of the file system each.
//!
//! Invariant: nothing takes a name that is not free but in exchange for what was captured
//! there, and that is compared only when it stands aside.

use super::Run;
use super::aside::{Aside, unfinished};
use super::attributes::On;
use super::look::{CHANGED_SINCE, Found};
use super::make::Draft;
use super::outcome::{Refusal, SavedFor};
use super::place::{Place, split};
use super::settle::has_attributes;
use crate::database::bases;
use crate::error::{Error, Kind, Result};
use crate::store::content;
use crate::tree::compare::Change;
use crate::tree::node::{Entry, Node};
use crate::tree::scan::{Stat, stat_in};
use rustix::io::Errno;
use std::sync::Arc;

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

    /// Makes what `change` puts in place aside, unless it stands there from earlier.
    /// False when it cannot be made and was refused.
    pub(super) fn stage(&self, change: &Change) -> Result<bool> {
        let (Some(entry), Some(aside)) = (&change.after, self.aside(change)?) else { return Ok(false) };
        let name = self.asides.name_of(&change.path);
        if self.left_aside(&aside, &name, change, true)? {
            return Ok(true);
        }
        let draft = Draft { path: &change.path, name: &name, entry, mtime: change.after_time };
        let error = match self.make(&aside, &draft) {
            Err(error) if self.options.partial => error,
            done => return done,
        };
        // Of what is damaged in the store, all that is whole comes back.
        let Some(why) = self.is_lost(entry)? else { return Err(error) };
        self.drop_staged(&aside, &name)?;
        self.drop_staged(&aside, &unfinished(&name))?;
        self.refuse(Refusal::new(&change.path, why.to_string()));
        Ok(false)
    }

    /// Why the content of `entry` cannot be read from the store, if it cannot.
    fn is_lost(&self, entry: &Entry) -> Result<Option<Error>> {
        let Node::File { content, size, .. } = &entry.node else { return Ok(None) };
        let read = content::load(self.source, content, *size, &mut |_, _| Ok(()));
        self.cancel.check()?;
        Ok(read.err())
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
                && (self.leaves(change, stat)
                    || !place
                        .dir
                        .hold(last)?
                        .is_some_and(|held| has_attributes(stat, &On::Held(&held).xattrs(), after)))
            {
                // It is to be no name of that inode; and what is set on it would be set on its
                // other names as well. It is displaced like what is not right.
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

    /// Whether `change` is only that the name leaves the inode seen as `stat`, which has others.
    fn leaves(&self, change: &Change, stat: &Stat) -> bool {
        let differs = change.aspects();
        let shared = change.before.as_ref().is_some_and(|before| before.link.is_some());
        shared && !differs.kind && !differs.content && self.has_others(Some(stat))
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
            Err(e) if e.is(Errno::EXIST) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// Takes what was there (and is no directory) out of the tree.
    pub(super) fn remove(&self, change: &Change) -> Result<()> {
        let Some(aside) = self.aside(change)? else { return Ok(()) };
        let name = self.asides.name_of(&change.path);
        // Gone with the directory that held it.
        let Some(place) = self.places.enter_to_write(split(&change.path).0)? else { return Ok(()) };
        let last = split(&change.path).1;
        let stat = place.stat_of(last)?.filter(|stat| {
            // What lies beside a database is told by what it holds.
            !self.is_theirs(&change.path, stat)
                || bases(&change.path).any(|(base, _)| self.theirs.contains(base))
        });
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
                    self.save(&aside, &name, &change.path, SavedFor::Written)?;
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

    /// Removes what was made aside and is not needed. A directory never was: somebody swapped
    /// it in just before a name was moved here, and it is kept.
    pub(super) fn drop_staged(&self, aside: &Aside<'_>, name: &[u8]) -> Result<()> {
        match self.disk.unlink(&aside.dir, name) {
            Err(e) if e.kind() == Kind::NotFound => Ok(()),
            Err(e) if e.is(Errno::ISDIR) || e.is(Errno::PERM) => match stat_in(&aside.dir, name)? {
                Some(stat) if stat.is_dir() => self.save(aside, name, name, SavedFor::Written),
                _ => Err(e),
            },
            done => done,
        }
    }
}
