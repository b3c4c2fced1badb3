//! Storing what no capture makes: a project beside a victim, and objects of any form.

use super::super::*;
use super::trees::Trees;
use super::world::Ticking;
use crate::backend::Part;
use crate::history::SnapshotKind;
use crate::history::snapshot::Captured;
use crate::object::{Key, ObjectKind};
use crate::report::Silent;
use crate::store::Lane;
use crate::testing::TempDir;
use crate::tree::node::{Entry, EntryTime, Node, Time, encode_times, encode_tree};
use crate::tree::root::Root;
use std::os::unix::fs::MetadataExt;

/// A project beside a victim.
pub(super) struct World {
    pub temp: TempDir,
    clock: Arc<Ticking>,
}

impl World {
    pub fn new() -> Self {
        let temp = TempDir::new();
        for dir in ["project", "victim"] {
            fs::create_dir(temp.path().join(dir)).unwrap();
            fs::write(temp.path().join(dir).join("f"), dir).unwrap();
        }
        Self { temp, clock: Arc::default() }
    }

    pub fn project(&self) -> PathBuf {
        self.temp.path().join("project")
    }

    pub fn open(&self) -> Project {
        Project::open(Environment {
            root: self.project(),
            state: self.temp.path().join("state"),
            home: None,
            user: User { sync: false, ..User::default() },
            disk: Disk::default().with_sync(false),
            clock: self.clock.clone(),
            backends: Arc::new(Trees),
            report: Arc::new(Silent),
            cancel: Cancel::default(),
            inside: None,
            pace: Default::default(),
            recent: Default::default(),
        })
        .unwrap()
    }

    /// Adds a snapshot of what `make` stores.
    pub fn forge(&self, make: impl FnOnce(&mut Lane<'_>) -> Root) -> Id {
        let session = self.open().lock().unwrap();
        let writer = session.writer().unwrap();
        let mut lane = writer.lane();
        let root = make(&mut lane).encode();
        let content = lane.put(ObjectKind::Root, &root).unwrap();
        lane.publish().unwrap();
        let target = Target { name: "tree".into(), backend: "tree".into(), settings: Default::default() };
        let parts = vec![Part { name: "tree".into(), content }];
        let (omitted, left_out) = (Vec::new(), Vec::new());
        let captured = Captured {
            target,
            parts,
            omitted,
            bytes: u64::MAX,
            files: u64::MAX,
            left_out,
            releases: false,
            through: None,
            carried: Vec::new(),
        };
        let record = session.record(SnapshotKind::Manual, vec![captured]);
        session.commit(Snapshot { bytes_added: u64::MAX, ..record }, &writer).unwrap().id
    }

    pub fn restore(&self, id: &Id) -> Result<Outcome> {
        let session = self.open().lock()?;
        let plan = session.plan(&Ask::Restore(id.clone()), &[], &[])?;
        session.execute(plan, true)
    }

    /// All that lies outside the project and its store.
    pub fn outside(&self) -> Vec<(PathBuf, u32, Vec<u8>)> {
        let mut found = Vec::new();
        let mut next = vec![self.temp.path().to_owned()];
        while let Some(dir) = next.pop() {
            for entry in fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap()) {
                let meta = entry.path().symlink_metadata().unwrap();
                if entry.file_name() == "project" || entry.file_name() == "state" {
                    continue;
                }
                if meta.is_dir() {
                    next.push(entry.path());
                }
                let bytes = if meta.is_file() { fs::read(entry.path()).unwrap() } else { Vec::new() };
                found.push((entry.path(), meta.mode(), bytes));
            }
        }
        found.sort();
        found
    }

    /// Restores what was forged, and looks that nothing happened outside.
    pub fn attack(&self, make: impl FnOnce(&mut Lane<'_>) -> Root) -> Result<Outcome> {
        let before = self.outside();
        let id = self.forge(make);
        let outcome = self.restore(&id);
        assert_eq!(self.outside(), before, "nothing outside the project");
        let project = self.open();
        project.list().unwrap();
        project.verify().unwrap();
        if let Err(error) = &outcome {
            assert!(!error.message().is_empty(), "{error:?}");
        }
        outcome
    }
}

pub(super) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

pub(super) fn entry(name: &[u8], mode: u32, node: Node) -> Entry {
    let (uid, gid) = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
    Entry { name: name.to_vec(), mode, uid, gid, xattrs: vec![], link: None, node }
}

pub(super) fn file(lane: &mut Lane<'_>, name: &[u8], bytes: &[u8]) -> Entry {
    let content = lane.put(ObjectKind::Blob, bytes).unwrap();
    entry(name, 0o644, Node::File { content, size: bytes.len() as u64, sparse: false })
}

/// A directory and its times, as they are, in whatever order.
pub(super) fn dir(lane: &mut Lane<'_>, entries: &[(Entry, Option<Key>)]) -> (Key, Key) {
    let time =
        |(_, inside): &(Entry, Option<Key>)| EntryTime { mtime: Time { sec: 1, nsec: 0 }, inside: *inside };
    let times = lane.put(ObjectKind::Times, &encode_times(&entries.iter().map(time).collect::<Vec<_>>()));
    let entries: Vec<Entry> = entries.iter().map(|(entry, _)| entry.clone()).collect();
    (lane.put(ObjectKind::Tree, &encode_tree(&entries)).unwrap(), times.unwrap())
}

pub(super) fn top((tree, times): (Key, Key)) -> Root {
    Root {
        setting: "path".into(),
        value: ".".into(),
        options: vec![],
        top: entry(b"", 0o755, Node::Dir(tree)),
        mtime: Time::default(),
        times,
        left_out: vec![],
        ignored_stamps: vec![],
        ignored: vec![("*".into(), u64::MAX), ("x".into(), u64::MAX)],
        files: u64::MAX,
        bytes: u64::MAX,
        git: None,
    }
}

/// A root over plain entries.
pub(super) fn flat(lane: &mut Lane<'_>, entries: impl IntoIterator<Item = Entry>) -> Root {
    let entries: Vec<_> = entries.into_iter().map(|entry| (entry, None)).collect();
    top(dir(lane, &entries))
}
