//! `file`: single files, which `crate::file` reads and replaces.

use super::bindings::snapback::plugin::file;
use super::body::{Growing, ROOM, Sink, failed};
use super::{Target, stale, to_write};
use crate::component::State;
use crate::file::{self as driver, Aside, Reading};
use crate::manifest::{Access, Kind};
use bytes::Bytes;
use snapback_core::error::{Error, Kind as ErrorKind, Result};
use std::io::Read;
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, InputStream, Pollable, StreamError, StreamResult};

/// A file that was granted.
pub struct File {
    inner: Arc<driver::File>,
    key: String,
    access: Access,
    _counted: Arc<()>,
}

/// Another content for it.
pub struct Replacement {
    of: Arc<driver::File>,
    content: Growing<Aside>,
    _counted: Arc<()>,
}

impl Sink for Aside {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        Self::write(self, bytes)
    }
}

impl file::Host for State {}

impl file::HostFile for State {
    async fn open(&mut self, _: Resource<Target>, key: String) -> Result<Resource<File>> {
        let (_, access) = self.grants.open(&key, Kind::File)?;
        let (place, guarded) = (self.reach.place(&key)?.0.clone(), self.reach.guarded());
        let (name, counted) = (key.clone(), self.one_more_file()?);
        let inner = Arc::new(self.bulk(move || driver::File::open(&place, &name, &guarded)).await?);
        self.table.push(File { inner, key, access, _counted: counted }).map_err(stale)
    }

    fn read(&mut self, file: Resource<File>) -> Result<Option<Resource<DynInputStream>>> {
        let Some(reading) = self.table.get(&file).map_err(stale)?.inner.read()? else { return Ok(None) };
        let stream: DynInputStream = Box::new(Content(reading, self.one_more_file()?));
        self.open.push(stream).map(Some).map_err(stale)
    }

    fn replace(&mut self, file: Resource<File>) -> Result<Resource<Replacement>> {
        let (of, counted) = (self.writable(&file)?, self.one_more_file()?);
        let content = Growing::new(Some(of.replace()?));
        self.table.push(Replacement { of, content, _counted: counted }).map_err(stale)
    }

    async fn remove(&mut self, file: Resource<File>) -> Result<()> {
        let file = self.writable(&file)?;
        self.bulk(move || file.remove()).await
    }

    fn drop(&mut self, file: Resource<File>) -> wasmtime::Result<()> {
        self.table.delete(file)?;
        Ok(())
    }
}

impl file::HostReplacement for State {
    fn body(&mut self, replacement: Resource<Replacement>) -> Result<Resource<DynOutputStream>> {
        let stream = self.table.get_mut(&replacement).map_err(stale)?.content.body();
        let taken = || Error::new(ErrorKind::Invalid, "the body of a replacement can be taken once");
        self.open.push(stream.ok_or_else(taken)?).map_err(stale)
    }

    async fn finish(&mut self, replacement: Resource<Replacement>) -> Result<()> {
        let Replacement { of, content, .. } = self.table.delete(replacement).map_err(stale)?;
        let gone = || Error::new(ErrorKind::Invalid, "the replacement is finished already");
        let aside = content.take().ok_or_else(gone)?;
        self.bulk(move || of.put(aside)).await
    }

    fn drop(&mut self, replacement: Resource<Replacement>) -> wasmtime::Result<()> {
        // A body that is still open must not go on without it.
        self.table.delete(replacement)?.content.take();
        Ok(())
    }
}

impl State {
    /// The file, if it may be written in this call.
    fn writable(&self, file: &Resource<File>) -> Result<Arc<driver::File>> {
        let File { inner, key, access, .. } = self.table.get(file).map_err(stale)?;
        to_write(*access, key)?;
        Ok(inner.clone())
    }
}

/// A file's content being read; at its end it must be what it was at its beginning.
struct Content(Reading, #[expect(dead_code, reason = "counted while it is there")] Arc<()>);

impl InputStream for Content {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        if size == 0 {
            return Ok(Bytes::new());
        }
        let mut bytes = vec![0; size.min(ROOM)];
        loop {
            match self.0.file().read(&mut bytes) {
                Ok(0) => return Err(self.0.check().map_or_else(failed, |()| StreamError::Closed)),
                Ok(len) => {
                    bytes.truncate(len);
                    return Ok(bytes.into());
                }
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(StreamError::LastOperationFailed(e.into())),
            }
        }
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Content {
    async fn ready(&mut self) {}
}
