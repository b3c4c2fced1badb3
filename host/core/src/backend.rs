//! What a backend does, seen from the host: a mirror of `wit/backend.wit`.
//!
//! The runtime implements `Backend` with a component; tests of history and recovery
//! use a fake. Everything a call may need is lent with it (`Call`); nothing is global.

use crate::error::{Error, Kind, Result};
use crate::object::Key;
use crate::pace::Pace;
use crate::report::Report;
use crate::store::{Source, Store, Writer};
use crate::tree::compare::ChangeKind;
use crate::tree::{Plans, Surveys};
use std::any::Any;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// One named piece of a snapshot. Names are the backend's own.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Part {
    /// The backend's name for it.
    pub name: String,
    /// What it holds.
    pub content: Key,
}

/// One piece of state in a backend's care, with its settings as they are frozen in
/// a snapshot.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Target {
    /// Unique in the project.
    pub name: String,
    /// The backend's name.
    pub backend: String,
    /// Settings in their text form; a list is joined by newlines.
    pub settings: BTreeMap<String, String>,
}

/// A request to stop that every long loop of the host looks at.
#[derive(Debug, Clone, Default)]
pub struct Cancel(Arc<AtomicBool>);

impl Cancel {
    /// Asks everything that holds this token to stop.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether somebody asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// `Cancelled` when somebody asked.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(Kind::Cancelled, "stopped as asked"));
        }
        Ok(())
    }
}

/// What one call is about and may use. Cheap to clone.
#[derive(Clone)]
pub struct Call {
    /// The project's root: relative settings of kind dir and file start here.
    pub root: PathBuf,
    /// The target that the call is about.
    pub target: Arc<Target>,
    /// Where stored objects are read from; none where there is no store yet, for a survey.
    pub store: Option<Arc<Store>>,
    /// Where captured objects go; for a restore, where they are read from that only it knows.
    pub writer: Option<Arc<Writer>>,
    /// The parts that a restore will write next, when the capture is the one before
    /// a restore: whatever those cover must be captured, whatever today's rules say.
    pub cover: Arc<Vec<Part>>,
    /// Subjects (paths inside the target) to which the user narrowed this call; empty: all.
    pub only: Arc<Vec<Vec<u8>>>,
    /// What the state that is gone to left out and later snapshots have: path in the target,
    /// and path before.
    pub carried: Arc<Vec<(Vec<u8>, Vec<u8>)>>,
    /// Paths inside the project that another target captures, with the files beside them.
    pub elsewhere: Arc<Vec<Elsewhere>>,
    /// Where a capture keeps what it locked until the restore that follows; none: what
    /// was captured may change at once.
    pub hold: Option<Arc<Hold>>,
    /// A restore leaves out what it cannot do; without this, it does nothing then.
    pub partial: bool,
    /// Plans that were made before, which a restore carries out.
    pub plans: Arc<Plans>,
    /// A capture of more than this is refused with `TooLarge`, before anything is read.
    pub huge: Option<Huge>,
    /// Directories are only surveyed instead of captured, and what was found is put here.
    pub survey: Option<Arc<Surveys>>,
    /// Who is told what is going on.
    pub report: Arc<dyn Report>,
    /// Looked at by every long loop.
    pub cancel: Cancel,
    /// How fast a capture goes.
    pub pace: Pace,
    /// What calls of the same command found out and this one may use.
    pub recent: Arc<Recent>,
    /// Nothing need be captured: it is only to be found out who is in the way, without waiting.
    pub hurry: bool,
}

impl Call {
    /// A call about `target` of the project at `root`, which has this store, that nothing
    /// is asked for yet.
    pub fn about(root: PathBuf, target: Target, store: Option<Arc<Store>>, report: Arc<dyn Report>) -> Self {
        Self {
            root,
            target: Arc::new(target),
            store,
            writer: None,
            cover: Arc::default(),
            only: Arc::default(),
            carried: Arc::default(),
            elsewhere: Arc::default(),
            hold: None,
            partial: false,
            plans: Arc::default(),
            huge: None,
            survey: None,
            report,
            cancel: Cancel::default(),
            pace: Pace::default(),
            recent: Arc::default(),
            hurry: false,
        }
    }

    /// The store.
    ///
    /// # Errors
    /// `NotFound` when there is none yet.
    pub fn store(&self) -> Result<&Arc<Store>> {
        self.store.as_ref().ok_or_else(|| Error::new(Kind::NotFound, "there is no store yet"))
    }

    /// Where objects are read from: what goes through the writer is in the store, too.
    ///
    /// # Errors
    /// As [`Self::store`] has them.
    pub fn source(&self) -> Result<&dyn Source> {
        match &self.writer {
            Some(writer) => Ok(&**writer),
            None => Ok(&**self.store()?),
        }
    }
}

/// A path that another target captures.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Elsewhere {
    /// The path inside the project, `/` between names.
    pub path: Vec<u8>,
    /// That target.
    pub target: String,
}

/// What a capture locked, so that nothing changes before the restore that follows: both
/// are lent the same one. Dropped, it lets go.
#[derive(Default)]
pub struct Hold(Mutex<Option<Box<dyn Any + Send>>>);

impl Hold {
    /// Keeps `locks`, and lets go of what was kept before.
    pub fn keep(&self, locks: impl Any + Send) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(locks));
    }

    /// Takes out what was kept, when it is a `T`.
    pub fn take<T: Any>(&self) -> Option<T> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        kept.downcast().ok().map(|kept| *kept)
    }
}

/// What was found out a moment ago, for all calls of one command: one look at the system serves
/// many targets.
#[derive(Default)]
pub struct Recent(Mutex<Option<(Instant, Arc<dyn Any + Send + Sync>)>>);

impl Recent {
    /// For how long what was found out counts.
    const AGE: Duration = Duration::from_secs(1);

    /// What `look` found for another call, or finds now.
    pub fn get<T: Any + Send + Sync>(&self, look: impl FnOnce() -> T) -> Arc<T> {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((since, found)) = &*recent
            && since.elapsed() < Self::AGE
            && let Ok(found) = Arc::clone(found).downcast()
        {
            return found;
        }
        let found = Arc::new(look());
        *recent = Some((Instant::now(), found.clone()));
        found
    }
}

/// How much is captured without the user being asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Huge {
    /// Files.
    pub files: u64,
    /// Bytes.
    pub bytes: u64,
}

/// One difference between two snapshots, in a backend's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explained {
    /// Whether it came, changed, or went.
    pub kind: ChangeKind,
    /// What it is about, inside the target.
    pub subject: Vec<u8>,
    /// More of it, for those who want to see it.
    pub detail: Option<String>,
}

/// One kind of state that can be captured and put back.
pub trait Backend: Send + Sync {
    /// Stores the target's state and leaves it as it was. `previous` is the last
    /// snapshot's parts: an unchanged piece may be returned as it is.
    ///
    /// # Errors
    /// Whatever kept the state from being captured whole; nothing is kept then.
    fn snapshot(&self, call: &Call, previous: &[Part]) -> Result<Vec<Part>>;

    /// Makes the target's state the stored one. `current` is what was captured just
    /// before: what is no longer as in it is left alone and reported as refused.
    /// Idempotent: a second call completes a first that was cut short.
    ///
    /// # Errors
    /// Whatever kept the state from being restored; refusals are reported instead. After
    /// `Busy` and `Changed` nothing was touched.
    fn restore(&self, call: &Call, parts: &[Part], current: &[Part]) -> Result<()>;

    /// What differs between the parts of two snapshots, in finer words than that a part
    /// does; none when the backend has no such words.
    ///
    /// # Errors
    /// Whatever kept it from telling.
    fn explain(&self, call: &Call, before: &[Part], after: &[Part]) -> Result<Option<Vec<Explained>>> {
        let _ = (call, before, after);
        Ok(None)
    }

    /// Whether its parts stand for something outside the store, which [`Self::discard`]
    /// removes.
    fn releases(&self) -> bool {
        false
    }

    /// Removes what `parts`, which no snapshot has any more, stand for outside the store.
    ///
    /// # Errors
    /// Whatever kept it from going.
    fn discard(&self, call: &Call, parts: &[Part]) -> Result<()> {
        let _ = (call, parts);
        Ok(())
    }
}

/// The backend that takes in databases which were found and which nobody declared: each
/// becomes a target of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adopter {
    /// The backend's name.
    pub backend: String,
    /// Its setting for where a database is.
    pub setting: String,
    /// What it calls the part of a snapshot that a database is.
    pub part: String,
}

/// Finds backends by name.
pub trait Backends: Send + Sync {
    /// The names of all backends that can be used here.
    fn names(&self) -> Vec<String>;

    /// Whether what the backend called `name` says about itself is known without making it ready,
    /// which may take its time, and runs some of it.
    fn is_known(&self, name: &str) -> bool {
        let _ = name;
        true
    }

    /// The keys of the settings that the backend called `name` takes.
    ///
    /// # Errors
    /// `NotFound`, or what is wrong with the backend.
    fn settings(&self, name: &str) -> Result<Vec<String>>;

    /// Those of them that say only how the work is done, and nothing about what is captured:
    /// a snapshot keeps no value for these, today's holds.
    ///
    /// # Errors
    /// `NotFound`, or what is wrong with the backend.
    fn unfrozen(&self, name: &str) -> Result<Vec<String>> {
        let _ = name;
        Ok(Vec::new())
    }

    /// Who takes in databases that were found.
    ///
    /// # Errors
    /// `NotFound` when nobody does.
    fn adopter(&self) -> Result<Adopter> {
        Err(Error::new(Kind::NotFound, "no backend covers databases that were found"))
    }

    /// What the backend of `target` has against one of its settings: the key, and what would be
    /// right. None when they are as it wants them; it is not started to find that out.
    ///
    /// # Errors
    /// `NotFound`, or what is wrong with the backend.
    fn objection(&self, target: &Target) -> Result<Option<(String, Error)>> {
        let _ = target;
        Ok(None)
    }

    /// The settings of `target` that name files which its backend captures by itself:
    /// trees leave them out.
    ///
    /// # Errors
    /// `NotFound`, or what is wrong with the backend.
    fn claims(&self, target: &Target) -> Result<Vec<String>> {
        let _ = target;
        Ok(Vec::new())
    }

    /// The backend that is called `name`.
    ///
    /// # Errors
    /// `NotFound` with the nearest name, or what kept it from being made ready.
    fn get(&self, name: &str) -> Result<Arc<dyn Backend>>;
}
