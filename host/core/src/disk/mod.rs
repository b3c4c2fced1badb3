//! The one door to the file system for everything that changes it.
//!
//! Invariant: nothing else in this crate creates, writes, renames, links, removes,
//! syncs or changes attributes. Every operation is relative to an open directory
//! (`Dir`) and takes one name, or works on an open file (`Handle`), so no path is
//! ever resolved through a link. Refuses names that are not one name; what else may
//! be touched is decided by the callers.
//!
//! A `Hook` sees each operation before it happens and may fail it, and sees it again
//! after it happened: that is how tests count syncs (`Counter`), make the n-th
//! operation fail (`FailAt`) and find out what a power cut may lose (`PowerCut`).

mod attributes;
mod dir;
mod file;
mod held;
mod hook;
mod lease;
mod lend;
mod names;
mod power;
mod remove;

pub use attributes::{Opened, Special};
pub use dir::Dir;
pub use file::Handle;
pub use held::Held;
pub use hook::{Counter, FailAt, Hook, Op, OpKind, PlainRenames};
pub use lease::Writers;
pub use lend::Lent;
pub use power::PowerCut;

use crate::error::{Error, Kind, Result, odd_hint};
use rustix::io::Errno;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// The door. Cheap to clone.
#[derive(Clone, Default)]
pub struct Disk {
    hook: Option<Arc<dyn Hook>>,
    loans: Arc<lend::Loans>,
    no_sync: bool,
    #[cfg(test)]
    copies_are_clones: bool,
    shut: bool,
}

impl Disk {
    /// The same door, which tells `hook` of every operation.
    #[must_use]
    pub fn with_hook(mut self, hook: Arc<dyn Hook>) -> Self {
        self.hook = Some(hook);
        self
    }

    /// The same door; with `sync` off, nothing waits for the device: what was
    /// written survives the end of the process, not the end of power.
    #[must_use]
    pub fn with_sync(mut self, sync: bool) -> Self {
        self.no_sync = !sync;
        self
    }

    /// The same door; where a file cannot share the blocks of another, it gets a copy: so
    /// what depends on sharing is tried on any file system.
    #[cfg(test)]
    #[must_use]
    pub fn with_copies_as_clones(mut self) -> Self {
        self.copies_are_clones = true;
        self
    }

    /// The same door, shut: every operation is refused. For a store that is only read.
    #[must_use]
    pub fn shut(mut self) -> Self {
        self.shut = true;
        self
    }

    /// Whether syncs reach the device.
    pub fn syncs(&self) -> bool {
        !self.no_sync
    }

    /// Does one operation: asks the hook, acts (again when a signal came between),
    /// tells the hook, and makes a failure a sentence.
    fn run<T>(&self, op: &Op<'_>, mut act: impl FnMut() -> io::Result<T>) -> Result<T> {
        if self.shut {
            let why = format!("{} {}: it is only read", op.kind.doing(), crate::error::show(&op.path()));
            return Err(
                Error::new(Kind::Denied, why).hint("the store came from elsewhere and is not trusted")
            );
        }
        if let Some(hook) = &self.hook {
            hook.before(op).map_err(|e| sentence(e, op))?;
        }
        let done = loop {
            match act() {
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                done => break done,
            }
        };
        if let Some(hook) = &self.hook {
            hook.after(op, done.is_ok());
        }
        done.map_err(|e| sentence(e, op))
    }
}

#[cfg(test)]
fn copy_whole(mut from: &std::fs::File, mut to: &std::fs::File) -> io::Result<()> {
    io::Seek::rewind(&mut from)?;
    io::copy(&mut from, &mut to).map(drop)
}

/// What went wrong with `op`, in words; a full disk is told with what is left of it.
fn sentence(error: io::Error, op: &Op<'_>) -> Error {
    let path = op.path();
    let told = failed(error, op.kind.doing(), &path);
    if told.kind() != Kind::NoSpace {
        return told;
    }
    match rustix::fs::statvfs(op.dir) {
        // Some file systems have only so many files; others say nothing of it.
        Ok(fs) if fs.f_files > 0 && fs.f_favail == 0 => told.hint(
            "no more files can be made there, however small (`df -i` shows it); `snapback gc` needs none",
        ),
        Ok(fs) => {
            let free = fs.f_bavail.saturating_mul(fs.f_frsize);
            told.hint(format!(
                "{} are free there; `snapback gc` frees space without needing any",
                size_text(free)
            ))
        }
        Err(_) => told.hint("`snapback gc` frees space without needing any"),
    }
}

/// A failed system call in words.
pub(crate) fn failed(error: impl Into<io::Error>, doing: &str, path: &Path) -> Error {
    let error = error.into();
    if error.raw_os_error() == Some(Errno::LOOP.raw_os_error()) {
        let shown = crate::error::show(path);
        let error = Error::new(Kind::Invalid, format!("{doing} {shown}: it is a symbolic link"));
        return error.hint(odd_hint(path));
    }
    Error::io(error, doing, path)
}

/// A number of bytes as people read it: "12 B", "3.4 MiB".
pub fn size_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

#[cfg(test)]
mod tests;
