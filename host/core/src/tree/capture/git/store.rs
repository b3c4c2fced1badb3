//! Reading what is recorded of a repository, and storing it as a directory. Modes and
//! owners are not those of the files: the record is there to be read.

use crate::error::{Kind, Result};
use crate::object::{Key, ObjectKind};
use crate::store::Lane;
use crate::store::content::store_file;
use crate::tree::capture::Capture;
use crate::tree::capture::read::open;
use crate::tree::git::look::{Found, Item};
use crate::tree::node::{Entry, Node, encode_tree};
use crate::tree::root::GitRecord;
use crate::tree::scan::Stat;
use std::fs::File;
use std::sync::atomic::Ordering;

impl Capture<'_> {
    /// Reads and stores what was `found`.
    pub(super) fn store_git(&self, mut found: Found, lane: &mut Lane<'_>) -> Result<GitRecord> {
        let mut entries = Vec::with_capacity(found.files.len());
        for item in std::mem::take(&mut found.files) {
            self.call.cancel.check()?;
            match self.read_git(&item, lane)? {
                Some(node) => entries.push((item.path, node)),
                None => found.whole = false,
            }
        }
        Ok(GitRecord { tree: put_dir(&entries, 0, lane)?, whole: found.whole })
    }

    /// Stores what `item` holds; none when it cannot be read.
    fn read_git(&self, item: &Item, lane: &mut Lane<'_>) -> Result<Option<Node>> {
        if !item.stat.is_file() {
            let to = rustix::fs::readlinkat(&item.dir, &item.name, Vec::new());
            let to = to.ok().map(|to| to.into_bytes()).filter(|to| !to.is_empty());
            return Ok(to.map(Node::Symlink));
        }
        let Ok(file) = open(&item.dir, &item.name, &item.stat) else { return Ok(None) };
        // By now it may be something else.
        if !Stat::of_open(&file).is_ok_and(|now| now.is_file()) {
            return Ok(None);
        }
        self.git.fetch_add(1, Ordering::Relaxed);
        match store_file(lane, &File::from(file), item.stat.size, false, &self.call.cancel) {
            Ok((content, size)) => Ok(Some(Node::File { content, size, sparse: false })),
            Err(error) if error.kind() == Kind::Cancelled => Err(error),
            // Was it the file, or the store?
            Err(_) => self.writer.check().map(|()| None),
        }
    }
}

/// Stores a directory of `entries`, sorted by path, of whose paths the first `base` bytes
/// lead to it.
fn put_dir(mut entries: &[(Vec<u8>, Node)], base: usize, lane: &mut Lane<'_>) -> Result<Key> {
    let mut inside: Vec<Entry> = Vec::new();
    while let Some((path, node)) = entries.first() {
        let rest = &path[base..];
        let end = rest.iter().position(|&b| b == b'/');
        let name = &rest[..end.unwrap_or(rest.len())];
        let (node, count) = match end {
            None => (node.clone(), 1),
            Some(end) => {
                let within = &path[..=base + end];
                let count = entries.iter().take_while(|(path, _)| path.starts_with(within)).count();
                (Node::Dir(put_dir(&entries[..count], within.len(), lane)?), count)
            }
        };
        let mode = if matches!(node, Node::Dir(_)) { 0o755 } else { 0o644 };
        inside.push(Entry { name: name.to_vec(), mode, uid: 0, gid: 0, xattrs: vec![], link: None, node });
        entries = &entries[count..];
    }
    // As a path `a.b` comes before `a/b`, as a name after `a`.
    inside.sort_by(|a, b| a.name.cmp(&b.name));
    inside.dedup_by(|a, b| a.name == b.name);
    lane.put(ObjectKind::Tree, &encode_tree(&inside))
}
