//! Operations on an open file: its bytes and its length.

use super::{Disk, Op, OpKind, failed};
use crate::error::Result;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::fs::{FallocateFlags, Stat};
use rustix::io::Errno;
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A file open for reading and writing, with the path it was reached by for messages.
#[derive(Debug)]
pub struct Handle {
    file: File,
    path: PathBuf,
}

impl Handle {
    pub(super) fn new(file: File, path: PathBuf) -> Self {
        Self { file, path }
    }

    /// A file in memory, for what nobody keeps; messages call it `path`.
    pub fn in_memory(path: &Path) -> Result<Self> {
        let file = rustix::fs::memfd_create("snapback", rustix::fs::MemfdFlags::CLOEXEC);
        file.map(|file| Self::new(file.into(), path.to_owned()))
            .map_err(|e| failed(e, "could not use memory for", path))
    }

    /// The open file, for reading.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The path it was reached by; for messages only.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it is.
    pub fn stat(&self) -> Result<Stat> {
        rustix::fs::fstat(&self.file).map_err(|e| failed(e, "could not look at", &self.path))
    }

    /// The operation `kind` on this file, as a hook sees it.
    pub(super) fn op(&self, kind: OpKind) -> Op<'_> {
        let dir = self.path.parent().unwrap_or(Path::new(""));
        let name = self.path.file_name().map_or(&b""[..], |name| name.as_bytes());
        Op::new(kind, dir, name)
    }
}

impl AsFd for Handle {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Disk {
    /// Writes all of `bytes` at `offset`.
    pub fn write_all(&self, file: &Handle, offset: u64, bytes: &[u8]) -> Result<()> {
        let op = Op { offset, data: bytes, ..file.op(OpKind::Write) };
        self.run(&op, || std::os::unix::fs::FileExt::write_all_at(&file.file, bytes, offset))
    }

    /// Makes the file `length` bytes long; what is added is a hole.
    pub fn truncate(&self, file: &Handle, length: u64) -> Result<()> {
        let op = Op { offset: length, ..file.op(OpKind::Truncate) };
        self.run(&op, || Ok(rustix::fs::ftruncate(&file.file, length)?))
    }

    /// Makes `length` bytes from `offset` a hole that reads as zeros, without changing
    /// the file's length. Where the file system has no holes, zeros are written.
    pub fn punch(&self, file: &Handle, offset: u64, length: u64) -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        let op = Op { offset, ..file.op(OpKind::Punch) };
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        let punched = self.run(&op, || match rustix::fs::fallocate(&file.file, flags, offset, length) {
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => Ok(false),
            done => Ok(done.map(|()| true)?),
        })?;
        if punched {
            return Ok(());
        }
        let zeros = [0; 64 * 1024];
        let mut done = 0;
        while done < length {
            let part = (length - done).min(zeros.len() as u64);
            self.write_all(file, offset + done, &zeros[..part as usize])?;
            done += part;
        }
        Ok(())
    }

    /// Makes the whole of `to`, which is empty, share the blocks of `from` as it is at
    /// one moment. False where the file system cannot; nothing was changed then.
    pub fn clone_file(&self, from: &File, to: &Handle) -> Result<bool> {
        let op = to.op(OpKind::Clone);
        self.run(&op, || match rustix::fs::ioctl_ficlone(&to.file, from) {
            Ok(()) => Ok(true),
            #[cfg(test)]
            Err(_) if self.copies_are_clones => super::copy_whole(from, &to.file).map(|()| true),
            // The last two: a swap file, an immutable one.
            Err(
                Errno::OPNOTSUPP
                | Errno::XDEV
                | Errno::INVAL
                | Errno::NOTTY
                | Errno::NOSYS
                | Errno::TXTBSY
                | Errno::PERM,
            ) => Ok(false),
            Err(e) => Err(e.into()),
        })
    }

    /// Copies up to `length` bytes inside the kernel; returns how many (0 at the end
    /// of `from`). Where a file system shares blocks between files, whole blocks are
    /// shared. None where it is not possible between the two.
    pub fn copy_range(
        &self,
        from: &File,
        from_offset: u64,
        to: &Handle,
        to_offset: u64,
        length: u64,
    ) -> Result<Option<u64>> {
        let op = Op { offset: to_offset, ..to.op(OpKind::CopyRange) };
        let length = usize::try_from(length).unwrap_or(1 << 30).min(1 << 30);
        self.run(&op, || {
            let (mut read_at, mut write_at) = (from_offset, to_offset);
            let (read_at, write_at) = (Some(&mut read_at), Some(&mut write_at));
            match rustix::fs::copy_file_range(from, read_at, &to.file, write_at, length) {
                Ok(n) => Ok(Some(n as u64)),
                Err(Errno::OPNOTSUPP | Errno::XDEV | Errno::INVAL | Errno::NOSYS | Errno::TXTBSY) => Ok(None),
                Err(e) => Err(e.into()),
            }
        })
    }

    /// Copies `length` bytes, inside the kernel where that is possible.
    ///
    /// # Errors
    /// Also when `from` ends before.
    pub fn copy_all(
        &self,
        from: &File,
        from_offset: u64,
        to: &Handle,
        to_offset: u64,
        length: u64,
    ) -> Result<()> {
        let mut done = 0;
        while done < length {
            match self.copy_range(from, from_offset + done, to, to_offset + done, length - done)? {
                Some(n) if n > 0 => done += n,
                _ => break,
            }
        }
        let mut buffer = vec![0; (length - done).min(64 * 1024) as usize];
        while done < length {
            let part = &mut buffer[..(length - done).min(64 * 1024) as usize];
            std::os::unix::fs::FileExt::read_exact_at(from, part, from_offset + done)
                .map_err(|e| failed(e, "could not read what is copied to", &to.path))?;
            self.write_all(to, to_offset + done, part)?;
            done += part.len() as u64;
        }
        Ok(())
    }

    /// Makes the file's bytes and length durable.
    pub fn sync_file(&self, file: &Handle) -> Result<()> {
        if !self.syncs() {
            return Ok(());
        }
        self.run(&file.op(OpKind::SyncFile), || Ok(rustix::fs::fsync(&file.file)?))
    }
}
