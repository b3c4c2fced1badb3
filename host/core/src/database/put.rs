//! Files that take their place at the path of a database: made aside, whole and
//! durable, then moved there in one step.
//!
//! Aside is the store where names can be moved between it and the directory, else
//! `.snapback~` in the directory itself, which goes with the value.
//!
//! Invariant: what comes here from the directory is compared here, and goes with the value only
//! when it is what was captured. What somebody put there in between goes back to its place, or,
//! when that is taken by then, is kept for good and told.

use crate::backend::{Call, Cancel};
use crate::disk::{Dir, Disk, Handle};
use crate::error::{Error, Kind, Result, show, show_bytes};
use crate::object::Key;
use crate::store::content::{self, Piece};
use crate::store::{Source, Workspace};
use crate::tree::apply::{Attributes, Note, On, RESERVED, Refusal, Rights};
use crate::tree::apply::{SAVED, is_kept, keep, keep_beside, make_dir};
use crate::tree::node::{Entry, Node};
use crate::tree::scan::Stat;
use rustix::io::Errno;

/// Where files are made before they take their place in a directory.
pub enum Stage<'a> {
    /// In the store.
    Store(Workspace),
    /// In the directory.
    Beside(&'a Dir, Dir, Disk),
}

impl<'a> Stage<'a> {
    /// A place for files that are to stand in `dir`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn open(call: &Call, dir: &'a Dir) -> Result<Self> {
        let workspace = call.store()?.workspace()?;
        let volume = |dir: &Dir| {
            let stat = Stat::of_open(dir).map_err(|e| Error::io(e, "could not look at", dir.path()));
            stat.map(|stat| (stat.dev, stat.mount))
        };
        if volume(workspace.dir())? == volume(dir)? {
            return Ok(Self::Store(workspace));
        }
        let disk = call.store()?.disk();
        if dir.stat(RESERVED)?.is_none() {
            disk.mkdir(dir, RESERVED, 0o700)?;
        }
        Ok(Self::Beside(dir, dir.child(RESERVED)?, disk.clone()))
    }

    fn dir(&self) -> &Dir {
        match self {
            Self::Store(workspace) => workspace.dir(),
            Self::Beside(_, dir, _) => dir,
        }
    }

    /// Makes `entry` here under its name, with all that it is, durable.
    ///
    /// # Errors
    /// When its content cannot be read or the disk refuses.
    pub fn make(&self, call: &Call, source: &dyn Source, entry: &Entry) -> Result<()> {
        let (disk, dir, name) = (call.store()?.disk(), self.dir(), &entry.name);
        if dir.stat(name)?.is_some() {
            disk.unlink(dir, name)?;
        }
        match &entry.node {
            Node::File { content, size, .. } => {
                let file = disk.create_file(dir, name, 0o600)?;
                fill(disk, &file, source, (content, *size), &call.cancel)?;
                settle(call, dir, entry)?;
                disk.sync_file(&file)
            }
            Node::Symlink(to) => disk.symlink(dir, name, to).and_then(|()| settle(call, dir, entry)),
            _ => Err(Error::corrupt("what is to stand in a database's place is no file")),
        }
    }

    /// Moves what was made as `entry` into its place in `dir`, over what is there: for
    /// whoever has locked that.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn replace(&self, call: &Call, entry: &Entry, dir: &Dir) -> Result<()> {
        call.store()?.disk().rename(self.dir(), &entry.name, dir, &entry.name)
    }

    /// Moves what was made as `entry` into its place in `dir`, if what is there is
    /// `expected`.
    ///
    /// # Errors
    /// `Changed` when it is something else, which is left there; when the disk refuses.
    pub fn place(&self, call: &Call, entry: &Entry, dir: &Dir, expected: Option<&Entry>) -> Result<()> {
        let (disk, name) = (call.store()?.disk(), &entry.name);
        let Some(expected) = expected else {
            return match disk.rename_noreplace(self.dir(), name, dir, name) {
                Err(e) if e.is(Errno::EXIST) => Err(changed(dir, name)),
                done => done,
            };
        };
        match disk.exchange(self.dir(), name, dir, name) {
            Ok(true) => {}
            Ok(false) => {
                self.take_out(call, dir, expected)?;
                return disk.rename_noreplace(self.dir(), name, dir, name).inspect_err(|_| {
                    let _ = disk.rename_noreplace(self.dir(), &out(name), dir, name);
                });
            }
            Err(e) if e.kind() == Kind::NotFound => return Err(changed(dir, name)),
            Err(e) => return Err(e),
        }
        check(call, self.dir(), name, expected).inspect_err(|_| {
            match disk.exchange(self.dir(), name, dir, name) {
                // What comes out may be newer than what was found.
                Ok(true) => self.keep_unless(call, name, entry),
                _ => self.give_back(call, dir, name, name),
            }
        })
    }

    /// Puts back what `take_out` took out as `name`, or what `place` moved aside for what was
    /// `placed`; that is here again, and who put something else in its place since finds that kept.
    ///
    /// # Errors
    /// When the disk refuses; what is there by now is left.
    pub fn back(&self, call: &Call, dir: &Dir, name: &[u8], placed: Option<&Entry>) -> Result<()> {
        let (disk, out) = (call.store()?.disk(), out(name));
        let is_out = self.dir().stat(&out)?.is_some();
        if let Some(placed) = placed {
            match !is_out && self.dir().stat(name)?.is_some() {
                true => drop(disk.exchange(self.dir(), name, dir, name)?),
                false => disk.rename(dir, name, self.dir(), name)?,
            }
            self.keep_unless(call, name, placed);
        }
        match is_out {
            true => disk.rename_noreplace(self.dir(), &out, dir, name),
            false => Ok(()),
        }
    }

    /// Takes what was captured as `entry` out of `dir`, if that is what is there.
    ///
    /// # Errors
    /// `Changed` when it is something else, which is left there; when the disk refuses.
    pub fn take_out(&self, call: &Call, dir: &Dir, entry: &Entry) -> Result<()> {
        let (disk, name) = (call.store()?.disk(), &entry.name);
        let out = out(name);
        match disk.rename(dir, name, self.dir(), &out) {
            Err(e) if e.kind() == Kind::NotFound => return Err(changed(dir, name)),
            done => done?,
        }
        check(call, self.dir(), &out, entry).inspect_err(|_| self.give_back(call, dir, &out, name))
    }

    /// Gives what stands here as `here`, and is not what was captured, its place at `name`
    /// again; when that is taken, it is kept.
    fn give_back(&self, call: &Call, dir: &Dir, here: &[u8], name: &[u8]) {
        let given = call.store().and_then(|store| store.disk().rename_noreplace(self.dir(), here, dir, name));
        if given.is_err() {
            self.keep(call, here, name);
        }
    }

    /// Keeps what stands here as `name`, unless it is `known`.
    fn keep_unless(&self, call: &Call, name: &[u8], known: &Entry) {
        if check(call, self.dir(), name, known).is_err() {
            self.keep(call, name, name);
        }
    }

    /// Keeps what stands here as `here` and was called `name` for good, and tells where.
    fn keep(&self, call: &Call, here: &[u8], name: &[u8]) {
        let kept = call.store().and_then(|store| match self {
            Self::Store(workspace) => {
                let saved = make_dir(store.disk(), store.dir(), SAVED)?;
                keep(store.disk(), workspace.dir(), here, &saved, "database", name)
            }
            Self::Beside(_, dir, _) => keep_beside(store.disk(), dir, here, "database", name),
        });
        let how = match kept {
            Ok(at) => format!("is kept as {}", show(&at)),
            Err(error) => format!("could not be kept: {error}"),
        };
        let text = format!("what somebody put in the place of {} meanwhile {how}", show_bytes(name));
        call.report.log(&call.target.name, "warn", &text);
    }
}

/// What a name is called aside.
fn out(name: &[u8]) -> Vec<u8> {
    [b"out-", name].concat()
}

/// Refuses what `name` in `dir` is, unless it is what was captured as `entry`.
fn check(call: &Call, dir: &Dir, name: &[u8], entry: &Entry) -> Result<()> {
    let scratch = call.store()?.scratch(true);
    let found = super::capture_file(&mut scratch.lane(), dir, name, &call.cancel)?;
    match found.is_some_and(|found| found.node == entry.node) {
        true => Ok(()),
        false => Err(changed(dir, &entry.name)),
    }
}

fn changed(dir: &Dir, name: &[u8]) -> Error {
    let shown = crate::error::show(&dir.join(name));
    Error::new(Kind::Changed, format!("{shown} is not as it was when it was captured")).hint("try again")
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        let Self::Beside(home, dir, disk) = self else { return };
        // What stays of it is found and used by the next one.
        for name in dir.names().unwrap_or_default().iter().filter(|name| !is_kept(name)) {
            let _ = disk.unlink(dir, name);
        }
        let _ = disk.rmdir(home, RESERVED);
    }
}

/// Makes the file `name` in `dir`, which is our own, with the content of `entry`; returns
/// its length.
///
/// # Errors
/// When the content cannot be read or the disk refuses.
pub fn fill_file(
    disk: &Disk,
    dir: &Dir,
    name: &[u8],
    source: &dyn Source,
    entry: &Entry,
    cancel: &Cancel,
) -> Result<u64> {
    let Node::File { content, size, .. } = &entry.node else {
        return Err(Error::corrupt("what is to be a file is none"));
    };
    let file = disk.create_file(dir, name, 0o600)?;
    fill(disk, &file, source, (content, *size), cancel)?;
    Ok(*size)
}

/// Writes content into an empty file.
fn fill(
    disk: &Disk,
    file: &Handle,
    source: &dyn Source,
    (key, size): (&Key, u64),
    cancel: &Cancel,
) -> Result<()> {
    disk.truncate(file, size)?;
    content::load(source, key, size, &mut |at, piece| {
        cancel.check()?;
        match piece {
            Piece::Bytes(bytes) => disk.write_all(file, at, bytes),
            Piece::Zeros(_) => Ok(()),
        }
    })
}

/// Gives what stands in `dir` under the name of `entry` its mode, owner and attributes;
/// what this user may not give is told. The file is not opened: closing it would let
/// go of the locks that this process has on it.
///
/// # Errors
/// When the disk refuses.
pub fn settle(call: &Call, dir: &Dir, entry: &Entry) -> Result<()> {
    let looked = |e| Error::io(e, "could not look at", dir.join(&entry.name));
    let Some(held) = dir.hold(&entry.name)? else { return Ok(()) };
    let stat = Stat::of_open(&held).map_err(looked)?;
    let on = On::Held(&held);
    let have = if stat.is_file() { on.xattrs() } else { Vec::new() };
    let attributes = Attributes {
        disk: call.store()?.disk(),
        rights: &Rights::of_process(),
        top: &call.root,
        note: &Told(call),
    };
    attributes.settle(on, &stat, &have, entry, None, b"").map(drop)
}

/// Tells what could not be given.
struct Told<'a>(&'a Call);

impl Note for Told<'_> {
    fn note(&self, Refusal { path, reason, hint }: Refusal) {
        let hint = hint.map_or(String::new(), |hint| format!(" (`{hint}`)"));
        self.0.report.refused(&self.0.target.name, &path, &format!("{reason}{hint}"));
    }
}
