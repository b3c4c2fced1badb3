//! Counting what a stored tree would become, without making it.
//!
//! Equal directories are one object, so a few kilobytes can stand for more files than any
//! disk holds: each object is read once, whatever number of places it stands in. Numbers
//! that would overflow stay at the largest.

use super::node::{Node, decode_tree};
use crate::backend::Cancel;
use crate::error::Result;
use crate::object::Key;
use crate::store::Source;
use std::collections::HashMap;
use std::ops::AddAssign;

/// What a tree holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Census {
    /// Names of all kinds.
    pub entries: u64,
    /// Bytes of regular files.
    pub bytes: u64,
    /// Device nodes.
    pub devices: u64,
    /// Files that are setuid or setgid, or have capabilities.
    pub privileged: u64,
}

impl AddAssign for Census {
    fn add_assign(&mut self, other: Self) {
        self.entries = self.entries.saturating_add(other.entries);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.devices = self.devices.saturating_add(other.devices);
        self.privileged = self.privileged.saturating_add(other.privileged);
    }
}

/// Counts trees; what several have in common is read once.
#[derive(Default)]
pub struct Counter(HashMap<Key, Census>);

/// A directory that is being counted.
struct Open {
    key: Key,
    count: Census,
    inside: Vec<Key>,
}

impl Counter {
    /// What the directory `tree` holds.
    ///
    /// # Errors
    /// When something of it cannot be read, or `Cancelled`.
    pub fn count(&mut self, source: &dyn Source, tree: &Key, cancel: &Cancel) -> Result<Census> {
        let mut open = match self.0.get(tree) {
            Some(known) => return Ok(*known),
            None => vec![Self::open(source, tree)?],
        };
        loop {
            let Some(top) = open.last_mut() else { return Ok(self.0[tree]) };
            match top.inside.pop() {
                Some(key) => match self.0.get(&key) {
                    Some(known) => top.count += *known,
                    None => {
                        cancel.check()?;
                        // Counted when it is closed.
                        top.inside.push(key);
                        open.push(Self::open(source, &key)?);
                    }
                },
                None => {
                    self.0.insert(top.key, top.count);
                    open.pop();
                }
            }
        }
    }

    fn open(source: &dyn Source, key: &Key) -> Result<Open> {
        let mut count = Census::default();
        let mut inside = Vec::new();
        for entry in decode_tree(&source.read(key)?)? {
            let capable = entry.xattrs.iter().any(|(name, _)| name == b"security.capability");
            let mut one = Census { entries: 1, ..Census::default() };
            match &entry.node {
                Node::File { size, .. } => {
                    one.bytes = *size;
                    one.privileged = u64::from(entry.mode & 0o6000 != 0 || capable);
                }
                Node::Dir(tree) => inside.push(*tree),
                Node::CharDevice(..) | Node::BlockDevice(..) => one.devices = 1,
                Node::Symlink(_) | Node::Fifo | Node::Socket => {}
            }
            count += one;
        }
        Ok(Open { key: *key, count, inside })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;
    use crate::object::ObjectKind;
    use crate::store::Viewer;
    use crate::tree::node::{Entry, encode_tree};

    #[derive(Default)]
    struct Objects(HashMap<Key, Vec<u8>>);

    impl Source for Objects {
        fn view(&self, key: &Key, f: Viewer<'_>) -> Result<()> {
            f(self.0.get(key).ok_or_else(|| Error::corrupt("missing"))?)
        }
    }

    impl Objects {
        fn dir(&mut self, entries: &[Entry]) -> Key {
            let bytes = encode_tree(entries);
            let key = Key::of(ObjectKind::Tree, &bytes);
            self.0.insert(key, bytes);
            key
        }
    }

    fn entry(name: &str, mode: u32, node: Node) -> Entry {
        Entry { name: name.into(), mode, uid: 0, gid: 0, xattrs: vec![], link: None, node }
    }

    fn file(name: &str, mode: u32, size: u64) -> Entry {
        let content = Key::of(ObjectKind::Blob, b"");
        entry(name, mode, Node::File { content, size, sparse: false })
    }

    #[test]
    fn every_place_of_a_directory_counts() {
        let mut objects = Objects::default();
        let inner = objects.dir(&[entry("d", 0o600, Node::BlockDevice(8, 0)), file("f", 0o4755, 10)]);
        let top =
            [entry("a", 0o755, Node::Dir(inner)), entry("b", 0o755, Node::Dir(inner)), file("c", 0o644, 5)];
        let top = objects.dir(&top);
        let count = Counter::default().count(&objects, &top, &Cancel::default()).unwrap();
        assert_eq!(count, Census { entries: 7, bytes: 25, devices: 2, privileged: 2 });
    }

    #[test]
    fn what_no_disk_holds_is_counted_at_once() {
        let mut objects = Objects::default();
        let mut at = objects.dir(&[file("f", 0o644, u64::MAX)]);
        for _ in 0..100 {
            at = objects.dir(&[entry("a", 0o755, Node::Dir(at)), entry("b", 0o755, Node::Dir(at))]);
        }
        // And deeper than any stack.
        for _ in 0..100_000 {
            at = objects.dir(&[entry("a", 0o755, Node::Dir(at))]);
        }
        let count = Counter::default().count(&objects, &at, &Cancel::default()).unwrap();
        assert_eq!((count.entries, count.bytes), (u64::MAX, u64::MAX));
        objects.0.remove(&at);
        assert!(Counter::default().count(&objects, &at, &Cancel::default()).is_err());
    }
}
