//! `process`: programs, which `crate::process` runs.

use super::bindings::snapback::plugin::process;
use super::{Target, stale};
use crate::component::State;
use crate::manifest::Kind;
use crate::process as driver;
use snapback_core::error::{Error, Kind as ErrorKind, Result};
use std::sync::Arc;
use wasmtime::component::Resource;
use wasmtime_wasi::p2::{DynInputStream, DynOutputStream};

/// Programs that a component may have running at once.
const MAX_CHILDREN: usize = 16;

/// A program that was started.
pub struct Child {
    inner: driver::Child,
    /// Counts it.
    _one: Arc<()>,
}

impl process::Host for State {}

impl process::HostChild for State {
    async fn spawn(
        &mut self,
        _: Resource<Target>,
        key: String,
        args: Vec<String>,
        env: Vec<(String, String)>,
    ) -> Result<Resource<Child>> {
        self.grants.open(&key, Kind::Program)?;
        let (program, scratch) = self.reach.program(&key)?;
        let (program, scratch) = (program.clone(), scratch.to_owned());
        let one = self.children.clone();
        if Arc::strong_count(&one) > MAX_CHILDREN + 1 {
            let why = format!("more than {MAX_CHILDREN} programs would run at once");
            return Err(Error::new(ErrorKind::Denied, why));
        }
        let inner = self.bulk(move || driver::Child::spawn(&program, &args, &env, &scratch)).await?;
        self.table.push(Child { inner, _one: one }).map_err(stale)
    }

    fn stdin(&mut self, child: Resource<Child>) -> Result<Resource<DynOutputStream>> {
        let stream: DynOutputStream = Box::new(self.table.get_mut(&child).map_err(stale)?.inner.stdin()?);
        self.open.push(stream).map_err(stale)
    }

    fn stdout(&mut self, child: Resource<Child>) -> Result<Resource<DynInputStream>> {
        let stream: DynInputStream = Box::new(self.table.get_mut(&child).map_err(stale)?.inner.stdout()?);
        self.open.push(stream).map_err(stale)
    }

    async fn wait(&mut self, child: Resource<Child>) -> Result<(i32, String)> {
        let child = self.table.delete(child).map_err(stale)?;
        child.inner.wait().await
    }

    fn drop(&mut self, child: Resource<Child>) -> wasmtime::Result<()> {
        self.table.delete(child)?;
        Ok(())
    }
}
