//! Looks at running code at each tick, and stops it when the user asked to, or when it
//! has not called the host for so long that it must be in a loop.
//!
//! Time is counted in ticks, so a process that was stopped and went on has not been silent.

use super::state::State;
use crate::engine::TICK;
use snapback_core::backend::Cancel;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;
use wasmtime::{StoreContextMut, UpdateDeadline};

/// How long a component has been silent.
pub(super) struct Watch {
    reached: bool,
    silent: u32,
    limit: u32,
    cancel: Option<Cancel>,
}

impl Watch {
    pub(super) fn new(limit: Duration, cancel: Option<Cancel>) -> Self {
        let ticks = limit.as_millis().div_ceil(TICK.as_millis());
        Self { reached: false, silent: 0, limit: u32::try_from(ticks).unwrap_or(u32::MAX), cancel }
    }

    /// The component called the host.
    pub(super) fn reached(&mut self) {
        self.reached = true;
    }

    fn tick(&mut self) -> wasmtime::Result<()> {
        if let Some(cancel) = &self.cancel {
            cancel.check()?;
        }
        self.silent = if std::mem::take(&mut self.reached) { 0 } else { self.silent + 1 };
        if self.silent > self.limit {
            return Err(Silent(TICK * self.limit).into());
        }
        Ok(())
    }
}

/// What wasmtime calls at a tick.
pub(super) fn look(mut store: StoreContextMut<'_, State>) -> wasmtime::Result<UpdateDeadline> {
    store.data_mut().watch.tick()?;
    Ok(UpdateDeadline::Yield(1))
}

/// What `work` returns, unless the user asks to stop while it waits for something that
/// is not the host's own: a timer, a server.
pub(super) async fn unless_cancelled<R>(
    work: impl Future<Output = wasmtime::Result<R>>,
    cancel: &Cancel,
) -> wasmtime::Result<R> {
    let asked = async {
        loop {
            tokio::time::sleep(TICK).await;
            if let Err(error) = cancel.check() {
                return Err(error.into());
            }
        }
    };
    let (mut work, mut asked) = (pin!(work), pin!(asked));
    poll_fn(|context| match work.as_mut().poll(context) {
        Poll::Ready(done) => Poll::Ready(done),
        Poll::Pending => asked.as_mut().poll(context),
    })
    .await
}

/// The component did not call the host for this long.
#[derive(Debug)]
pub(super) struct Silent(pub(super) Duration);

impl fmt::Display for Silent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ran for {} s without calling anything", self.0.as_secs_f32())
    }
}

impl std::error::Error for Silent {}
