//! Directories: made before what is in them, finished after it, removed when empty.

use super::Run;
use super::attributes::On;
use super::look::{kind_is, mode_is};
use super::outcome::Refusal;
use super::place::split;
use crate::error::{Kind, Result, show_bytes};
use crate::tree::compare::Change;
use crate::tree::node::{Entry, Xattr};
use crate::tree::scan::Stat;
use crate::tree::xattr::is_but_for_owner;
use rustix::io::Errno;

/// Names that a message about what stays in a directory shows.
const SHOWN: usize = 3;

impl Run<'_> {
    /// Makes the directory that `change` asks for; what was there before and was no
    /// directory has gone already.
    pub(super) fn make_dir(&self, change: &Change) -> Result<()> {
        let Some(place) = self.parent(&change.path)? else { return Ok(()) };
        let last = split(&change.path).1;
        match self.disk.mkdir(&place.dir, last, 0o700) {
            Ok(()) => {
                self.count(change);
                self.made(&change.path);
                Ok(())
            }
            Err(e) if e.is(Errno::EXIST) => match place.stat_of(last)? {
                // Made by an earlier call, or by somebody: what is in it is looked at one by one.
                Some(stat) if stat.is_dir() => Ok(()),
                _ => {
                    self.refuse(Refusal::new(&change.path, super::look::MADE_SINCE));
                    Ok(())
                }
            },
            Err(e) => Err(e),
        }
    }

    /// Removes the directory that is to go, if nothing is left in it.
    pub(super) fn remove_dir(&self, change: &Change) -> Result<()> {
        let Some(place) = self.places.enter_to_write(split(&change.path).0)? else { return Ok(()) };
        let last = split(&change.path).1;
        self.places.forget(&change.path);
        match self.disk.rmdir(&place.dir, last) {
            Ok(()) => {
                self.count(change);
                Ok(())
            }
            // Gone already, or something else by now, which is looked at when it is replaced.
            Err(e) if e.kind() == Kind::NotFound || e.is(Errno::NOTDIR) => Ok(()),
            Err(e) if e.is(Errno::NOTEMPTY) || e.is(Errno::EXIST) => {
                self.refuse(Refusal::new(&change.path, self.what_stays(&change.path)?));
                Ok(())
            }
            Err(e) if e.kind() == Kind::Busy => {
                self.refuse(Refusal::new(&change.path, "something is mounted on it, or it is in use"));
                Ok(())
            }
            Err(e) => Err(e),
        }
    }

    fn what_stays(&self, path: &[u8]) -> Result<String> {
        let mut names = match self.places.enter(path)? {
            Some(place) => place.dir.names()?,
            None => Vec::new(),
        };
        names.sort();
        let shown: Vec<String> = names.iter().take(SHOWN).map(|name| show_bytes(name)).collect();
        let more = names.len().saturating_sub(SHOWN);
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        Ok(format!("it holds what was not recorded: {}{more}", shown.join(", ")))
    }

    /// Gives a directory, in which all is done, its attributes and its time.
    pub(super) fn finish_dir(&self, change: &Change) -> Result<()> {
        let Some(after) = change.after.as_ref().filter(|_| change.becomes_dir()) else { return Ok(()) };
        let Some(place) = self.places.enter(&change.path)? else { return Ok(()) };
        let on = On::Dir(&place.dir);
        let (now, have) = (on.stat(&change.path)?, on.xattrs());
        // On the way to what is selected: only what a crash left open is closed.
        let is_own = !change.passage || change.before.is_none();
        let before = change.before.as_ref().filter(|_| change.was_dir());
        let entry = match before {
            // Somebody's own change, unless it only was opened up for work.
            Some(before) if !(is_own && self.dir_is_known(&now, &have, before, after)) => {
                let open = now.permissions() == before.mode | 0o700;
                &Entry {
                    uid: now.uid,
                    gid: now.gid,
                    xattrs: have.clone(),
                    mode: if open { before.mode } else { now.permissions() },
                    ..after.clone()
                }
            }
            None if !self.is_made(&change.path) && !self.dir_is_known(&now, &have, after, after) => {
                return Ok(());
            }
            _ => after,
        };
        let mtime = if is_own { change.after_time } else { change.before_time };
        self.places.mode_is_set(&change.path);
        if self.attributes().settle(on, &now, &have, entry, Some(mtime), &change.path)?
            && change.before.is_some()
        {
            self.count(change);
        }
        Ok(())
    }

    fn dir_is_known(&self, now: &Stat, have: &[Xattr], before: &Entry, after: &Entry) -> bool {
        let owner = [before, after].iter().any(|e| (e.uid, e.gid) == (now.uid, now.gid))
            || (now.uid == self.rights.uid && self.rights.gids.contains(&now.gid));
        let mode = mode_is(now, before) || mode_is(now, after);
        // Opening it up for work gave the owner's part of an ACL as well.
        let known = |xattr: &Xattr| {
            before.xattrs.iter().chain(&after.xattrs).any(|known| is_but_for_owner(xattr, known))
        };
        owner && mode && have.iter().all(known)
    }

    /// Whether what is at the path of `change` is as the restore should have left it,
    /// without reading content; what is not, in words.
    pub(super) fn check(&self, change: &Change) -> Result<Option<&'static str>> {
        let place = self.places.enter(split(&change.path).0)?;
        let stat = match &place {
            Some(place) if !change.path.is_empty() => place.stat_of(split(&change.path).1)?,
            Some(place) => Some(On::Dir(&place.dir).stat(b"")?),
            None => None,
        };
        Ok(match (stat, &change.after) {
            (None, None) => None,
            (Some(stat), None) if self.is_theirs(&change.path, &stat) => None,
            (Some(_), None) => Some("it is there again after it was removed"),
            (None, Some(_)) => Some("it is gone again after it was restored"),
            (Some(stat), Some(entry)) if !kind_is(&stat, entry) => Some("it is something else again"),
            (Some(stat), Some(entry)) => match &entry.node {
                crate::tree::node::Node::File { size, .. } if stat.size != *size => {
                    Some("it was written to again after it was restored")
                }
                _ => None,
            },
        })
    }
}
