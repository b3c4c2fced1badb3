//! Making a directory equal to a stored tree, and nothing else in it.
//!
//! In order: everything new is made aside, whole and checked; what is to go is moved
//! aside; directories are made; the new is put in place; hard links are joined;
//! directories get their attributes; all is made durable; what was displaced is
//! removed last. So what cannot be done (a damaged object, a full disk) is found
//! before anything in the tree is touched, and until the end everything that was
//! there still exists.
//!
//! Invariant: nothing that is not exactly as it was captured is replaced or removed;
//! it is left, and told as refused. Every step is one operation of the file system on
//! an open directory and one name, so nothing is ever reached through a link. A call
//! that was cut short is completed by a second call, or taken back by one with the two
//! trees exchanged: both need nothing but the two trees and what stands aside.

mod action;
mod aside;
mod attributes;
mod call;
mod clear;
mod dirs;
mod displace;
mod fill;
mod finish;
mod join;
mod links;
mod look;
mod make;
mod outcome;
mod place;
mod put;
mod restore;
mod resume;
mod rights;
mod settle;
mod writers;

pub(crate) use aside::{ASIDE, SAVED, keep, name_of, unfinished};
pub use aside::{RESERVED, make_dir};
pub use call::{preflight, restore};
pub(crate) use clear::is_stored;
pub use clear::{Left, clear, clear_saved, saved};
pub use outcome::{Outcome, Refusal, Saved, SavedFor, lines};
pub use place::Volume;
pub(super) use restore::DAMAGED;
pub use restore::{Options, Request, run};

pub(super) use action::{Action, action, removes, removes_dir};
pub(crate) use attributes::{Attributes, Note, On};
pub(super) use links::{Links, Role};
pub(super) use look::{CHANGED_SINCE, Look, MADE_SINCE};
pub(super) use place::{Place, Places, split};
pub(crate) use rights::Rights;

use self::aside::Asides;
use self::displace::Displaced;
use crate::backend::Cancel;
use crate::database::may_be_database;
use crate::disk::Disk;
use crate::error::Result;
use crate::report::Report;
use crate::store::content::LARGE;
use crate::store::{Source, Store};
use crate::tree::compare::{Change, Kept, Tape};
use crate::tree::node::{Node, Time};
use crate::tree::root::{Root, Why};
use crate::tree::scan::Stat;
use rayon::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, RwLock};

/// Changes that are worked on at once by all threads.
const BATCH: usize = 1024;

/// One restore at work.
pub(super) struct Run<'a> {
    source: &'a dyn Source,
    store: &'a Arc<Store>,
    disk: &'a Disk,
    rights: Rights,
    places: Places<'a>,
    asides: Asides<'a>,
    tape: Tape,
    options: &'a Options,
    cancel: &'a Cancel,
    report: &'a dyn Report,
    links: Mutex<Links>,
    displaced: Mutex<Vec<Displaced<'a>>>,
    /// How many names of an inode were displaced, where it has several.
    displaced_names: Mutex<HashMap<(u64, u64), u32>>,
    outcome: Mutex<Outcome>,
    /// Paths that are left as they are, with all that is in them.
    left: RwLock<HashSet<Vec<u8>>>,
    /// Paths at which another target has a database, which that one brings.
    theirs: HashSet<Vec<u8>>,
    /// Directories that this call made.
    made: Mutex<HashSet<Vec<u8>>>,
    /// What earlier calls left in the tree itself was looked for.
    noticed: Once,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether it is about content that all threads together read or write.
fn is_large(change: &Change) -> bool {
    let sides = [&change.before, &change.after];
    sides.into_iter().flatten().any(|entry| matches!(entry.node, Node::File { size, .. } if size > LARGE))
}

/// The paths of what other targets have of `root`.
fn of_others(root: &Root) -> HashSet<Vec<u8>> {
    let theirs = root.left_out.iter().filter(|item| item.why == Why::Elsewhere);
    theirs.map(|item| item.path.clone()).collect()
}

/// The present time.
fn now() -> Time {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Time { sec: i64::try_from(since.as_secs()).unwrap_or(i64::MAX), nsec: since.subsec_nanos() }
}

impl<'a> Run<'a> {
    fn look(&self) -> Look<'_> {
        Look { source: self.source, rights: &self.rights, disk: self.disk }
    }

    fn attributes(&self) -> Attributes<'_> {
        Attributes { disk: self.disk, rights: &self.rights, top: self.places.root().dir.path(), note: self }
    }

    /// Leaves a path and all that is in it as they are.
    fn refuse(&self, refusal: Refusal) {
        let new = self.left.write().unwrap_or_else(PoisonError::into_inner).insert(refusal.path.clone());
        if new {
            lock(&self.outcome).refused.push(refusal);
        }
    }

    /// Whether the path or a directory above it was refused.
    fn is_refused(&self, path: &[u8]) -> bool {
        let left = self.left.read().unwrap_or_else(PoisonError::into_inner);
        !left.is_empty()
            && (left.contains(path)
                || path.iter().enumerate().any(|(at, &b)| b == b'/' && left.contains(&path[..at])))
    }

    /// Whether what is at `path` is the database of another target, which has brought it.
    fn is_theirs(&self, path: &[u8], stat: &Stat) -> bool {
        may_be_database(stat.kind()) && self.theirs.contains(path)
    }

    fn save(&self, aside: &aside::Aside<'_>, name: &[u8], path: &[u8], why: SavedFor) -> Result<()> {
        let saved = Saved { path: path.to_vec(), at: self.asides.save(aside, name, path)?, why };
        lock(&self.outcome).saved.push(saved);
        Ok(())
    }

    fn made(&self, path: &[u8]) {
        lock(&self.made).insert(path.to_vec());
    }

    fn is_made(&self, path: &[u8]) -> bool {
        lock(&self.made).contains(path)
    }

    fn count(&self, change: &Change) {
        let mut outcome = lock(&self.outcome);
        match (&change.before, &change.after) {
            (None, _) => outcome.added += 1,
            (_, None) => outcome.deleted += 1,
            _ if change.aspects().any_but_time() => outcome.modified += 1,
            _ => {}
        }
    }

    /// Goes through all changes; those that `pick` wants are handed to `act`, from many
    /// threads at once, unless they were refused. Those about large files come one by
    /// one: their content is what all threads work on.
    fn each(
        &self,
        pick: impl Fn(&Kept<'_>) -> Result<bool>,
        act: impl Fn(&Change) -> Result<()> + Sync,
    ) -> Result<()> {
        let mut batch = Vec::with_capacity(BATCH);
        let flush = |batch: &mut Vec<Change>| {
            self.cancel.check()?;
            let (large, small): (Vec<&Change>, Vec<&Change>) =
                batch.iter().partition(|change| is_large(change));
            let wanted = |change: &&Change| !self.is_refused(&change.path);
            small.into_par_iter().filter(wanted).try_for_each(&act)?;
            large.into_iter().filter(wanted).try_for_each(&act)?;
            batch.clear();
            Ok(())
        };
        self.tape.each(|step| {
            if !step.leaves && pick(step)? {
                batch.push(step.change()?);
            }
            if batch.len() == BATCH { flush(&mut batch) } else { Ok(()) }
        })?;
        flush(&mut batch)
    }

    /// What is to be done about a change.
    fn action(&self, step: &Kept<'_>) -> Result<Action> {
        let role = match step.traits.linked() {
            true => lock(&self.links).role(&step.change()?),
            false => Role::Alone,
        };
        Ok(action(step.traits, role))
    }
}

impl attributes::Note for Run<'_> {
    fn note(&self, refusal: Refusal) {
        lock(&self.outcome).notes.push(refusal);
    }
}

#[cfg(test)]
mod tests;
