//! Looks at a call at each tick, and stops it when the user asked to, when it has run for
//! so long without calling the host that it must be in a loop, or when it has waited for
//! so long that nothing will come.
//!
//! Time is counted in ticks, so a process that was stopped and went on has not been silent.
//! The host's own work counts as neither.

use super::progress::Progress;
use super::state::State;
use crate::engine::TICK;
use crate::grant::Limits;
use snapback_core::backend::Cancel;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use wasmtime::{StoreContextMut, UpdateDeadline};

/// How long a component has been silent.
pub(super) struct Watch {
    progress: Progress,
    calls: u64,
    silent: u32,
    limit: u32,
    cancel: Option<Cancel>,
}

impl Watch {
    pub(super) fn new(limits: Limits, cancel: Option<Cancel>, progress: Progress) -> Self {
        Self { progress, calls: 0, silent: 0, limit: ticks(limits.silence), cancel }
    }

    /// How the call gets on.
    pub(super) fn progress(&self) -> &Progress {
        &self.progress
    }

    fn tick(&mut self) -> wasmtime::Result<()> {
        if let Some(cancel) = &self.cancel {
            cancel.check()?;
        }
        self.progress.check()?;
        let calls = self.progress.calls();
        self.silent = if calls == self.calls { self.silent + 1 } else { 0 };
        self.calls = calls;
        if self.silent > self.limit {
            return Err(Silent::Ran(TICK * self.limit).into());
        }
        Ok(())
    }
}

fn ticks(time: Duration) -> u32 {
    u32::try_from(time.as_millis().div_ceil(TICK.as_millis())).unwrap_or(u32::MAX)
}

/// What wasmtime calls at a tick.
pub(super) fn look(mut store: StoreContextMut<'_, State>) -> wasmtime::Result<UpdateDeadline> {
    store.data_mut().watch.tick()?;
    Ok(UpdateDeadline::Yield(1))
}

/// What `work` returns, unless the user asks to stop while it waits for something that is
/// not the host's own, a timer or a server, or that does not come within `limit`.
pub(super) async fn unless_stuck<R>(
    work: impl Future<Output = wasmtime::Result<R>>,
    cancel: &Cancel,
    progress: &Progress,
    limit: Duration,
) -> wasmtime::Result<R> {
    let stuck = async {
        let (limit, mut calls, mut waited) = (ticks(limit), 0, 0);
        loop {
            tokio::time::sleep(TICK).await;
            if let Err(error) = cancel.check() {
                return Err(error.into());
            }
            let now = progress.calls();
            waited = if now == calls && !progress.is_busy() { waited + 1 } else { 0 };
            calls = now;
            if waited > limit {
                return Err(Silent::Waited(TICK * limit).into());
            }
        }
    };
    let (mut work, mut stuck) = (pin!(work), pin!(stuck));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(done),
        Poll::Pending => stuck.as_mut().poll(context),
    })
    .await
}

/// The component did not get on for this long.
#[derive(Debug)]
pub(super) enum Silent {
    /// It ran all the time.
    Ran(Duration),
    /// It waited.
    Waited(Duration),
}

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ran(time) => write!(f, "ran for {} s without calling anything", time.as_secs_f32()),
            Self::Waited(time) => {
                write!(f, "waited for {} s for something that did not come", time.as_secs_f32())
            }
        }
    }
}

impl std::error::Error for Silent {}
