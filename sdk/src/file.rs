//! Single files that settings of kind file were given: read, and replaced all at once.
//!
//! What a file was when it was opened is remembered: a replacement or removal of one that
//! somebody wrote to since is refused with `Changed`, and leaves it alone. So a restore
//! opens the file, compares what it reads with what was captured, and then replaces it.

use crate::Result;
use crate::bindings::snapback::plugin::file;
use crate::bindings::wasi::io::streams::{OutputStream, StreamError};
use crate::content::{failed, put};
use crate::{Reader, Target};
use std::io;

/// A file that was granted; it need not be there.
pub struct File(file::File);

impl File {
    /// Opens the file that the setting `key` of `target` names.
    ///
    /// # Errors
    /// `Denied` when it was not granted, `Invalid` when a link or a directory is there.
    pub fn open(target: &Target, key: &str) -> Result<Self> {
        Ok(Self(file::File::open(target, key)?))
    }

    /// Its content from its start; none when there is no file. Reading fails at the end
    /// when somebody wrote to it meanwhile.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn read(&self) -> Result<Option<Reader>> {
        Ok(self.0.read()?.map(Into::into))
    }

    /// Another content for it: nothing happens before [`Replacement::finish`].
    ///
    /// # Errors
    /// `Denied` when it may only be read.
    pub fn replace(&self) -> Result<Replacement> {
        let inner = self.0.replace()?;
        Ok(Replacement { body: inner.body()?, inner })
    }

    /// Removes it.
    ///
    /// # Errors
    /// `Changed` when somebody wrote to it since it was opened.
    pub fn remove(&self) -> Result<()> {
        self.0.remove()
    }
}

/// What is to take a file's place. Dropped without `finish`, it leaves nothing.
pub struct Replacement {
    body: OutputStream,
    inner: file::Replacement,
}

impl Replacement {
    /// The stream, for [`splice`](crate::splice).
    pub fn stream(&self) -> &OutputStream {
        &self.body
    }

    /// Puts it in the file's place, durably.
    ///
    /// # Errors
    /// `Changed` when somebody wrote to the file since it was opened.
    pub fn finish(self) -> Result<()> {
        drop(self.body);
        file::Replacement::finish(self.inner)
    }
}

impl io::Write for Replacement {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        put(&self.body, buf, None, finished)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.body.blocking_flush().map_err(finished)
    }
}

fn finished(error: StreamError) -> io::Error {
    failed(error, "the replacement is finished already")
}
