//! A directory that was granted: open, with the options for what is captured of it.

use super::root::Root;
use super::scan::Stat;
use super::select::Options;
use crate::error::{Error, Kind, Result, show};
use rustix::fs::{Mode, OFlags};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

/// An open directory. Everything that is captured of it or restored to it goes
/// through its handle: what its path leads to later does not matter.
#[derive(Debug)]
pub struct Directory {
    handle: OwnedFd,
    path: PathBuf,
    setting: String,
    value: String,
    options: Options,
    stat: Stat,
}

impl Directory {
    /// Opens the directory that `setting` names by `value`: a path, relative ones from
    /// `root`. Whether the user granted it is checked by the caller, on [`Self::id`].
    ///
    /// # Errors
    /// When there is no directory, or it may not be read.
    pub fn open(root: &Path, setting: &str, value: &str, options: &Options) -> Result<Self> {
        let path = root.join(value);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let handle = rustix::fs::open(&path, flags, Mode::empty()).map_err(|e| {
            let error = Error::io(e, "could not open", &path);
            match error.kind() {
                Kind::NotFound | Kind::Invalid => error.hint(format!("`{setting}` must name a directory")),
                _ => error,
            }
        })?;
        Self::of(handle, &path, setting, value, options)
    }

    /// The directory `handle`, which was opened by `path`: what `setting` names by `value`.
    ///
    /// # Errors
    /// When it is no directory, or cannot be looked at.
    pub fn of(handle: OwnedFd, path: &Path, setting: &str, value: &str, options: &Options) -> Result<Self> {
        let stat = Stat::of_open(&handle).map_err(|e| Error::io(e, "could not look at", path))?;
        let own = format!("/proc/self/fd/{}", handle.as_raw_fd());
        let real = std::fs::read_link(own).or_else(|_| path.canonicalize());
        // Of what was removed meanwhile there is no path.
        let real = real.and_then(|real| real.symlink_metadata().map(|_| real));
        let path = real.map_err(|e| Error::io(e, "could not find", path))?;
        if !stat.is_dir() {
            return Err(Error::new(Kind::Invalid, format!("{} is not a directory", show(&path))));
        }
        Ok(Self {
            handle,
            path,
            setting: setting.to_owned(),
            value: value.to_owned(),
            options: options.clone(),
            stat,
        })
    }

    /// The open directory.
    pub fn handle(&self) -> BorrowedFd<'_> {
        self.handle.as_fd()
    }

    /// Where it was when it was opened: absolute, without links; for people and for
    /// the search for a repository around it, not to reach what is in it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The setting that it was opened with.
    pub fn setting(&self) -> &str {
        &self.setting
    }

    /// What caches about what it captures are called by: with other files, others.
    pub(crate) fn cached_as(&self) -> String {
        let apart = if self.options().sqlite { "+sqlite" } else { "" };
        format!("{}{apart}", self.setting)
    }

    /// That setting's value.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Opens a directory again as it was opened when `captured` was, relative to `root`.
    ///
    /// # Errors
    /// As [`Self::open`] has them, or when it was captured with options that this
    /// version does not know.
    pub fn reopen(root: &Path, captured: &Root) -> Result<Self> {
        let options = Options::parse(&captured.options)?;
        Self::open(root, &captured.setting, &captured.value, &options)
    }

    /// What of it is captured, and how.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Device and inode, from the handle.
    pub fn id(&self) -> (u64, u64) {
        self.stat.id()
    }

    /// The mount that it lies on.
    pub(crate) fn mount(&self) -> u64 {
        self.stat.mount
    }
}
