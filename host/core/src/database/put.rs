//! Files that take their place at the path of a database: made aside, whole and
//! durable, then moved there in one step.
//!
//! Aside is the store's `aside/` where names can be moved between it and the directory, else
//! `.snapback~` in the directory itself: in both a directory for each target. There a file is `w...`
//! while it is written, `x...` when it is whole or was displaced by what was, `y...` when it was taken
//! out; `m...` says which inode was made here. What a killed process left there is dealt with by `left`.
//!
//! Invariant: what comes here from the directory is compared here, and goes only when it is what was
//! captured. What somebody put there in between goes back to its place, or, when that is taken by
//! then, is kept for good and told.

use super::left::recover;
use crate::backend::{Call, Cancel};
use crate::disk::{Dir, Disk, Handle};
use crate::error::{Error, Kind, Result, show, show_bytes};
use crate::object::Key;
use crate::store::content::{self, Piece};
use crate::store::{Source, Store};
use crate::tree::apply::{ASIDE, Attributes, Note, On, RESERVED, Refusal, Rights, SAVED, Volume};
use crate::tree::apply::{keep, make_dir, name_of, unfinished};
use crate::tree::node::{Entry, Node};
use crate::tree::scan::Stat;
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where files are made before they take their place in a directory.
pub struct Stage {
    pub(super) store: Arc<Store>,
    /// Its directory, called `name` in `above`.
    pub(super) dir: Dir,
    above: Dir,
    name: Vec<u8>,
    /// The directory that `above` lies in, where that is not the store.
    home: Option<Dir>,
    /// The directory in which files take their place.
    goal: PathBuf,
}

/// What its directory is called for `call`.
fn scope(call: &Call) -> Vec<u8> {
    let text = format!("{}\0database", call.target.name);
    name_of("", text.as_bytes())[1..17].to_vec()
}

impl Stage {
    /// A place for files that are to stand in `dir`; what an earlier one left there of the database
    /// `base` is dealt with first.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn open(call: &Call, dir: &Dir, base: &[u8]) -> Result<Self> {
        recover(call, dir, base)?;
        let (store, name) = (call.store()?.clone(), scope(call));
        let above = make_dir(store.disk(), store.dir(), ASIDE)?;
        let (above, home) = match Volume::of_open(&above)? == Volume::of_open(dir)? {
            true => (above, None),
            false => (make_dir(store.disk(), dir, RESERVED)?, Some(dir.try_clone()?)),
        };
        let own = make_dir(store.disk(), &above, &name)?;
        if !own.names()?.is_empty() {
            let text =
                format!("what was left of {} in {} could not be kept", show_bytes(base), show(own.path()));
            return Err(Error::new(Kind::Other, text).hint("move away what is there, and try again"));
        }
        Ok(Self { dir: own, store, above, name, home, goal: dir.path().to_owned() })
    }

    /// Those that earlier ones for `call` left.
    pub(super) fn left(call: &Call, dir: &Dir) -> Result<Vec<Self>> {
        let (store, name, mut left) = (call.store()?, scope(call), Vec::new());
        for (at, top, home) in [(store.dir(), ASIDE, None), (dir, RESERVED, Some(dir))] {
            if at.stat(top)?.is_none() {
                continue;
            }
            let above = at.child(top)?;
            // All that is in it was compared.
            store.disk().remove_all(&above, &done(&name))?;
            if above.stat(&name)?.is_some() {
                let (own, home) = (above.child(&name)?, home.map(Dir::try_clone).transpose()?);
                let (store, goal) = (store.clone(), dir.path().to_owned());
                left.push(Self { store, dir: own, above, name: name.clone(), home, goal });
            }
        }
        Ok(left)
    }

    pub(super) fn disk(&self) -> &Disk {
        self.store.disk()
    }

    /// Makes `entry` here, with all that it is, durable.
    ///
    /// # Errors
    /// When its content cannot be read or the disk refuses.
    pub fn make(&self, call: &Call, source: &dyn Source, entry: &Entry) -> Result<()> {
        let (disk, dir, name) = (self.disk(), &self.dir, made(&entry.name));
        let half = unfinished(&name);
        let goal = self.goal.join(OsStr::from_bytes(&entry.name));
        if dir.stat(&half)?.is_some() {
            disk.unlink(dir, &half)?;
        }
        let entry = Entry { name: half.clone(), ..entry.clone() };
        match &entry.node {
            Node::File { content, size, .. } => {
                let file = disk.create_file(dir, &half, 0o600)?;
                fill(disk, &file, source, (content, *size), &call.cancel)?;
                settle(call, dir, &entry, &goal)?;
                disk.sync_file(&file)?;
            }
            Node::Symlink(to) => {
                disk.symlink(dir, &half, to).and_then(|()| settle(call, dir, &entry, &goal))?
            }
            _ => return Err(Error::corrupt("what is to stand in a database's place is no file")),
        }
        let inode = dir.stat(&half)?.map_or(0, |stat| stat.st_ino);
        self.forget(&name)?;
        disk.create_file(dir, &[mark(&name), format!("{inode:016x}").into_bytes()].concat(), 0o600)?;
        disk.rename(dir, &half, dir, &name)
    }

    /// The inode of the file that was made here as `made`, as far as that is known.
    pub(super) fn inode(&self, made: &[u8]) -> Result<Option<u64>> {
        let mark = mark(made);
        let number = |name: &Vec<u8>| {
            let digits = std::str::from_utf8(name.strip_prefix(&mark[..])?).ok()?;
            u64::from_str_radix(digits, 16).ok()
        };
        Ok(self.dir.names()?.iter().find_map(number))
    }

    /// Removes what says which inode was made as `made`.
    pub(super) fn forget(&self, made: &[u8]) -> Result<()> {
        let mark = mark(made);
        let is = |name: &&Vec<u8>| name.starts_with(&mark);
        self.dir.names()?.iter().filter(is).try_for_each(|name| self.disk().unlink(&self.dir, name))
    }

    /// Gives up all that is here, which was compared.
    ///
    /// # Errors
    /// When the disk refuses: it is not given up then.
    pub fn finish(self) -> Result<()> {
        let done = done(&self.name);
        self.disk().rename(&self.above, &self.name, &self.above, &done)?;
        // What is found under the other name is put back, and that must not be after this.
        self.disk().sync_dir(&self.above)?;
        // What stays of it is removed by the next one.
        let _ = self.disk().remove_all(&self.above, &done);
        Ok(())
    }

    /// Moves what was made as `entry` into its place in `dir`, over what is there: for
    /// whoever has locked that.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn replace(&self, call: &Call, entry: &Entry, dir: &Dir) -> Result<()> {
        call.store()?.disk().rename(&self.dir, &made(&entry.name), dir, &entry.name)
    }

    /// Moves what was made as `entry` into its place in `dir`, if what is there is
    /// `expected`.
    ///
    /// # Errors
    /// `Changed` when it is something else, which is left there; when the disk refuses.
    pub fn place(&self, call: &Call, entry: &Entry, dir: &Dir, expected: Option<&Entry>) -> Result<()> {
        let (disk, name, made) = (self.disk(), &entry.name, made(&entry.name));
        let Some(expected) = expected else {
            return match disk.rename_noreplace(&self.dir, &made, dir, name) {
                Err(e) if e.is(Errno::EXIST) => Err(changed(dir, name)),
                done => done,
            };
        };
        match disk.exchange(&self.dir, &made, dir, name) {
            Ok(true) => {}
            Ok(false) => {
                self.take_out(call, dir, expected)?;
                return disk.rename_noreplace(&self.dir, &made, dir, name).inspect_err(|_| {
                    let _ = disk.rename_noreplace(&self.dir, &out(name), dir, name);
                });
            }
            Err(e) if e.kind() == Kind::NotFound => return Err(changed(dir, name)),
            Err(e) => return Err(e),
        }
        check(call, &self.dir, &made, expected).inspect_err(|_| {
            match disk.exchange(&self.dir, &made, dir, name) {
                // What comes out may be newer than what was found.
                Ok(true) => self.keep_unless(call, &made, entry),
                _ => self.give_back(call, dir, &made, name),
            }
        })
    }

    /// Puts back what `take_out` took out as `name`, or what `place` moved aside for what was
    /// `placed`; that is here again, and who put something else in its place since finds that kept.
    ///
    /// # Errors
    /// When the disk refuses; what is there by now is left.
    pub fn back(&self, call: &Call, dir: &Dir, name: &[u8], placed: Option<&Entry>) -> Result<()> {
        let (disk, out, made) = (self.disk(), out(name), made(name));
        let is_out = self.dir.stat(&out)?.is_some();
        if let Some(placed) = placed {
            match !is_out && self.dir.stat(&made)?.is_some() {
                true => drop(disk.exchange(&self.dir, &made, dir, name)?),
                false => disk.rename(dir, name, &self.dir, &made)?,
            }
            self.keep_unless(call, &made, placed);
        }
        match is_out {
            true => disk.rename_noreplace(&self.dir, &out, dir, name),
            false => Ok(()),
        }
    }

    /// Takes what was captured as `entry` out of `dir`, if that is what is there.
    ///
    /// # Errors
    /// `Changed` when it is something else, which is left there; when the disk refuses.
    pub fn take_out(&self, call: &Call, dir: &Dir, entry: &Entry) -> Result<()> {
        let (name, out) = (&entry.name, out(&entry.name));
        match self.disk().rename(dir, name, &self.dir, &out) {
            Err(e) if e.kind() == Kind::NotFound => return Err(changed(dir, name)),
            done => done?,
        }
        check(call, &self.dir, &out, entry).inspect_err(|_| self.give_back(call, dir, &out, name))
    }

    /// Gives what stands here as `here`, and is not what was captured, its place at `name`
    /// again; when that is taken, it is kept.
    pub(super) fn give_back(&self, call: &Call, dir: &Dir, here: &[u8], name: &[u8]) {
        if self.disk().rename_noreplace(&self.dir, here, dir, name).is_err() {
            self.keep(call, here, name);
        }
    }

    /// Keeps what stands here as `here`, unless it is `known`.
    fn keep_unless(&self, call: &Call, here: &[u8], known: &Entry) {
        if check(call, &self.dir, here, known).is_err() {
            self.keep(call, here, &known.name);
        }
    }

    /// Keeps what stands here as `here` and was called `name` for good, and tells where.
    pub(super) fn keep(&self, call: &Call, here: &[u8], name: &[u8]) {
        let (disk, dir) = (self.disk(), &self.dir);
        let kept = match &self.home {
            None => make_dir(disk, self.store.dir(), SAVED)
                .and_then(|saved| keep(disk, dir, here, &saved, "database", name)),
            Some(_) => keep(disk, dir, here, &self.above, "saved-database", name),
        };
        let how = match kept {
            Ok(at) => format!("is kept as {}", show(&at)),
            // It stays here, and is found by the next one.
            Err(error) => format!("could not be kept: {error}"),
        };
        let text = format!("what somebody put in the place of {} meanwhile {how}", show_bytes(name));
        call.report.log(&call.target.name, "warn", &text);
    }
}

/// What `name` is called here when it is whole, or displaced.
pub(super) fn made(name: &[u8]) -> Vec<u8> {
    name_of("", name)
}

/// What `name` is called here when it was taken out.
pub(super) fn out(name: &[u8]) -> Vec<u8> {
    [b"y", &made(name)[1..]].concat()
}

/// How a name begins that says which inode was made as `made`.
fn mark(made: &[u8]) -> Vec<u8> {
    [b"m", &made[1..]].concat()
}

/// What a directory called `scope` is called when all in it was compared.
fn done(scope: &[u8]) -> Vec<u8> {
    [b"done-", scope].concat()
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

impl Drop for Stage {
    /// What was made here goes; what came from elsewhere stays, and is found by the next one.
    fn drop(&mut self) {
        for name in self.dir.names().unwrap_or_default() {
            let is_own = || {
                let (inode, stat) = (self.inode(&name).ok().flatten(), self.dir.stat(&name).ok().flatten());
                inode.is_some() && inode == stat.map(|stat| stat.st_ino)
            };
            if name.starts_with(b"w") || name.starts_with(b"x") && is_own() {
                let _ = self.disk().unlink(&self.dir, &name);
            }
        }
        if self.dir.names().is_ok_and(|names| names.iter().all(|name| name.starts_with(b"m"))) {
            let _ = self.disk().remove_all(&self.above, &self.name);
        }
        if let Some(home) = &self.home
            && self.above.names().is_ok_and(|names| names.is_empty())
        {
            let _ = self.disk().rmdir(home, RESERVED);
        }
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

/// Gives what stands in `dir` under the name of `entry`, and is to stand at `goal`, its mode, owner
/// and attributes; what this user may not give is told. The file is not opened: closing it would let
/// go of the locks that this process has on it.
///
/// # Errors
/// When the disk refuses.
pub fn settle(call: &Call, dir: &Dir, entry: &Entry, goal: &Path) -> Result<()> {
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
    let path = goal.strip_prefix(&call.root).unwrap_or(goal).as_os_str().as_bytes();
    attributes.settle(on, &stat, &have, entry, None, path).map(drop)
}

/// Tells what could not be given.
struct Told<'a>(&'a Call);

impl Note for Told<'_> {
    fn note(&self, Refusal { path, reason, hint, in_part }: Refusal) {
        let hint = hint.map_or(String::new(), |hint| format!(" (`{hint}`)"));
        let (report, target, text) = (&self.0.report, &self.0.target.name, format!("{reason}{hint}"));
        match in_part {
            true => report.partly(target, &path, &text),
            false => report.refused(target, &path, &text),
        }
    }
}
