//! Captures of real directories into real stores.

mod content;
mod databases;
mod git;
mod kinds;
mod model;
mod races;
mod selection;
mod sharing;
mod unchanged;

use super::{Counts, capture_counted};
use crate::backend::{Call, Cancel, Part, Target};
use crate::disk::Disk;
use crate::error::Result;
use crate::object::Key;
use crate::report::Report;
use crate::store::{Store, Writer};
use crate::testing::TempDir;
use crate::tree::node::{Entry, EntryTime, Node, decode_times, decode_tree};
use crate::tree::root::{Root, Why};
use crate::tree::{Directory, Options};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// A project, its store beside it, and the last snapshot.
pub struct World {
    temp: TempDir,
    pub store: Arc<Store>,
    pub options: Vec<(&'static str, String)>,
    pub own: Vec<(u64, u64)>,
    pub previous: Option<Key>,
    pub cover: Vec<Part>,
    pub elsewhere: Vec<crate::backend::Elsewhere>,
    pub cancel: Cancel,
}

/// What a capture came to.
#[derive(Debug)]
pub struct Taken {
    pub key: Key,
    pub root: Root,
    pub counts: Counts,
    /// Bytes that the store grew by.
    pub added: u64,
    pub entries: BTreeMap<String, (Entry, EntryTime)>,
    pub omitted: Vec<(String, String)>,
    pub warned: Vec<String>,
}

#[derive(Default)]
struct Told {
    omitted: Mutex<Vec<(String, String)>>,
    warned: Mutex<Vec<String>>,
}

impl Report for Told {
    fn omitted(&self, _: &str, subject: &[u8], reason: &str) {
        let subject = String::from_utf8_lossy(subject).into_owned();
        self.omitted.lock().unwrap().push((subject, reason.to_owned()));
    }

    fn log(&self, _: &str, level: &str, message: &str) {
        assert_eq!(level, "warn");
        self.warned.lock().unwrap().push(message.to_owned());
    }
}

impl World {
    pub fn new() -> Self {
        Self::with(Disk::default())
    }

    pub fn with(disk: Disk) -> Self {
        let temp = TempDir::new();
        std::fs::create_dir(temp.path().join("p")).unwrap();
        let store = Store::create(&temp.path().join("store"), disk).unwrap();
        let cancel = Cancel::default();
        Self {
            temp,
            store,
            options: Vec::new(),
            own: Vec::new(),
            previous: None,
            cover: Vec::new(),
            elsewhere: Vec::new(),
            cancel,
        }
    }

    /// A path in the project.
    pub fn path(&self, path: &str) -> PathBuf {
        self.temp.path().join("p").join(path)
    }

    /// Writes a file, and the directories that it lies in.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    pub fn mkdir(&self, path: &str) {
        std::fs::create_dir_all(self.path(path)).unwrap();
    }

    pub fn directory(&self) -> Directory {
        let own = self.own.clone().into();
        let options = Options { own, ..Options::parse(&self.options).unwrap() };
        Directory::open(self.temp.path(), "path", "p", &options).unwrap()
    }

    /// Captures and commits.
    pub fn capture(&mut self) -> Taken {
        let taken = self.try_capture(true).unwrap();
        self.previous = Some(taken.key);
        taken
    }

    /// Captures and commits a tree that is too deep to be taken apart here.
    pub fn try_capture_root(&self) -> Result<Root> {
        let writer = Arc::new(self.store.writer().unwrap());
        let call = self.call(&writer, Arc::new(crate::report::Silent));
        let (key, _) = capture_counted(&self.directory(), &call, self.previous.as_ref())?;
        writer.seal().unwrap();
        Root::decode(&self.store.read(&key).unwrap())
    }

    fn call(&self, writer: &Arc<Writer>, report: Arc<dyn Report>) -> Call {
        let target = Target { name: "tree".into(), backend: "tree".into(), settings: BTreeMap::new() };
        Call {
            writer: Some(writer.clone()),
            cover: Arc::new(self.cover.clone()),
            elsewhere: Arc::new(self.elsewhere.clone()),
            cancel: self.cancel.clone(),
            ..Call::about(self.temp.path().to_owned(), target, Some(self.store.clone()), report)
        }
    }

    /// Captures; without `commit`, what was stored is thrown away, as by a crash.
    pub fn try_capture(&self, commit: bool) -> Result<Taken> {
        let writer = Arc::new(self.store.writer().unwrap());
        let report = Arc::new(Told::default());
        let call = self.call(&writer, report.clone());
        let (key, counts) = capture_counted(&self.directory(), &call, self.previous.as_ref())?;
        let added = if commit { writer.seal().unwrap() } else { 0 };
        let root = Root::decode(&writer.read(&key).unwrap()).unwrap();
        let mut entries = BTreeMap::new();
        let Node::Dir(tree) = root.top.node else { panic!("{root:?}") };
        let read = |key: &Key| writer.read(key).unwrap();
        flatten(&read, &tree, &root.times, "", &mut entries);
        let omitted = report.omitted.lock().unwrap().clone();
        let warned = report.warned.lock().unwrap().clone();
        Ok(Taken { key, root, counts, added, entries, omitted, warned })
    }

    /// Waits until nothing that exists now is racy.
    pub fn settle(&self) {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn flatten(
    read: &dyn Fn(&Key) -> Vec<u8>,
    tree: &Key,
    times: &Key,
    at: &str,
    out: &mut BTreeMap<String, (Entry, EntryTime)>,
) {
    let (entries, times) = (decode_tree(&read(tree)).unwrap(), decode_times(&read(times)).unwrap());
    assert_eq!(entries.len(), times.len());
    for (entry, time) in entries.into_iter().zip(times) {
        let name = entry.name.escape_ascii().to_string();
        let path = if at.is_empty() { name } else { format!("{at}/{name}") };
        if let Node::Dir(tree) = entry.node {
            flatten(read, &tree, &time.inside.unwrap(), &path, out);
        }
        out.insert(path, (entry, time));
    }
}

impl Taken {
    pub fn paths(&self) -> Vec<&str> {
        self.entries.keys().map(String::as_str).collect()
    }

    pub fn entry(&self, path: &str) -> &Entry {
        &self.entries.get(path).unwrap_or_else(|| panic!("{path} is in {:?}", self.paths())).0
    }

    pub fn content(&self, path: &str) -> Key {
        match self.entry(path).node {
            Node::File { content, .. } => content,
            ref other => panic!("{path} is {other:?}"),
        }
    }

    /// What was left out: path, why, detail.
    pub fn left_out(&self) -> Vec<(String, Why, &str)> {
        let all = self.root.left_out.iter();
        all.map(|l| (l.path.escape_ascii().to_string(), l.why, l.detail.as_str())).collect()
    }
}

/// Runs `f` as another user, where this one may do that; the project and the store become
/// that user's.
pub fn as_nobody<T: Send>(world: &World, f: impl FnOnce() -> T + Send) -> T {
    crate::testing::give_to_nobody(world.temp.path());
    crate::testing::as_nobody(f)
}
