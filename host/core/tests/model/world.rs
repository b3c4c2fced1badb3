//! What is tested: a real project with its store, its twin and its sessions, opened anew
//! for every operation as a command opens it.

use crate::act::Actor;
use crate::backend::OnlyTree;
use crate::history::{Number, Way};
use crate::look::{Look, look};
use crate::state::{Op, State};
use crate::tree::Path;
use jiff::{SignedDuration, Timestamp};
use snapback_core::backend::Cancel;
use snapback_core::disk::Disk;
use snapback_core::history::clock::Clock;
use snapback_core::history::{Id, SnapshotKind};
use snapback_core::project::STORE;
use snapback_core::project::user::User;
use snapback_core::report::Silent;
use snapback_core::session::{
    Ask, Bounds, Environment, Outcome, Plan, Project, Request, Running, Selection, Session,
};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Each look at it is a second later, each random number the next.
#[derive(Default)]
struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds as i64)
    }

    fn random(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// A project on the disk; all of it goes when it is dropped.
pub struct World {
    base: PathBuf,
    pub actor: Actor,
    env: Environment,
    /// The name of each snapshot, by the order in which they were taken.
    pub ids: BTreeMap<Number, Id>,
    /// The project as it was when each was taken, for its times.
    pub looks: BTreeMap<Number, Arc<Look>>,
    running: Vec<(Id, Running)>,
}

impl World {
    /// An empty project of which `keep` snapshots are kept.
    pub fn new(keep: usize) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let n = NEXT.fetch_add(1, Ordering::Relaxed);
        let base = std::env::temp_dir().join(format!("snapback-model-{}-{n}", std::process::id()));
        let root = base.join("project");
        fs::create_dir_all(&root).unwrap();
        let root = root.canonicalize().unwrap();
        fs::set_permissions(&root, Permissions::from_mode(0o755)).unwrap();
        let mut user = User::default();
        user.retention.keep = keep;
        (user.retention.max_size, user.retention.min_free) = (Some(u64::MAX), Some(0));
        let env = Environment {
            root: root.clone(),
            state: base.join("state"),
            home: None,
            user,
            disk: Disk::default().with_sync(false),
            clock: Arc::new(Ticking::default()),
            backends: Arc::new(OnlyTree),
            report: Arc::new(Silent),
            cancel: Cancel::default(),
            inside: None,
            pace: Default::default(),
            recent: Default::default(),
        };
        let actor = Actor { root, is_root: rustix::process::geteuid().is_root() };
        Self { base, actor, env, ids: BTreeMap::new(), looks: BTreeMap::new(), running: Vec::new() }
    }

    /// The project as a command opens it.
    pub fn open(&self) -> Project {
        let inside = self.running.last().map(|(id, _)| id.to_string());
        Project::open(Environment { inside, ..self.env.clone() }).unwrap()
    }

    /// The store's directory.
    pub fn store(&self) -> PathBuf {
        self.actor.root.join(STORE)
    }

    /// All that is in the project but its store.
    pub fn look(&self) -> Look {
        look(&self.actor.root, STORE)
    }

    fn lock(&self) -> Session {
        self.open().lock().unwrap()
    }

    fn take(&self, session: &Session, kind: SnapshotKind, named: bool, pinned: bool) -> Id {
        let message = named.then(|| "named".to_owned());
        let request = Request { kind, message, command: None, pinned, selection: Selection::default() };
        session.take(request).unwrap().snapshot.id
    }

    /// The plan for where `op` goes.
    pub fn plan(&self, session: &Session, op: &Op, way: &Way, paths: &[Path]) -> Plan {
        let ask = match op {
            Op::Undo | Op::UndoPaths(_) => Ask::Undo,
            Op::Redo => Ask::Redo,
            Op::OneBack => Ask::UndoStep,
            _ => Ask::Restore(self.ids[&way.to].clone()),
        };
        session.plan(&ask, &[], paths).unwrap()
    }

    /// Does what `op` says, which `before` says is possible, to what is not a file in the
    /// tree. `check` is shown what is planned before it is done.
    pub fn command(&mut self, op: &Op, before: &State, check: impl FnOnce(&Self, &Plan)) -> Option<Outcome> {
        if let Some((way, _, paths)) = before.way(op) {
            let session = self.lock();
            let plan = self.plan(&session, op, &way, paths);
            check(self, &plan);
            return Some(session.execute(plan, false).unwrap());
        }
        match op {
            Op::Begin => {
                let session = self.lock();
                let id = self.take(&session, SnapshotKind::Run, false, false);
                let mark = session.begin_run(&id).unwrap();
                self.running.push((id, mark));
            }
            Op::End => {
                let (id, mark) = self.running.pop().expect("a run goes on");
                self.lock().end_run(&id, 0).unwrap();
                drop(mark);
            }
            Op::Kill => drop(self.running.pop().expect("a run goes on")),
            Op::Snap { named, pinned } => {
                drop(self.take(&self.lock(), SnapshotKind::Manual, *named, *pinned))
            }
            Op::Gc(keep) => {
                let bounds = Bounds { keep: Some(*keep), ..Bounds::default() };
                let freed = self.lock().gc(&bounds).unwrap();
                assert!(freed.problems.is_empty(), "{:?}", freed.problems);
            }
            Op::Forget(back) => {
                let number = before.history.back(*back).expect("there is one");
                let freed = self.lock().forget(&self.ids[&number]).unwrap();
                assert!(freed.problems.is_empty(), "{:?}", freed.problems);
            }
            // It may be gone already.
            Op::LoseStore => drop(fs::remove_dir_all(self.store())),
            Op::LoseCaches => {
                let _ = fs::remove_dir_all(self.store().join("cache"));
                let _ = fs::remove_file(self.store().join("index"));
            }
            other => panic!("{other:?} is no command"),
        }
        None
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if !self.actor.is_root {
            let mut todo = vec![self.actor.root.clone()];
            while let Some(dir) = todo.pop() {
                let _ = fs::set_permissions(&dir, Permissions::from_mode(0o700));
                let inner = fs::read_dir(&dir).into_iter().flatten().flatten();
                todo.extend(
                    inner.filter(|e| e.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()),
                );
            }
        }
        let _ = fs::remove_dir_all(&self.base);
    }
}
