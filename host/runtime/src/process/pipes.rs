//! Both ends of a program as streams: bytes go from pipe to store, or back, inside the host.

use bytes::{Buf, Bytes};
use snapback_core::error::{Error, Kind, Result};
use std::io;
use std::os::fd::OwnedFd;
use tokio::net::unix::pipe::{Receiver, Sender};
use wasmtime_wasi::p2::{InputStream, OutputStream, Pollable, StreamError, StreamResult};

/// Bytes that are taken or given at once: what a pipe holds.
const ROOM: usize = 64 * 1024;

/// What a program reads.
pub struct Stdin {
    pipe: Sender,
    /// What the pipe had no room for.
    pending: Bytes,
}

/// What a program writes.
pub struct Stdout(Receiver);

impl Stdin {
    pub(super) fn new(pipe: OwnedFd) -> Result<Self> {
        Ok(Self { pipe: Sender::from_owned_fd(pipe).map_err(unusable)?, pending: Bytes::new() })
    }

    /// Writes what the pipe has room for.
    fn push(&mut self) -> StreamResult<()> {
        while !self.pending.is_empty() {
            match self.pipe.try_write(&self.pending) {
                Ok(len) => self.pending.advance(len),
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
                Err(e) if e.kind() == io::ErrorKind::BrokenPipe => return Err(StreamError::Closed),
                Err(e) => return Err(StreamError::LastOperationFailed(e.into())),
            }
        }
        Ok(())
    }
}

impl Stdout {
    pub(super) fn new(pipe: OwnedFd) -> Result<Self> {
        Ok(Self(Receiver::from_owned_fd(pipe).map_err(unusable)?))
    }
}

fn unusable(error: io::Error) -> Error {
    Error::new(Kind::Other, format!("a program's pipe cannot be used: {error}"))
}

impl OutputStream for Stdin {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        if bytes.len() > ROOM || !self.pending.is_empty() {
            return Err(StreamError::Trap(wasmtime::format_err!("more was written than there is room for")));
        }
        self.pending = bytes;
        self.push()
    }

    fn flush(&mut self) -> StreamResult<()> {
        // There is room only when all is written, which whoever flushes waits for.
        self.push()
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        self.push()?;
        Ok(if self.pending.is_empty() { ROOM } else { 0 })
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stdin {
    async fn ready(&mut self) {
        // What fails now fails again when it is asked for.
        while self.push().is_ok() && !self.pending.is_empty() && self.pipe.writable().await.is_ok() {}
    }
}

impl InputStream for Stdout {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        let mut bytes = vec![0; size.min(ROOM)];
        match self.0.try_read(&mut bytes) {
            Ok(0) => Err(StreamError::Closed),
            Ok(len) => {
                bytes.truncate(len);
                Ok(bytes.into())
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {
                Ok(Bytes::new())
            }
            Err(e) => Err(StreamError::LastOperationFailed(e.into())),
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Stdout {
    async fn ready(&mut self) {
        // What fails now fails again when it is read.
        let _ = self.0.readable().await;
    }
}
