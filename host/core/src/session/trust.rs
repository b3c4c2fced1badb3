//! Trusting a foreign store: what is in it is looked at as a whole, the user decides,
//! and from then on it is the user's own, until the user takes that back.
//!
//! Refused is whatever snapback itself would not have written: links and devices among
//! the store's files, damage, a step that is going on (it would be finished unasked),
//! directories that were captured outside a project, trees of a size that no tree has.
//! What only another machine can have seen (caches) is not taken over, and the store gets
//! an identity that nobody else knows. A store that another user owns stays theirs.

use super::Project;
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result, show, show_bytes};
use crate::history::clock::Moment;
use crate::object::ObjectKind;
use crate::project::STORE;
use crate::store::{Store, birth};
use crate::tree::census::{Census, Counter};
use crate::tree::node::Node;
use crate::tree::view::read_root;
use rustix::fs::FileType;

/// What another machine knew, and this one finds out for itself.
const CACHES: [&[u8]; 6] = [b"index", b"uncollected", b"cache", b"running", b"tmp", super::twin::TWINS];
/// A store has no deeper directories than this.
const DEPTH: usize = 4;
/// Names of more than this many files were never captured: it is more than a file system
/// of 16 TiB has room for.
const MOST_ENTRIES: u64 = 1 << 32;

/// What a foreign store holds, for the user to decide.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranger {
    /// Snapshots.
    pub snapshots: usize,
    /// Where the newest was taken.
    pub root: Option<std::path::PathBuf>,
    /// When the newest was taken.
    pub taken: Option<Moment>,
    /// What the largest snapshot holds.
    pub largest: Census,
}

impl Project {
    /// Looks at all that the foreign store holds; none when the store is this user's own.
    ///
    /// # Errors
    /// What speaks against trusting it.
    pub fn examine(&self) -> Result<Option<Stranger>> {
        let store = self.need_store()?;
        let Some(foreign) = self.foreign() else { return Ok(None) };
        if foreign.owner.is_some() {
            // What is written there would be this user's, and its owner could not read it.
            let shown = show(store.path());
            let why = format!("the store {shown} {}", foreign.words());
            return Err(Error::new(Kind::Denied, why).hint(foreign.hint(store.path())));
        }
        plain(store.dir(), DEPTH)?;
        for name in [&b"journal"[..], b"aside"] {
            if holds(store.dir(), name)? {
                let why = format!("a step is unfinished in the store {}", show(store.path()));
                return Err(Error::new(Kind::Denied, why).hint("finish it where the store came from"));
            }
        }
        let found = self.verify()?;
        if !found.is_whole() {
            let why = format!("the store {} is damaged", show(store.path()));
            return Err(Error::corrupt(why).hint("`snapback verify` says what is damaged"));
        }
        let mut counter = Counter::default();
        let mut stranger = Stranger { snapshots: 0, root: None, taken: None, largest: Census::default() };
        for listing in self.list()?.0 {
            let snapshot = listing.snapshot;
            let mut count = Census::default();
            for part in snapshot.targets.iter().flat_map(|target| &target.parts) {
                if part.content.kind() != ObjectKind::Root {
                    continue;
                }
                let root = read_root(&**store, &part.content)?;
                if super::absent::names(snapshot.root.path(), &root.value).is_none() {
                    let value = show_bytes(root.value.as_bytes());
                    let why =
                        format!("snapshot {} holds {value}, which is outside of its project", snapshot.id);
                    return Err(Error::new(Kind::Denied, why).hint("`snapback show` says all about it"));
                }
                if let Node::Dir(tree) = root.top.node {
                    count += counter.count(&**store, &tree, &self.env.cancel)?;
                }
            }
            if count.entries > MOST_ENTRIES {
                let why = format!("snapshot {} holds more files than there can be", snapshot.id);
                return Err(Error::corrupt(why).hint("nobody captured that; do not use the store"));
            }
            if stranger.snapshots == 0 {
                stranger.root = Some(snapshot.root.path().to_owned());
                stranger.taken = Some(snapshot.created);
            }
            stranger.snapshots += 1;
            if count.entries >= stranger.largest.entries {
                stranger.largest = count;
            }
        }
        Ok(Some(stranger))
    }

    /// Makes the foreign store, which was examined, the user's own.
    ///
    /// # Errors
    /// When it, or the user's state directory, cannot be written.
    pub fn trust(self) -> Result<()> {
        if self.foreign().is_none() {
            return Ok(());
        }
        let (disk, report) = (self.env.disk.clone(), self.env.report.clone());
        let store = Store::open(&self.env.root.join(STORE), disk.clone())?;
        let lock =
            store.lock(&mut || report.waiting("another snapback command is at work in this project"))?;
        for name in CACHES {
            clear(&disk, store.dir(), name)?;
        }
        let (id, now) = (store.renew_id()?, Moment(self.env.clock.now()));
        store.settle()?;
        // Its birth proves whose it is where nothing can be kept of it.
        let _ = self.registry().put(&disk, &self.env.root, &id, Some(now));
        drop((lock, store));
        Self::open(self.env)?.lock()?.mirror(None);
        Ok(())
    }
}

impl Project {
    /// Takes back that the store, which came from elsewhere, was trusted: it is foreign again,
    /// with all that was done in it since. Whether it had been trusted.
    ///
    /// # Errors
    /// When it, or the user's state directory, cannot be written.
    pub fn distrust(self) -> Result<bool> {
        let (disk, registry, root) = (self.env.disk.clone(), self.registry(), self.env.root.clone());
        if registry.get(&root).is_none_or(|known| known.trusted.is_none()) {
            return Ok(false);
        }
        // One that is not the user's own by now needs only to be forgotten.
        if self.store().is_some() && self.foreign().is_none() && self.outlived().is_none() {
            let session = self.lock_unrecovered()?;
            let store = session.need_store()?;
            // It is known by its birth, and by an identity that is known here.
            clear(&disk, store.dir(), birth::FILE)?;
            store.renew_id()?;
        }
        registry.remove(&disk, &root)?;
        Ok(true)
    }
}

/// Refuses what is no plain file or directory in a store.
fn plain(dir: &Dir, depth: usize) -> Result<()> {
    for name in dir.names()? {
        let Some(stat) = dir.stat(&name)? else { continue };
        let what = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => continue,
            FileType::Directory if depth > 0 => {
                plain(&dir.child(&name)?, depth - 1)?;
                continue;
            }
            FileType::Directory => "a deeper directory than a store has",
            FileType::Symlink => "a symbolic link",
            _ => "neither a file nor a directory",
        };
        let why =
            format!("the store holds what snapback does not make: {} is {what}", show(&dir.join(&name)));
        return Err(Error::new(Kind::Denied, why).hint("do not use it, or remove that"));
    }
    Ok(())
}

/// Whether the store has the file `name`, or a directory of that name with files in it.
fn holds(dir: &Dir, name: &[u8]) -> Result<bool> {
    let Some(stat) = dir.stat(name)? else { return Ok(false) };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Ok(true);
    }
    let inside = dir.child(name)?;
    for name in inside.names()? {
        if holds(&inside, &name)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Removes the file `name`, or the files in the directory of that name.
fn clear(disk: &Disk, dir: &Dir, name: &[u8]) -> Result<()> {
    let Some(stat) = dir.stat(name)? else { return Ok(()) };
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return disk.unlink(dir, name);
    }
    let inside = dir.child(name)?;
    inside.names()?.iter().try_for_each(|file| disk.unlink(&inside, file))
}
