//! What the store promises, shown on real files.

mod cleaning;
mod content;
mod damage;
mod far;
mod faults;
mod frozen;
mod opening;
mod power;
mod sharing;
mod together;
mod workspaces;
mod writing;

use super::content::store_bytes;
use super::*;
use crate::backend::Cancel;
use crate::object::ObjectKind;
use crate::report::Silent;
use crate::tree::node::{Entry, EntryTime, Node, Time, encode_times, encode_tree};
use crate::tree::root::Root;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// A directory that goes when it is dropped.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("snapback-store-{}-{name}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    fn store(&self) -> Arc<Store> {
        Store::create(&self.0.join("store"), Disk::default().with_sync(false)).unwrap()
    }

    fn reopen(&self) -> Arc<Store> {
        Store::open(&self.0.join("store"), Disk::default().with_sync(false)).unwrap()
    }

    fn names(&self, dir: &str) -> BTreeSet<String> {
        let dir = std::fs::read_dir(self.0.join("store").join(dir)).unwrap();
        dir.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Bytes without a pattern, the same for the same seed.
fn noise(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut out = Vec::with_capacity(len + 8);
    while out.len() < len {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        out.extend_from_slice(&state.to_le_bytes());
    }
    out.truncate(len);
    out
}

fn put_all(store: &Arc<Store>, objects: &[Vec<u8>]) -> Vec<Key> {
    let writer = store.writer().unwrap();
    let mut lane = writer.lane();
    let keys = objects.iter().map(|bytes| lane.put(ObjectKind::Blob, bytes).unwrap()).collect();
    lane.flush().unwrap();
    writer.seal().unwrap();
    keys
}

/// Stores a captured directory of these files; returns its root and what was added.
fn snapshot(store: &Arc<Store>, files: &[(&str, Vec<u8>)]) -> Result<(Key, u64)> {
    let writer = store.writer()?;
    let mut lane = writer.lane();
    let (mut entries, mut times) = (Vec::new(), Vec::new());
    for (name, bytes) in files {
        let (content, size) = store_bytes(&mut lane, &bytes[..], &Cancel::default())?;
        let node = Node::File { content, size, sparse: false };
        entries.push(entry(name.as_bytes(), node));
        // Times of their own only for what is called `a`: snapshots without it share them.
        let own = name.starts_with('a');
        let sec = bytes.iter().take(8 * usize::from(own)).fold(0, |sec, b| sec << 7 | i64::from(*b));
        times.push(EntryTime { mtime: Time { sec, nsec: 0 }, inside: None });
    }
    let tree = lane.put(ObjectKind::Tree, &encode_tree(&entries))?;
    let times = lane.put(ObjectKind::Times, &encode_times(&times))?;
    let root = lane.put(ObjectKind::Root, &root_of(tree, times, files.len()).encode())?;
    lane.flush()?;
    Ok((root, writer.seal()?))
}

fn root_of(tree: Key, times: Key, files: usize) -> Root {
    Root {
        setting: "path".into(),
        value: ".".into(),
        options: vec![],
        top: entry(b"", Node::Dir(tree)),
        mtime: Time::default(),
        times,
        left_out: vec![],
        ignored: vec![],
        ignored_stamps: vec![],
        files: files as u64,
        bytes: 0,
        git: None,
    }
}

fn entry(name: &[u8], node: Node) -> Entry {
    Entry { name: name.to_vec(), mode: 0o644, uid: 0, gid: 0, xattrs: vec![], link: None, node }
}

/// Whether all beneath `root` is there, whole.
fn is_whole(store: &Store, root: &Key) -> bool {
    let mut verified = verify::packs(store, &Cancel::default(), &Silent).unwrap();
    verified.root(store, root, &mut Vec::new(), 10, &Cancel::default()).unwrap()
}
