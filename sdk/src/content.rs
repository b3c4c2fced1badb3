//! Stored content as `std::io::Read` and `std::io::Write`.
//!
//! Both ends are streams of the host; bytes are checked against their hash as they
//! are read. To move bytes without taking them into the component's memory, splice
//! the streams themselves.

use crate::bindings::wasi::io::streams::{InputStream, OutputStream, StreamError};
use crate::wait::wait;
use crate::{Draft, Object, Result};
use std::io;
use std::time::Duration;

/// Bytes taken from a stream at once.
const CHUNK: usize = 64 * 1024;
/// Bytes moved from stream to stream at once.
const SPLICE: u64 = 1024 * 1024;

/// Reads an object from its start.
pub struct Reader(InputStream);

impl Reader {
    /// # Errors
    /// `Incompatible` for what the host captured: only the host reads that.
    pub fn new(object: &Object) -> Result<Self> {
        Ok(Self(object.read()?))
    }

    /// The stream, for [`splice`](crate::splice).
    pub fn stream(&self) -> &InputStream {
        &self.0
    }

    /// The stream itself.
    pub fn into_stream(self) -> InputStream {
        self.0
    }
}

impl From<InputStream> for Reader {
    fn from(stream: InputStream) -> Self {
        Self(stream)
    }
}

impl io::Read for Reader {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if buf.is_empty() {
            return Ok(0);
        }
        match self.0.blocking_read(buf.len().min(CHUNK) as u64) {
            Ok(bytes) => {
                buf[..bytes.len()].copy_from_slice(&bytes);
                Ok(bytes.len())
            }
            Err(StreamError::Closed) => Ok(0),
            Err(StreamError::LastOperationFailed(error)) => {
                Err(io::Error::new(io::ErrorKind::InvalidData, error.to_debug_string()))
            }
        }
    }
}

/// Writes a new object. Dropped without `finish`, nothing is stored.
pub struct Writer {
    body: OutputStream,
    draft: Draft,
}

impl Writer {
    /// # Errors
    /// `Invalid` in a restore, which stores nothing.
    pub fn new() -> Result<Self> {
        let draft = Draft::new();
        Ok(Self { body: draft.body()?, draft })
    }

    /// The stream, for [`splice`](crate::splice).
    pub fn stream(&self) -> &OutputStream {
        &self.body
    }

    /// Seals what was written.
    ///
    /// # Errors
    /// Whatever kept it from being stored.
    pub fn finish(self) -> Result<Object> {
        drop(self.body);
        Draft::finish(self.draft)
    }
}

impl io::Write for Writer {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        put(&self.body, buf, None, sealed)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.body.blocking_flush().map_err(sealed)
    }
}

fn sealed(error: StreamError) -> io::Error {
    failed(error, "the content is sealed already")
}

/// Moves all that comes from `from` to `to`, inside the host. Returns how many bytes that was.
///
/// # Errors
/// When either side fails; that `to` takes no more cannot be told from the end of `from`.
pub fn splice(from: &InputStream, to: &OutputStream) -> Result<u64> {
    let mut total = 0;
    loop {
        match to.blocking_splice(from, SPLICE) {
            Ok(len) => total += len,
            Err(StreamError::Closed) => return Ok(total),
            Err(error) => return Err(failed(error, "").into()),
        }
    }
}

/// Writes as much of `buf` to `stream` as there is room for, which is waited for no longer
/// than `limit`; `named` makes an error of the stream's.
pub(crate) fn put(
    stream: &OutputStream,
    buf: &[u8],
    limit: Option<Duration>,
    named: fn(StreamError) -> io::Error,
) -> io::Result<usize> {
    while !buf.is_empty() {
        match stream.check_write().map_err(named)? {
            0 => wait(&stream.subscribe(), limit)?,
            room => {
                let len = buf.len().min(usize::try_from(room).unwrap_or(usize::MAX));
                stream.write(&buf[..len]).map_err(named)?;
                return Ok(len);
            }
        }
    }
    Ok(0)
}

/// A stream's error; `closed`: why nothing more goes into it.
pub(crate) fn failed(error: StreamError, closed: &str) -> io::Error {
    match error {
        StreamError::Closed => io::Error::new(io::ErrorKind::BrokenPipe, closed),
        StreamError::LastOperationFailed(error) => io::Error::other(error.to_debug_string()),
    }
}
