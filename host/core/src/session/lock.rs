//! A session: the project with its store's lock held.
//!
//! Where the project's folder is gone, those who only look after its history (the end
//! of a run, gc, forget) work on what is kept of it outside; nobody else goes on.

use super::{Environment, Finished, Project, standing, twin};
use crate::disk::Dir;
use crate::error::{Error, Kind, Result, show};
use crate::history::Id;
use crate::project::registry::{Known, Registry};
use crate::project::{STORE, root};
use crate::store::{Lock, Store, private};
use std::ops::Deref;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The project, locked for writing. The lock is the kernel's: it goes with the process.
pub struct Session {
    project: Project,
    pub(super) dir: Dir,
    pub(super) snapshots: Dir,
    pub(super) finished: Option<Finished>,
    forgotten: Option<Id>,
    _lock: Lock,
}

/// How often an identity is looked for that nobody else has.
const TRIES: usize = 3;

/// What a session is for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Purpose {
    /// To capture or to put back: the project's folder must be there.
    Project,
    /// To look after the history, which may have outlived the folder.
    History,
    /// To capture beside a command that runs: where another one holds the lock, it is
    /// not waited for, which is `Busy`.
    Aside,
}

impl Deref for Session {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.project
    }
}

impl Session {
    pub(super) fn lock(mut project: Project, purpose: Purpose) -> Result<Self> {
        regain(&project.env)?;
        let (store, lock) = loop {
            let path = place(&mut project, purpose)?;
            let (store, made) = open(&mut project, &path)?;
            if !made
                && path.ends_with(STORE)
                && let Some(foreign) = standing::foreign(&project.env, store.dir())
            {
                return Err(standing::refused(&foreign, &path));
            }
            let report = project.env.report.clone();
            let waiting = "another snapback command is at work in this project";
            let lock = match purpose {
                Purpose::Aside => store.try_lock()?.ok_or_else(|| Error::new(Kind::Busy, waiting))?,
                _ => store.lock(&mut || report.waiting(waiting))?,
            };
            // A command may have removed the store while this one waited, or put another there.
            if is_at(&store, &path) && twin::replaced(&project.env, project.known).is_none() {
                break (store, lock);
            }
        };
        let at_root = is_at(&store, &project.env.root.join(STORE));
        // Only now: before, another command may have been dropping what seemed to be missed.
        let store = match at_root && bring_back_missed(&project.env)? {
            // The open one may hold directories that were removed.
            true => Store::open(&project.env.root.join(STORE), project.env.disk.clone())?,
            false => store,
        };
        if at_root {
            identify(&project, &store)?;
            project.known = true;
            // Whose store it is shows in other ways, too.
            let _ = store.settle();
        }
        let dir = store.dir().try_clone()?;
        let snapshots = dir.child(b"snapshots").map_err(crate::history::snapshot::odd)?;
        project.store = Some(store);
        let mut session = Self { project, dir, snapshots, finished: None, forgotten: None, _lock: lock };
        session.sweep()?;
        session.forgotten = session.finish_forgetting();
        Ok(session)
    }

    pub(super) fn opened(&self) -> &Arc<Store> {
        self.project.store.as_ref().expect("a session has a store")
    }

    pub(super) fn env(&self) -> &super::Environment {
        &self.project.env
    }

    /// The unfinished step that this session finished when it began, if there was one.
    pub fn finished(&self) -> Option<&Finished> {
        self.finished.as_ref()
    }

    /// The snapshot that an earlier command began to forget and this session has forgotten.
    pub fn forgotten(&self) -> Option<&Id> {
        self.forgotten.as_ref()
    }

    /// Gives up the lock and goes on reading. While a run goes on in a folder that is empty but
    /// for the store, that is out of the way.
    pub fn unlock(mut self) -> Project {
        if let Some(store) = self.withdraw() {
            self.project.store = Some(store);
        }
        self.project
    }
}

/// A command may have taken from its owner the permission to enter the project or its
/// store, as `chmod -R 644 .` does: without it nothing can be recorded or taken back.
fn regain(env: &Environment) -> Result<()> {
    const ENTER: u32 = 0o500;
    let (Some(above), Some(name)) = (env.root.parent(), env.root.file_name()) else { return Ok(()) };
    // What cannot be looked at is told by whoever opens it.
    let Ok(above) = Dir::open(above) else { return Ok(()) };
    let Ok(Some(stat)) = above.stat(name.as_bytes()) else { return Ok(()) };
    let is_own = stat.st_uid == rustix::process::geteuid().as_raw();
    let is_dir = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_dir();
    let mode = stat.st_mode & 0o7777;
    if is_own && is_dir && mode & ENTER != ENTER && !above.may_enter(name.as_bytes()) {
        env.disk.set_mode(&above, name.as_bytes(), mode | ENTER)?;
        env.report.regained(&env.root);
    }
    match above.child(name.as_bytes()) {
        Ok(root) if is_ours(env, &root) => {
            if private::is_read_only(&root, STORE.as_bytes())? {
                return Err(read_only(&env.root.join(STORE)));
            }
            private::mend(&env.disk, &root, STORE.as_bytes())
        }
        _ => Ok(()),
    }
}

/// The refusal of the store at `path`, whose owner wants it to stay as it is.
fn read_only(path: &Path) -> Error {
    let path = show(path);
    Error::new(Kind::Denied, format!("the store {path} is read-only: its owner may not write in it"))
        .hint(format!("looking goes on without; `chmod -R u+w {path}` gives the permission back"))
}

/// Whether the store in the directory `root` is the user's own, as far as it can be told:
/// one that may not be entered is when the project is known.
fn is_ours(env: &Environment, root: &Dir) -> bool {
    match root.child(STORE.as_bytes()) {
        Ok(store) => standing::foreign(env, &store).is_none(),
        Err(_) => Registry::new(&env.state).get(&env.root).is_some(),
    }
}

/// Where the store is to be locked.
fn place(project: &mut Project, purpose: Purpose) -> Result<PathBuf> {
    if let Some(root) = project.store.as_ref().and_then(|store| moved(store, &project.env.root)) {
        project.env.report.moved(&root);
        project.env.root = root;
        // Opened again by its new path, which the open one does not know.
        project.store = None;
    }
    let env = &project.env;
    if root::is_there(&env.root) {
        return Ok(env.root.join(STORE));
    }
    match (purpose, twin::find(env)) {
        (Purpose::History, Some(twin)) => Ok(twin::withdrawn(&twin).unwrap_or(twin)),
        (Purpose::Project | Purpose::Aside, Some(_)) => {
            let root = show(&env.root);
            Err(Error::new(Kind::NotFound, format!("the project {root} is gone, and its history is kept"))
                .hint(format!("`snapback --root {root} undo` brings it back")))
        }
        (_, None) => {
            root::check(&env.root)?;
            let why = format!("{} is a link now, and no longer the project", show(&env.root));
            Err(Error::new(Kind::Changed, why).hint("move the link away, and try again"))
        }
    }
}

/// Where the project is now, when it was moved as a whole while `store` was open.
pub(super) fn moved(store: &Store, root: &Path) -> Option<PathBuf> {
    if root::is_there(root) {
        return None;
    }
    let link = format!("/proc/self/fd/{}", store.dir().as_fd().as_raw_fd());
    let path = std::fs::read_link(link).ok()?;
    (path.ends_with(STORE) && is_at(store, &path)).then(|| path.parent().map(Path::to_owned))?
}

/// The store at `path`, made again from its twin when it is gone, or new; whether it is new.
fn open(project: &mut Project, path: &Path) -> Result<(Arc<Store>, bool)> {
    let (opened, env) = (project.store.take(), &project.env);
    let replaced = twin::bring_back(env, &|| twin::replaced(env, project.known))?;
    // One that was opened elsewhere knows another path, be it the same directory.
    if let Some(store) = opened.filter(|store| !replaced && store.path() == path && is_at(store, path)) {
        return Ok((store, false));
    }
    // Where no store stands there is no lock to wait for.
    if !Store::is_finished(path) {
        bring_back_missed(env)?;
    }
    let made = !path.join("format").exists();
    let store = Store::open_or_create(path, env.disk.clone()).map_err(|error| match error.kind() {
        Kind::Denied if error.os_error().is_some() => {
            let why = format!("could not write the store {}: permission denied", show(path));
            Error::new(Kind::Denied, why)
                .hint("snapshots are kept in the project's own folder; it must be writable for you")
        }
        _ => error,
    })?;
    Ok((store, made))
}

/// Gives the store at the project's root what it lacks and its twin has; whether there
/// was anything.
fn bring_back_missed(env: &Environment) -> Result<bool> {
    twin::bring_back(env, &|| twin::lost(env))
}

/// Whether `store` is what stands at `path` now.
fn is_at(store: &Store, path: &Path) -> bool {
    let (Ok(opened), Ok(there)) = (store.dir().stat_self(), Dir::open(path).and_then(|dir| dir.stat_self()))
    else {
        return false;
    };
    (opened.st_dev, opened.st_ino) == (there.st_dev, there.st_ino)
}

/// Lets the registry know whose store this is. A copied project gets an identity of its
/// own, so that the two do not share a twin; a moved one is known at its new place only.
fn identify(project: &Project, store: &Store) -> Result<()> {
    let (env, registry) = (&project.env, project.registry());
    let own = twin::find(env);
    // Nothing else is lost with an identity.
    let id = store.id();
    let had_one = id.is_ok();
    let mut id = id.or_else(|_| store.renew_id())?;
    if registry.get(&env.root).is_some_and(|known| known.store == id) {
        let _ = registry.put(&env.disk, &env.root, &id, None);
        return Ok(());
    }
    own.filter(|_| had_one).iter().for_each(|own| env.report.other_history(own));
    // A store that was trusted stays so when it is moved.
    let trusted = registry.all().into_iter().find(|known| known.store == id).and_then(|known| known.trusted);
    // Should the registry not let go of what it has, the identity is left as it is.
    for _ in 0..TRIES {
        for other in registry.all().iter().filter(|other| other.store == id && other.root.path() != env.root)
        {
            let theirs = Dir::open(&other.root.path().join(STORE)).and_then(|dir| dir.read(b"id", 64));
            if theirs.is_ok_and(|text| text.trim_ascii_end() == id.as_bytes()) {
                id = store.renew_id()?;
                break;
            }
            let _ = registry.remove(&env.disk, other.root.path());
        }
        // The registry only makes the project easier to find.
        let known = registry.put(&env.disk, &env.root, &id, trusted).is_ok();
        // Two copies that come for the same identity at once see each other now.
        let is_shared = |other: &Known| other.store == id && other.root.path() != env.root;
        if !known || !registry.all().iter().any(is_shared) {
            break;
        }
    }
    Ok(())
}
