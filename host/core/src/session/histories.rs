//! All histories that this user's snapback keeps, and what becomes of those whose
//! project is gone: thirty days after their last use they go as well.
//!
//! A project counts as gone only when its file system is the one that it was on and is
//! there to say so: one that is only unmounted, or whose file system cannot be told, is
//! kept. Of a history only what is kept outside the project goes, never a project's own
//! store; it goes from sight in one step, and while it goes no other command brings it
//! back. What its snapshots hold outside goes before it; where that cannot go, the history
//! stays for sixty days more, and it is said each time that somebody asks.

use super::release::Held;
use super::{Environment, Session, twin};
use crate::disk::Dir;
use crate::error::{Result, show};
use crate::history::{Snapshot, snapshot};
use crate::project::STORE;
use crate::project::mounts::{self, Mounts};
use crate::project::registry::{Known, Registry};
use crate::store::Lock;
use jiff::{SignedDuration, Timestamp};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// An orphaned history is kept so long after its last use.
const KEPT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// One that holds something outside which cannot go is kept so long.
const HELD: SignedDuration = SignedDuration::from_hours(90 * 24);
/// Orphans are looked for by themselves at most so often.
const EVERY: Duration = Duration::from_secs(86_400);
/// A file whose time says when they were looked for.
const LOOKED: &[u8] = b"looked-for-orphans";
/// How the name of a history begins that is being removed.
const GONE: &str = ".gone-";

/// Where a project is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whereabouts {
    /// Its store is where it is known to be.
    There,
    /// It is gone.
    Gone,
    /// It cannot be told: its file system is not there, or is another one.
    Unknown,
}

impl Whereabouts {
    /// As `list --all` has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::There => "there",
            Self::Gone => "gone",
            Self::Unknown => "unknown",
        }
    }
}

/// One history.
#[derive(Debug, Clone)]
pub struct History {
    /// The project's root; none when nobody knows it any more.
    pub root: Option<PathBuf>,
    /// The identity of its store.
    pub store: String,
    /// Where the project is.
    pub whereabouts: Whereabouts,
    /// How many snapshots there are.
    pub snapshots: usize,
    /// Bytes of packs: of the project's, else of what is kept outside.
    pub bytes: u64,
    /// When it was used last, to the day.
    pub used: Option<Timestamp>,
    /// When its store, which came from elsewhere, was trusted.
    pub trusted: Option<Timestamp>,
}

/// What became of orphans, or would.
#[derive(Debug, Clone, Default)]
pub struct Collected {
    /// Those that went.
    pub dropped: Vec<History>,
    /// Those that stay, since they were used in the last thirty days.
    pub young: usize,
    /// Those that stay, since it cannot be told whether their project is gone.
    pub unknown: usize,
    /// Those that stay, since what they hold outside is not let go of.
    pub holding: usize,
}

/// How orphans are gone through.
#[derive(Clone, Copy)]
struct How {
    /// What their age is counted to.
    now: Timestamp,
    /// Nothing is changed.
    dry: bool,
    /// What may not answer is asked all the same.
    patient: bool,
    /// The project's store had the same files under second names.
    linked: bool,
}

/// All histories of a user.
pub struct Histories<'a> {
    env: &'a Environment,
    registry: Registry,
    mounts: Mounts,
}

impl<'a> Histories<'a> {
    /// Those that are known in the state directory of `env`; its root means nothing here.
    pub fn of(env: &'a Environment) -> Self {
        Self { env, registry: Registry::new(&env.state), mounts: Mounts::now() }
    }

    /// All of them, sorted by root.
    pub fn all(&self) -> Vec<History> {
        let known = self.registry.all();
        let mut all: Vec<History> = known.iter().map(|known| self.history(known)).collect();
        // What is kept of a project whose root has another store by now.
        all.extend(self.rootless(&known));
        all
    }

    fn history(&self, known: &Known) -> History {
        let root = known.root.path();
        let whereabouts = self.whereabouts(known, true);
        let place = match whereabouts {
            Whereabouts::There => self.store_of(known),
            _ => twin::place(self.env, &known.store),
        };
        let (snapshots, bytes) = place.as_deref().map_or((0, 0), size);
        History {
            root: Some(root.to_owned()),
            store: known.store.clone(),
            whereabouts,
            snapshots,
            bytes,
            used: self.registry.used(root).and_then(timestamp),
            trusted: known.trusted.map(|moment| moment.0),
        }
    }

    /// Histories that no root is known of.
    fn rootless(&self, known: &[Known]) -> Vec<History> {
        let Ok(entries) = fs::read_dir(&self.env.state) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut ids: Vec<String> = names.filter(|id| known.iter().all(|known| known.store != *id)).collect();
        ids.sort();
        let history = |id: String| {
            let place = twin::place(self.env, &id)?;
            let used = fs::metadata(place.join("snapshots")).ok()?.modified().ok();
            let (snapshots, bytes) = size(&place);
            Some(History {
                root: last_root(&place),
                store: id,
                whereabouts: Whereabouts::Gone,
                snapshots,
                bytes,
                used: used.and_then(timestamp),
                trusted: None,
            })
        };
        ids.into_iter().filter_map(history).collect()
    }

    /// Where the project is. Without `patient`, no file system is touched that may not
    /// answer.
    fn whereabouts(&self, known: &Known, patient: bool) -> Whereabouts {
        let root = known.root.path();
        let (Some(on), Some((at, kind))) = (&known.on, self.mounts.of(root)) else {
            let is_there = self.store_of(known).is_some();
            return if is_there { Whereabouts::There } else { Whereabouts::Unknown };
        };
        // What the state directory itself lies on is there.
        let is_ours = self.mounts.of(&self.env.state).is_some_and(|(ours, _)| ours == at);
        if !(patient || is_ours || mounts::answers(kind)) {
            return Whereabouts::Unknown;
        }
        if self.store_of(known).is_some() {
            return Whereabouts::There;
        }
        if on.at.path() != at || on.kind != kind {
            return Whereabouts::Unknown;
        }
        let is_same = || mounts::answers(kind) && self.mounts.on(root).is_some_and(|now| now.id == on.id);
        if is_ours || mounts::is_in_memory(kind) || is_same() {
            Whereabouts::Gone
        } else {
            Whereabouts::Unknown
        }
    }

    /// The project's own store: in its root, or where it stands aside while a run goes on there.
    fn store_of(&self, known: &Known) -> Option<PathBuf> {
        let root = known.root.path();
        let own = root.join(STORE);
        let id = Dir::open(&own).and_then(|dir| dir.read(b"id", 64));
        if id.is_ok_and(|id| id.trim_ascii_end() == known.store.as_bytes()) {
            return Some(own);
        }
        let aside = twin::withdrawn(&twin::place(self.env, &known.store)?);
        aside.filter(|_| root.is_dir())
    }

    /// Removes the orphans that were not used for thirty days; with `dry`, only says
    /// which. Without `patient`, no file system is touched that may not answer, and no server.
    ///
    /// # Errors
    /// When the state directory cannot be written.
    pub fn collect(&self, dry: bool, patient: bool) -> Result<Collected> {
        self.collect_at(self.env.clock.now(), dry, patient)
    }

    fn collect_at(&self, now: Timestamp, dry: bool, patient: bool) -> Result<Collected> {
        let mut collected = Collected::default();
        if !self.env.state.is_dir() {
            return Ok(collected);
        }
        let state = Dir::open(&self.env.state)?;
        let known = self.registry.all();
        for known in &known {
            match self.whereabouts(known, patient) {
                Whereabouts::There => {}
                Whereabouts::Unknown => collected.unknown += 1,
                Whereabouts::Gone => {
                    // What lay on the state directory's own file system was linked with it.
                    let linked = known.on.is_some() && known.on == self.mounts.on(&self.env.state);
                    let how = How { now, dry, patient, linked };
                    self.one(self.history(known), &state, how, &mut collected)?;
                }
            }
        }
        for history in self.rootless(&known) {
            self.one(history, &state, How { now, dry, patient, linked: false }, &mut collected)?;
        }
        if !dry {
            let left = state.names()?.into_iter().filter(|name| name.starts_with(GONE.as_bytes()));
            left.for_each(|name| drop(self.env.disk.remove_all(&state, &name)));
        }
        Ok(collected)
    }

    fn one(&self, history: History, state: &Dir, how: How, collected: &mut Collected) -> Result<()> {
        let age = history.used.map(|used| how.now.duration_since(used)).filter(|age| *age >= KEPT);
        let Some(age) = age else {
            collected.young += 1;
            return Ok(());
        };
        if !how.dry {
            if !self.let_go(&history, how, age >= HELD) {
                collected.holding += 1;
                return Ok(());
            }
            self.drop_history(&history, state)?;
        }
        collected.dropped.push(history);
        Ok(())
    }

    /// Lets go of what `history` holds outside; whether it may go now. What cannot go is told,
    /// and keeps it unless this is the `last` time that it is tried.
    fn let_go(&self, history: &History, how: How, last: bool) -> bool {
        let Some(place) = twin::place(self.env, &history.store) else { return true };
        let held = Held::of(&place);
        if held.is_nothing() {
            return true;
        }
        // A server that does not answer is nothing to wait for by the way.
        if !how.patient && !last {
            return false;
        }
        let root = history.root.clone().unwrap_or_else(|| place.clone());
        let stuck = held.let_go(self.env, &place, &root, how.linked);
        for (target, error) in &stuck {
            let stays = if last { "and its history goes all the same" } else { "and its history stays" };
            let doing =
                format!("what `{target}` of the removed project {} holds is not gone, {stays}", show(&root));
            self.env.report.troubled(&doing, error);
        }
        last || stuck.is_empty()
    }

    fn drop_history(&self, history: &History, state: &Dir) -> Result<()> {
        let disk = &self.env.disk;
        let name = history.store.as_bytes();
        if twin::place(self.env, &history.store).is_some() && state.stat(name)?.is_some() {
            let gone = [GONE.as_bytes(), name].concat();
            disk.remove_all(state, &gone)?;
            // Nobody brings it back meanwhile; who waits for that finds nothing.
            let _lock = Lock::take(disk, &state.child(name)?, &mut || {})?;
            disk.rename(state, name, state, &gone)?;
            disk.sync_dir(state)?;
            disk.remove_all(state, &gone)?;
        }
        match &history.root {
            Some(root) if self.registry.get(root).is_some_and(|known| known.store == history.store) => {
                self.registry.remove(disk, root)
            }
            _ => Ok(()),
        }
    }
}

impl Session {
    /// Removes old orphans, if nobody did in the last day. It is not what the user waits
    /// for: what fails is tried again another day.
    pub(super) fn collect_orphans(&self) {
        let env = self.env();
        let stamp = env.state.join(std::ffi::OsStr::from_bytes(LOOKED));
        let looked = fs::metadata(&stamp).and_then(|meta| meta.modified());
        if looked.as_ref().is_ok_and(|time| time.elapsed().is_ok_and(|age| age < EVERY)) {
            return;
        }
        let Ok(state) = Dir::open(&env.state) else { return };
        if env.disk.write_cache(&state, LOOKED, b"", 0o600).is_ok()
            // Who was not old enough then goes another day: the clock may be wrong this once.
            && let Some(then) = looked.ok().and_then(timestamp)
        {
            let _ = Histories::of(env).collect_at(then.min(env.clock.now()), false, false);
        }
    }
}

/// Whether the project's store is where it is known to be.
/// How many snapshots the store at `place` has, and the bytes of its packs.
fn size(place: &Path) -> (usize, u64) {
    let snapshots = snapshot::ids(&place.join("snapshots")).map_or(0, |ids| ids.len());
    let packs = fs::read_dir(place.join("packs")).into_iter().flatten().flatten();
    let bytes = packs.filter_map(|pack| fs::symlink_metadata(pack.path()).ok()).map(|meta| meta.len());
    (snapshots, bytes.fold(0, u64::saturating_add))
}

/// The root that the newest snapshot was taken of.
fn last_root(place: &Path) -> Option<PathBuf> {
    let snapshots = place.join("snapshots");
    let ids = snapshot::ids(&snapshots).ok()?;
    let newest = ids.iter().find_map(|id| Snapshot::load(&snapshots, id).ok())?;
    Some(newest.root.path().to_owned())
}

fn timestamp(time: SystemTime) -> Option<Timestamp> {
    Timestamp::try_from(time).ok()
}
