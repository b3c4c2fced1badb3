//! Reading what is recorded of a repository, and storing it as a directory. Modes and
//! owners are not those of the files: the record is there to be read.

use crate::error::{Kind, Result};
use crate::object::{Key, ObjectKind};
use crate::store::Lane;
use crate::store::content::{store_bytes, store_file};
use crate::tree::capture::Capture;
use crate::tree::capture::read::open;
use crate::tree::git::look::{Found, Item};
use crate::tree::git::{Located, Staged};
use crate::tree::node::{Entry, Node, decode_tree, encode_tree};
use crate::tree::root::GitRecord;
use crate::tree::scan::Stat;
use std::fs::File;
use std::sync::atomic::Ordering;

/// What is staged has a directory of this name in the record; git itself has none of it.
const STAGED: &[u8] = b"staged";

impl Capture<'_> {
    /// Reads and stores what was `found`, beside what is `staged`.
    pub(super) fn store_git(
        &self,
        mut found: Found,
        staged: Option<Key>,
        lane: &mut Lane<'_>,
    ) -> Result<GitRecord> {
        let mut entries = Vec::with_capacity(found.files.len());
        for item in std::mem::take(&mut found.files) {
            self.call.cancel.check()?;
            match self.read_git(&item, lane)? {
                Some(node) => entries.push((item.path, node)),
                None => found.whole = false,
            }
        }
        let staged = staged.map(|tree| (STAGED.to_vec(), Node::Dir(tree)));
        entries.extend(staged);
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(GitRecord { tree: put_dir(&entries, 0, lane)?, whole: found.whole })
    }

    /// Reads and stores what is staged in a repository, which `has_index` or has none.
    pub(super) fn store_staged(
        &self,
        located: &Located,
        has_index: bool,
        lane: &mut Lane<'_>,
    ) -> Result<Key> {
        let files = match has_index {
            true => Staged::files(located.own()),
            false => Staged::nothing(),
        };
        self.git.fetch_add(u64::from(has_index), Ordering::Relaxed);
        let mut entries = Vec::new();
        for (name, bytes) in files {
            let (content, size) = store_bytes(lane, &bytes[..], &self.call.cancel)?;
            entries.push((name.as_bytes().to_vec(), Node::File { content, size, sparse: false }));
        }
        entries.sort_by(|a, b| a.0.cmp(&b.0));
        put_dir(&entries, 0, lane)
    }

    /// What is staged by a record that is stored.
    pub(super) fn staged_of(&self, record: &GitRecord) -> Result<Option<Key>> {
        let inside = decode_tree(&self.writer.read(&record.tree)?)?;
        Ok(inside.into_iter().find_map(|entry| match entry.node {
            Node::Dir(tree) if entry.name == STAGED => Some(tree),
            _ => None,
        }))
    }

    /// The `record`, which is stored, with something else `staged`.
    pub(super) fn restaged(
        &self,
        record: &GitRecord,
        staged: Option<Key>,
        lane: &mut Lane<'_>,
    ) -> Result<GitRecord> {
        let mut inside = decode_tree(&self.writer.read(&record.tree)?)?;
        inside.retain(|entry| entry.name != STAGED);
        inside.extend(staged.map(|tree| recorded(STAGED, Node::Dir(tree))));
        inside.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(GitRecord { tree: lane.put(ObjectKind::Tree, &encode_tree(&inside))?, ..*record })
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
        inside.push(recorded(name, node));
        entries = &entries[count..];
    }
    // As a path `a.b` comes before `a/b`, as a name after `a`.
    inside.sort_by(|a, b| a.name.cmp(&b.name));
    inside.dedup_by(|a, b| a.name == b.name);
    lane.put(ObjectKind::Tree, &encode_tree(&inside))
}

fn recorded(name: &[u8], node: Node) -> Entry {
    let mode = if matches!(node, Node::Dir(_)) { 0o755 } else { 0o644 };
    Entry { name: name.to_vec(), mode, uid: 0, gid: 0, xattrs: vec![], link: None, node }
}
