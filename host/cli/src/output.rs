//! Standard output: data, and nothing else.
//!
//! Invariant: a reader that went away (`| head`) ends the command quietly: the write
//! fails with `Cancelled`, and [`Out::closed`] tells that it was for this reason. Who quits
//! the pager has gone away, too.

use crate::pager::{Chosen, Pager};
use snapback_core::error::{Error, Kind, Result, escaped};
use std::io::{self, BufWriter, ErrorKind, IsTerminal, Stdout, Write};
use std::time::{Duration, Instant};

/// Bytes gathered before they are written.
const BUFFER: usize = 64 * 1024;

/// What was gathered for so long is shown, though more may come.
const SOON: Duration = Duration::from_millis(100);

/// Standard output.
pub struct Out {
    inner: BufWriter<Sink>,
    by_line: bool,
    closed: bool,
    shown: Instant,
}

/// Where it leads.
enum Sink {
    Stdout(Stdout),
    Pager(Pager),
    Nothing,
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::Pager(pager) => pager.write(bytes),
            Self::Nothing => Ok(bytes.len()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::Pager(pager) => pager.flush(),
            Self::Nothing => Ok(()),
        }
    }
}

impl Out {
    /// Opens it.
    pub fn new() -> Self {
        let stdout = io::stdout();
        let by_line = stdout.is_terminal();
        let inner = BufWriter::with_capacity(BUFFER, Sink::Stdout(stdout));
        Self { inner, by_line, closed: false, shown: Instant::now() }
    }

    /// From now on it goes through the pager that was `chosen`, if that can be started;
    /// where it is no terminal, it stays as it is.
    pub fn page(&mut self, chosen: Option<&Chosen>) {
        if self.by_line
            && let Some(pager) = chosen.and_then(Pager::start)
        {
            self.by_line = false;
            self.replace(Sink::Pager(pager));
        }
    }

    /// Ends it: a pager has shown all, and the user has left it.
    pub fn end(&mut self) {
        let _ = self.flush();
        if let Sink::Pager(pager) = self.replace(Sink::Nothing) {
            pager.end();
        }
    }

    fn replace(&mut self, sink: Sink) -> Sink {
        let old = std::mem::replace(&mut self.inner, BufWriter::with_capacity(BUFFER, sink));
        old.into_parts().0
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
        if self.by_line || self.shown.elapsed() > SOON { self.flush() } else { Ok(()) }
    }

    /// Writes what was gathered.
    ///
    /// # Errors
    /// As [`Out::bytes`].
    pub fn flush(&mut self) -> Result<()> {
        let done = self.inner.flush();
        self.shown = Instant::now();
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
        drop(self.replace(Sink::Nothing));
    }
}
