//! What an archive has to hold so that a directory becomes the stored one, in the order in
//! which it is unpacked; and what no archive brings about.

use super::names::is_beneath;
use crate::error::Result;
use crate::store::Source;
use crate::tree::apply::Refusal;
use crate::tree::compare::{Aspects, Change, Only, Step, Walk};
use crate::tree::node::{Entry, Node, Time};
use crate::tree::root::Root;
use crate::tree::view::View;
use std::collections::{HashMap, HashSet};

/// Why what was added stays.
pub const ADDED: &str = "it is not in the snapshot, and what is reached by archives alone is never deleted";
/// Why there is no socket again.
const SOCKET: &str = "a socket is made by whoever listens at it";

/// One entry that is to be written.
pub struct Job {
    pub path: Vec<u8>,
    /// What was captured of it just before.
    pub before: Option<(Entry, Time)>,
    /// What it is to be.
    pub after: (Entry, Time),
    /// A directory once more, after what was written into it.
    pub again: bool,
}

/// All of them.
pub struct Jobs {
    pub jobs: Vec<Job>,
    /// What stays as it is.
    pub refused: Vec<Refusal>,
    /// For the number of an inode with several names: one of them that is in place.
    pub linked: HashMap<u64, Vec<u8>>,
}

impl Jobs {
    /// What leads from `current` to `stored`, in the paths of `only`.
    ///
    /// # Errors
    /// When one of the two is damaged.
    pub fn between(source: &dyn Source, current: &Root, stored: &Root, only: &Only) -> Result<Self> {
        let (mut jobs, mut refused) = (Vec::<Job>::new(), Vec::new());
        let mut walk = Walk::with_times(source, current, stored, only)?;
        while let Some(step) = walk.next() {
            match step? {
                Step::Change(change) if change.after.is_none() => {
                    if !change.passage {
                        refused.push(Refusal::new(&change.path, ADDED));
                        walk.skip_inside();
                    }
                }
                Step::Change(change) if change.passage && !change.becomes_dir() => {}
                Step::Change(change) => {
                    if change.was_dir() && !change.becomes_dir() {
                        walk.skip_inside();
                    }
                    match &change.after {
                        Some(Entry { node: Node::Socket, .. }) => {
                            refused.push(Refusal::new(&change.path, SOCKET));
                        }
                        _ => jobs.extend(Job::of(change, false)),
                    }
                }
                // What was written into it moved its time.
                Step::Leave(change) if change.becomes_dir() => {
                    let is_own = !change.passage || change.before.is_none();
                    if is_own && jobs.last().is_some_and(|last| is_beneath(&last.path, &change.path)) {
                        jobs.extend(Job::of(change, true));
                    }
                }
                Step::Leave(_) | Step::NotComparable { .. } => {}
            }
        }
        let mut linked = in_place(source, &jobs, current, stored)?;
        keep_joined(&mut jobs, &mut linked);
        Ok(Self { jobs, refused, linked })
    }
}

impl Job {
    fn of(change: Change, again: bool) -> Option<Self> {
        let Change { path, before, before_time, after, after_time, .. } = change;
        let (before, after) = (before.map(|entry| (entry, before_time)), (after?, after_time));
        Some(Self { path, before, after, again })
    }

    /// Whether it is a directory afterwards.
    pub fn is_dir(&self) -> bool {
        matches!(self.after.0.node, Node::Dir(_))
    }
}

/// Of the inodes that `jobs` need a name of: one that is there and stays as it is.
fn in_place(
    source: &dyn Source,
    jobs: &[Job],
    current: &Root,
    stored: &Root,
) -> Result<HashMap<u64, Vec<u8>>> {
    let needed: HashSet<u64> = jobs.iter().filter_map(|job| job.after.0.link).collect();
    let mut found = HashMap::new();
    if needed.is_empty() {
        return Ok(found);
    }
    let written: HashSet<&[u8]> = jobs.iter().map(|job| &*job.path).collect();
    let [stored, current] = [stored, current].map(|root| View::new(source, root.clone()));
    for seen in stored.walk(&stored.top()) {
        let seen = seen?;
        let Some(link) = seen.entry.link.filter(|link| needed.contains(link)) else { continue };
        if !written.contains(&*seen.path)
            && !found.contains_key(&link)
            && current.find(&seen.path)?.is_some_and(|now| now.entry == seen.entry)
        {
            found.insert(link, seen.path);
        }
    }
    Ok(found)
}

/// Takes out of `jobs` the names of one inode that only have to be joined by others, and notes
/// in `linked` which they are.
fn keep_joined(jobs: &mut Vec<Job>, linked: &mut HashMap<u64, Vec<u8>>) {
    let mut kept: HashMap<u64, Option<u64>> = HashMap::new();
    jobs.retain(|job| {
        let (Some(link), Some((before, time))) = (job.after.0.link, &job.before) else { return true };
        let differs = Aspects { link: false, ..Aspects::of(before, &job.after.0) };
        if differs.any() || *time != job.after.1 {
            return true;
        }
        let is_first = !linked.contains_key(&link);
        if is_first {
            linked.insert(link, job.path.clone());
            kept.insert(link, before.link);
        }
        // They are one inode already.
        !(is_first || before.link.is_some() && kept.get(&link) == Some(&before.link))
    });
}
