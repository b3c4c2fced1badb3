//! Version 0.1 of the contract.

mod body;
mod docker;
mod error;
mod file;
mod optional;
mod process;
mod report;
mod sqlite;
mod store;
mod tree;
mod types;

pub use docker::{Quiesced, Volume};
pub use file::{File, Replacement};
pub use optional::{Optional, discard, discover, explain};
pub use process::Child;
pub use sqlite::Database;
pub use store::{Draft, Object};
pub use tree::Directory;
pub use types::Target;

use crate::component::State;
use crate::manifest::Access;
use bindings::snapback::plugin::store::Part as Lent;
use snapback_core::backend::Part;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::{Key, ObjectKind};
use wasmtime::Store;
use wasmtime::component::{HasSelf, Instance, Linker, Resource};

use bindings::BackendHost;
pub use bindings::BackendHostPre;

/// The interface that makes a component a backend.
pub const BACKEND: &str = "snapback:plugin/backend@0.1.0";

/// What a component that did not come inside the program may have, once the user agreed.
pub const OFFERED: &[&str] = &["tree", "sqlite", "docker", "file", "process"];

/// What every component may import.
const BASIC: &[&str] = &["types", "store", "report"];

pub(crate) mod bindings {
    #![allow(unsafe_code, reason = "generated: each function's type was checked when it was looked up")]
    #![allow(missing_docs, clippy::all, reason = "generated")]

    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package snapback:host;
            world backend-host {
                include snapback:plugin/tree-plugin@0.1.0;
                import snapback:plugin/sqlite@0.1.0;
                import snapback:plugin/docker@0.1.0;
                import snapback:plugin/file@0.1.0;
                import snapback:plugin/process@0.1.0;
            }
        ",
        imports: {
            "snapback:plugin/file.[static]file.open": async | trappable,
            "snapback:plugin/file.[method]file.remove": async | trappable,
            "snapback:plugin/file.[static]replacement.finish": async | trappable,
            "snapback:plugin/process.[static]child.spawn": async | trappable,
            "snapback:plugin/process.[static]child.wait": async | trappable,
            "snapback:plugin/docker.[static]volume.open": async | trappable,
            "snapback:plugin/docker.[method]volume.users": async | trappable,
            "snapback:plugin/docker.[method]volume.quiesce": async | trappable,
            "snapback:plugin/docker.[method]volume.capture": async | trappable,
            "snapback:plugin/docker.[method]volume.restore": async | trappable,
            "snapback:plugin/sqlite.[static]database.open": async | trappable,
            "snapback:plugin/sqlite.[method]database.capture": async | trappable,
            "snapback:plugin/sqlite.[method]database.restore": async | trappable,
            "snapback:plugin/tree.[static]directory.open": async | trappable,
            "snapback:plugin/tree.[method]directory.capture": async | trappable,
            "snapback:plugin/tree.[method]directory.restore": async | trappable,
            default: trappable,
        },
        exports: { default: async },
        trappable_error_type: { "snapback:plugin/types.error" => snapback_core::Error },
        with: {
            "snapback:plugin/types.target": crate::abi::v0_1::Target,
            "snapback:plugin/store.object": crate::abi::v0_1::Object,
            "snapback:plugin/store.draft": crate::abi::v0_1::Draft,
            "snapback:plugin/report.task": crate::abi::v0_1::report::Task,
            "snapback:plugin/file.file": crate::abi::v0_1::File,
            "snapback:plugin/file.replacement": crate::abi::v0_1::Replacement,
            "snapback:plugin/process.child": crate::abi::v0_1::Child,
            "snapback:plugin/docker.volume": crate::abi::v0_1::Volume,
            "snapback:plugin/docker.quiesced": crate::abi::v0_1::Quiesced,
            "snapback:plugin/sqlite.database": crate::abi::v0_1::Database,
            "snapback:plugin/tree.directory": crate::abi::v0_1::Directory,
            "wasi:io": wasmtime_wasi::p2::bindings::io,
        },
    });
}

/// Refuses a component that imports more than what all may and what `granted` names.
///
/// # Errors
/// `Denied`, naming what it asks for.
pub fn check_imports(name: &str, imports: &[String], granted: &[&str]) -> Result<()> {
    let missing = asked(imports)
        .into_iter()
        .find(|asked| !granted.contains(&asked.as_str()) && !asked.starts_with("wasi:"));
    match missing {
        None => Ok(()),
        Some(asked) => {
            Err(Error::new(Kind::Denied, format!("`{name}` asks for `{asked}`, which was not granted to it"))
                .hint("only the backends inside the program have it"))
        }
    }
}

/// What of WASI opens something, where a setting says so; the rest of it (clocks, chance, an
/// environment without a variable) is nobody's to ask for, and some languages import all of it.
const OPENS: [&str; 2] = ["wasi:filesystem", "wasi:sockets"];
/// What of WASI opens nothing.
const PLAIN: [&str; 4] = ["wasi:io", "wasi:cli", "wasi:clocks", "wasi:random"];

/// The interfaces among `imports` that are a request for something: not those that all
/// have, nor the streams that content goes through. Of WASI the packages, each once.
pub fn asked(imports: &[String]) -> Vec<String> {
    let mut asked = Vec::new();
    for import in imports {
        let name = import.split('@').next().unwrap_or(import);
        let package = name.split('/').next().unwrap_or(name);
        match name.strip_prefix("snapback:plugin/") {
            Some(ours) if BASIC.contains(&ours) => {}
            Some(ours) => asked.push(ours.to_owned()),
            None if PLAIN.contains(&package) => {}
            None if OPENS.contains(&package) => {
                if !asked.iter().any(|known| known == package) {
                    asked.push(package.to_owned());
                }
            }
            None => asked.push(crate::manifest::shorten(name)),
        }
    }
    asked
}

/// Puts what a component may import into `linker`. WASI is there for whoever imports it,
/// and empty.
pub fn link(linker: &mut Linker<State>, granted: &[&str], wasi: bool) -> wasmtime::Result<()> {
    use bindings::snapback::plugin as host;
    type Own = HasSelf<State>;
    host::types::add_to_linker::<_, Own>(linker, State::reached)?;
    host::store::add_to_linker::<_, Own>(linker, State::reached)?;
    host::report::add_to_linker::<_, Own>(linker, State::reached)?;
    if granted.contains(&"tree") {
        host::tree::add_to_linker::<_, Own>(linker, State::reached)?;
    }
    if granted.contains(&"sqlite") {
        host::sqlite::add_to_linker::<_, Own>(linker, State::reached)?;
    }
    if granted.contains(&"file") {
        host::file::add_to_linker::<_, Own>(linker, State::reached)?;
    }
    if granted.contains(&"process") {
        host::process::add_to_linker::<_, Own>(linker, State::reached)?;
    }
    if granted.contains(&"docker") {
        host::docker::add_to_linker::<_, Own>(linker, State::reached)?;
    }
    if wasi {
        super::wasi::link(linker)?;
    }
    Ok(())
}

/// Calls `manifest` of an instance that is linked with nothing.
pub async fn manifest(store: &mut Store<State>, instance: &Instance) -> wasmtime::Result<String> {
    let none = || wasmtime::format_err!("it has no manifest");
    let backend = instance.get_export_index(&mut *store, None, BACKEND).ok_or_else(none)?;
    let manifest = instance.get_export_index(&mut *store, Some(&backend), "manifest").ok_or_else(none)?;
    let manifest = instance.get_typed_func::<(), (String,)>(&mut *store, manifest)?;
    Ok(manifest.call_async(store, ()).await?.0)
}

/// Calls `snapshot`.
pub async fn snapshot(
    store: &mut Store<State>,
    instance: &Instance,
    previous: &[Part],
) -> wasmtime::Result<Result<Vec<Part>>> {
    let instance = BackendHost::new(&mut *store, instance)?;
    let target = lend_target(store)?;
    let previous = lend(store, previous)?;
    let parts = instance.snapback_plugin_backend().call_snapshot(&mut *store, target, &previous).await?;
    let table = &mut store.data_mut().table;
    Ok(match parts {
        Ok(parts) => Ok(parts
            .into_iter()
            .map(|part| Ok(Part { name: part.name, content: table.delete(part.content)?.key() }))
            .collect::<wasmtime::Result<_>>()?),
        Err(error) => Err(error.into()),
    })
}

/// Calls `restore`.
pub async fn restore(
    store: &mut Store<State>,
    instance: &Instance,
    parts: &[Part],
    current: &[Part],
) -> wasmtime::Result<Result<()>> {
    let instance = BackendHost::new(&mut *store, instance)?;
    let target = lend_target(store)?;
    let (parts, current) = (lend(store, parts)?, lend(store, current)?);
    let done = instance.snapback_plugin_backend().call_restore(&mut *store, target, &parts, &current).await?;
    Ok(done.map_err(Error::from))
}

/// Refuses to write to what `setting` names, where it allows reading only.
fn to_write(access: Access, setting: &str) -> Result<()> {
    if access == Access::Write {
        return Ok(());
    }
    Err(Error::new(Kind::Denied, format!("the setting `{setting}` allows reading only")))
}

impl State {
    /// Does bulk work on a thread of its own, so that this one can go on waiting for others.
    fn bulk<R, W>(&self, work: W) -> impl Future<Output = Result<R>> + use<R, W>
    where
        R: Send + 'static,
        W: FnOnce() -> Result<R> + Send + 'static,
    {
        let busy = self.progress().busy();
        // As long as the work goes on, whoever waits for it.
        let work = move || {
            let _busy = busy;
            work()
        };
        async move {
            match tokio::task::spawn_blocking(work).await {
                Ok(done) => done,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => std::panic::resume_unwind(panic),
                    Err(_) => Err(Error::new(Kind::Cancelled, "stopped as asked")),
                },
            }
        }
    }
}

impl State {
    /// The key of an object that the host captured as `kind`, which `what` names.
    fn captured(&self, object: &Resource<Object>, kind: ObjectKind, what: &str) -> Result<Key> {
        let key = self.table.get(object).map_err(stale)?.key();
        if key.kind() == kind {
            return Ok(key);
        }
        Err(Error::new(Kind::Incompatible, format!("it is not a captured {what}")))
    }
}

/// A handle that is not there, or of another kind.
fn stale(error: wasmtime::component::ResourceTableError) -> Error {
    Error::new(Kind::Other, format!("a handle cannot be used: {error}"))
}

fn lend_target(store: &mut Store<State>) -> wasmtime::Result<Resource<Target>> {
    Ok(store.data_mut().table.push(Target)?)
}

fn lend(store: &mut Store<State>, parts: &[Part]) -> wasmtime::Result<Vec<Lent>> {
    let table = &mut store.data_mut().table;
    let mut lend =
        |part: &Part| Ok(Lent { name: part.name.clone(), content: table.push(Object::new(part.content))? });
    parts.iter().map(&mut lend).collect()
}
