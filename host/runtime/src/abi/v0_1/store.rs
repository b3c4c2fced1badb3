//! `store`: content that a component stores and reads, as streams.
//!
//! A component holds handles, never names. What it stores is opaque, whatever its
//! bytes are; what the host captured it can pass on but not read.

use super::bindings::snapback::plugin::store;
use super::body::{Growing, Sink, failed};
use super::stale;
use crate::component::State;
use bytes::Bytes;
use snapback_core::backend::Call;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::{Key, ObjectKind};
use snapback_core::store::Source;
use snapback_core::store::opaque::{self, Opaque, Piece};
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream, InputStream, Pollable, StreamError, StreamResult};

/// Content at rest.
#[derive(Clone, Copy)]
pub struct Object(Key);

impl Object {
    /// The object `key`, which the component was given or made.
    pub fn new(key: Key) -> Self {
        Self(key)
    }

    /// Its name, which the component never learns.
    pub fn key(&self) -> Key {
        self.0
    }
}

/// Content being written.
pub struct Draft(Growing<Counted>);

/// An object that is written, counted for as long as it has a buffer.
struct Counted {
    draft: opaque::Draft,
    _one: Arc<()>,
}

impl Sink for Counted {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.draft.write(bytes)
    }
}

/// Where the objects of a call are read from: what it wrote itself is not sealed yet.
fn read(call: &Call, key: &Key) -> Result<Vec<u8>> {
    match &call.writer {
        Some(writer) => Source::read(&**writer, key),
        None => Source::read(&**call.store()?, key),
    }
}

impl store::Host for State {}

impl store::HostObject for State {
    fn size(&mut self, object: Resource<Object>) -> wasmtime::Result<u64> {
        let key = self.table.get(&object)?.0;
        if key.kind() != ObjectKind::Opaque {
            return Ok(0);
        }
        Ok(Opaque::decode(&read(self.call()?, &key)?)?.size)
    }

    fn read(&mut self, object: Resource<Object>) -> Result<Resource<DynInputStream>> {
        let key = self.table.get(&object).map_err(stale)?.0;
        if key.kind() != ObjectKind::Opaque {
            return Err(Error::new(Kind::Incompatible, "it was captured by the host, which alone reads it"));
        }
        let call = self.call()?.clone();
        let pieces = Opaque::decode(&read(&call, &key)?)?.pieces.into_iter();
        let stream: DynInputStream = Box::new(Content { call, pieces, pending: Bytes::new() });
        self.open.push(stream).map_err(stale)
    }

    fn same(&mut self, object: Resource<Object>, other: Resource<Object>) -> wasmtime::Result<bool> {
        Ok(self.table.get(&object)?.0 == self.table.get(&other)?.0)
    }

    fn drop(&mut self, object: Resource<Object>) -> wasmtime::Result<()> {
        self.table.delete(object)?;
        Ok(())
    }
}

impl store::HostDraft for State {
    fn new(&mut self) -> wasmtime::Result<Resource<Draft>> {
        let (writer, one) = (self.call()?.writer.clone(), self.one_more_draft()?);
        let draft = writer.map(|writer| Counted { draft: opaque::Draft::new(writer), _one: one });
        Ok(self.table.push(Draft(Growing::new(draft)))?)
    }

    fn body(&mut self, draft: Resource<Draft>) -> Result<Resource<DynOutputStream>> {
        let draft = self.table.get_mut(&draft).map_err(stale)?;
        if !draft.0.is_open() {
            return Err(nothing_stored());
        }
        let stream = draft.0.body();
        let taken = || Error::new(Kind::Invalid, "the body of a draft can be taken once");
        self.open.push(stream.ok_or_else(taken)?).map_err(stale)
    }

    fn finish(&mut self, draft: Resource<Draft>) -> Result<Resource<Object>> {
        let draft = self.table.delete(draft).map_err(stale)?;
        let key = draft.0.take().ok_or_else(nothing_stored)?.draft.finish()?;
        self.table.push(Object(key)).map_err(stale)
    }

    fn drop(&mut self, draft: Resource<Draft>) -> wasmtime::Result<()> {
        self.table.delete(draft)?;
        Ok(())
    }
}

fn nothing_stored() -> Error {
    Error::new(Kind::Invalid, "a restore stores nothing")
}

/// A component's content being read, each piece checked against its hash.
struct Content {
    call: Call,
    pieces: std::vec::IntoIter<Piece>,
    pending: Bytes,
}

impl InputStream for Content {
    fn read(&mut self, size: usize) -> StreamResult<Bytes> {
        while self.pending.is_empty() {
            let piece = self.pieces.next().ok_or(StreamError::Closed)?;
            let bytes =
                self.call.cancel.check().and_then(|()| read(&self.call, &piece.key)).map_err(failed)?;
            if bytes.len() as u64 != piece.len {
                return Err(failed(Error::corrupt(
                    "a piece of stored content has another length than it should",
                )));
            }
            self.pending = bytes.into();
        }
        Ok(self.pending.split_to(size.min(self.pending.len())))
    }
}

#[wasmtime_wasi::async_trait]
impl Pollable for Content {
    async fn ready(&mut self) {}
}
