//! What the snapshot left out and stands under another name now: somebody moved it.
//!
//! Invariant: it was there before, and the snapshot does not have it, so no restore removes
//! or replaces it, or anything in it. It is known by its inode, and by when that was born.

use crate::error::{Result, shell_word, show_bytes};
use crate::tree::apply::{Places, Refusal, split};
use crate::tree::compare::Change;
use crate::tree::root::{LeftOut, Root, Stamp};
use std::collections::{HashMap, HashSet};

/// Knows what was left out by its inodes.
pub(super) struct Moved<'a> {
    left_out: HashMap<u64, &'a LeftOut>,
    /// Single files that a pattern left out, of which the names are not kept.
    ignored: HashMap<u64, &'a Stamp>,
    /// What has it in a later snapshot: where it was, which the snapshot left out.
    carried: HashMap<&'a [u8], &'a LeftOut>,
    /// Directories that are none of it, nor in any.
    others: HashSet<Vec<u8>>,
}

impl<'a> Moved<'a> {
    /// Of what `stored` left out; later snapshots have it as it was `carried` on: path, and path
    /// before.
    pub fn new(stored: &'a Root, carried: &'a [(Vec<u8>, Vec<u8>)]) -> Self {
        let items = stored.left_out.iter().filter(|item| item.can_move());
        let at = |from: &[u8]| items.clone().find(|item| item.path == from);
        let carried = carried.iter().filter_map(|(path, from)| Some((&path[..], at(from)?))).collect();
        let left_out = items.filter_map(|item| Some((item.stamp?.ino, item))).collect();
        let ignored = stored.ignored_stamps.iter().map(|stamp| (stamp.ino, stamp)).collect();
        Self { left_out, ignored, carried, others: HashSet::new() }
    }

    /// The refusal of what `change` would lose of it: of that itself, or of what it is in.
    ///
    /// # Errors
    /// When the disk cannot be looked at.
    pub fn refuse(&mut self, places: &Places<'_>, change: &Change) -> Result<Option<Refusal>> {
        if change.before.is_none()
            || (self.left_out.is_empty() && self.ignored.is_empty() && self.carried.is_empty())
        {
            return Ok(None);
        }
        let path = &change.path;
        let above = (0..path.len()).rev().filter(|&at| path[at] == b'/').map(|at| &path[..at]);
        let mut ways: Vec<&[u8]> = above.take_while(|dir| !self.others.contains(*dir)).collect();
        ways.reverse();
        for dir in ways {
            if let Some(refusal) = self.at(places, dir)? {
                return Ok(Some(refusal));
            }
            self.others.insert(dir.to_vec());
        }
        self.at(places, path)
    }

    /// The refusal of what is at `path`, if that is something of it.
    fn at(&self, places: &Places<'_>, path: &[u8]) -> Result<Option<Refusal>> {
        // What cannot be opened was not captured.
        let Ok(Some(place)) = places.open(split(path).0) else { return Ok(None) };
        let name = split(path).1;
        let Some(stat) = place.stat_of(name)? else { return Ok(None) };
        let by_name = self.carried.get(path).copied();
        let Some(item) = self.left_out.get(&stat.ino).copied().or(by_name) else {
            let is_it = self.ignored.get(&stat.ino).is_some_and(|stamp| stamp.may_be_of(&stat));
            let reason = "it was left out as ignored, and was moved here since";
            // With more names than this one, the file stays.
            return Ok((is_it && stat.nlink == 1).then(|| Refusal::new(path, reason)));
        };
        let (old_dir, old_name) = split(&item.path);
        let old = match places.open(old_dir) {
            Ok(Some(place)) => place.stat_of(old_name)?,
            _ => None,
        };
        let is_it = item.stamp.is_some_and(|stamp| stamp.may_be_of(&stat));
        // What came back by an undo is another inode: it is the one as long as nothing else is
        // where it was.
        let is_again = by_name.is_some_and(|named| named.path == item.path) && old.is_none() && stat.is_dir();
        // One more name of it can go.
        if !(is_it || is_again) || old.is_some_and(|old| old.id() == stat.id()) {
            return Ok(None);
        }
        let (was, why) = (show_bytes(&item.path), item.why.word());
        let reason = format!("it was left out as {was} ({why}), and was moved here since");
        let refusal = Refusal::new(path, reason);
        let shown = |path: &[u8]| shell_word(places.root().dir.join(path));
        Ok(Some(match old {
            None => refusal.hint(format!("mv {} {}", shown(path), shown(&item.path))),
            Some(_) => refusal,
        }))
    }
}
