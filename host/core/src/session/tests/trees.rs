//! A project with real files, captured and put back by the tree itself, in a place that
//! can be kept and brought back as it was: for trying the same thing many times.

use super::world::Ticking;
use super::*;
use crate::backend::{Backend, Call, Part};
use crate::disk::{Counter, Hook};
use crate::store::birth;
use crate::testing::TempDir;
use crate::tree::{self, Directory, Options};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;
use std::sync::Mutex;

/// The tree backend without its component.
pub(super) struct Trees;

impl Backend for Trees {
    fn snapshot(&self, call: &Call, previous: &[Part]) -> Result<Vec<Part>> {
        let directory = Directory::open(&call.root, "path", ".", &Options::default())?;
        let content = tree::capture(&directory, call, previous.first().map(|part| &part.content))?;
        Ok(vec![Part { name: "tree".into(), content }])
    }

    fn restore(&self, call: &Call, parts: &[Part], current: &[Part]) -> Result<()> {
        let directory = Directory::open(&call.root, "path", ".", &Options::default())?;
        tree::restore(&directory, call, &parts[0].content, &current[0].content).map(drop)
    }
}

impl Backends for Trees {
    fn names(&self) -> Vec<String> {
        vec!["tree".into()]
    }

    fn settings(&self, _name: &str) -> Result<Vec<String>> {
        Ok(vec!["path".into()])
    }

    fn get(&self, _name: &str) -> Result<Arc<dyn Backend>> {
        Ok(Arc::new(Trees))
    }
}

/// Remembers what went wrong beside what was asked for.
#[derive(Default)]
pub(super) struct Troubles(Mutex<Vec<String>>);

impl Report for Troubles {
    fn troubled(&self, doing: &str, error: &Error) {
        self.0.lock().unwrap().push(format!("{doing}: {error}"));
    }
}

/// What a tree holds: kind, mode, content, and which names are one file.
pub(super) type State = BTreeMap<PathBuf, String>;

/// A project and its user's state, in one place.
pub(super) struct Ground {
    temp: TempDir,
    clock: Arc<Ticking>,
    troubles: Arc<Troubles>,
    pub user: User,
}

impl Ground {
    /// With an empty project.
    pub fn new() -> Self {
        let ground = Self {
            temp: TempDir::new(),
            clock: Arc::default(),
            troubles: Arc::default(),
            user: User::default(),
        };
        fs::create_dir_all(ground.project()).unwrap();
        ground
    }

    /// What is lost when the power goes: the project, its store, the user's state.
    pub fn place(&self) -> PathBuf {
        self.temp.path().join("place")
    }

    pub fn project(&self) -> PathBuf {
        self.place().join("project")
    }

    pub fn open(&self, disk: &Disk) -> Result<Project> {
        Project::open(Environment {
            root: self.project(),
            state: self.place().join("state"),
            home: None,
            user: self.user.clone(),
            disk: disk.clone(),
            clock: self.clock.clone(),
            backends: Arc::new(Trees),
            report: self.troubles.clone(),
            cancel: Cancel::default(),
            inside: None,
            pace: Default::default(),
            recent: Default::default(),
        })
    }

    pub fn reading(&self) -> Project {
        self.open(&Disk::default()).unwrap()
    }

    /// What went wrong since this was asked last.
    pub fn troubles(&self) -> Vec<String> {
        std::mem::take(&mut self.troubles.0.lock().unwrap())
    }

    /// Writes a file, with the directories above it.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) {
        let path = self.project().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    pub fn chmod(&self, path: &str, bits: u32) {
        fs::set_permissions(self.project().join(path), fs::Permissions::from_mode(bits)).unwrap();
    }

    pub fn remove(&self, path: &str) {
        let path = self.project().join(path);
        let is_dir = path.symlink_metadata().unwrap().is_dir();
        if is_dir { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    /// A bit of everything.
    pub fn sample(&self) {
        self.write("kept/same", "same");
        self.write("kept/edited", "one");
        self.write("kept/mode", "mode");
        self.write("gone/deep/file", "two");
        self.write("kind", "three");
        self.write("dir/inside", "four");
        self.write("long", vec![7; 150_000]);
        self.write("linked", "five");
        self.write("closed/file", "six");
        fs::hard_link(self.project().join("linked"), self.project().join("kept/link")).unwrap();
        symlink("one", self.project().join("symlink")).unwrap();
        self.chmod("closed", 0o555);
    }

    /// Changes of every kind.
    pub fn spoil(&self) {
        self.write("kept/edited", "changed");
        self.chmod("kept/mode", 0o600);
        ["gone", "kind", "dir", "linked", "symlink"].iter().for_each(|path| self.remove(path));
        self.write("kind/now/dir", "a directory");
        self.write("dir", "now a file");
        self.write("long", vec![8; 70_000]);
        self.write("linked", "on its own");
        self.write("added/deep/file", "added");
        self.chmod("closed", 0o755);
        self.write("closed/new", "new");
        self.chmod("closed", 0o500);
        symlink("two", self.project().join("symlink")).unwrap();
    }

    /// What the project holds now, its store aside.
    pub fn state(&self) -> State {
        let (mut state, mut first) = (State::new(), HashMap::new());
        look(&self.project(), Path::new(""), &mut state, &mut first);
        state
    }

    /// Keeps the place as it is now, to be brought back by `again`.
    pub fn keep(&self) {
        let _ = fs::remove_dir_all(self.temp.path().join("kept"));
        self.copy("place", "kept");
    }

    /// Makes the place as it was when it was kept.
    pub fn again(&self) {
        fs::remove_dir_all(self.place()).unwrap();
        self.copy("kept", "place");
    }

    /// Makes the place as `leave` leaves it in an empty directory.
    pub fn left(&self, leave: impl FnOnce(&Path)) {
        fs::remove_dir_all(self.place()).unwrap();
        fs::create_dir(self.place()).unwrap();
        leave(&self.place());
        // When the power goes a directory stays the one it was; here it is another.
        let store = self.project().join(STORE);
        if fs::remove_file(store.join("birth")).is_ok() {
            birth::mark(&Disk::default(), &Dir::open(&store).unwrap()).unwrap();
        }
    }

    fn copy(&self, from: &str, to: &str) {
        let mut cp = Command::new("cp");
        cp.current_dir(self.temp.path()).args(["-a", from, to]);
        assert!(cp.status().unwrap().success());
    }
}

fn look(dir: &Path, shown: &Path, state: &mut State, first: &mut HashMap<u64, PathBuf>) {
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    for name in names.iter().filter(|name| *name != STORE) {
        let (path, shown) = (dir.join(name), shown.join(name));
        let stat = path.symlink_metadata().unwrap();
        let kind = stat.file_type();
        let mode = stat.mode() & 0o7777;
        let what = if kind.is_dir() {
            format!("directory {mode:o}")
        } else if kind.is_symlink() {
            format!("link {:?}", fs::read_link(&path).unwrap())
        } else {
            let bytes = fs::read(&path).unwrap();
            let content = crate::object::Key::of(ObjectKind::Blob, &bytes);
            let same = first.entry(stat.ino()).or_insert_with(|| shown.clone());
            format!("file {mode:o} {} {content} as {}", bytes.len(), same.display())
        };
        state.insert(shown.clone(), what);
        if kind.is_dir() {
            look(&path, &shown, state, first);
        }
    }
}

/// Something that a command does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Deed {
    /// The first snapshot of all.
    First,
    /// `snap`, after edits.
    Snap,
    /// `run`, with a command that changes much.
    Run,
    /// `undo` of a run.
    Undo,
    /// `redo` of it.
    Redo,
    /// `restore` of the oldest snapshot.
    Restore,
    /// `snap` with a history that is too long by then.
    Retain,
    /// `gc` that keeps as little as it may.
    Gc,
    /// `forget` of the oldest snapshot.
    Forget,
}

impl Deed {
    pub const ALL: [Self; 9] = [
        Self::First,
        Self::Snap,
        Self::Run,
        Self::Undo,
        Self::Redo,
        Self::Restore,
        Self::Retain,
        Self::Gc,
        Self::Forget,
    ];

    /// A place in which it can be done.
    pub fn prepare(self) -> Ground {
        let mut ground = Ground::new();
        let disk = Disk::default().with_sync(false);
        ground.sample();
        for round in 0..if self == Self::First { 0 } else { 2 } {
            let id = take(&ground, &disk, SnapshotKind::Run).unwrap();
            match round {
                0 => ground.write("kept/edited", "changed before"),
                _ => ground.spoil(),
            }
            ground.open(&disk).unwrap().lock().unwrap().end_run(&id, 0).unwrap();
        }
        match self {
            Self::Redo => assert_eq!(Self::Undo.act(&ground, &disk).unwrap(), 0),
            Self::Snap | Self::Retain => {
                take(&ground, &disk, SnapshotKind::Manual).unwrap();
                ground.write("kept/edited", "by hand");
            }
            _ => {}
        }
        if self == Self::Retain {
            ground.user.retention.keep = 1;
        }
        ground.keep();
        ground
    }

    /// Does it.
    /// What could not be given back whole is counted.
    pub fn act(self, ground: &Ground, disk: &Disk) -> Result<usize> {
        let session = || ground.open(disk)?.lock();
        match self {
            Self::First | Self::Snap | Self::Retain => take(ground, disk, SnapshotKind::Manual).map(|_| 0),
            Self::Run => {
                let id = take(ground, disk, SnapshotKind::Run)?;
                let mark = session()?.begin_run(&id)?;
                ground.write("kept/edited", "by the run");
                ground.open(disk)?.lock()?.end_run(&id, 0)?;
                drop(mark);
                Ok(0)
            }
            Self::Undo => go(&session()?, &Ask::Undo),
            Self::Redo => go(&session()?, &Ask::Redo),
            Self::Restore => {
                let session = session()?;
                let oldest = session.ids()?.last().unwrap().clone();
                go(&session, &Ask::Restore(oldest))
            }
            Self::Gc => {
                let bounds = Bounds { keep: Some(0), ..Bounds::default() };
                ground.open(disk)?.lock_unrecovered()?.gc(&bounds).map(|_| 0)
            }
            Self::Forget => {
                let project = ground.open(disk)?;
                // Done already, where it is tried again.
                let Some(oldest) = project.ids()?.get(1).cloned() else {
                    return project.lock_unrecovered().map(|_| 0);
                };
                project.lock_unrecovered()?.forget(&oldest).map(|_| 0)
            }
        }
    }

    /// How many operations it takes.
    pub fn operations(self, ground: &Ground) -> u64 {
        let counter = Arc::new(Counter::default());
        self.act(ground, &Disk::default().with_hook(counter.clone() as Arc<dyn Hook>)).unwrap();
        counter.all()
    }
}

pub(super) fn take(ground: &Ground, disk: &Disk, kind: SnapshotKind) -> Result<Id> {
    let request =
        Request { kind, message: None, command: None, pinned: false, selection: Selection::default() };
    Ok(ground.open(disk)?.lock()?.take(request)?.snapshot.id)
}

/// What the command line does: a step that was cut short and is meant is the only one.
pub(super) fn go(session: &Session, ask: &Ask) -> Result<usize> {
    if let Some(finished) = session.finished().filter(|finished| ask.means(&finished.step, false)) {
        return Ok(finished.not_restored.len());
    }
    Ok(session.execute(session.plan(ask, &[], &[])?, false)?.not_restored.len())
}
