//! Content that a component writes: held by what it will become and by the stream that its
//! bytes come through, and gone from both when either is done with it.

use bytes::Bytes;
use snapback_core::error::{Error, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use wasmtime_wasi::p2::{DynOutputStream, OutputStream, Pollable, StreamError, StreamResult};

/// Bytes that are read or written at once.
pub const ROOM: usize = 256 * 1024;

/// What takes bytes.
pub trait Sink: Send + 'static {
    /// Takes some more.
    ///
    /// # Errors
    /// Whatever kept it from that.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;
}

/// Content being written, and whether its stream was taken.
pub struct Growing<S> {
    content: Arc<Mutex<Option<S>>>,
    taken: bool,
}

impl<S: Sink> Growing<S> {
    /// Into `sink`; none where nothing may be written.
    pub fn new(sink: Option<S>) -> Self {
        Self { content: Arc::new(Mutex::new(sink)), taken: false }
    }

    /// Whether there is anything to write into.
    pub fn is_open(&self) -> bool {
        lock(&self.content).is_some()
    }

    /// Where the bytes go; none the second time.
    pub fn body(&mut self) -> Option<DynOutputStream> {
        let taken = std::mem::replace(&mut self.taken, true);
        (!taken).then(|| Box::new(Body(self.content.clone())) as DynOutputStream)
    }

    /// What was written into. A stream that is still open takes nothing more.
    pub fn take(&self) -> Option<S> {
        lock(&self.content).take()
    }
}

/// A stream that failed for `error`.
pub fn failed(error: Error) -> StreamError {
    StreamError::LastOperationFailed(error.into())
}

fn lock<S>(content: &Mutex<Option<S>>) -> MutexGuard<'_, Option<S>> {
    content.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stream.
struct Body<S>(Arc<Mutex<Option<S>>>);

impl<S: Sink> OutputStream for Body<S> {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        lock(&self.0).as_mut().ok_or(StreamError::Closed)?.write(&bytes).map_err(failed)
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        lock(&self.0).as_ref().map(|_| ROOM).ok_or(StreamError::Closed)
    }
}

#[wasmtime_wasi::async_trait]
impl<S: Sink> Pollable for Body<S> {
    async fn ready(&mut self) {}
}
