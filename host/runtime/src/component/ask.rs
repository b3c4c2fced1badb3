//! Asking a component about itself, outside of any call: what it is, and what it would
//! propose.
//!
//! Invariant: nothing answers it. Every import traps. What other languages compile to asks
//! WASI for an environment before anything else: where that is why it failed, it is asked
//! once more where WASI is linked, and empty; what is snapback's own traps there as well.

use super::{State, exports, imports, run, strange};
use crate::abi;
use crate::abi::v0_1::{self, Optional};
use crate::engine::Engine;
use crate::grant::{Grants, Limits};
use crate::propose::Finding;
use crate::reach::Reach;
use snapback_core::error::Result;
use std::time::Duration;
use wasmtime::Store;
use wasmtime::component::types::ComponentItem;
use wasmtime::component::{Component, Instance, Linker};

/// How the names of our interfaces begin.
const OURS: &str = "snapback:plugin/";

/// How long it may take to answer: it has nothing to do but that, and who only wants to list
/// backends waits for it.
const PATIENCE: Duration = Duration::from_secs(2);

/// What a component says about itself.
///
/// # Errors
/// When it cannot say, or needs something for it.
pub fn describe(engine: &Engine, name: &str, component: &Component) -> Result<String> {
    abi::check_version(&[imports(engine, component), exports(engine, component)].concat())?;
    let ask = async |store: &mut Store<State>, instance: Instance| v0_1::manifest(store, &instance).await;
    in_stub_world(engine, name, component, "it could not describe itself", ask)
}

/// What a component proposes for files at `matches`, paths from the project's root; nothing
/// when it proposes nothing at all.
///
/// # Errors
/// When it cannot say, or needs something for it.
pub fn discover(
    engine: &Engine,
    name: &str,
    component: &Component,
    matches: &[String],
) -> Result<Vec<Finding>> {
    if !Optional::of(&exports(engine, component)).finds {
        return Ok(Vec::new());
    }
    let ask =
        async |store: &mut Store<State>, instance: Instance| v0_1::discover(store, &instance, matches).await;
    in_stub_world(engine, name, component, "it could not tell what it proposes", ask)
}

fn in_stub_world<R>(
    engine: &Engine,
    name: &str,
    component: &Component,
    failed: &str,
    ask: impl AsyncFn(&mut Store<State>, Instance) -> wasmtime::Result<R>,
) -> Result<R> {
    let once = |wasi: bool| {
        let mut linker = Linker::new(engine.raw());
        let stubbed = match wasi {
            true => v0_1::link(&mut linker, v0_1::OFFERED, true)
                .and_then(|()| trap_all_of_ours(engine, &mut linker, component)),
            false => linker.define_unknown_imports_as_traps(component),
        };
        stubbed.map_err(|e| strange(name, &e))?;
        let linked = linker.instantiate_pre(component).map_err(|e| strange(name, &e))?;
        let limits = Limits { silence: PATIENCE, waiting: PATIENCE, ..Limits::default() };
        let state = State::new(None, Grants::of_nothing(limits), Reach::default(), None);
        run(engine, name, wasi, state, async |store| {
            let instance = linked.instantiate_async(&mut *store).await?;
            store.data_mut().started = true;
            ask(store, instance).await
        })
        .map_err(|e| e.context(failed))
    };
    let asks_wasi = || imports(engine, component).iter().any(|import| import.starts_with("wasi:cli/"));
    once(false).or_else(|error| if asks_wasi() { once(true) } else { Err(error) })
}

/// Puts a trap in the place of each function of snapback's own that the component imports.
fn trap_all_of_ours(
    engine: &Engine,
    linker: &mut Linker<State>,
    component: &Component,
) -> wasmtime::Result<()> {
    linker.allow_shadowing(true);
    for (name, import) in component.component_type().imports(engine.raw()) {
        let (ComponentItem::ComponentInstance(instance), true) = (import.ty, name.starts_with(OURS)) else {
            continue;
        };
        let mut interface = linker.instance(name)?;
        for (function, export) in instance.exports(engine.raw()) {
            if matches!(export.ty, ComponentItem::ComponentFunc(_)) {
                let called = format!("{name}#{function}");
                interface.func_new(function, move |_, _, _, _| {
                    wasmtime::bail!("`{called}` is out of reach while nothing is captured or put back")
                })?;
            }
        }
    }
    Ok(())
}
