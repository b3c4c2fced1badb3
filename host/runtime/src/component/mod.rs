//! A backend that is a component.
//!
//! For each call: a fresh store, a fresh instance, a runtime on this thread; the host's
//! bulk work happens on threads of its own. Nothing of one call is left for the next,
//! and whatever goes wrong inside is an error that names the backend.

mod failure;
mod state;
mod told;
mod watch;

pub(crate) use state::State;
pub(crate) use told::one_line;

use crate::abi::v0_1;
use crate::engine::Engine;
use crate::grant::{self, Grants, Limits};
use crate::manifest::Manifest;
use snapback_core::backend::{Backend, Call, Part};
use snapback_core::error::{Error, Kind, Result};
use wasmtime::Store;
use wasmtime::component::{Component, Linker};

/// A backend that is a component, linked with what it may reach.
pub struct ComponentBackend {
    engine: Engine,
    manifest: Manifest,
    limits: Limits,
    linked: v0_1::BackendHostPre<State>,
    /// Whether it imports WASI, which needs timers and sockets to be waited for.
    wasi: bool,
}

impl ComponentBackend {
    /// Links a component. `interfaces`: those beyond `types`, `store` and `report` that
    /// were granted to it. `limits`: of each call.
    ///
    /// # Errors
    /// `Denied` when it imports more, `Incompatible` when it is not a backend of a
    /// version that this program knows.
    pub fn link(
        engine: &Engine,
        component: &Component,
        manifest: Manifest,
        interfaces: &[&str],
        limits: Limits,
    ) -> Result<Self> {
        let imports = imports(engine, component);
        v0_1::check_imports(&manifest.name, &imports, interfaces)?;
        let wasi = imports.iter().any(|import| import.starts_with("wasi:"));
        let strange = |e| strange(&manifest.name, &e);
        let mut linker = Linker::new(engine.raw());
        v0_1::link(&mut linker, interfaces, wasi).map_err(strange)?;
        let linked =
            linker.instantiate_pre(component).and_then(v0_1::BackendHostPre::new).map_err(strange)?;
        Ok(Self { engine: engine.clone(), linked, wasi, manifest, limits })
    }

    /// What the backend says about itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    fn state(&self, call: &Call) -> Result<State> {
        let grants = grant::effective(&self.manifest, &call.target.settings, self.limits)
            .map_err(|e| e.context(format!("target `{}`", call.target.name)))?;
        Ok(State::new(Some(call.clone()), grants))
    }

    fn run<R>(
        &self,
        call: &Call,
        work: impl AsyncFnOnce(&mut Store<State>, v0_1::BackendHost) -> wasmtime::Result<Result<R>>,
    ) -> Result<R> {
        call.cancel.check()?;
        run(&self.engine, &self.manifest.name, self.wasi, self.state(call)?, async |store| {
            let instance = self.linked.instantiate_async(&mut *store).await?;
            store.data_mut().started = true;
            work(store, instance).await
        })?
    }
}

impl Backend for ComponentBackend {
    fn snapshot(&self, call: &Call, previous: &[Part]) -> Result<Vec<Part>> {
        self.run(call, async |store, instance| v0_1::snapshot(store, &instance, previous).await)
    }

    fn restore(&self, call: &Call, parts: &[Part], current: &[Part]) -> Result<()> {
        self.run(call, async |store, instance| v0_1::restore(store, &instance, parts, current).await)
    }
}

/// Asks a component for its manifest, in a world where every import traps.
///
/// # Errors
/// When it cannot say, or needs something for it.
pub fn describe(engine: &Engine, name: &str, component: &Component) -> Result<String> {
    let mut linker = Linker::new(engine.raw());
    linker.define_unknown_imports_as_traps(component).map_err(|e| strange(name, &e))?;
    let linked = linker.instantiate_pre(component).map_err(|e| strange(name, &e))?;
    run(engine, name, false, State::new(None, Grants::default()), async |store| {
        let instance = linked.instantiate_async(&mut *store).await?;
        store.data_mut().started = true;
        v0_1::manifest(store, &instance).await
    })
    .map_err(|e| e.context("it could not describe itself"))
}

fn strange(name: &str, error: &wasmtime::Error) -> Error {
    Error::new(Kind::Incompatible, format!("`{name}` is not a backend for this program: {error:#}"))
        .hint("it was built for another version of the contract")
}

/// The interfaces that a component imports, with package and version.
pub fn imports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().imports(engine.raw()).map(|(name, _)| name.to_owned()).collect()
}

/// Runs `work` with a store of its own, on this thread, and watches it.
fn run<R>(
    engine: &Engine,
    name: &str,
    wasi: bool,
    state: State,
    work: impl AsyncFnOnce(&mut Store<State>) -> wasmtime::Result<R>,
) -> Result<R> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    if wasi {
        builder.enable_all();
    }
    let runtime =
        builder.build().map_err(|e| Error::new(Kind::Other, format!("could not start a call: {e}")))?;
    let mut store = Store::new(engine.raw(), state);
    store.limiter(|state| &mut state.memory);
    store.set_epoch_deadline(1);
    store.epoch_deadline_callback(watch::look);
    let ticking = engine.tick();
    let cancel = store.data().call().ok().map(|call| call.cancel.clone());
    let done = match cancel {
        Some(cancel) if wasi => runtime.block_on(watch::unless_cancelled(work(&mut store), &cancel)),
        _ => runtime.block_on(work(&mut store)),
    };
    drop(ticking);
    store.data_mut().told.finish();
    done.map_err(|e| failure::explain(name, store.data(), &e))
}

#[cfg(test)]
mod tests;
