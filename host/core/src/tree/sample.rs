//! Trees made by hand, for tests: objects in memory and a small builder.

use super::node::{Entry, EntryTime, Node, Time, decode_times, decode_tree, encode_times, encode_tree};
use super::root::Root;
use crate::error::Result;
use crate::object::{Key, ObjectKind};
use crate::store::{Source, Viewer};
use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Objects in memory.
#[derive(Default)]
pub struct Objects {
    all: Mutex<HashMap<Key, Vec<u8>>>,
    /// How often something was read.
    pub reads: AtomicUsize,
}

impl Objects {
    /// Stores `bytes`.
    pub fn put(&self, kind: ObjectKind, bytes: &[u8]) -> Key {
        let key = Key::of(kind, bytes);
        self.all.lock().unwrap().insert(key, bytes.to_vec());
        key
    }

    /// Takes over all that `root` leads to, of content only single blocks.
    pub fn copy(&self, from: &dyn Source, root: &Root) {
        let mut keys = vec![root.times];
        if let Node::Dir(tree) = root.top.node {
            keys.push(tree);
        }
        while let Some(key) = keys.pop() {
            let bytes = from.read(&key).unwrap();
            match key.kind() {
                ObjectKind::Tree => {
                    keys.extend(decode_tree(&bytes).unwrap().iter().filter_map(|e| match e.node {
                        Node::File { content, .. } => Some(content),
                        Node::Dir(tree) => Some(tree),
                        _ => None,
                    }))
                }
                ObjectKind::Times => {
                    keys.extend(decode_times(&bytes).unwrap().iter().filter_map(|t| t.inside))
                }
                _ => {}
            }
            self.all.lock().unwrap().insert(key, bytes);
        }
    }

    /// Loses an object.
    pub fn forget(&self, key: &Key) {
        self.all.lock().unwrap().remove(key);
    }
}

impl Source for Objects {
    fn view(&self, key: &Key, f: Viewer<'_>) -> Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.all.lock().unwrap().view(key, f)
    }
}

/// An entry to be.
#[derive(Clone)]
pub struct Sample {
    /// The entry; a directory's key is made when it is stored.
    pub entry: Entry,
    /// Its time.
    pub time: Time,
    /// A file's bytes.
    pub bytes: Vec<u8>,
    /// What a directory holds.
    pub inside: Vec<Sample>,
}

fn sample(name: &str, mode: u32, node: Node) -> Sample {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Sample {
        entry: Entry { name: name.into(), mode, uid, gid, xattrs: vec![], link: None, node },
        time: Time { sec: 1_000_000_000, nsec: 5 },
        bytes: Vec::new(),
        inside: Vec::new(),
    }
}

/// A file.
pub fn file(name: &str, bytes: &str) -> Sample {
    let content = Key::of(ObjectKind::Blob, bytes.as_bytes());
    let node = Node::File { content, size: bytes.len() as u64, sparse: false };
    Sample { bytes: bytes.into(), ..sample(name, 0o644, node) }
}

/// A directory.
pub fn dir(name: &str, inside: Vec<Sample>) -> Sample {
    let node = Node::Dir(Key::of(ObjectKind::Tree, b""));
    Sample { inside, ..sample(name, 0o755, node) }
}

/// A symbolic link.
pub fn link(name: &str, to: &str) -> Sample {
    sample(name, 0o777, Node::Symlink(to.into()))
}

fn store(objects: &Objects, sample: &mut Sample) -> Option<Key> {
    match &mut sample.entry.node {
        Node::Dir(tree) => {
            sample.inside.sort_by(|a, b| a.entry.name.cmp(&b.entry.name));
            let times: Vec<EntryTime> = sample
                .inside
                .iter_mut()
                .map(|s| EntryTime { inside: store(objects, s), mtime: s.time })
                .collect();
            let entries: Vec<Entry> = sample.inside.iter().map(|s| s.entry.clone()).collect();
            *tree = objects.put(ObjectKind::Tree, &encode_tree(&entries));
            Some(objects.put(ObjectKind::Times, &encode_times(&times)))
        }
        Node::File { .. } => {
            objects.put(ObjectKind::Blob, &sample.bytes);
            None
        }
        _ => None,
    }
}

/// A root that holds `inside`.
pub fn sample_root(objects: &Objects, inside: Vec<Sample>) -> Root {
    let mut top = dir("", inside);
    let times = store(objects, &mut top).expect("a directory has times");
    Root {
        setting: "path".into(),
        value: ".".into(),
        options: vec![],
        top: top.entry,
        mtime: top.time,
        times,
        left_out: vec![],
        ignored: vec![],
        ignored_stamps: vec![],
        files: 0,
        bytes: 0,
        git: None,
    }
}
