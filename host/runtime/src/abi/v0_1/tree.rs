//! `tree`: directories, which core captures and restores.

use super::bindings::snapback::plugin::tree;
use super::{Object, Target, stale, to_write};
use crate::component::State;
use crate::manifest::{Access, Kind};
use snapback_core::backend::Call;
use snapback_core::error::{Kind as ErrorKind, Result};
use snapback_core::object::ObjectKind;
use snapback_core::tree as core;
use std::sync::Arc;
use wasmtime::component::Resource;

/// A directory that was granted, open.
pub struct Directory {
    inner: Arc<core::Directory>,
    access: Access,
    _counted: Arc<()>,
}

impl tree::Host for State {}

impl tree::HostDirectory for State {
    async fn open(
        &mut self,
        _: Resource<Target>,
        key: String,
        options: Vec<(String, String)>,
    ) -> Result<Resource<Directory>> {
        let (value, access) = self.grants.open(&key, Kind::Dir)?;
        let (value, place, private) =
            (value.to_owned(), self.reach.place(&key)?.0.clone(), self.reach.private());
        let (git_user, own) = (self.reach.git().clone(), private.ids().collect());
        let counted = self.one_more_file()?;
        let options = core::Options { git_user, own, ..core::Options::parse(&options)? };
        let inner = self.bulk(move || {
            let handle = place.open(&key).map_err(|error| match error.kind() {
                ErrorKind::NotFound => error.hint(format!("`{key}` must name a directory")),
                _ => error,
            })?;
            private.refuse_open(&key, &place.path, &handle)?;
            core::Directory::of(handle, &place.path, &key, &value, &options)
        });
        let directory = Directory { inner: Arc::new(inner.await?), access, _counted: counted };
        self.table.push(directory).map_err(stale)
    }

    async fn capture(
        &mut self,
        directory: Resource<Directory>,
        previous: Option<Resource<Object>>,
    ) -> Result<Resource<Object>> {
        let (directory, _, call) = self.directory(&directory)?;
        let previous =
            previous.map(|object| self.captured(&object, ObjectKind::Root, "directory")).transpose()?;
        let key = self.bulk(move || core::capture(&directory, &call, previous.as_ref())).await?;
        self.table.push(Object::new(key)).map_err(stale)
    }

    async fn restore(
        &mut self,
        directory: Resource<Directory>,
        stored: Resource<Object>,
        current: Resource<Object>,
    ) -> Result<()> {
        let (directory, access, call) = self.directory(&directory)?;
        to_write(access, directory.setting())?;
        let (stored, current) = (
            self.captured(&stored, ObjectKind::Root, "directory")?,
            self.captured(&current, ObjectKind::Root, "directory")?,
        );
        self.bulk(move || core::restore(&directory, &call, &stored, &current).map(drop)).await
    }

    fn drop(&mut self, directory: Resource<Directory>) -> wasmtime::Result<()> {
        self.table.delete(directory)?;
        Ok(())
    }
}

impl State {
    fn directory(&self, directory: &Resource<Directory>) -> Result<(Arc<core::Directory>, Access, Call)> {
        let directory = self.table.get(directory).map_err(stale)?;
        Ok((directory.inner.clone(), directory.access, self.call()?.clone()))
    }
}
