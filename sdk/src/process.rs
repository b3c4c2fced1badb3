//! Programs that settings of kind program were given. They leave the sandbox, and the user
//! is told so: whatever can be done without one is better done without.
//!
//! A program runs without a shell, with no environment but what it is given, in an empty
//! directory. It is killed when its [`Child`] is dropped. When snapback itself is killed,
//! a program sees its input end: it must not take that for the end of its work.
//!
//! ```no_run
//! use snapback_sdk::process::Command;
//! use snapback_sdk::{Part, Result, Target, Writer, splice};
//!
//! fn dump(target: &Target) -> Result<Part> {
//!     let mut child = Command::new(target, "pg-dump").args(["--format=custom", "shop"]).spawn()?;
//!     let writer = Writer::new()?;
//!     splice(child.stdout()?.stream(), writer.stream())?;
//!     child.wait()?.success()?;
//!     Ok(Part { name: "dump".into(), content: writer.finish()? })
//! }
//! ```

use crate::bindings::snapback::plugin::process;
use crate::bindings::wasi::io::streams::{OutputStream, StreamError};
use crate::content::{failed, put};
use crate::{Error, ErrorKind, Reader, Result, Target};
use std::io;

/// A program that is to be run.
pub struct Command<'a> {
    target: &'a Target,
    key: &'a str,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl<'a> Command<'a> {
    /// The program that the setting `key` of `target` names.
    pub fn new(target: &'a Target, key: &'a str) -> Self {
        Self { target, key, args: Vec::new(), env: Vec::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args<T: Into<String>>(mut self, args: impl IntoIterator<Item = T>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds a variable to its environment, which has nothing else.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts it.
    ///
    /// # Errors
    /// `Denied` when it was not granted, `Changed` when its file is another by now.
    pub fn spawn(self) -> Result<Child> {
        Ok(Child(process::Child::spawn(self.target, self.key, &self.args, &self.env)?))
    }
}

/// A program that runs. Dropped, it is killed.
pub struct Child(process::Child);

impl Child {
    /// Where its input goes; it ends when that is dropped. Once; not taken, it is empty.
    ///
    /// # Errors
    /// `Invalid` the second time.
    pub fn stdin(&mut self) -> Result<Stdin> {
        Ok(Stdin(self.0.stdin()?))
    }

    /// What it writes. Once; not taken, it is thrown away.
    ///
    /// # Errors
    /// `Invalid` the second time.
    pub fn stdout(&mut self) -> Result<Reader> {
        Ok(self.0.stdout()?.into())
    }

    /// Waits for its end. What was taken of it must be dropped or read to its end before.
    ///
    /// # Errors
    /// When it cannot be waited for.
    pub fn wait(self) -> Result<Ended> {
        let (status, stderr) = process::Child::wait(self.0)?;
        Ok(Ended { status, stderr })
    }
}

/// How a program ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Its exit status; 128 and more when a signal ended it.
    pub status: i32,
    /// The last 64 KiB of what it said on standard error.
    pub stderr: String,
}

impl Ended {
    /// Nothing, when it ended well.
    ///
    /// # Errors
    /// With the last line of standard error.
    pub fn success(&self) -> Result<()> {
        if self.status == 0 {
            return Ok(());
        }
        let last = self.stderr.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        Err(Error::new(ErrorKind::Other, format!("a program failed ({}): {last}", self.status)))
    }
}

/// What a program reads.
pub struct Stdin(OutputStream);

impl Stdin {
    /// The stream itself, for [`crate::splice`].
    pub fn stream(&self) -> &OutputStream {
        &self.0
    }
}

impl io::Write for Stdin {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        put(&self.0, buf, None, gone)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.blocking_flush().map_err(gone)
    }
}

fn gone(error: StreamError) -> io::Error {
    failed(error, "the program reads no more")
}

impl Drop for Stdin {
    fn drop(&mut self) {
        // What is on its way gets there; a program that reads no more is its own trouble.
        let _ = self.0.blocking_flush();
    }
}
