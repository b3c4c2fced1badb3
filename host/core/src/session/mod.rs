//! What the commands do: take snapshots, put them back, look at them.
//!
//! `Project` is opened for every command and only reads. `Session` holds the store's
//! lock and has recovered whatever an earlier command left unfinished; it is what
//! writes. Both are lent everything they need (`Environment`); they read no
//! environment variable and print nothing.

mod absent;
mod again;
mod beyond;
mod capture;
mod carried;
mod configured;
mod diff;
mod displaced;
mod during;
mod elsewhere;
mod execute;
mod forget;
mod found;
mod histories;
mod in_use;
mod list;
mod lock;
pub mod lookup;
mod may_write;
mod mend;
mod noted;
mod one_back;
mod plan;
mod preflight;
mod present;
mod records;
mod recover;
mod release;
mod retain;
pub mod running;
pub mod scope;
mod standing;
mod survey;
mod take;
#[cfg(test)]
mod tests;
mod trust;
pub(crate) mod twin;
mod verify;

pub use beyond::{Beyond, Uncovered};
pub use diff::{Apart, By, Difference, EachDifference, What};
pub use execute::{NotRestored, Outcome};
pub use histories::{Collected, Histories, History, Whereabouts};
pub use list::{Damaged, Listing, State};
use lock::Purpose;
pub use lock::Session;
pub use mend::Mended;
pub use plan::{Action, Ask, Plan, Saved};
pub use present::Present;
pub use recover::{Finished, Pending, Recovery};
pub use release::Release;
pub use retain::{Bounds, Freed};
pub use scope::Narrow;
pub use standing::Foreign;
pub use take::{Ended, Request, Running, Selection, Taken};
pub use trust::Stranger;
pub use twin::Twin;
pub use verify::Verification;

use crate::backend::{Backends, Call, Cancel, Recent, Target};
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result, shell_word};
use crate::history::clock::Clock;
use crate::history::snapshot::{self, Snapshot};
use crate::history::timeline::{Record, Timeline};
use crate::history::{Id, id};
use crate::pace::Pace;
use crate::project::config::Config;
use crate::project::mounts::{Mounts, is_over_network};
use crate::project::registry::Registry;
use crate::project::user::User;
use crate::project::{STORE, root};
use crate::report::Report;
use crate::store::Store;
use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

/// What a command lends.
#[derive(Clone)]
pub struct Environment {
    /// The project's root, absolute.
    pub root: PathBuf,
    /// Where the user's state is kept (`$XDG_STATE_HOME/snapback`).
    pub state: PathBuf,
    /// The user's home directory.
    pub home: Option<PathBuf>,
    /// What the user wants of every project.
    pub user: User,
    /// The door to the disk.
    pub disk: Disk,
    /// Time and chance.
    pub clock: Arc<dyn Clock>,
    /// The backends there are.
    pub backends: Arc<dyn Backends>,
    /// Who is told what is going on.
    pub report: Arc<dyn Report>,
    /// Looked at by every long loop.
    pub cancel: Cancel,
    /// The run inside which this command is called, if it is.
    pub inside: Option<String>,
    /// How fast captures go.
    pub pace: Pace,
    /// What backends found out a moment ago.
    pub recent: Arc<Recent>,
}

impl Call {
    /// A call about `target` that may read `store` and is told nothing more.
    fn new(env: &Environment, target: &Target, store: Option<&Arc<Store>>) -> Self {
        let about = Self::about(env.root.clone(), target.clone(), store.cloned(), env.report.clone());
        Self { cancel: env.cancel.clone(), pace: env.pace.clone(), recent: env.recent.clone(), ..about }
    }
}

/// A project, for reading.
pub struct Project {
    env: Environment,
    /// Read when it is first asked for: what only looks needs no backend's settings.
    config: OnceLock<Result<Config>>,
    store: Option<Arc<Store>>,
    /// Why the store is not this user's own: it is only read then.
    foreign: Option<Foreign>,
    /// What was captured and may be kept by no snapshot.
    unkept: release::Unkept,
    /// What was told when the calls that it is about were over.
    late: noted::Late,
    /// Whether the project's folder was gone, and was made again.
    made: AtomicBool,
    /// Whether this command held the store's lock: the registry knows the store that stood here
    /// then.
    known: bool,
}

impl Project {
    /// Opens the project; it need not have a store yet. A root that is gone can be
    /// opened as long as its store can. A wrong snapback.toml disturbs only those who
    /// want to know what it says: a run may have written it, and must be undone.
    ///
    /// # Errors
    /// When the root cannot be used, or the store cannot be read.
    pub fn open(env: Environment) -> Result<Self> {
        match root::check(&env.root) {
            // It was removed, or may not be entered any more: the twin knows its history.
            Err(error)
                if twin::find(&env).is_some()
                    && (!root::is_there(&env.root)
                        || matches!(error.kind(), Kind::NotFound | Kind::Denied)) => {}
            done => done?,
        }
        let path = env.root.join(STORE);
        // What was removed from the store still stands in its twin.
        let (place, foreign) = match twin::missed(&env) {
            Some(twin) => (Some(twin::withdrawn(&twin).unwrap_or(twin)), None),
            None if fs::symlink_metadata(&path).is_err() => (None, None),
            None => {
                let foreign = Dir::open(&path).ok().and_then(|dir| standing::foreign(&env, &dir));
                (Some(path), foreign)
            }
        };
        let disk = if foreign.is_some() { env.disk.clone().shut() } else { env.disk.clone() };
        let store = match place.map(|place| Store::open(&place, disk)) {
            // Never finished: nothing was ever captured, and the next snapshot finishes it.
            Some(Err(error)) if error.kind() == Kind::NotFound => None,
            other => other.transpose().map_err(|error| kept_elsewhere(error, &env))?,
        };
        // One that was never finished holds nothing of anybody's.
        let foreign = foreign.filter(|_| store.is_some());
        Ok(Self {
            env,
            config: OnceLock::new(),
            store,
            foreign,
            unkept: release::Unkept::default(),
            late: noted::Late::default(),
            made: AtomicBool::new(false),
            known: false,
        })
    }

    /// Takes the store's lock for writing, makes the store if there is none, and
    /// finishes what an earlier command left unfinished.
    ///
    /// # Errors
    /// When the store cannot be written or an unfinished step cannot be finished.
    pub fn lock(self) -> Result<Session> {
        let mut session = Session::lock(self, Purpose::Project)?;
        session.finished = session.recover()?;
        Ok(session)
    }

    /// Like [`Project::lock`], without finishing what is pending: for the commands that
    /// say how it is to be finished, and for those that touch nothing but the store. To
    /// these it is enough that the history is there, be the project's folder gone.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn lock_unrecovered(self) -> Result<Session> {
        Session::lock(self, Purpose::History)
    }

    /// The project's root.
    pub fn root(&self) -> &Path {
        &self.env.root
    }

    /// The kind of the file system that the project lies on, where other machines may have it
    /// as well: the store's locks may not reach them.
    pub fn over_network(&self) -> Option<String> {
        let mounts = Mounts::now();
        mounts.of(self.root()).map(|(_, kind)| kind).filter(|kind| is_over_network(kind)).map(str::to_owned)
    }

    /// What the project asks for.
    ///
    /// # Errors
    /// When snapback.toml is wrong, or cannot be read.
    pub fn config(&self) -> Result<&Config> {
        self.config_with(&Selection::default(), false)
    }

    /// The same for who takes a snapshot: only what `selection` takes is to be right, and that
    /// wholly. The first who asks decides.
    ///
    /// # Errors
    /// When that of snapback.toml is wrong, or it cannot be read.
    pub fn config_for(&self, selection: &Selection) -> Result<&Config> {
        self.config_with(selection, true)
    }

    fn config_with(&self, selection: &Selection, taken: bool) -> Result<&Config> {
        let read = || configured::read(&self.env, |name| selection.takes(name), taken);
        if self.config.get().is_none() {
            match read() {
                // Whoever is asked may agree to it.
                Err(error) if error.kind() == Kind::Denied => return Err(error),
                // Somebody may have been as quick.
                config => drop(self.config.set(config)),
            }
        }
        self.config.get_or_init(read).as_ref().map_err(Clone::clone)
    }

    /// The door to the disk that this project is written through.
    pub fn disk(&self) -> &Disk {
        &self.env.disk
    }

    /// The store, when there is one.
    pub fn store(&self) -> Option<&Arc<Store>> {
        self.store.as_ref()
    }

    /// The store.
    ///
    /// # Errors
    /// `NotFound` when nothing was ever captured here.
    pub fn need_store(&self) -> Result<&Arc<Store>> {
        self.store.as_ref().ok_or_else(|| {
            let why = format!("there are no snapshots of {} yet", crate::error::show(&self.env.root));
            let hint = match self.known_beneath() {
                Some(root) => format!(
                    "there are of {0}: `-C {0}` works there, and `snapback list --all` names all projects",
                    shell_word(root)
                ),
                None => "`snapback run -- COMMAND` or `snapback snap` takes one".to_owned(),
            };
            Error::new(Kind::NotFound, why).hint(hint)
        })
    }

    /// A project that is known and lies in this one, as used last.
    pub fn known_beneath(&self) -> Option<PathBuf> {
        let (root, registry) = (&self.env.root, self.registry());
        let all = registry.all().into_iter().map(|known| known.root.path().to_owned());
        all.filter(|at| at != root && at.starts_with(root)).max_by_key(|at| registry.used(at))
    }

    /// What the timeline says: steps whose snapshots are there, also those that were taken
    /// and not noted any more.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn timeline(&self) -> Result<Timeline> {
        let Some(store) = self.store() else { return Ok(Timeline::default()) };
        let mut timeline = Timeline::load(store.path())?;
        let (ids, newest) = (self.ids()?, timeline.newest().cloned());
        let known: HashSet<&Id> = ids.iter().collect();
        timeline.keep(|id| known.contains(id));
        Ok(timeline.with(self.unnoted(newest.as_ref(), &ids)))
    }

    /// The steps that those of the snapshots `ids` stand for that are newer than the
    /// `newest` in the timeline: its end is lost, or the command was killed before it added
    /// its line.
    fn unnoted(&self, newest: Option<&Id>, ids: &[Id]) -> Vec<Record> {
        let new = ids.iter().take_while(|id| newest.is_none_or(|newest| *id > newest));
        let mut records: Vec<Record> =
            new.filter_map(|id| self.load(id).ok()).filter_map(|snapshot| snapshot.step()).collect();
        records.reverse();
        records
    }

    /// The names of all snapshots, newest first.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub fn ids(&self) -> Result<Vec<Id>> {
        self.store().map_or_else(|| Ok(Vec::new()), |store| snapshot::ids(&snapshots(store)))
    }

    /// The name of the snapshot that a person means by `text`.
    ///
    /// # Errors
    /// When there is none or there are several.
    pub fn resolve(&self, text: &str) -> Result<Id> {
        id::resolve(text, &self.ids()?).cloned()
    }

    /// The snapshot that a person means by `text`.
    ///
    /// # Errors
    /// When there is none or there are several, or its record is damaged.
    pub fn find(&self, text: &str) -> Result<Snapshot> {
        self.load(&self.resolve(text)?)
    }

    /// The record of `id`.
    ///
    /// # Errors
    /// When it is missing or damaged.
    pub fn load(&self, id: &Id) -> Result<Snapshot> {
        Snapshot::load(&snapshots(self.need_store()?), id)
    }

    /// The newest snapshot with a whole record that satisfies `wanted`.
    fn newest(&self, wanted: impl Fn(&Snapshot) -> bool) -> Result<Option<Snapshot>> {
        Ok(self.ids()?.iter().filter_map(|id| self.load(id).ok()).find(wanted))
    }

    fn registry(&self) -> Registry {
        Registry::new(&self.env.state)
    }
}

/// The error about a store that cannot be used, with the word that nothing is lost by it.
fn kept_elsewhere(error: Error, env: &Environment) -> Error {
    if let Some(refusal) = standing::closed(&env.root.join(STORE)).filter(|_| error.kind() == Kind::Denied) {
        return refusal;
    }
    match twin::find(env) {
        Some(twin) if matches!(error.kind(), Kind::Invalid | Kind::Corrupt) => {
            let (twin, store) = (crate::error::show(&twin), crate::error::show(&env.root.join(STORE)));
            error.hint(format!(
                "the history is kept in {twin} as well, and comes back once {store} is moved away"
            ))
        }
        _ => error,
    }
}

/// Where the snapshots' records are.
fn snapshots(store: &Store) -> PathBuf {
    store.path().join("snapshots")
}
