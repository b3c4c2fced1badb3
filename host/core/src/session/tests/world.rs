//! A project with a fake backend whose state is a text in memory.

use super::*;
use crate::backend::{Backend, Call, Part, Target};
use crate::report::Silent;
use crate::testing::TempDir;
use jiff::{SignedDuration, Timestamp};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// State in memory; fails to restore when told to.
#[derive(Default)]
pub(super) struct Fake {
    pub state: Mutex<String>,
    pub fail: Mutex<u32>,
    restores: AtomicU64,
    /// So many restores find that somebody wrote this meanwhile.
    pub meanwhile: Mutex<Vec<String>>,
    /// Whether a restore finds it in use.
    pub busy: Mutex<bool>,
    /// So many restores are asked to stop in their middle.
    pub stops: Mutex<u32>,
    /// What a restore leaves to be told when all is done.
    pub stays: Mutex<Option<String>>,
    /// Whether the last capture was to be held.
    pub held: Mutex<bool>,
}

impl Backend for Fake {
    fn snapshot(&self, call: &Call, _previous: &[Part]) -> Result<Vec<Part>> {
        *self.held.lock().unwrap() = call.hold.is_some();
        let writer = call.writer.as_ref().unwrap();
        let mut lane = writer.lane();
        let content = lane.put(ObjectKind::Blob, self.state.lock().unwrap().as_bytes())?;
        lane.flush()?;
        Ok(vec![Part { name: "text".into(), content }])
    }

    fn restore(&self, call: &Call, parts: &[Part], _current: &[Part]) -> Result<()> {
        self.restores.fetch_add(1, Ordering::Relaxed);
        call.cancel.check()?;
        if let Some(why) = &*self.stays.lock().unwrap() {
            call.report.stays(&call.target.name, why);
        }
        let mut stops = self.stops.lock().unwrap();
        if *stops > 0 {
            *stops -= 1;
            *self.state.lock().unwrap() = "half".into();
            call.cancel.cancel();
            return call.cancel.check();
        }
        if *self.busy.lock().unwrap() {
            return Err(Error::new(Kind::Busy, "it is in use"));
        }
        if let Some(text) = self.meanwhile.lock().unwrap().pop() {
            *self.state.lock().unwrap() = text;
            return Err(Error::new(Kind::Changed, "somebody wrote meanwhile"));
        }
        let mut fail = self.fail.lock().unwrap();
        if *fail > 0 {
            *fail -= 1;
            *self.state.lock().unwrap() = "half".into();
            return Err(Error::new(Kind::Other, "told to fail"));
        }
        let bytes = call.store()?.read(&parts[0].content)?;
        *self.state.lock().unwrap() = String::from_utf8(bytes).unwrap();
        Ok(())
    }
}

/// Two fakes, the second after the first, and how often it was asked what a target captures by itself.
#[derive(Default)]
pub(super) struct Fakes(pub Arc<Fake>, pub Arc<Fake>, pub AtomicU64);

impl Backends for Fakes {
    fn names(&self) -> Vec<String> {
        vec!["tree".into(), "other".into()]
    }

    fn settings(&self, _name: &str) -> Result<Vec<String>> {
        Ok(vec!["path".into()])
    }

    fn claims(&self, target: &Target) -> Result<Vec<String>> {
        self.2.fetch_add(1, Ordering::Relaxed);
        Ok(target.settings.get("path").cloned().into_iter().collect())
    }

    fn get(&self, name: &str) -> Result<Arc<dyn Backend>> {
        Ok(if name == "tree" { self.0.clone() } else { self.1.clone() })
    }
}

/// Each look at it is a second later, each random number the next.
#[derive(Default)]
pub(super) struct Ticking(AtomicU64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        let seconds = self.0.fetch_add(1, Ordering::Relaxed);
        "2026-01-02T03:04:05Z".parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds as i64)
    }

    fn random(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

pub(super) struct World {
    pub temp: TempDir,
    pub root: PathBuf,
    pub fakes: Arc<Fakes>,
    clock: Arc<Ticking>,
    pub user: User,
    pub inside: Option<String>,
}

impl World {
    pub fn new() -> Self {
        Self::with("")
    }

    pub fn with(config: &str) -> Self {
        let temp = TempDir::new();
        fs::create_dir(temp.path().join("project")).unwrap();
        fs::write(temp.path().join("project/snapback.toml"), config).unwrap();
        let root = temp.path().join("project");
        Self { temp, root, fakes: Arc::default(), clock: Arc::default(), user: User::default(), inside: None }
    }

    pub fn open(&self) -> Result<Project> {
        Project::open(Environment {
            root: self.root.clone(),
            state: self.temp.path().join("state"),
            home: None,
            user: self.user.clone(),
            disk: Disk::default(),
            clock: self.clock.clone(),
            backends: self.fakes.clone(),
            report: Arc::new(Silent),
            cancel: Cancel::default(),
            inside: self.inside.clone(),
            pace: Default::default(),
            recent: Default::default(),
        })
    }

    /// Lets so many days pass.
    pub fn later(&self, days: u64) {
        self.clock.0.fetch_add(days * 86_400, Ordering::Relaxed);
    }

    pub fn sooner(&self, days: u64) {
        self.clock.0.fetch_sub(days * 86_400, Ordering::Relaxed);
    }

    pub fn session(&self) -> Session {
        self.open().unwrap().lock().unwrap()
    }

    pub fn take(&self, kind: SnapshotKind) -> Taken {
        self.session()
            .take(Request {
                kind,
                message: None,
                command: None,
                pinned: false,
                selection: Selection::default(),
            })
            .unwrap()
    }

    /// A run that leaves the state `after`.
    pub fn run(&self, after: &str) -> Id {
        let id = self.take(SnapshotKind::Run).snapshot.id;
        self.set(after);
        self.session().end_run(&id, 0).unwrap();
        id
    }

    pub fn go(&self, ask: &Ask) -> Result<Outcome> {
        let project = self.open()?;
        project.make_root()?;
        let session = project.lock()?;
        let plan = session.plan(ask, &[], &[])?;
        session.execute(plan, false)
    }

    pub fn set(&self, state: &str) {
        *self.fakes.0.state.lock().unwrap() = state.into();
    }

    pub fn state(&self) -> String {
        self.fakes.0.state.lock().unwrap().clone()
    }
}
