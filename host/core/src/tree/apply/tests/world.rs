//! A project on the disk with a store beside it, for tests: recorded by a capture that
//! is as simple as can be, so that nothing is shared with what is tested.

use crate::backend::Cancel;
use crate::disk::{Dir, Disk, Hook};
use crate::error::Result;
use crate::object::{Key, ObjectKind};
use crate::report::Silent;
use crate::store::{Lane, Source, Store, content};
use crate::tree::apply::{Options, Outcome, Request, run};
use crate::tree::compare::Only;
use crate::tree::node::{Entry, EntryTime, Node, Time, decode_tree, encode_times, encode_tree};
use crate::tree::plan::Plan;
use crate::tree::root::Root;
use crate::tree::sample::Objects;
use std::collections::{BTreeMap, HashMap};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A project and its store; both go when it is dropped.
pub struct World {
    /// What both lie in.
    pub base: PathBuf,
    /// The project.
    pub tree: PathBuf,
    /// The store.
    pub store: Arc<Store>,
    /// How a restore is done.
    pub options: Options,
    directory: Dir,
    only: Only,
    disk: Disk,
    cancel: Cancel,
}

impl Drop for World {
    fn drop(&mut self) {
        open_up(&self.base);
        let _ = std::fs::remove_dir_all(&self.base);
    }
}

/// Makes everything removable.
fn open_up(path: &Path) {
    if path.symlink_metadata().is_ok_and(|m| m.is_dir()) {
        let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700));
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            open_up(&entry.path());
        }
    }
}

impl World {
    /// A new one, called `name`.
    pub fn new(name: &str) -> Self {
        Self::at(&std::env::temp_dir(), &std::env::temp_dir(), name)
    }

    /// One whose store lies behind `disk`.
    pub fn with(disk: Disk, name: &str) -> Self {
        Self::make(&std::env::temp_dir(), &std::env::temp_dir(), disk, name)
    }

    /// One with the project and the store in different places.
    pub fn at(tree: &Path, store: &Path, name: &str) -> Self {
        Self::make(tree, store, Disk::default().with_sync(false), name)
    }

    fn make(tree: &Path, store: &Path, disk: Disk, name: &str) -> Self {
        let name = format!("snapback-restore-{}-{name}", std::process::id());
        let base = tree.join(&name);
        open_up(&base);
        let _ = std::fs::remove_dir_all(&base);
        std::fs::create_dir(&base).unwrap();
        std::fs::create_dir(base.join("tree")).unwrap();
        let store = if tree == store { base.join("store") } else { store.join(name + "-store") };
        let _ = std::fs::remove_dir_all(&store);
        let store = Store::create(&store, disk).unwrap();
        Self {
            directory: Dir::open(&base.join("tree")).unwrap(),
            tree: base.join("tree"),
            base,
            store,
            options: Options::default(),
            only: Only::all(),
            disk: Disk::default().with_sync(false),
            cancel: Cancel::default(),
        }
    }

    /// The path of `path` in the project.
    pub fn path(&self, path: &str) -> PathBuf {
        self.tree.join(path)
    }

    /// Writes a file, with the directories above it.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    /// The bytes of a file.
    pub fn read(&self, path: &str) -> Vec<u8> {
        std::fs::read(self.path(path)).unwrap()
    }

    /// What stops a restore.
    pub fn cancel(&self) -> Cancel {
        self.cancel.clone()
    }

    /// Sets a mode.
    pub fn chmod(&self, path: &str, mode: u32) {
        std::fs::set_permissions(self.path(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// Makes the modification time `sec`.
    pub fn touch(&self, path: &str, sec: i64) {
        set_time(&self.path(path), sec);
    }

    /// Records the project as it is.
    pub fn record(&self) -> Root {
        let writer = self.store.writer().unwrap();
        let mut record = Record { lane: writer.lane(), links: HashMap::new() };
        record.find_links(&self.tree, Path::new(""));
        let top = self.tree.symlink_metadata().unwrap();
        let (tree, times) = record.dir(&self.tree);
        let mut entry = entry_of(&self.tree, &top, Node::Dir(tree));
        entry.name = Vec::new();
        let Record { lane, .. } = record;
        lane.flush().unwrap();
        writer.seal().unwrap();
        Root {
            setting: "path".into(),
            value: ".".into(),
            options: vec![],
            top: entry,
            mtime: time_of(&top),
            times,
            left_out: vec![],
            ignored: vec![],
            ignored_stamps: vec![],
            files: 0,
            bytes: 0,
            git: None,
        }
    }

    /// Restores everything.
    pub fn restore(&self, stored: &Root, current: &Root) -> Result<Outcome> {
        self.restore_with(stored, current, &[], None)
    }

    /// Restores `only`; `hook` sees what is done.
    pub fn restore_with(
        &self,
        stored: &Root,
        current: &Root,
        only: &[&str],
        hook: Option<Arc<dyn Hook>>,
    ) -> Result<Outcome> {
        let disk = Disk::default().with_sync(false);
        let disk = match hook {
            Some(hook) => disk.with_hook(hook),
            None => disk,
        };
        let only = Only::new(&only.iter().map(|p| p.as_bytes().to_vec()).collect::<Vec<_>>())?;
        let directory = Dir::open(&self.tree)?;
        run(&Request { directory: &directory, only: &only, disk: &disk, ..self.request(stored, current)? })
    }

    /// Restores everything, as `options` say.
    pub fn restore_as(&self, stored: &Root, current: &Root, options: Options) -> Result<Outcome> {
        run(&Request { options, ..self.request(stored, current)? })
    }

    /// Restores everything from objects that are not in the store.
    pub fn restore_from(&self, source: &dyn Source, stored: &Root, current: &Root) -> Result<Outcome> {
        run(&Request { source, ..self.request(stored, current)? })
    }

    /// What user `uid` would be told before a restore.
    pub fn plan_as(&self, uid: u32, stored: &Root, current: &Root) -> Plan {
        // The store is closed to others: what is needed of it is taken out before.
        let objects = Objects::default();
        objects.copy(&*self.store, stored);
        objects.copy(&*self.store, current);
        let request = Request { source: &objects, ..self.request(stored, current).unwrap() };
        // Only this thread becomes that user.
        std::thread::scope(|scope| {
            let planned = scope.spawn(|| {
                let (uid, gid) = (rustix::thread::Uid::from_raw(uid), rustix::thread::Gid::from_raw(uid));
                rustix::thread::set_thread_groups(&[]).unwrap();
                rustix::thread::set_thread_res_gid(gid, gid, gid).unwrap();
                rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
                Plan::make(&request).unwrap()
            });
            planned.join().unwrap()
        })
    }

    /// Makes the file at `name` in the top of `root` one of root's.
    pub fn owned_by_root(&self, root: &mut Root, name: &[u8]) {
        let Node::Dir(tree) = root.top.node else { return };
        let mut entries = decode_tree(&self.store.read(&tree).unwrap()).unwrap();
        for entry in entries.iter_mut().filter(|entry| entry.name == name) {
            (entry.uid, entry.gid) = (0, 0);
        }
        let writer = self.store.writer().unwrap();
        let mut lane = writer.lane();
        root.top.node = Node::Dir(lane.put(ObjectKind::Tree, &encode_tree(&entries)).unwrap());
        lane.flush().unwrap();
        writer.seal().unwrap();
    }

    fn request<'a>(&'a self, stored: &'a Root, current: &'a Root) -> Result<Request<'a>> {
        Ok(Request {
            directory: &self.directory,
            stored,
            current,
            carried: &[],
            only: &self.only,
            source: &*self.store,
            store: &self.store,
            disk: &self.disk,
            target: "tree",
            witness: None,
            options: self.options,
            cancel: &self.cancel,
            report: &Silent,
        })
    }

    /// Everything in the project, for comparison: what each path is.
    pub fn state(&self) -> State {
        let mut state = State::default();
        look(&self.tree, Path::new(""), &mut state);
        state
    }

    /// What a restore left in the store besides objects.
    pub fn leftovers(&self) -> Vec<String> {
        let mut all = Vec::new();
        for dir in ["aside", "saved"] {
            let mut found = State::default();
            look(&self.store.path().join(dir), Path::new(dir), &mut found);
            all.extend(
                found
                    .0
                    .iter()
                    .filter(|(_, it)| !it.what.starts_with("dir"))
                    .map(|(path, it)| format!("{} {}", String::from_utf8_lossy(path), it.what)),
            );
        }
        all
    }
}

/// Sets when `path` (not followed) was last modified.
pub fn set_time(path: &Path, sec: i64) {
    let time = rustix::fs::Timespec { tv_sec: sec, tv_nsec: 123_456_789 };
    let times = rustix::fs::Timestamps { last_access: time, last_modification: time };
    rustix::fs::utimensat(rustix::fs::CWD, path, &times, rustix::fs::AtFlags::SYMLINK_NOFOLLOW).unwrap();
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct It {
    /// Kind, attributes, content.
    pub what: String,
    /// Modification time.
    pub mtime: (i64, i64),
    /// Inode number.
    pub ino: u64,
}

/// All paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct State(pub BTreeMap<Vec<u8>, It>);

impl State {
    /// What each path is, times and inodes aside.
    pub fn what(&self) -> BTreeMap<Vec<u8>, String> {
        self.0.iter().map(|(path, it)| (path.clone(), it.what.clone())).collect()
    }

    /// One path.
    pub fn at(&self, path: &str) -> &It {
        self.0.get(path.as_bytes()).unwrap_or_else(|| panic!("{path} is not there: {:?}", self.what()))
    }

    /// Fails unless everything is as in `other`, where regular files in `written` may
    /// have another time and inode.
    pub fn assert_is(&self, other: &Self, written: &[&str]) {
        assert_eq!(self.what(), other.what());
        for (path, it) in &self.0 {
            let before = &other.0[path];
            if !(it.what.starts_with("file") && written.iter().any(|w| w.as_bytes() == path)) {
                let path = String::from_utf8_lossy(path);
                assert_eq!(it.mtime, before.mtime, "time of {path}");
            }
        }
    }
}

fn look(path: &Path, shown: &Path, state: &mut State) {
    let Ok(stat) = path.symlink_metadata() else { return };
    let kind = stat.file_type();
    let is_file = kind.is_file();
    let what = if kind.is_dir() {
        "dir".to_owned()
    } else if is_file {
        let bytes = std::fs::read(path).unwrap_or_default();
        let key = Key::of(ObjectKind::Blob, &bytes);
        let text =
            if bytes.len() < 40 { String::from_utf8_lossy(&bytes).into_owned() } else { key.to_string() };
        format!("file {} {text}", stat.len())
    } else if kind.is_symlink() {
        format!("link {:?}", std::fs::read_link(path).unwrap())
    } else if kind.is_fifo() {
        "fifo".to_owned()
    } else if kind.is_socket() {
        "socket".to_owned()
    } else {
        format!("device {:x} {}", stat.rdev(), kind.is_char_device())
    };
    let mut text = vec![0; 4096];
    let mut xattrs = Vec::new();
    let n = rustix::fs::llistxattr(path, &mut text[..]).unwrap_or(0);
    for name in text[..n].split(|&b| b == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 4096];
        let n = rustix::fs::lgetxattr(path, name, &mut value[..]).unwrap_or(0);
        xattrs.push(format!("{}={:?}", String::from_utf8_lossy(name), &value[..n]));
    }
    xattrs.sort();
    let nlink = if kind.is_dir() { 0 } else { stat.nlink() };
    let mode = stat.mode() & 0o7777;
    let what = format!("{what} {mode:o} {}:{} x{nlink} {xattrs:?}", stat.uid(), stat.gid());
    let key = shown.as_os_str().as_bytes().to_vec();
    state.0.insert(key, It { what, mtime: (stat.mtime(), stat.mtime_nsec()), ino: stat.ino() });
    if kind.is_dir() {
        for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
            let name = entry.file_name();
            look(&entry.path(), &shown.join(name), state);
        }
    }
}

fn time_of(stat: &std::fs::Metadata) -> Time {
    Time { sec: stat.mtime(), nsec: u32::try_from(stat.mtime_nsec()).unwrap() }
}

fn entry_of(path: &Path, stat: &std::fs::Metadata, node: Node) -> Entry {
    let mut xattrs = Vec::new();
    let mut text = vec![0; 4096];
    let n = rustix::fs::llistxattr(path, &mut text[..]).unwrap_or(0);
    for name in text[..n].split(|&b| b == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; 4096];
        if let Ok(n) = rustix::fs::lgetxattr(path, name, &mut value[..]) {
            xattrs.push((name.to_vec(), value[..n].to_vec()));
        }
    }
    xattrs.sort();
    let name = path.file_name().unwrap().as_bytes().to_vec();
    Entry { name, mode: stat.mode() & 0o7777, uid: stat.uid(), gid: stat.gid(), xattrs, link: None, node }
}

struct Record<'a> {
    lane: Lane<'a>,
    links: HashMap<u64, (u64, u64)>,
}

impl Record<'_> {
    /// Groups of hard links: inode to number and count.
    fn find_links(&mut self, path: &Path, shown: &Path) {
        let mut names: Vec<_> = std::fs::read_dir(path).into_iter().flatten().flatten().collect();
        names.sort_by_key(std::fs::DirEntry::file_name);
        for entry in names {
            let stat = entry.path().symlink_metadata().unwrap();
            let shown = shown.join(entry.file_name());
            if stat.is_dir() {
                self.find_links(&entry.path(), &shown);
            } else {
                let hash = Key::of(ObjectKind::Blob, shown.as_os_str().as_bytes());
                let number = u64::from_le_bytes(hash.hash()[..8].try_into().unwrap());
                self.links.entry(stat.ino()).or_insert((number, 0)).1 += 1;
            }
        }
    }

    fn dir(&mut self, path: &Path) -> (Key, Key) {
        let mut names: Vec<_> = std::fs::read_dir(path).unwrap().flatten().collect();
        names.sort_by_key(std::fs::DirEntry::file_name);
        let (mut entries, mut times) = (Vec::new(), Vec::new());
        for name in names {
            let path = name.path();
            let stat = path.symlink_metadata().unwrap();
            let kind = stat.file_type();
            let mut inside = None;
            let (major, minor) = (rustix::fs::major(stat.rdev()), rustix::fs::minor(stat.rdev()));
            let node = if kind.is_dir() {
                let (tree, times) = self.dir(&path);
                inside = Some(times);
                Node::Dir(tree)
            } else if kind.is_symlink() {
                Node::Symlink(std::fs::read_link(&path).unwrap().as_os_str().as_bytes().to_vec())
            } else if kind.is_fifo() {
                Node::Fifo
            } else if kind.is_socket() {
                Node::Socket
            } else if kind.is_char_device() {
                Node::CharDevice(major, minor)
            } else if kind.is_block_device() {
                Node::BlockDevice(major, minor)
            } else {
                let file = std::fs::File::open(&path).unwrap();
                let sparse = stat.blocks() * 512 < stat.len();
                let cancel = Cancel::default();
                let (content, size) =
                    content::store_file(&mut self.lane, &file, stat.len(), sparse, &cancel).unwrap();
                Node::File { content, size, sparse }
            };
            let mut entry = entry_of(&path, &stat, node);
            if !kind.is_dir() {
                let (number, count) = self.links[&stat.ino()];
                entry.link = (count > 1).then_some(number);
            }
            entries.push(entry);
            times.push(EntryTime { mtime: time_of(&stat), inside });
        }
        let tree = self.lane.put(ObjectKind::Tree, &encode_tree(&entries)).unwrap();
        let times = self.lane.put(ObjectKind::Times, &encode_times(&times)).unwrap();
        (tree, times)
    }
}
