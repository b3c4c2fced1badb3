//! A session: the project with its store's lock held.

use super::{Environment, Finished, Project, twin};
use crate::disk::Dir;
use crate::error::{Error, Kind, Result, show};
use crate::history::Id;
use crate::project::STORE;
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

impl Deref for Session {
    type Target = Project;

    fn deref(&self) -> &Project {
        &self.project
    }
}

impl Session {
    pub(super) fn lock(mut project: Project) -> Result<Self> {
        regain(&project.env)?;
        let (store, lock) = loop {
            let store = open(&mut project)?;
            let report = project.env.report.clone();
            let waiting = "another snapback command is at work in this project";
            let lock = store.lock(&mut || report.waiting(waiting))?;
            // A command may have removed the store while this one waited.
            if is_at(&store, &project.env.root.join(STORE)) {
                break (store, lock);
            }
        };
        // Only now: before, another command may have been dropping what seemed to be missed.
        let store = match bring_back_missed(&project.env)? {
            // The open one may hold directories that were removed.
            true => Store::open(&project.env.root.join(STORE), project.env.disk.clone())?,
            false => store,
        };
        identify(&project, &store)?;
        let dir = store.dir().try_clone()?;
        let snapshots = dir.child(b"snapshots")?;
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

    /// Gives up the lock and goes on reading.
    pub fn unlock(self) -> Project {
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
        Ok(root) => private::mend(&env.disk, &root, STORE.as_bytes()),
        Err(_) => Ok(()),
    }
}

/// Where the project is now, when it was moved as a whole while `store` was open.
fn moved(store: &Store, root: &Path) -> Option<PathBuf> {
    if root.exists() {
        return None;
    }
    let link = format!("/proc/self/fd/{}", store.dir().as_fd().as_raw_fd());
    let path = std::fs::read_link(link).ok()?;
    (path.ends_with(STORE) && is_at(store, &path)).then(|| path.parent().map(Path::to_owned))?
}

/// The store at the project's root, made again from its twin when it is gone, or new.
fn open(project: &mut Project) -> Result<Arc<Store>> {
    if let Some(root) = project.store.as_ref().and_then(|store| moved(store, &project.env.root)) {
        project.env.report.moved(&root);
        project.env.root = root;
        // Opened again by its new path, which the open one does not know.
        project.store = None;
    }
    let env = &project.env;
    let path = env.root.join(STORE);
    if let Some(store) = project.store.take()
        && is_at(&store, &path)
    {
        return Ok(store);
    }
    // Where no store stands there is no lock to wait for.
    if !path.join("format").exists() {
        bring_back_missed(env)?;
    }
    Store::open_or_create(&path, env.disk.clone()).map_err(|error| match error.kind() {
        Kind::Denied => {
            let why = format!("could not write the store {}: permission denied", show(&path));
            Error::new(Kind::Denied, why)
                .hint("snapshots are kept in the project's own folder; it must be writable for you")
        }
        _ => error,
    })
}

/// Gives the store at the project's root what it lacks and its twin has; whether there
/// was anything.
fn bring_back_missed(env: &Environment) -> Result<bool> {
    let path = env.root.join(STORE);
    let Some(twin) = twin::find(env).filter(|twin| twin::is_missed(twin, &path)) else { return Ok(false) };
    let any = twin::bring_back(env, &twin, &path)?;
    if any {
        env.report.found_history(&twin);
    }
    Ok(any)
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
    let mut id = store.id()?;
    if registry.get(&env.root).is_none_or(|known| known.store != id) {
        for other in registry.all().iter().filter(|other| other.store == id && other.root.path() != env.root)
        {
            let theirs = std::fs::read_to_string(other.root.path().join(STORE).join("id"));
            if theirs.is_ok_and(|text| text.trim() == id) {
                id = store.renew_id()?;
                break;
            }
            let _ = registry.remove(&env.disk, other.root.path());
        }
    }
    // The registry only makes the project easier to find.
    let _ = registry.put(&env.disk, &env.root, &id);
    Ok(())
}
