//! What a disk may have lost when the power went: a hook that remembers every
//! operation and which of them a later sync covered.
//!
//! The model: bytes of a file are durable once the file was synced after they were
//! written, names once their directory was synced after they were made or removed,
//! everything once the file system was synced. What is not durable may be there or
//! not, each page of a file and each name by itself. That is more than a journaling
//! file system loses, so what survives here survives there. Modes, owners and times
//! are not modelled.

use super::hook::{Hook, Op, OpKind};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

const PAGE: usize = 4096;

/// Remembers what was done beneath one directory since it was made.
pub struct PowerCut {
    root: PathBuf,
    log: Mutex<Vec<Event>>,
    before: Vec<Node>,
}

/// One operation that succeeded.
struct Event {
    kind: OpKind,
    path: PathBuf,
    to: Option<PathBuf>,
    offset: u64,
    data: Vec<u8>,
}

type Names = BTreeMap<Vec<u8>, usize>;

/// A file or a directory: what it is now and what of it is durable.
#[derive(Clone)]
enum Node {
    File { now: Vec<u8>, durable: Vec<u8> },
    Dir { now: Names, durable: Names },
    Symlink(Vec<u8>),
}

impl PowerCut {
    /// Begins with what is beneath `root`, all of it durable.
    ///
    /// # Errors
    /// What kept it from being read.
    pub fn new(root: &Path) -> io::Result<Self> {
        let mut before = Vec::new();
        take_over(root, &mut before)?;
        Ok(Self { root: root.to_owned(), log: Mutex::default(), before })
    }

    fn log(&self) -> MutexGuard<'_, Vec<Event>> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How many operations there were.
    pub fn operations(&self) -> usize {
        self.log().len()
    }

    /// Makes at `at` (an empty directory) what a power cut after the first `count`
    /// operations may have left. With seed 0 all that is not durable is lost; other
    /// seeds keep some of it.
    ///
    /// # Errors
    /// What kept it from being made.
    pub fn leave(&self, count: usize, seed: u64, at: &Path) -> io::Result<()> {
        let mut nodes = self.before.clone();
        for event in self.log().iter().take(count) {
            self.replay(&mut nodes, event);
        }
        let mut random = Random(seed);
        write_out(&nodes, 0, at, &mut random)
    }

    fn find(&self, nodes: &[Node], path: &Path) -> Option<usize> {
        let mut at = 0;
        for name in path.strip_prefix(&self.root).ok()? {
            let Node::Dir { now, .. } = &nodes[at] else { return None };
            at = *now.get(name.as_bytes())?;
        }
        Some(at)
    }

    fn names<'a>(&self, nodes: &'a mut [Node], path: &Path) -> Option<(&'a mut Names, Vec<u8>)> {
        let name = path.file_name()?.as_bytes().to_vec();
        let dir = self.find(nodes, path.parent()?)?;
        match &mut nodes[dir] {
            Node::Dir { now, .. } => Some((now, name)),
            _ => None,
        }
    }

    fn insert(&self, nodes: &mut Vec<Node>, path: &Path, node: Node) {
        let id = nodes.len();
        if let Some((names, name)) = self.names(nodes, path) {
            names.insert(name, id);
            nodes.push(node);
        }
    }

    fn replay(&self, nodes: &mut Vec<Node>, event: &Event) {
        let path = &event.path;
        match event.kind {
            OpKind::Create if self.find(nodes, path).is_none() => {
                self.insert(nodes, path, Node::File { now: Vec::new(), durable: Vec::new() });
            }
            OpKind::MakeDir => {
                self.insert(nodes, path, Node::Dir { now: Names::new(), durable: Names::new() });
            }
            OpKind::Symlink => self.insert(nodes, path, Node::Symlink(event.data.clone())),
            OpKind::Write | OpKind::Truncate | OpKind::SyncFile => {
                let Some(Node::File { now, durable }) = self.find(nodes, path).map(|id| &mut nodes[id])
                else {
                    return;
                };
                let (offset, end) = (event.offset as usize, event.offset as usize + event.data.len());
                match event.kind {
                    OpKind::Write => {
                        now.resize(now.len().max(end), 0);
                        now[offset..end].copy_from_slice(&event.data);
                    }
                    OpKind::Truncate => now.resize(offset, 0),
                    _ => durable.clone_from(now),
                }
            }
            OpKind::SyncDir => {
                if let Some(Node::Dir { now, durable }) = self.find(nodes, path).map(|id| &mut nodes[id]) {
                    durable.clone_from(now);
                }
            }
            OpKind::SyncFileSystem => nodes.iter_mut().for_each(|node| match node {
                Node::File { now, durable } => durable.clone_from(now),
                Node::Dir { now, durable } => durable.clone_from(now),
                Node::Symlink(_) => {}
            }),
            OpKind::Unlink | OpKind::RemoveDir => {
                if let Some((names, name)) = self.names(nodes, path) {
                    names.remove(&name);
                }
            }
            OpKind::Rename | OpKind::RenameNoReplace | OpKind::Exchange | OpKind::Link => {
                self.replay_move(nodes, event);
            }
            _ => {}
        }
    }

    fn replay_move(&self, nodes: &mut [Node], event: &Event) {
        let Some(to) = &event.to else { return };
        let (Some(moved), there) = (self.find(nodes, &event.path), self.find(nodes, to)) else { return };
        let other = there.filter(|_| event.kind == OpKind::Exchange);
        if let Some((names, name)) = self.names(nodes, &event.path).filter(|_| event.kind != OpKind::Link) {
            match other {
                Some(other) => names.insert(name, other),
                None => names.remove(&name),
            };
        }
        if let Some((names, name)) = self.names(nodes, to) {
            names.insert(name, moved);
        }
    }
}

impl Hook for PowerCut {
    fn before(&self, _: &Op<'_>) -> io::Result<()> {
        Ok(())
    }

    fn after(&self, op: &Op<'_>, done: bool) {
        if done {
            let to = op.to.map(|(dir, name)| dir.join(OsStr::from_bytes(name)));
            let mut event =
                Event { kind: op.kind, path: op.path(), to, offset: op.offset, data: op.data.to_vec() };
            // What came from another file is written like what comes from memory. A file
            // without a name is in no model.
            if matches!(op.kind, OpKind::Clone | OpKind::CopyRange)
                && let Ok(bytes) = std::fs::read(&event.path)
            {
                event.kind = OpKind::Write;
                event.data = bytes.get(op.offset as usize..).unwrap_or_default().to_vec();
            }
            self.log().push(event);
        }
    }
}

/// Reads what is at `path` into `nodes`; returns its number.
fn take_over(path: &Path, nodes: &mut Vec<Node>) -> io::Result<usize> {
    let id = nodes.len();
    let kind = path.symlink_metadata()?.file_type();
    if kind.is_symlink() {
        let target = std::fs::read_link(path)?;
        nodes.push(Node::Symlink(target.as_os_str().as_bytes().to_vec()));
    } else if kind.is_dir() {
        nodes.push(Node::Dir { now: Names::new(), durable: Names::new() });
        let mut names = Names::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            names.insert(entry.file_name().as_bytes().to_vec(), take_over(&entry.path(), nodes)?);
        }
        nodes[id] = Node::Dir { now: names.clone(), durable: names };
    } else {
        let bytes = std::fs::read(path)?;
        nodes.push(Node::File { now: bytes.clone(), durable: bytes });
    }
    Ok(id)
}

/// A small generator: which of what is not durable is kept. With seed 0 nothing is.
struct Random(u64);

impl Random {
    fn keeps(&mut self) -> bool {
        if self.0 == 0 {
            return false;
        }
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % 2 == 1
    }
}

fn write_out(nodes: &[Node], id: usize, at: &Path, random: &mut Random) -> io::Result<()> {
    let Node::Dir { now, durable } = &nodes[id] else { return Ok(()) };
    let all: std::collections::BTreeSet<&Vec<u8>> = now.keys().chain(durable.keys()).collect();
    for name in all {
        let (new, old) = (now.get(name), durable.get(name));
        let Some(&id) = (if new != old && random.keeps() { new } else { old }) else { continue };
        let path = at.join(OsStr::from_bytes(name));
        match &nodes[id] {
            Node::Dir { .. } => {
                std::fs::create_dir(&path)?;
                write_out(nodes, id, &path, random)?;
            }
            Node::Symlink(target) => std::os::unix::fs::symlink(OsStr::from_bytes(target), &path)?,
            Node::File { now, durable } => {
                let mut bytes = durable.clone();
                if now != durable && random.keeps() {
                    // The length is kept; pages that are not are zeros or what was there.
                    bytes.resize(now.len(), 0);
                    for (page, new) in bytes.chunks_mut(PAGE).zip(now.chunks(PAGE)) {
                        if random.keeps() {
                            page.copy_from_slice(new);
                        }
                    }
                }
                std::fs::write(&path, bytes)?;
            }
        }
    }
    Ok(())
}
