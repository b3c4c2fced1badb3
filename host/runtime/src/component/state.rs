//! What one call of a component has: what it was lent, what it used, what it said.
//!
//! It lives as long as the call. Every call of the host by the component passes
//! `State::reached`, so that silence can be told from work.

use super::failure::FAULT;
use super::progress::Progress;
use super::told::Told;
use super::watch::Watch;
use crate::grant::{Grants, Limits};
use crate::reach::Reach;
use snapback_core::backend::Call;
use snapback_core::error::{Error, Kind, Result};
use std::sync::Arc;
use wasmtime::component::ResourceTable;
use wasmtime_wasi::{WasiCtx, WasiCtxView, WasiView};

/// Handles of snapback's own that a component may hold at once: objects and the like, which
/// cost some memory.
const MAX_HANDLES: usize = 100_000;
/// Handles of WASI's that it may hold at once: directories and files, sockets, streams, timers.
/// Nearly each of them is something that the system has open for it.
pub(super) const MAX_OPEN: usize = 200;
/// Files, directories, databases and volumes that it may have open at once: others work in this
/// process, too, and a system gives all of them a thousand.
const MAX_FILES: usize = 100;
/// Objects that it may be writing at once: each has a buffer of the host's.
const MAX_DRAFTS: usize = 100;
/// Elements that the tables of a component may have.
const MAX_TABLE: usize = 1_000_000;

/// The data of one call.
pub struct State {
    /// What the component was lent; nothing while it describes itself.
    call: Option<Call>,
    /// What it may reach.
    pub grants: Grants,
    /// What that leads to.
    pub reach: Reach,
    /// What it holds of snapback's own.
    pub table: ResourceTable,
    /// What it holds of WASI's, the streams of snapback's own interfaces among it.
    pub open: ResourceTable,
    /// What it said.
    pub told: Told,
    /// Held by each program that it started.
    pub children: Arc<()>,
    /// Held by each file, directory, database and volume that it has open.
    files: Arc<()>,
    /// Held by each object that it is writing.
    drafts: Arc<()>,
    /// Whether it is to put something back.
    pub(super) restores: bool,
    pub(super) watch: Watch,
    pub(super) memory: Memory,
    /// Whether its code runs: before, what fails is not its fault.
    pub(super) started: bool,
    /// Empty but for what was granted; made when it is first asked for, if not before.
    wasi: Option<WasiCtx>,
}

impl State {
    pub(super) fn new(call: Option<Call>, grants: Grants, reach: Reach, wasi: Option<WasiCtx>) -> Self {
        Self::watched(call, grants, reach, wasi, Progress::default())
    }

    /// The same, with what shows how it gets on.
    pub(super) fn watched(
        call: Option<Call>,
        grants: Grants,
        reach: Reach,
        wasi: Option<WasiCtx>,
        progress: Progress,
    ) -> Self {
        let mut table = ResourceTable::new();
        table.set_max_capacity(MAX_HANDLES);
        let mut open = ResourceTable::new();
        open.set_max_capacity(MAX_OPEN);
        let limits = grants.limits;
        let told = Told::new(call.as_ref(), limits.messages);
        Self {
            watch: Watch::new(limits, call.as_ref().map(|call| call.cancel.clone()), progress),
            memory: Memory { limits, used: 0, refused: false },
            started: false,
            restores: false,
            call,
            grants,
            reach,
            table,
            open,
            told,
            children: Arc::default(),
            files: Arc::default(),
            drafts: Arc::default(),
            wasi,
        }
    }

    /// The call at hand.
    ///
    /// # Errors
    /// `Denied` when there is none.
    pub fn call(&self) -> Result<&Call> {
        self.call.as_ref().ok_or_else(|| Error::new(Kind::Denied, "nothing can be reached outside a call"))
    }

    /// What a file or the like is kept with that the component opens.
    ///
    /// # Errors
    /// `Denied` when it has too many open.
    pub fn one_more_file(&self) -> Result<Arc<()>> {
        self.one_more(&self.files, MAX_FILES, "files open")
    }

    /// What an object is kept with that the component writes.
    ///
    /// # Errors
    /// `Denied` when it is writing too many.
    pub fn one_more_draft(&self) -> Result<Arc<()>> {
        self.one_more(&self.drafts, MAX_DRAFTS, "objects begun")
    }

    fn one_more(&self, held: &Arc<()>, most: usize, what: &str) -> Result<Arc<()>> {
        if Arc::strong_count(held) <= most {
            return Ok(held.clone());
        }
        let name = self.call.as_ref().map_or("", |call| &call.target.backend);
        let why = format!("the backend `{name}` has {most} {what}, and wants another");
        Err(Error::new(Kind::Denied, why).hint(FAULT))
    }

    /// Whether the call at hand is to put something back.
    pub fn restores(&self) -> bool {
        self.restores
    }

    /// The component called the host.
    pub fn reached(&mut self) -> &mut Self {
        self.watch.progress().reached();
        self
    }

    /// How the call gets on.
    pub fn progress(&self) -> &Progress {
        self.watch.progress()
    }
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.watch.progress().reached();
        let ctx = self.wasi.get_or_insert_with(|| WasiCtx::builder().build());
        WasiCtxView { ctx, table: &mut self.open }
    }
}

/// Counts memory over all memories of the component, and refuses more than the limit.
pub(super) struct Memory {
    limits: Limits,
    used: usize,
    pub(super) refused: bool,
}

impl Memory {
    /// The limit in words.
    pub(super) fn limit(&self) -> String {
        format!("{} MiB", self.limits.memory >> 20)
    }
}

impl wasmtime::ResourceLimiter for Memory {
    fn memory_growing(&mut self, current: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        let used = self.used.saturating_add(desired.saturating_sub(current));
        if used > self.limits.memory {
            self.refused = true;
            return Ok(false);
        }
        self.used = used;
        Ok(true)
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        Ok(desired <= MAX_TABLE)
    }
}
