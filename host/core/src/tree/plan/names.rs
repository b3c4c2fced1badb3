//! Files that have names outside of what is covered, and get other content: the names that
//! are covered become another inode, and the others stay as they are. That is said.

use super::Plan;
use crate::error::Result;
use crate::object::Key;
use crate::store::Source;
use crate::tree::apply::Refusal;
use crate::tree::compare::Change;
use crate::tree::node::{Node, decode_tree};
use crate::tree::root::Root;
use crate::tree::scan::Stat;
use std::collections::HashMap;

/// Inodes that have several names and get other content.
#[derive(Default)]
pub(super) struct Names(HashMap<(u64, u64), Shared>);

/// One of them.
struct Shared {
    /// The first of its names that changes.
    path: Vec<u8>,
    /// The number of its captured names; none where only one was captured.
    link: Option<u64>,
    /// How many of its names change, and how many it has.
    changed: u32,
    all: u32,
}

impl Names {
    /// Takes note of a change to what is as `stat` now.
    pub fn note(&mut self, change: &Change, stat: &Stat) {
        let differs = change.aspects();
        let Some(before) = change.before.as_ref().filter(|_| change.after.is_some()) else { return };
        if !stat.is_file() || stat.nlink < 2 || !(differs.kind || differs.content) {
            return;
        }
        let (path, link, all) = (change.path.clone(), before.link, stat.nlink);
        let shared = self.0.entry(stat.id()).or_insert(Shared { path, link, changed: 0, all });
        shared.changed += 1;
    }

    /// Says in `plan` which of them have names that were not captured in `current`.
    ///
    /// # Errors
    /// When a stored directory cannot be read.
    pub fn finish(mut self, source: &dyn Source, current: &Root, plan: &mut Plan) -> Result<()> {
        self.0.retain(|_, shared| shared.changed < shared.all);
        let links = self.0.values().filter_map(|shared| Some((shared.link?, 0)));
        let counts = count(source, current, links.collect())?;
        let mut all: Vec<Shared> = self.0.into_values().collect();
        all.sort_by(|a, b| a.path.cmp(&b.path));
        for shared in all {
            let captured = shared.link.map_or(1, |link| counts[&link]);
            if captured < shared.all {
                let reason = "it has other names outside of what is covered, and these stay as they are";
                plan.notes.push(Refusal::partly(&shared.path, reason));
            }
        }
        Ok(())
    }
}

/// Counts the names of each of `links` in `root`.
fn count(source: &dyn Source, root: &Root, mut links: HashMap<u64, u32>) -> Result<HashMap<u64, u32>> {
    let inside = |node: &Node| -> Option<Key> {
        match node {
            Node::Dir(tree) => Some(*tree),
            _ => None,
        }
    };
    let mut open: Vec<Key> = inside(&root.top.node).filter(|_| !links.is_empty()).into_iter().collect();
    while let Some(tree) = open.pop() {
        for entry in decode_tree(&source.read(&tree)?)? {
            open.extend(inside(&entry.node));
            if let Some(count) = entry.link.and_then(|link| links.get_mut(&link)) {
                *count += 1;
            }
        }
    }
    Ok(links)
}
