//! A backend that is a component.
//!
//! For each call: a fresh store, a fresh instance, a runtime on this thread; the host's
//! bulk work happens on threads of its own. Nothing of one call is left for the next,
//! and whatever goes wrong inside is an error that names the backend.

mod ask;
mod cut;
mod failure;
mod progress;
mod state;
mod told;
mod watch;

pub use ask::{describe, discover};
pub use cut::{Cut, How};
pub(crate) use failure::FAULT;
pub(crate) use state::State;
pub(crate) use told::one_line;

use crate::abi::{v0_1, wasi};
use crate::docker;
use crate::engine::Engine;
use crate::grant::{self, Grants, Limits};
use crate::manifest::Manifest;
use crate::reach::{Reach, Surroundings};
use crate::trust::{Asker, Question, Trust};
use snapback_core::backend::{Backend, Call, Explained, Part, Target};
use snapback_core::error::{Error, Kind, Result};
use std::collections::BTreeMap;
use std::path::Path;
use wasmtime::Store;
use wasmtime::component::{Component, Instance, Linker};

/// A backend that is a component, linked with what it may reach.
pub struct ComponentBackend {
    engine: Engine,
    manifest: Manifest,
    limits: Limits,
    standing: Standing,
    linked: v0_1::BackendHostPre<State>,
    /// Whether it imports WASI or runs programs: timers, sockets and pipes are waited for.
    wasi: bool,
    optional: v0_1::Optional,
    /// Who may end a call in its middle.
    cut: Option<Cut>,
}

/// Who a component is to the user, and what it is judged by before each call.
#[derive(Debug, Clone)]
pub struct Standing {
    /// Where it comes from; none for one that came inside the program.
    pub stranger: Option<Stranger>,
    /// What the user agreed to.
    pub trust: Trust,
    /// What settings are looked up in.
    pub around: Surroundings,
}

/// A component that did not come inside the program.
#[derive(Debug, Clone)]
pub struct Stranger {
    /// Where it is, in words.
    pub origin: String,
    /// SHA-256 of it, in hexadecimal.
    pub digest: String,
    /// The interfaces that it asks for.
    pub interfaces: Vec<String>,
}

impl ComponentBackend {
    /// Links a component. `interfaces`: those beyond `types`, `store` and `report` that
    /// it may have, once the user agreed to what it does with them. `limits`: of each call.
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
        standing: Standing,
    ) -> Result<Self> {
        let imports = imports(engine, component);
        v0_1::check_imports(&manifest.name, &imports, interfaces)?;
        let waits = ["wasi:", "snapback:plugin/process@"];
        let wasi = imports.iter().any(|import| waits.iter().any(|prefix| import.starts_with(prefix)));
        let strange = |e| strange(&manifest.name, &e);
        let mut linker = Linker::new(engine.raw());
        v0_1::link(&mut linker, interfaces, wasi).map_err(strange)?;
        let linked =
            linker.instantiate_pre(component).and_then(v0_1::BackendHostPre::new).map_err(strange)?;
        let optional = v0_1::Optional::of(&exports(engine, component));
        Ok(Self { engine: engine.clone(), linked, wasi, optional, manifest, limits, standing, cut: None })
    }

    /// The same, and `cut` may end its calls.
    pub fn cut_by(self, cut: Cut) -> Self {
        Self { cut: Some(cut), ..self }
    }

    /// What the backend says about itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What `target` of the project at `root`, which has this `store`, would reach, and
    /// what that is to the user.
    ///
    /// # Errors
    /// When its settings make no sense, or cannot be looked at.
    pub fn question(&self, root: &Path, store: Option<String>, target: &Target) -> Result<Question> {
        Ok(self.look((root, store), target, BTreeMap::new())?.2)
    }

    /// Looks where the settings of `target` lead in a project: its root and its store. `volumes`:
    /// from which came what is to be put back, by setting.
    fn look(
        &self,
        (root, store): (&Path, Option<String>),
        target: &Target,
        volumes: BTreeMap<String, String>,
    ) -> Result<(Grants, Reach, Question)> {
        let of = |e: Error| e.context(format!("target `{}`", target.name));
        let grants = grant::effective(&self.manifest, &target.settings, self.limits).map_err(of)?;
        let reach = Reach::of(&grants, root, volumes, &self.standing.around).map_err(of)?;
        let stranger = self.standing.stranger.as_ref();
        let asker = Asker {
            name: self.manifest.name.clone(),
            version: self.manifest.version.clone(),
            origin: stranger.map_or("built-in", |stranger| &stranger.origin).to_owned(),
            digest: stranger.map(|stranger| stranger.digest.clone()),
            interfaces: stranger.map(|stranger| stranger.interfaces.clone()).unwrap_or_default(),
        };
        let question = Question::new(&target.name, asker, store, &grants, &reach);
        Ok((grants, reach, question))
    }

    /// What a call starts with: what it may reach, once the user agreed to it. It is about
    /// `parts`, if they were captured before.
    fn state(&self, call: &Call, parts: &[Part]) -> Result<State> {
        let store = || call.store.as_ref().and_then(|store| store.id().ok());
        let volumes = match call.source() {
            Ok(source) if !parts.is_empty() => docker::captured_from(source, parts),
            _ => BTreeMap::new(),
        };
        let (grants, reach, question) = self.look((&*call.root, None), &call.target, volumes)?;
        if !question.is_nothing() {
            self.standing.trust.check(&question.of_store(store()))?;
        }
        let wasi = match self.wasi {
            true => Some(wasi::context(&reach, self.standing.around.variables)?),
            false => None,
        };
        let progress = progress::Progress::of(self.cut.clone());
        Ok(State::watched(Some(call.clone()), grants, reach, wasi, progress))
    }

    fn run<R>(
        &self,
        call: &Call,
        parts: &[Part],
        work: impl AsyncFnOnce(&mut Store<State>, Instance) -> wasmtime::Result<Result<R>>,
    ) -> Result<R> {
        call.cancel.check()?;
        self.cut.iter().for_each(Cut::begin);
        let done =
            run(&self.engine, &self.manifest.name, self.wasi, self.state(call, parts)?, async |store| {
                let instance = self.linked.instance_pre().instantiate_async(&mut *store).await?;
                store.data_mut().started = true;
                work(store, instance).await
            });
        self.cut.iter().for_each(|cut| cut.end(!matches!(done, Ok(Ok(_)))));
        // Whatever a component makes of being stopped: it is why it failed.
        done.and_then(|done| done).or_else(|error| call.cancel.check().and(Err(error)))
    }
}

impl Backend for ComponentBackend {
    fn snapshot(&self, call: &Call, previous: &[Part]) -> Result<Vec<Part>> {
        self.run(call, &call.cover, async |store, instance| v0_1::snapshot(store, &instance, previous).await)
    }

    fn restore(&self, call: &Call, parts: &[Part], current: &[Part]) -> Result<()> {
        self.run(call, parts, async |store, instance| {
            store.data_mut().restores = true;
            v0_1::restore(store, &instance, parts, current).await
        })
    }

    fn explain(&self, call: &Call, before: &[Part], after: &[Part]) -> Result<Option<Vec<Explained>>> {
        if !self.optional.explains {
            return Ok(None);
        }
        self.run(call, after, async |store, instance| v0_1::explain(store, &instance, before, after).await)
            .map(Some)
    }

    fn releases(&self) -> bool {
        self.optional.releases
    }

    fn discard(&self, call: &Call, parts: &[Part]) -> Result<()> {
        if !self.optional.releases {
            return Ok(());
        }
        self.run(call, parts, async |store, instance| v0_1::discard(store, &instance, parts).await)
    }
}

fn strange(name: &str, error: &wasmtime::Error) -> Error {
    Error::new(Kind::Incompatible, format!("`{name}` is not a backend for this program: {error:#}"))
        .hint("it was built for another version of the contract")
}

/// The interfaces that a component imports, with package and version.
pub fn imports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().imports(engine.raw()).map(|(name, _)| name.to_owned()).collect()
}

fn exports(engine: &Engine, component: &Component) -> Vec<String> {
    component.component_type().exports(engine.raw()).map(|(name, _)| name.to_owned()).collect()
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
    let cancel = store.data().call().map(|call| call.cancel.clone()).unwrap_or_default();
    let (progress, waiting) = (store.data().progress().clone(), store.data().grants.limits.waiting);
    let done = match wasi {
        true => runtime.block_on(watch::unless_stuck(work(&mut store), &cancel, &progress, waiting)),
        false => runtime.block_on(work(&mut store)),
    };
    drop(ticking);
    store.data_mut().told.finish();
    let done = done.map_err(|e| failure::explain(name, store.data(), &e));
    drop(store);
    // The host's own work is ended before anybody goes on; what a component waits for beside
    // it, such as the other end of a fifo, may never come.
    while progress.is_busy() {
        std::thread::sleep(crate::engine::TICK);
    }
    runtime.shutdown_background();
    done
}

#[cfg(test)]
mod tests;
