//! Whether a call gets on: how often the component called the host, and whether the host
//! is at work for it.
//!
//! Shared between the call and who watches over it, on one thread and on those of bulk work.

use super::cut::Cut;
use snapback_core::error::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// How a call gets on.
#[derive(Clone, Default)]
pub struct Progress(Arc<Inner>);

#[derive(Default)]
struct Inner {
    calls: AtomicU64,
    busy: AtomicU32,
    /// Who may end the call in its middle.
    cut: Option<Cut>,
}

/// The host is at work for the component while this lives.
#[must_use]
pub struct Busy(Progress);

impl Progress {
    /// Of a call that `cut` may end.
    pub(super) fn of(cut: Option<Cut>) -> Self {
        Self(Arc::new(Inner { cut, ..Inner::default() }))
    }

    /// The component called the host.
    pub(super) fn reached(&self) {
        self.0.calls.fetch_add(1, Ordering::Relaxed);
        self.0.cut.iter().for_each(Cut::reached);
    }

    /// Whether its code may go on.
    ///
    /// # Errors
    /// When it is ended in its middle.
    pub(super) fn check(&self) -> Result<()> {
        self.0.cut.as_ref().map_or(Ok(()), Cut::check)
    }

    /// How often it did.
    pub(super) fn calls(&self) -> u64 {
        self.0.calls.load(Ordering::Relaxed)
    }

    /// Whether the host is at work for it.
    pub(super) fn is_busy(&self) -> bool {
        self.0.busy.load(Ordering::Relaxed) > 0
    }

    /// The host goes to work.
    pub fn busy(&self) -> Busy {
        self.0.busy.fetch_add(1, Ordering::Relaxed);
        Busy(self.clone())
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let inner = &self.0.0;
        inner.calls.fetch_add(1, Ordering::Relaxed);
        inner.busy.fetch_sub(1, Ordering::Relaxed);
    }
}
