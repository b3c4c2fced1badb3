//! The history outlives the project's folder: everything that is sealed has a second
//! name in the user's own state directory, `<state>/<store id>/`.
//!
//! This is against removal (`rm -rf .snapback`, `git clean -fdx`, `rm -rf` of the whole
//! project), not against rewriting: both names are one inode where a hard link reaches.
//! Elsewhere it is a copy, of records always and of packs up to a limit.
//!
//! Invariant: what the store lacks and the twin has is brought back, never removed from
//! the twin; only dropping and collecting remove from both. A twin that cannot be
//! written is no error: `status` tells.

use super::{Environment, Project, Session};
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result};
use crate::history::Id;
use crate::history::snapshot::META;
use crate::project::registry::{Registry, ensure};
use rustix::io::Errno;
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Small files at the top that belong to the history; `format` is last, since a
/// directory without it is no store.
const FILES: [&[u8]; 5] = [b".gitignore", b"CACHEDIR.TAG", b"id", b"timeline", b"format"];

/// Where links do not reach, at most this many bytes of packs are copied.
const MOST_COPIED: u64 = 1 << 30;

/// Bytes that are copied at once.
const PIECE: usize = 1 << 20;

/// The twin of the store that the registry knows for the project's root, if it is there.
pub(super) fn find(env: &Environment) -> Option<PathBuf> {
    let known = Registry::new(&env.state).get(&env.root)?;
    let twin = place(env, &known.store)?;
    twin.join("format").exists().then_some(twin)
}

/// Where the twin of the store `id` is kept.
fn place(env: &Environment, id: &str) -> Option<PathBuf> {
    let plain = id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit());
    plain.then(|| env.state.join(id))
}

/// Whether the store at `path` lacks something that its twin has.
pub(super) fn is_missed(twin: &Path, path: &Path) -> bool {
    let names = |dir: &Path| -> Option<HashSet<_>> {
        let names = std::fs::read_dir(dir).ok()?.flatten().map(|entry| entry.file_name());
        Some(names.filter(|name| !name.as_bytes().starts_with(b".")).collect())
    };
    let whole = |sub: &str| match (names(&twin.join(sub)), names(&path.join(sub))) {
        (Some(theirs), Some(ours)) => theirs.is_subset(&ours),
        (theirs, _) => theirs.is_none(),
    };
    let small = |name: &&[u8]| {
        let name = OsStr::from_bytes(name);
        path.join(name).exists() || !twin.join(name).exists()
    };
    !(FILES.iter().all(small) && whole("snapshots") && whole("packs"))
}

/// Makes the store at `path` again from its twin: whatever it lacks.
///
/// # Errors
/// When the disk refuses.
pub(super) fn bring_back(env: &Environment, twin: &Path, path: &Path) -> Result<()> {
    let (from, to) = (Dir::open(twin)?, ensure(&env.disk, path)?);
    Filling { disk: &env.disk, inward: true, budget: u64::MAX }.fill(&from, &to, None)
}

impl Project {
    /// Where a second link to the history is kept outside the project, if it is.
    pub fn twin(&self) -> Option<PathBuf> {
        let id = self.store()?.id().ok()?;
        place(&self.env, &id).filter(|twin| twin.join("format").exists())
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
        let to = ensure(&env.disk, &twin)?;
        Filling { disk: &env.disk, inward: false, budget: MOST_COPIED }.fill(&self.dir, &to, touched)
    }

    /// Removes from the twin what was just removed from the store.
    pub(super) fn mirror_removal(&self) -> Result<()> {
        let env = self.env();
        let Some(twin) = place(env, &self.opened().id()?) else { return Ok(()) };
        let Ok(twin) = Dir::open(&twin) else { return Ok(()) };
        for sub in [&b"snapshots"[..], b"packs"] {
            let (Ok(ours), Ok(theirs)) = (self.dir.child(sub), twin.child(sub)) else { continue };
            let kept: HashSet<Vec<u8>> = ours.names()?.into_iter().collect();
            for name in theirs.names()?.iter().filter(|name| !kept.contains(*name)) {
                if sub == b"packs" {
                    env.disk.unlink(&theirs, name)?;
                    continue;
                }
                // In one step, so that a half removed record is never brought back.
                let gone = if is_id(name) { [b".gone-", &name[..]].concat() } else { name.clone() };
                if is_id(name) {
                    env.disk.rename(&theirs, name, &theirs, &gone)?;
                }
                let dir = theirs.child(&gone)?;
                for file in dir.names()? {
                    env.disk.unlink(&dir, &file)?;
                }
                env.disk.rmdir(&theirs, &gone)?;
            }
        }
        Ok(())
    }
}

/// Giving one of the two what the other has.
struct Filling<'a> {
    disk: &'a Disk,
    /// From the twin to the store: what the store has stays as it is.
    inward: bool,
    /// Bytes that may still be copied where links do not reach.
    budget: u64,
}

impl Filling<'_> {
    fn fill(&mut self, from: &Dir, to: &Dir, touched: Option<&Id>) -> Result<()> {
        self.packs(from, to)?;
        self.snapshots(from, to, touched)?;
        for name in FILES {
            self.file(from, to, name)?;
        }
        Ok(())
    }

    fn packs(&mut self, from: &Dir, to: &Dir) -> Result<()> {
        let Some(from) = there(from, b"packs")? else { return Ok(()) };
        let to = self.sub(to, b"packs")?;
        let have: HashSet<Vec<u8>> = to.names()?.into_iter().collect();
        for name in from.names()?.iter().filter(|name| !have.contains(*name)) {
            self.second_name(&from, &to, name, name)?;
        }
        Ok(())
    }

    fn snapshots(&mut self, from: &Dir, to: &Dir, touched: Option<&Id>) -> Result<()> {
        let Some(from) = there(from, b"snapshots")? else { return Ok(()) };
        let to = self.sub(to, b"snapshots")?;
        let have: HashSet<Vec<u8>> = to.names()?.into_iter().collect();
        for name in from.names()?.iter().filter(|name| is_id(name)) {
            if have.contains(name) && touched.is_none_or(|id| id.as_str().as_bytes() != &name[..]) {
                continue;
            }
            let source = from.child(name)?;
            if source.stat(META.as_bytes())?.is_none() {
                continue;
            }
            if have.contains(name) {
                self.missing(&source, &to.child(name)?)?;
                continue;
            }
            // Whole or not at all, as when it was committed.
            let aside = [b".", &name[..]].concat();
            self.missing(&source, &self.sub(&to, &aside)?)?;
            self.disk.rename(&to, &aside, &to, name)?;
        }
        Ok(())
    }

    fn missing(&mut self, from: &Dir, to: &Dir) -> Result<()> {
        for name in from.names()? {
            if to.stat(&name)?.is_none() {
                self.second_name(from, to, &name, &name)?;
            }
        }
        Ok(())
    }

    /// A small file at the top, which may have been written anew since.
    fn file(&mut self, from: &Dir, to: &Dir, name: &[u8]) -> Result<()> {
        let (Some(source), there) = (from.stat(name)?, to.stat(name)?) else { return Ok(()) };
        if self.inward && there.is_some() {
            return Ok(());
        }
        let same = there.is_some_and(|there| {
            (there.st_dev, there.st_ino) == (source.st_dev, source.st_ino)
                || (there.st_dev != source.st_dev
                    && there.st_size == source.st_size
                    && there.st_mtime >= source.st_mtime)
        });
        if same {
            return Ok(());
        }
        let aside = [name, b".twin"].concat();
        if to.stat(&aside)?.is_some() {
            self.disk.unlink(to, &aside)?;
        }
        if self.second_name(from, to, name, &aside)? {
            self.disk.rename(to, &aside, to, name)?;
        }
        Ok(())
    }

    /// Links `old` as `new`, or copies it where a link does not reach.
    fn second_name(&mut self, from: &Dir, to: &Dir, old: &[u8], new: &[u8]) -> Result<bool> {
        const NO_LINK: [Errno; 4] = [Errno::XDEV, Errno::PERM, Errno::MLINK, Errno::OPNOTSUPP];
        match self.disk.link(from, old, to, new) {
            Ok(()) => return Ok(true),
            Err(e) if NO_LINK.iter().any(|errno| e.os_error() == Some(errno.raw_os_error())) => {}
            Err(e) => return Err(e),
        }
        let size = from.stat(old)?.map_or(0, |stat| stat.st_size as u64);
        if size > self.budget {
            return Ok(false);
        }
        self.budget -= size;
        self.copy(from, to, old, new)?;
        Ok(true)
    }

    fn copy(&self, from: &Dir, to: &Dir, old: &[u8], new: &[u8]) -> Result<()> {
        use std::os::unix::fs::FileExt;
        let source = from.open_file(old)?;
        let aside = [b".", new, b".copy"].concat();
        if to.stat(&aside)?.is_some() {
            self.disk.unlink(to, &aside)?;
        }
        let target = self.disk.create_file(to, &aside, 0o600)?;
        let (mut piece, mut at) = (vec![0; PIECE], 0);
        loop {
            let n =
                source.read_at(&mut piece, at).map_err(|e| Error::io(e, "could not read", from.join(old)))?;
            if n == 0 {
                break;
            }
            self.disk.write_all(&target, at, &piece[..n])?;
            at += n as u64;
        }
        // The timeline is appended to; all else is sealed.
        let bits = if old == b"timeline" { 0o600 } else { 0o400 };
        self.disk.set_mode_of(&target, bits)?;
        self.disk.rename(to, &aside, to, new)
    }

    fn sub(&self, dir: &Dir, name: &[u8]) -> Result<Dir> {
        if dir.stat(name)?.is_none() {
            self.disk.mkdir(dir, name, 0o700)?;
        }
        dir.child(name)
    }
}

fn there(dir: &Dir, name: &[u8]) -> Result<Option<Dir>> {
    match dir.child(name) {
        Ok(dir) => Ok(Some(dir)),
        Err(e) if e.kind() == Kind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn is_id(name: &[u8]) -> bool {
    std::str::from_utf8(name).ok().and_then(Id::parse).is_some()
}
