//! The history outlives the project's folder: everything that is sealed has a second
//! name in the user's own state directory, `<state>/<store id>/`.
//!
//! This is against removal (`rm -rf .snapback`, `git clean -fdx`, `rm -rf` of the whole
//! project), not against rewriting: both names are one inode where a hard link reaches.
//! Elsewhere it is a copy, of records always and of packs up to a limit.
//!
//! Invariant: what the store lacks and the twin has is brought back, never removed from
//! the twin; only dropping and collecting remove from both. A pack that was marked as
//! damaged is the same pack: its other name gets the mark too and never comes back
//! without it. A twin that cannot be written is no error: `status` tells.

pub(crate) mod dropped;
mod fill;
mod replaced;
mod withdrawn;

pub(super) use dropped::TWINS;
pub(super) use fill::{Filling, same_file};
pub(super) use replaced::replaced;
pub(super) use withdrawn::{is_withdrawn, withdrawn};

use super::{Environment, Project, Session};
use crate::disk::{Dir, Disk, size_text};
use crate::error::{Kind, Result, show};
use crate::history::Id;
use crate::history::snapshot::META;
use crate::project::STORE;
use crate::project::registry::Registry;
use crate::store::{Lock, Store};
use fill::{FILES, is_id, there, unmarked};
use replaced::{is_another, is_named, set_aside};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Where links do not reach, at most this many bytes of packs are copied.
const MOST_COPIED: u64 = 1 << 30;

/// The twin of the store that the registry knows for the project's root, if it is there.
pub(super) fn find(env: &Environment) -> Option<PathBuf> {
    let known = Registry::new(&env.state).get(&env.root)?;
    let twin = place(env, &known.store)?;
    twin.join("format").exists().then_some(twin)
}

/// Where the twin of the store `id` is kept.
pub(super) fn place(env: &Environment, id: &str) -> Option<PathBuf> {
    place_in(&env.state, id)
}

/// Where it is kept in the state directory `state`.
pub(super) fn place_in(state: &Path, id: &str) -> Option<PathBuf> {
    let plain = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| state.join(id))
}

/// The twin of the project's store, when that is to be read instead: it has something that
/// the store lost, or another store took its place.
pub(super) fn missed(env: &Environment) -> Option<PathBuf> {
    lost(env).or_else(|| replaced(env, false))
}

/// The twin of the project's store, when it has something that the store lost. A store
/// that is another one is none of its business.
pub(super) fn lost(env: &Environment) -> Option<PathBuf> {
    let path = env.root.join(STORE);
    let lost = |twin: &PathBuf| is_missed(twin, &path) && is_left_of(twin, &path);
    find(env).filter(|twin| lost(twin) && !dropped::is_behind(twin, &path))
}

/// Whether the store at `path` lacks something that its twin has.
fn is_missed(twin: &Path, path: &Path) -> bool {
    let packs = || match names(twin.join("packs")) {
        Some(theirs) => {
            // What is gone by now is being removed, from both.
            let is_there = |name: &&Vec<u8>| twin.join("packs").join(OsStr::from_bytes(name)).exists();
            path.join("packs").exists() && !lacking(path, "packs", &theirs).iter().any(is_there)
        }
        None => true,
    };
    let record = |name: &Vec<u8>| {
        let meta = Path::new("snapshots").join(OsStr::from_bytes(name)).join(META);
        path.join(&meta).exists() || !twin.join(&meta).exists()
    };
    let snapshots = || match names(twin.join("snapshots")) {
        Some(theirs) => path.join("snapshots").exists() && theirs.iter().all(record),
        None => true,
    };
    let small = |name: &&[u8]| {
        let there = |store: &Path| match *name {
            // Damaged, it is as good as missing.
            b"format" => Store::is_finished(store),
            name => {
                let path = store.join(OsStr::from_bytes(name));
                path.exists() && !is_closed(&path)
            }
        };
        there(path) || !there(twin)
    };
    !(FILES.iter().all(small) && snapshots() && packs())
}

/// Whether its owner may not read the file at `path` any more, as after `chmod -R 000 .snapback`:
/// that is given back by whoever writes first.
fn is_closed(path: &Path) -> bool {
    let me = rustix::process::geteuid();
    let closed = |meta: std::fs::Metadata| meta.uid() == me.as_raw() && meta.mode() & 0o400 == 0;
    !me.is_root() && path.symlink_metadata().is_ok_and(closed)
}

/// Whether what stands at `path` is what is left of the store that `twin` belongs to:
/// it has the same identity, or none and nothing that the twin has not. One that may not
/// be entered is taken for it, unless another one can be.
fn is_left_of(twin: &Path, path: &Path) -> bool {
    match id_of(path) {
        Ok(id) => is_named(twin, &id),
        Err(error) if error.kind() == Kind::NotFound => ["snapshots", "packs"]
            .iter()
            .all(|sub| names(path.join(sub)).is_none_or(|ours| has_all(twin, sub, &ours))),
        Err(error) => error.kind() == Kind::Denied && !is_another(twin, path),
    }
}

/// What the store in the directory `dir` says that its identity is.
fn id_of(dir: &Path) -> Result<Vec<u8>> {
    let text = Dir::open(dir).and_then(|dir| dir.read(b"id", 64))?;
    Ok(text.trim_ascii_end().to_vec())
}

/// The names in a directory that are not hidden; none when it cannot be listed.
fn names(dir: PathBuf) -> Option<Vec<Vec<u8>>> {
    let names = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.file_name().into_vec());
    Some(names.filter(|name| !name.starts_with(b".")).collect())
}

/// Those of `names` that the directory `sub` at `place` has not, marked as damaged or not.
fn lacking<'n>(place: &Path, sub: &str, names_there: &'n [Vec<u8>]) -> Vec<&'n Vec<u8>> {
    let have = names(place.join(sub)).unwrap_or_default();
    let have: HashSet<&[u8]> = have.iter().map(|name| unmarked(name)).collect();
    names_there.iter().filter(|name| !have.contains(unmarked(name))).collect()
}

/// Whether the directory `sub` at `place` has all of `names`.
fn has_all(place: &Path, sub: &str, names_there: &[Vec<u8>]) -> bool {
    lacking(place, sub, names_there).is_empty()
}

/// Makes the store at the project's root again from the twin that `missed` finds: whatever it
/// lacks, all of it where another one took its place, which is moved aside. Whether there was
/// anything; several commands may be about to do it.
///
/// # Errors
/// When the disk refuses.
pub(super) fn bring_back(env: &Environment, missed: &dyn Fn() -> Option<PathBuf>) -> Result<bool> {
    let Some(twin) = missed() else { return Ok(false) };
    let (disk, from, root) = (&env.disk, Dir::open(&twin)?, Dir::open(&env.root)?);
    let _lock = Lock::take(disk, &from, &mut || {})?;
    if missed().as_ref() != Some(&twin) {
        return Ok(false);
    }
    let stands = root.stat(STORE.as_bytes())?.is_some();
    let aside = match is_another(&twin, &env.root.join(STORE)) || stands && withdrawn(&twin).is_some() {
        true => Some(set_aside(disk, &root)?),
        false => None,
    };
    let withdrew = withdrawn::put_back(disk, &from, &root)?;
    let to = Filling::sub(disk, &root, STORE.as_bytes())?;
    dropped::take_over(disk, &from, &to)?;
    Filling { disk, inward: true, budget: u64::MAX }.fill(&from, &to, None)?;
    if let Some(id) = twin.file_name().filter(|_| !id_of(to.path()).is_ok_and(|id| is_named(&twin, &id))) {
        // It was written over in place, and so here as well.
        disk.write_sealed(&to, b"id", &[id.as_bytes(), b"\n"].concat(), 0o400)?;
    }
    if !withdrew {
        env.report.found_history(&twin);
    }
    aside.iter().for_each(|aside| env.report.set_aside(aside));
    Ok(true)
}

/// Whether the history outlives the project's folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Twin {
    /// All of it is kept here as well.
    Whole(PathBuf),
    /// It is kept here as well, without what a step saved that was cut short: whoever goes on
    /// with that adds it.
    Behind(PathBuf),
    /// It goes with the folder, for this reason.
    Missing(String),
}

impl Project {
    /// Whether the history outlives the project's folder; none when there is none.
    ///
    /// # Errors
    /// When the store cannot be looked at.
    pub fn twin(&self) -> Result<Option<Twin>> {
        let Some(store) = self.store() else { return Ok(None) };
        let Some(twin) = place(&self.env, &store.id()?) else { return Ok(None) };
        let kept = |sub: &str| has_all(&twin, sub, &names(store.path().join(sub)).unwrap_or_default());
        let whole = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if whole(&twin).starts_with(whole(&self.env.root)) {
            return Ok(Some(Twin::Missing(format!("{} lies in the project itself", show(&self.env.state)))));
        }
        if kept("snapshots") && kept("packs") {
            return Ok(Some(Twin::Whole(twin)));
        }
        if self.env.user.twin && twin.is_dir() && self.pending()?.is_some() {
            return Ok(Some(Twin::Behind(twin)));
        }
        let state = show(&self.env.state);
        let bytes = store.usage()?.1;
        let why = match () {
            () if !self.env.user.twin => "`twin` of the user's config is off".to_owned(),
            () if bytes > MOST_COPIED && twin.is_dir() => format!(
                "links do not reach {state}, and {} are too much to copy (at most {})",
                size_text(bytes),
                size_text(MOST_COPIED)
            ),
            () => format!("it could not be kept in {state} as well"),
        };
        Ok(Some(Twin::Missing(why)))
    }

    /// Whether the snapshot `id` is kept outside of the project's folder as well.
    pub fn is_kept_outside(&self, id: &Id) -> bool {
        let twin = || place(&self.env, &self.store()?.id().ok()?);
        twin().is_some_and(|twin| twin.join("snapshots").join(id.as_str()).join(META).exists())
    }

    /// Whether the record of `id` is gone, from the project and from what is kept of its
    /// history outside: a command removed it.
    pub fn has_lost(&self, id: &Id) -> bool {
        let record = Path::new("snapshots").join(id.as_str()).join(META);
        // By the open directory: the project may be elsewhere by now.
        let opened = self
            .store()
            .map(|store| store.dir().child(b"snapshots").and_then(|dir| dir.child(id.as_str().as_bytes())));
        let is_gone = |path: &Path| {
            let gone = [ErrorKind::NotFound, ErrorKind::NotADirectory];
            path.join(&record).symlink_metadata().is_err_and(|error| gone.contains(&error.kind()))
        };
        opened.is_some_and(|opened| opened.is_err_and(|error| error.kind() == Kind::NotFound))
            && is_gone(&self.env.root.join(STORE))
            && find(&self.env).is_none_or(|twin| is_gone(&twin))
    }

    /// Where the history is read from, when the project's folder has lost it.
    pub fn outlived(&self) -> Option<&Path> {
        let path = self.store()?.path();
        (path != self.env.root.join(STORE) && !is_withdrawn(path)).then_some(path)
    }
}

impl Session {
    /// Gives everything that is sealed its second name. `touched` is a snapshot that got
    /// a file since it was committed.
    pub(super) fn mirror(&self, touched: Option<&Id>) {
        if self.env().user.twin {
            // The history is whole without it.
            let _ = self.try_mirror(touched);
        }
    }

    fn try_mirror(&self, touched: Option<&Id>) -> Result<()> {
        let env = self.env();
        let Some(twin) = place(env, &self.opened().id()?) else { return Ok(()) };
        let to = env.disk.make_dirs(&twin)?;
        if self.is_twin(&to) {
            return Ok(());
        }
        if self.is_ahead_of(&to) {
            self.remove_from(&to)?;
        }
        let budget = MOST_COPIED.saturating_sub(copied(&to)?);
        Filling { disk: &env.disk, inward: false, budget }.fill(&self.dir, &to, touched)?;
        self.followed(&to, true)
    }

    /// Whether the twin is what this session works on: the project's folder is gone.
    fn is_twin(&self, twin: &Dir) -> bool {
        let id = |dir: &Dir| dir.stat_self().ok().map(|stat| (stat.st_dev, stat.st_ino));
        id(&self.dir) == id(twin)
    }

    /// The directories `sub` of all twins.
    pub(super) fn in_twins(&self, sub: &[u8]) -> Result<Vec<Dir>> {
        let dirs = self.twins().into_iter().map(|twin| there(&twin, sub));
        dirs.filter_map(Result::transpose).collect()
    }

    /// Removes from all twins what the store does not have, and what was hidden in them.
    pub(super) fn mirror_removal(&self) -> Result<()> {
        for twin in self.twins() {
            self.remove_from(&twin)?;
            self.followed(&twin, false)?;
        }
        Ok(())
    }

    fn remove_from(&self, twin: &Dir) -> Result<()> {
        let disk = &self.env().disk;
        for sub in [&b"snapshots"[..], b"packs"] {
            let (Ok(ours), Ok(theirs)) = (self.dir.child(sub), twin.child(sub)) else { continue };
            let ours = ours.names()?;
            let ours = ours.iter().filter(|name| !name.starts_with(b"."));
            let kept: HashSet<&[u8]> = ours.map(|name| unmarked(name)).collect();
            let mut gone = theirs.names()?;
            gone.retain(|name| !kept.contains(unmarked(name)));
            if sub == b"packs" {
                gone.iter().try_for_each(|name| disk.unlink(&theirs, name))?;
                if !gone.is_empty() {
                    disk.sync_dir(&theirs)?;
                }
                continue;
            }
            let records: Vec<Vec<u8>> = gone.iter().filter(|name| is_id(name)).cloned().collect();
            hide(disk, &theirs, &records)?;
            let hidden = theirs.names()?;
            let hidden = hidden.iter().filter(|name| !kept.contains(unmarked(name)));
            hidden.into_iter().try_for_each(|name| disk.remove_all(&theirs, name))?;
        }
        Ok(())
    }

    /// The twin, if there is one besides what this session works on.
    pub(super) fn twin_dir(&self) -> Option<Dir> {
        let twin = Dir::open(&place(self.env(), &self.opened().id().ok()?)?).ok()?;
        (!self.is_twin(&twin)).then_some(twin)
    }
}

/// Takes the records `names` out of the directory `snapshots`, each in one step, so that a
/// half removed one is never taken for one: what is hidden is removed afterwards.
pub(super) fn hide(disk: &Disk, snapshots: &Dir, names: &[Vec<u8>]) -> Result<()> {
    for name in names {
        let hidden = [b".gone-", &name[..]].concat();
        // What a command that was cut short has begun to remove is in the way.
        disk.remove_all(snapshots, &hidden)?;
        disk.rename(snapshots, name, snapshots, &hidden)?;
    }
    // Else it could be there again after a power cut, whole or half removed.
    if names.is_empty() { Ok(()) } else { disk.sync_dir(snapshots) }
}

/// Bytes of the packs in a twin that are copies: no other name of them is in a store.
fn copied(twin: &Dir) -> Result<u64> {
    let Some(packs) = there(twin, b"packs")? else { return Ok(0) };
    let mut bytes = 0u64;
    for name in packs.names()? {
        if let Some(stat) = packs.stat(&name)?.filter(|stat| stat.st_nlink == 1) {
            bytes = bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
        }
    }
    Ok(bytes)
}
