//! What a backend may do beyond what every one does: `explain`, `release` and `finder`.

use super::bindings::snapback::plugin::store::Part as Lent;
use super::{lend, lend_target};
use crate::component::{State, one_line};
use crate::propose::Finding;
use snapback_core::backend::{Explained, Part};
use snapback_core::error::{Error, Result};
use snapback_core::tree::compare::ChangeKind;
use wasmtime::Store;
use wasmtime::component::Instance;

/// Most differences that are told; more are no help to anybody.
const MOST: usize = 10_000;
/// Longest text about one, in bytes.
const MAX_DETAIL: usize = 64 * 1024;

mod optional {
    #![allow(unsafe_code, reason = "generated: each function's type was checked when it was looked up")]
    #![allow(missing_docs, clippy::all, reason = "generated")]

    wasmtime::component::bindgen!({
        path: "../../wit",
        inline: "
            package snapback:optional;
            world optional {
                export snapback:plugin/explain@0.1.0;
                export snapback:plugin/release@0.1.0;
                export snapback:plugin/finder@0.1.0;
            }
        ",
        exports: { default: async },
        with: {
            "snapback:plugin/types": crate::abi::v0_1::bindings::snapback::plugin::types,
            "snapback:plugin/store": crate::abi::v0_1::bindings::snapback::plugin::store,
            "wasi:io": wasmtime_wasi::p2::bindings::io,
        },
    });
}

use optional::exports::snapback::plugin::{explain, finder, release};

/// Which of it a component does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Optional {
    /// It tells what differs.
    pub explains: bool,
    /// Its parts stand for something outside the store.
    pub releases: bool,
    /// It proposes targets.
    pub finds: bool,
}

impl Optional {
    /// As the names of what it exports say.
    pub fn of(exports: &[String]) -> Self {
        let has = |name: &str| exports.iter().any(|export| export.starts_with(name));
        Self {
            explains: has("snapback:plugin/explain@0.1."),
            releases: has("snapback:plugin/release@0.1."),
            finds: has("snapback:plugin/finder@0.1."),
        }
    }
}

/// Calls `compare`.
pub async fn explain(
    store: &mut Store<State>,
    instance: &Instance,
    before: &[Part],
    after: &[Part],
) -> wasmtime::Result<Result<Vec<Explained>>> {
    let explain = explain::GuestIndices::new(&instance.instance_pre(&*store))?.load(&mut *store, instance)?;
    let target = lend_target(store)?;
    let (before, after): (Vec<Lent>, Vec<Lent>) = (lend(store, before)?, lend(store, after)?);
    let told = explain.call_compare(&mut *store, target, &before, &after).await?;
    Ok(told.map_err(Error::from).map(|told| told.into_iter().take(MOST).map(explained).collect()))
}

fn explained(change: explain::Change) -> Explained {
    let kind = match change.kind.as_str() {
        "added" => ChangeKind::Added,
        "deleted" => ChangeKind::Deleted,
        _ => ChangeKind::Modified,
    };
    let short = |mut text: String| {
        text.truncate(text.floor_char_boundary(MAX_DETAIL));
        text.lines().map(one_line).collect::<Vec<_>>().join("\n")
    };
    Explained { kind, subject: change.subject, detail: change.detail.map(short) }
}

/// Calls `discard`.
pub async fn discard(
    store: &mut Store<State>,
    instance: &Instance,
    parts: &[Part],
) -> wasmtime::Result<Result<()>> {
    let release = release::GuestIndices::new(&instance.instance_pre(&*store))?.load(&mut *store, instance)?;
    let target = lend_target(store)?;
    let parts: Vec<Lent> = lend(store, parts)?;
    let done = release.call_discard(&mut *store, target, &parts).await?;
    Ok(done.map_err(Error::from))
}

/// Calls `discover`.
pub async fn discover(
    store: &mut Store<State>,
    instance: &Instance,
    matches: &[String],
) -> wasmtime::Result<Vec<Finding>> {
    let finder = finder::GuestIndices::new(&instance.instance_pre(&*store))?.load(&mut *store, instance)?;
    let found = finder.call_discover(&mut *store, matches).await?;
    let finding = |finding: finder::Finding| Finding {
        name: finding.name,
        settings: finding.settings.into_iter().collect(),
    };
    Ok(found.into_iter().take(MOST).map(finding).collect())
}
