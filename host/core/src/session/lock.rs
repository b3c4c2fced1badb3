//! A session: the project with its store's lock held.

use super::Project;
use crate::disk::Dir;
use crate::error::{Error, Kind, Result, show};
use crate::project::STORE;
use crate::store::{Lock, Store};
use std::fs;
use std::ops::Deref;
use std::sync::Arc;

/// The project, locked for writing. The lock is the kernel's: it goes with the process.
pub struct Session {
    project: Project,
    pub(super) dir: Dir,
    pub(super) snapshots: Dir,
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
        let env = &project.env;
        let path = env.root.join(STORE);
        let store = match project.store.take() {
            Some(store) => store,
            None => create(&project)?,
        };
        let report = env.report.clone();
        let lock =
            store.lock(&mut || report.waiting("another snapback command is at work in this project"))?;
        let dir = Dir::open(&path)?;
        let snapshots = dir.child(b"snapshots")?;
        // The registry only makes the project easier to find.
        let _ = project.registry().put(&env.disk, &env.root, &store.id()?);
        project.store = Some(store);
        let session = Self { project, dir, snapshots, _lock: lock };
        session.sweep()?;
        Ok(session)
    }

    pub(super) fn opened(&self) -> &Arc<Store> {
        self.project.store.as_ref().expect("a session has a store")
    }

    pub(super) fn env(&self) -> &super::Environment {
        &self.project.env
    }

    /// Gives up the lock and goes on reading.
    pub fn unlock(self) -> Project {
        self.project
    }
}

fn create(project: &Project) -> Result<Arc<Store>> {
    let env = &project.env;
    let path = env.root.join(STORE);
    let made = Store::create(&path, env.disk.clone());
    match made {
        // Another command may have made it in the meantime.
        Err(_) if fs::exists(path.join("format")).unwrap_or(false) => Store::open(&path, env.disk.clone()),
        Err(error) if error.kind() == Kind::Denied => {
            let why = format!("could not make the store {}: permission denied", show(&path));
            Err(Error::new(Kind::Denied, why)
                .hint("snapshots are kept in the project's own folder; it must be writable for you"))
        }
        other => other,
    }
}
