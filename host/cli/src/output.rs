//! Standard output: data, and nothing else.
//!
//! Invariant: a reader that went away (`| head`) ends the command quietly: the write
//! fails with `Cancelled`, and [`Out::closed`] tells that it was for this reason.

use snapback_core::error::{Error, Kind, Result, escaped};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};

/// Bytes gathered before they are written.
const BUFFER: usize = 64 * 1024;

/// Standard output.
pub struct Out {
    inner: BufWriter<Stdout>,
    by_line: bool,
    closed: bool,
}

impl Out {
    /// Opens it.
    pub fn new() -> Self {
        let stdout = io::stdout();
        let by_line = stdout.is_terminal();
        Self { inner: BufWriter::with_capacity(BUFFER, stdout), by_line, closed: false }
    }

    /// Writes `bytes` as they are.
    ///
    /// # Errors
    /// When nobody reads any more, or the disk behind it is full.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<()> {
        let done = self.inner.write_all(bytes);
        self.check(done)
    }

    /// Writes a line, with everything escaped that a terminal would act on.
    ///
    /// # Errors
    /// As [`Out::bytes`].
    pub fn line(&mut self, text: &str) -> Result<()> {
        self.styled(&escaped(text))
    }

    /// Writes a line that may have colour: what comes from elsewhere in it was escaped.
    ///
    /// # Errors
    /// As [`Out::bytes`].
    pub fn styled(&mut self, text: &str) -> Result<()> {
        self.bytes(text.as_bytes())?;
        self.bytes(b"\n")?;
        if self.by_line { self.flush() } else { Ok(()) }
    }

    /// Writes what was gathered.
    ///
    /// # Errors
    /// As [`Out::bytes`].
    pub fn flush(&mut self) -> Result<()> {
        let done = self.inner.flush();
        self.check(done)
    }

    /// Whether the reader went away.
    pub fn closed(&self) -> bool {
        self.closed
    }

    fn check(&mut self, done: io::Result<()>) -> Result<()> {
        done.map_err(|error| {
            if error.kind() == ErrorKind::BrokenPipe {
                self.closed = true;
                return Error::new(Kind::Cancelled, "standard output was closed");
            }
            Error::io(error, "could not write to", "standard output")
        })
    }
}

impl Drop for Out {
    fn drop(&mut self) {
        // What was not asked to be flushed failed before: not a second try.
        let buffered = std::mem::replace(&mut self.inner, BufWriter::with_capacity(0, io::stdout()));
        drop(buffered.into_parts());
    }
}
