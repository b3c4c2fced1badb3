//! What a disk may have lost when the power went: a hook that remembers every
//! operation and which of them a later sync covered.
//!
//! The model: bytes of a file and its mode are durable once the file was synced after
//! they were written, names (and the mode of their directory) once their directory was
//! synced after they were made or removed, everything once the file system was synced.
//! What is not durable may be there or not: each page of a file by itself, and each
//! operation on names by itself, in any order; but one operation is there as a whole: a
//! rename takes effect at both places or at none, and is durable once one of them is.
//! That is more than a journaling file system loses, so what survives here survives
//! there. Names of one file stay names of one file. Owners, times and attributes are
//! not modelled, and fifos and devices are lost.

use super::hook::{Hook, Op, OpKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
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
    bits: u32,
}

/// What something is now, and what of it is durable.
#[derive(Clone, Default)]
struct Version<T> {
    now: T,
    durable: T,
}

impl<T: Clone + PartialEq> Version<T> {
    fn durable(value: T) -> Self {
        Self { now: value.clone(), durable: value }
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.now);
    }

    /// One of the two, as chance has it.
    fn left(&self, random: &mut Random) -> &T {
        if self.now != self.durable && random.keeps() { &self.now } else { &self.durable }
    }
}

/// What stands at a name: nothing, or the node of this number.
type Standing = Option<usize>;

/// One name in a directory.
#[derive(Clone, Default)]
struct Slot {
    durable: Standing,
    /// By which operation it became what, since then.
    changes: Vec<(usize, Standing)>,
}

impl Slot {
    fn now(&self) -> Standing {
        self.changes.last().map_or(self.durable, |(_, now)| *now)
    }

    /// Makes it durable, and with it the operations that it came from.
    fn sync(&mut self, durable: &mut HashSet<usize>) {
        self.durable = self.now();
        durable.extend(self.changes.drain(..).map(|(operation, _)| operation));
    }
}

type Names = BTreeMap<Vec<u8>, Slot>;

/// A file or a directory.
#[derive(Clone)]
struct Node {
    body: Body,
    mode: Version<u32>,
}

#[derive(Clone)]
enum Body {
    File(Version<Vec<u8>>),
    Dir(Names),
    Symlink(Vec<u8>),
}

impl Node {
    fn new(body: Body, bits: u32) -> Self {
        Self { body, mode: Version::durable(bits) }
    }

    fn sync(&mut self, durable: &mut HashSet<usize>) {
        self.mode.sync();
        match &mut self.body {
            Body::File(bytes) => bytes.sync(),
            Body::Dir(names) => names.values_mut().for_each(|slot| slot.sync(durable)),
            Body::Symlink(_) => {}
        }
    }
}

/// What there is after some operations.
struct State {
    nodes: Vec<Node>,
    /// Operations on names that are durable, at all places that they are about.
    durable: HashSet<usize>,
}

impl PowerCut {
    /// Begins with what is beneath `root`, all of it durable.
    ///
    /// # Errors
    /// What kept it from being read.
    pub fn new(root: &Path) -> io::Result<Self> {
        let mut before = Vec::new();
        take_over(root, &mut before, &mut HashMap::new())?;
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
        let mut state = State { nodes: self.before.clone(), durable: HashSet::new() };
        for (number, event) in self.log().iter().take(count).enumerate() {
            self.replay(&mut state, number, event);
        }
        let random = Random { seed, state: seed };
        Left { state: &state, random, made: HashMap::new() }.dir(0, at)
    }

    fn find(&self, nodes: &[Node], path: &Path) -> Option<usize> {
        let mut at = 0;
        for name in path.strip_prefix(&self.root).ok()? {
            let Body::Dir(names) = &nodes[at].body else { return None };
            at = names.get(name.as_bytes())?.now()?;
        }
        Some(at)
    }

    /// Operation `number` puts `standing` at `path`.
    fn set(&self, nodes: &mut [Node], number: usize, path: &Path, standing: Standing) {
        let dir = path.parent().and_then(|parent| self.find(nodes, parent));
        let (Some(dir), Some(name)) = (dir, path.file_name()) else { return };
        if let Body::Dir(names) = &mut nodes[dir].body {
            names.entry(name.as_bytes().to_vec()).or_default().changes.push((number, standing));
        }
    }

    fn insert(&self, nodes: &mut Vec<Node>, number: usize, event: &Event, body: Body) {
        let id = nodes.len();
        nodes.push(Node::new(body, event.bits));
        self.set(nodes, number, &event.path, Some(id));
    }

    fn replay(&self, state: &mut State, number: usize, event: &Event) {
        let State { nodes, durable } = state;
        let found = self.find(nodes, &event.path);
        match event.kind {
            OpKind::Create if found.is_none() => {
                self.insert(nodes, number, event, Body::File(Version::default()));
            }
            OpKind::MakeDir => self.insert(nodes, number, event, Body::Dir(Names::new())),
            OpKind::Symlink => self.insert(nodes, number, event, Body::Symlink(event.data.clone())),
            OpKind::Write | OpKind::Truncate => {
                let Some(Body::File(bytes)) = found.map(|id| &mut nodes[id].body) else { return };
                let (start, end) = (event.offset as usize, event.offset as usize + event.data.len());
                if event.kind == OpKind::Truncate {
                    bytes.now.resize(start, 0);
                    return;
                }
                bytes.now.resize(bytes.now.len().max(end), 0);
                bytes.now[start..end].copy_from_slice(&event.data);
            }
            OpKind::SetMode => {
                if let Some(id) = found {
                    nodes[id].mode.now = event.bits;
                }
            }
            OpKind::SyncFile | OpKind::SyncDir => {
                if let Some(id) = found {
                    nodes[id].sync(durable);
                }
            }
            OpKind::SyncFileSystem => nodes.iter_mut().for_each(|node| node.sync(durable)),
            OpKind::Unlink | OpKind::RemoveDir => self.set(nodes, number, &event.path, None),
            OpKind::Rename | OpKind::RenameNoReplace | OpKind::Exchange | OpKind::Link => {
                self.replay_move(nodes, number, event);
            }
            _ => {}
        }
    }

    fn replay_move(&self, nodes: &mut [Node], number: usize, event: &Event) {
        let Some(to) = &event.to else { return };
        let (Some(moved), there) = (self.find(nodes, &event.path), self.find(nodes, to)) else { return };
        if there == Some(moved) {
            // Two names of one file: renaming one to the other does nothing.
            return;
        }
        match event.kind {
            OpKind::Link => {}
            OpKind::Exchange => self.set(nodes, number, &event.path, there),
            _ => self.set(nodes, number, &event.path, None),
        }
        self.set(nodes, number, to, Some(moved));
    }
}

impl Hook for PowerCut {
    fn before(&self, _: &Op<'_>) -> io::Result<()> {
        Ok(())
    }

    fn after(&self, op: &Op<'_>, done: bool) {
        if done {
            let to = op.to.map(|(dir, name)| dir.join(OsStr::from_bytes(name)));
            let (path, data) = (op.path(), op.data.to_vec());
            let mut event = Event { kind: op.kind, path, to, offset: op.offset, data, bits: op.bits };
            // What came from another file, or became a hole, is written like what comes from
            // memory. A file without a name is in no model.
            if matches!(op.kind, OpKind::Clone | OpKind::CopyRange | OpKind::Punch)
                && let Ok(bytes) = std::fs::read(&event.path)
            {
                event.kind = OpKind::Write;
                event.data = bytes.get(op.offset as usize..).unwrap_or_default().to_vec();
            }
            self.log().push(event);
        }
    }
}

/// Reads what is at `path` into `nodes`; returns its number. `files` are those that have
/// been read by another name.
fn take_over(
    path: &Path,
    nodes: &mut Vec<Node>,
    files: &mut HashMap<(u64, u64), usize>,
) -> io::Result<usize> {
    let id = nodes.len();
    let stat = path.symlink_metadata()?;
    let (kind, bits) = (stat.file_type(), stat.mode() & 0o7777);
    if kind.is_symlink() {
        let target = std::fs::read_link(path)?;
        nodes.push(Node::new(Body::Symlink(target.as_os_str().as_bytes().to_vec()), bits));
    } else if kind.is_dir() {
        nodes.push(Node::new(Body::Dir(Names::new()), bits));
        let mut names = Names::new();
        for entry in std::fs::read_dir(path)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_file() || kind.is_dir() || kind.is_symlink() {
                let durable = Some(take_over(&entry.path(), nodes, files)?);
                let slot = Slot { durable, ..Slot::default() };
                names.insert(entry.file_name().as_bytes().to_vec(), slot);
            }
        }
        nodes[id].body = Body::Dir(names);
    } else if let Some(known) = files.get(&(stat.dev(), stat.ino())) {
        return Ok(*known);
    } else {
        files.insert((stat.dev(), stat.ino()), id);
        nodes.push(Node::new(Body::File(Version::durable(std::fs::read(path)?)), bits));
    }
    Ok(id)
}

/// A small generator: which of what is not durable is kept. With seed 0 nothing is.
struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    fn keeps(&mut self) -> bool {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        self.state % 2 == 1
    }

    /// The same for all names that the operation is about.
    fn keeps_operation(&self, number: usize) -> bool {
        let mut own =
            Self { seed: self.seed, state: self.seed.wrapping_mul(number as u64 * 2 + 0x9e37_79b9) };
        (0..8).map(|_| own.keeps()).last().unwrap_or(false)
    }
}

/// Making what is left.
struct Left<'a> {
    state: &'a State,
    random: Random,
    /// Files that have a name already.
    made: HashMap<usize, PathBuf>,
}

impl Left<'_> {
    fn dir(&mut self, id: usize, at: &Path) -> io::Result<()> {
        let Body::Dir(names) = &self.state.nodes[id].body else { return Ok(()) };
        for (name, slot) in names {
            let Some(id) = self.standing(slot) else { continue };
            let path = at.join(OsStr::from_bytes(name));
            match &self.state.nodes[id].body {
                Body::Dir(_) => {
                    std::fs::create_dir(&path)?;
                    self.dir(id, &path)?;
                }
                Body::Symlink(target) => {
                    std::os::unix::fs::symlink(OsStr::from_bytes(target), &path)?;
                    continue;
                }
                Body::File(bytes) => match self.made.get(&id) {
                    Some(first) => {
                        std::fs::hard_link(first, &path)?;
                        continue;
                    }
                    None => {
                        std::fs::write(&path, self.bytes(bytes))?;
                        self.made.insert(id, path.clone());
                    }
                },
            }
            let bits = *self.state.nodes[id].mode.left(&mut self.random);
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(bits))?;
        }
        Ok(())
    }

    /// What is left at a name: the last change that was kept counts.
    fn standing(&self, slot: &Slot) -> Standing {
        let keeps = |operation: usize| {
            self.state.durable.contains(&operation) || self.random.keeps_operation(operation)
        };
        let kept = slot.changes.iter().rev().find(|(operation, _)| keeps(*operation));
        kept.map_or(slot.durable, |(_, left)| *left)
    }

    fn bytes(&mut self, file: &Version<Vec<u8>>) -> Vec<u8> {
        let mut bytes = file.durable.clone();
        if file.now != file.durable && self.random.keeps() {
            // The length is kept; pages that are not are zeros or what was there.
            bytes.resize(file.now.len(), 0);
            for (page, new) in bytes.chunks_mut(PAGE).zip(file.now.chunks(PAGE)) {
                if self.random.keeps() {
                    page.copy_from_slice(new);
                }
            }
        }
        bytes
    }
}
