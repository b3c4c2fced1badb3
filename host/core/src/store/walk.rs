//! What an object refers to, and walking everything that roots refer to.

use super::content::children;
use super::opaque::Opaque;
use super::{Source, Store};
use crate::backend::Cancel;
use crate::database::Database;
use crate::error::{Error, Result};
use crate::object::{Key, ObjectKind};
use crate::tree::node::{Node, decode_times, decode_tree};
use crate::tree::root::Root;
use crate::volume::Volume;
use std::collections::HashSet;

/// The keys that the object of `kind` with these bytes names.
///
/// # Errors
/// `Corrupt` when the bytes are not of that kind's form.
pub fn references(kind: ObjectKind, bytes: &[u8]) -> Result<Vec<Key>> {
    Ok(match kind {
        ObjectKind::Blob => Vec::new(),
        ObjectKind::List => children(bytes)?,
        ObjectKind::Tree => decode_tree(bytes)?.iter().filter_map(|entry| named_by(&entry.node)).collect(),
        ObjectKind::Times => decode_times(bytes)?.iter().filter_map(|time| time.inside).collect(),
        ObjectKind::Root => {
            let root = Root::decode(bytes)?;
            let git = root.git.map(|git| git.tree);
            named_by(&root.top.node).into_iter().chain([root.times]).chain(git).collect()
        }
        ObjectKind::Database => {
            let found = Database::decode(bytes)?.found;
            found.entries().iter().filter_map(|entry| named_by(&entry.node)).collect()
        }
        ObjectKind::Volume => vec![Volume::decode(bytes)?.root],
        ObjectKind::Opaque => Opaque::decode(bytes)?.pieces.iter().map(|piece| piece.key).collect(),
    })
}

fn named_by(node: &Node) -> Option<Key> {
    match node {
        Node::File { content: key, .. } | Node::Dir(key) => Some(*key),
        _ => None,
    }
}

/// Everything that was reached so far. Shared by walks from several roots, so what
/// snapshots have in common is walked once.
#[derive(Default)]
pub struct Reached {
    /// The keys, blobs included; blobs are not read.
    pub keys: HashSet<Key>,
    /// What could not be read, and so hides what is beneath it.
    pub unread: Vec<(Key, Error)>,
}

impl Reached {
    /// Walks all that `root` refers to and that was not reached before.
    pub fn walk(&mut self, store: &Store, root: &Key, cancel: &Cancel) -> Result<()> {
        let mut next = vec![*root];
        while let Some(key) = next.pop() {
            if !self.keys.insert(key) || key.kind() == ObjectKind::Blob {
                continue;
            }
            cancel.check()?;
            let mut found = Vec::new();
            let read = store.view(&key, &mut |bytes| {
                found = references(key.kind(), bytes)?;
                Ok(())
            });
            match read {
                Ok(()) => next.append(&mut found),
                Err(e) => self.unread.push((key, e)),
            }
        }
        Ok(())
    }
}
