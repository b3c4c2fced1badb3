//! Operations on names: making, moving and removing what stands in a directory.

use super::dir::open_flags;
use super::{Dir, Disk, Handle, Op, OpKind, Special, failed};
use crate::error::{Error, Kind, Result, show_bytes};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// What is made with, before its mode is set: nobody else reads it meanwhile.
fn mode(bits: u32) -> Mode {
    Mode::from_raw_mode(bits)
}

/// Refuses what is not one name.
fn one_name(name: &[u8]) -> Result<()> {
    if crate::tree::node::is_name(name) {
        return Ok(());
    }
    Err(Error::new(Kind::Invalid, format!("{} is not a name in a directory", show_bytes(name))))
}

impl Disk {
    /// Makes the file `name`, which must not exist, with `bits` (and the umask), open
    /// for reading and writing.
    pub fn create_file(&self, dir: &Dir, name: &[u8], bits: u32) -> Result<Handle> {
        one_name(name)?;
        let flags = open_flags() | OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let op = Op::new(OpKind::Create, dir.path(), name).with_bits(bits);
        let fd = self.run(&op, || Ok(rustix::fs::openat(dir, name, flags, mode(bits))?))?;
        Ok(Handle::new(File::from(fd), dir.join(name)))
    }

    /// Opens the file `name` for reading and writing, making it with `bits` if it is
    /// not there; a link is refused.
    pub fn open_or_create(&self, dir: &Dir, name: &[u8], bits: u32) -> Result<Handle> {
        one_name(name)?;
        let flags = open_flags() | OFlags::RDWR | OFlags::CREATE;
        let op = Op::new(OpKind::Create, dir.path(), name).with_bits(bits);
        let fd = self.run(&op, || Ok(rustix::fs::openat(dir, name, flags, mode(bits))?))?;
        Ok(Handle::new(File::from(fd), dir.join(name)))
    }

    /// Opens the file `name`, which must exist, for reading and writing; a link is refused.
    pub fn open_for_writing(&self, dir: &Dir, name: &[u8]) -> Result<Handle> {
        one_name(name)?;
        let flags = open_flags() | OFlags::RDWR;
        let op = Op::new(OpKind::OpenForWriting, dir.path(), name);
        let fd = self.run(&op, || Ok(rustix::fs::openat(dir, name, flags, Mode::empty())?))?;
        Ok(Handle::new(File::from(fd), dir.join(name)))
    }

    /// Renames; what is at the new place is replaced in one step.
    pub fn rename(&self, from: &Dir, old: &[u8], to: &Dir, new: &[u8]) -> Result<()> {
        self.rename_as(OpKind::Rename, RenameFlags::empty(), from, old, to, new)
    }

    /// Renames; fails when there is something at the new place.
    pub fn rename_noreplace(&self, from: &Dir, old: &[u8], to: &Dir, new: &[u8]) -> Result<()> {
        match self.rename_as(OpKind::RenameNoReplace, RenameFlags::NOREPLACE, from, old, to, new) {
            // Also what file systems over a network say of the flag itself.
            Err(error) if error.is(Errno::INVAL) => self.rename_in_steps(from, old, to, new),
            done => done,
        }
    }

    /// The same without the system's help: a second name takes no place that is taken, and
    /// neither does a directory that is not empty. Where there are no second names, what
    /// somebody makes at the new place between the look and the renaming is replaced.
    fn rename_in_steps(&self, from: &Dir, old: &[u8], to: &Dir, new: &[u8]) -> Result<()> {
        let is_dir =
            from.stat(old)?.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Directory);
        if !is_dir {
            match self.link(from, old, to, new) {
                Err(error) if !error.is(Errno::EXIST) => {}
                done => return done.and_then(|()| self.unlink(from, old)),
            }
        }
        if to.stat(new)?.is_some() {
            return Err(failed(Errno::EXIST, OpKind::Rename.doing(), &to.join(new)));
        }
        self.rename(from, old, to, new)
    }

    /// Exchanges what is at the two places, in one step. False, and nothing done, where the
    /// file system cannot do that.
    pub fn exchange(&self, a: &Dir, a_name: &[u8], b: &Dir, b_name: &[u8]) -> Result<bool> {
        match self.rename_as(OpKind::Exchange, RenameFlags::EXCHANGE, a, a_name, b, b_name) {
            Err(error) if error.is(Errno::INVAL) => Ok(false),
            done => done.map(|()| true),
        }
    }

    fn rename_as(
        &self,
        kind: OpKind,
        flags: RenameFlags,
        from: &Dir,
        old: &[u8],
        to: &Dir,
        new: &[u8],
    ) -> Result<()> {
        one_name(old)?;
        one_name(new)?;
        let op = Op { to: Some((to.path(), new)), ..Op::new(kind, from.path(), old) };
        self.run(&op, || {
            if flags.is_empty() {
                Ok(rustix::fs::renameat(from, old, to, new)?)
            } else {
                Ok(rustix::fs::renameat_with(from, old, to, new, flags)?)
            }
        })
    }

    /// Gives the file at `old` a second name; a symbolic link is itself linked.
    pub fn link(&self, from: &Dir, old: &[u8], to: &Dir, new: &[u8]) -> Result<()> {
        one_name(old)?;
        one_name(new)?;
        let op = Op { to: Some((to.path(), new)), ..Op::new(OpKind::Link, from.path(), old) };
        self.run(&op, || Ok(rustix::fs::linkat(from, old, to, new, AtFlags::empty())?))
    }

    /// Removes the name of what is not a directory.
    pub fn unlink(&self, dir: &Dir, name: &[u8]) -> Result<()> {
        one_name(name)?;
        let op = Op::new(OpKind::Unlink, dir.path(), name);
        self.run(&op, || Ok(rustix::fs::unlinkat(dir, name, AtFlags::empty())?))
    }

    /// Opens the directory `path`, made with its parents, for this user alone, when it is
    /// not there.
    pub fn make_dirs(&self, path: &Path) -> Result<Dir> {
        match Dir::open(path) {
            Err(error) if error.kind() == Kind::NotFound => {}
            other => return other,
        }
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return Dir::open(path) };
        let parent = self.make_dirs(parent)?;
        // Another command may have made it in the meantime: opening tells.
        let _ = self.mkdir(&parent, name.as_bytes(), 0o700);
        parent.child(name.as_bytes())
    }

    /// Makes an empty directory with `bits` (and the umask).
    pub fn mkdir(&self, dir: &Dir, name: &[u8], bits: u32) -> Result<()> {
        one_name(name)?;
        let op = Op::new(OpKind::MakeDir, dir.path(), name).with_bits(bits);
        self.run(&op, || Ok(rustix::fs::mkdirat(dir, name, mode(bits))?))
    }

    /// Removes an empty directory.
    pub fn rmdir(&self, dir: &Dir, name: &[u8]) -> Result<()> {
        one_name(name)?;
        let op = Op::new(OpKind::RemoveDir, dir.path(), name);
        self.run(&op, || Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?))
    }

    /// Makes a symbolic link that points to `target`, verbatim.
    pub fn symlink(&self, dir: &Dir, name: &[u8], target: &[u8]) -> Result<()> {
        one_name(name)?;
        let op = Op { data: target, ..Op::new(OpKind::Symlink, dir.path(), name) };
        self.run(&op, || Ok(rustix::fs::symlinkat(target, dir, name)?))
    }

    /// Makes a fifo, a socket or a device with `bits` (and the umask).
    pub fn mknod(&self, dir: &Dir, name: &[u8], special: Special, bits: u32) -> Result<()> {
        one_name(name)?;
        let (kind, dev) = special.parts();
        let op = Op::new(OpKind::MakeNode, dir.path(), name).with_bits(bits);
        self.run(&op, || Ok(rustix::fs::mknodat(dir, name, kind, mode(bits), dev)?))
    }

    /// Makes the names in `dir` durable.
    pub fn sync_dir(&self, dir: &Dir) -> Result<()> {
        if !self.syncs() {
            return Ok(());
        }
        let op = Op::new(OpKind::SyncDir, dir.path(), b"");
        self.run(&op, || match rustix::fs::fsync(dir) {
            // Some network file systems cannot sync a directory; they write names through.
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(()),
            done => Ok(done?),
        })
    }

    /// Makes everything durable that was written to the file system of `dir`.
    pub fn sync_filesystem(&self, dir: &Dir) -> Result<()> {
        if !self.syncs() {
            return Ok(());
        }
        let op = Op::new(OpKind::SyncFileSystem, dir.path(), b"");
        self.run(&op, || Ok(rustix::fs::syncfs(dir)?))
    }

    /// Makes the file `name` with exactly `bytes`, durable and whole or not at all: it
    /// is written aside (as `name.new`), synced, renamed over what was there, and the
    /// directory is synced. One writer at a time: callers hold a lock.
    pub fn write_sealed(&self, dir: &Dir, name: &[u8], bytes: &[u8], bits: u32) -> Result<()> {
        self.write_synced(dir, name, bytes, bits)?;
        self.sync_dir(dir)
    }

    /// Like [`Self::write_sealed`], but leaves it to a later sync of the directory to make
    /// the name durable: for several files at once.
    pub fn write_synced(&self, dir: &Dir, name: &[u8], bytes: &[u8], bits: u32) -> Result<()> {
        self.write_aside(dir, name, bytes, bits, true)
    }

    /// Like [`Self::write_sealed`] for what can be made again: nothing is synced.
    pub fn write_cache(&self, dir: &Dir, name: &[u8], bytes: &[u8], bits: u32) -> Result<()> {
        self.write_aside(dir, name, bytes, bits, false)
    }

    fn write_aside(&self, dir: &Dir, name: &[u8], bytes: &[u8], bits: u32, sync: bool) -> Result<()> {
        let aside = [name, b".new"].concat();
        if dir.stat(&aside)?.is_some() {
            self.unlink(dir, &aside)?;
        }
        let file = self.create_file(dir, &aside, bits)?;
        let written = self.write_all(&file, 0, bytes).and_then(|()| match sync {
            true => self.sync_file(&file),
            false => Ok(()),
        });
        let done = written.and_then(|()| self.rename(dir, &aside, dir, name));
        if done.is_err() {
            // The first failure is what is told.
            let _ = self.unlink(dir, &aside);
        }
        done
    }
}
