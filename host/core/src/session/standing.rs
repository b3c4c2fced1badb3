//! Whose store it is: this user's own, or a foreign one.
//!
//! A store is the user's own when its identity is known here (a registered root, a
//! history that is kept), or when it is marked as made where it lies and belongs to the
//! user: so stores stay their user's when they are moved, when they are copied on this
//! machine, and when the user's state directory is gone or cannot be written. Every
//! other one came from elsewhere, with an archive or from another user: it is only
//! read, until the user trusts it. An identity is a random number that only a copy of
//! the store has; whoever was given one could give it back with other things in it.

use super::{Environment, Project, twin};
use crate::disk::Dir;
use crate::error::{Error, Kind, Result, shell_word, show};
use crate::project::STORE;
use crate::project::registry::Registry;
use crate::store::birth;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Why a store is not this user's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Foreign {
    /// Another user owns it: this one.
    pub owner: Option<u32>,
    /// The project's own history, which is kept outside: another store took its place.
    pub own: Option<PathBuf>,
}

impl Foreign {
    /// In a few words that follow "the store ... ".
    pub fn words(&self) -> String {
        match self.owner {
            Some(uid) => format!("is foreign: it belongs to another user ({uid})"),
            None => "is foreign: it was not made here, and came from elsewhere".to_owned(),
        }
    }

    /// What can be done about it.
    pub fn hint(&self, store: &Path) -> String {
        let store = show(store);
        match (&self.own, self.owner) {
            (None, Some(uid)) => {
                format!(
                    "it stays theirs: `sudo -u '#{uid}' snapback ...` works with it, and root gives it to \
                     you with `chown -R`: {store}"
                )
            }
            (Some(own), owner) => {
                let other = match owner {
                    None => "`snapback trust --store` goes on with the one that is there",
                    Some(_) => "the one that is there stays theirs",
                };
                let own = show(own);
                format!(
                    "this project's own history is kept in {own}, and comes back once {store} is moved \
                     away; {other}"
                )
            }
            (None, None) => format!(
                "`snapback trust --store` checks it and goes on with it; without it, once {store} is \
                 moved away, snapback begins a new one"
            ),
        }
    }
}

/// Why the store in `dir` (that of the project's root) is foreign; none when it is not.
pub(super) fn foreign(env: &Environment, dir: &Dir) -> Option<Foreign> {
    if birth::is_born_in(dir) {
        return None;
    }
    let id = dir.read(b"id", 64);
    let owner = dir.stat_self().map(|stat| stat.st_uid).ok();
    let is_mine = owner == Some(rustix::process::geteuid().as_raw());
    // Closed to its owner, who is known here: whoever writes first opens it up again.
    let is_closed = id.as_ref().is_err_and(|error| error.kind() == Kind::Denied);
    if is_closed && is_mine && Registry::new(&env.state).get(&env.root).is_some() {
        return None;
    }
    let id = id.ok().and_then(|text| String::from_utf8(text).ok());
    let id = id.as_deref().map(str::trim_end);
    if id.is_some_and(|id| is_known(env, id)) || (id.is_none() && twin::lost(env).is_some()) {
        return None;
    }
    let own = twin::find(env);
    Some(Foreign { owner: owner.filter(|uid| *uid != rustix::process::geteuid().as_raw()), own })
}

/// Whether a store of this identity was made, copied or trusted on this machine.
fn is_known(env: &Environment, id: &str) -> bool {
    let registry = Registry::new(&env.state);
    registry.get(&env.root).is_some_and(|known| known.store == id)
        || twin::place(env, id).is_some_and(|twin| twin.is_dir())
        || registry.all().iter().any(|known| known.store == id)
}

impl Project {
    /// Why the project's store is foreign; none when it is the user's own, or there is none.
    pub fn foreign(&self) -> Option<&Foreign> {
        self.foreign.as_ref()
    }

    /// Refuses a foreign store: for everything that would write to it, or act on it.
    ///
    /// # Errors
    /// `Denied`, with the way to trust it.
    pub fn need_own(&self) -> Result<()> {
        match &self.foreign {
            None => Ok(()),
            Some(foreign) => Err(refused(foreign, &self.env.root.join(STORE))),
        }
    }
}

/// The refusal of the store at `path` where another user owns it and keeps it closed; none
/// where that is not so.
pub(super) fn closed(path: &Path) -> Option<Error> {
    let (owner, own) = (path.symlink_metadata().ok()?.uid(), rustix::process::geteuid().as_raw());
    let shown = show(path);
    let give = format!("`sudo chown -R {own} {}` gives it to you", shell_word(path));
    (owner != own).then(|| {
        let why = format!("the store {shown} belongs to another user ({owner}), and is closed to others");
        Error::new(Kind::Denied, why).hint(format!("whoever took the first snapshot here made it; {give}"))
    })
}

impl Project {
    /// The user whom the project's folder belongs to, where that is another one than who made
    /// its store, and no superuser: without `chown` they cannot use the history.
    pub fn shut_out(&self) -> Option<u32> {
        let owner = self.env.root.symlink_metadata().ok()?.uid();
        let store = self.store()?.path().symlink_metadata().ok()?.uid();
        (owner != 0 && owner != store).then_some(owner)
    }
}

/// The refusal of the foreign store at `path`.
pub(super) fn refused(foreign: &Foreign, path: &Path) -> Error {
    Error::new(Kind::Denied, format!("the store {} {}", show(path), foreign.words())).hint(foreign.hint(path))
}
