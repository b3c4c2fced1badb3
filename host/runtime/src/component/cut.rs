//! Ending a call in its middle, on purpose: how the law finds out what comes of that. What a
//! call is ended at is counted, in calls of the host, and so is the same each time.

use crate::engine::Engine;
use snapback_core::backend::Cancel;
use snapback_core::error::{Error, Kind, Result};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How a call is ended.
#[derive(Debug, Clone)]
pub enum How {
    /// As when the user asks to stop, by this token.
    Asked(Cancel),
    /// As when the component gives up.
    GaveUp,
}

/// Ends calls of one component. Clones are the same.
#[derive(Clone)]
pub struct Cut(Arc<(Engine, Mutex<Plan>)>);

#[derive(Default)]
struct Plan {
    /// How the next call is ended, and after how many calls of the host.
    at: Option<(u64, How)>,
    /// Calls of the host in the call that goes on, or was the last.
    seen: u64,
    /// That the component is to give up now.
    due: bool,
    /// Whether it was stopped, in one way or the other.
    hit: bool,
}

impl Cut {
    /// Ends nothing yet.
    pub fn new(engine: &Engine) -> Self {
        Self(Arc::new((engine.clone(), Mutex::default())))
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.0.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the next call ended after `calls` calls of the host.
    pub fn next(&self, calls: u64, how: How) {
        self.plan().at = Some((calls, how));
    }

    /// How often the last call called the host.
    pub fn seen(&self) -> u64 {
        self.plan().seen
    }

    /// Whether the last call was stopped before its end.
    pub fn hit(&self) -> bool {
        self.plan().hit
    }

    /// A call begins.
    pub(super) fn begin(&self) {
        let mut plan = self.plan();
        *plan = Plan { at: plan.at.take(), ..Plan::default() };
    }

    /// The component called the host.
    pub(super) fn reached(&self) {
        let mut plan = self.plan();
        plan.seen += 1;
        match &plan.at {
            Some((at, how)) if *at == plan.seen => {
                match how {
                    How::Asked(cancel) => cancel.cancel(),
                    How::GaveUp => plan.due = true,
                }
                // Its code is looked at as soon as it goes on.
                self.0.0.raw().increment_epoch();
            }
            _ => {}
        }
    }

    /// Its code is looked at: whether it may go on.
    ///
    /// # Errors
    /// When it is to give up.
    pub(super) fn check(&self) -> Result<()> {
        match self.plan().due {
            true => Err(Error::new(Kind::Other, "it was ended in its middle, to see what comes of that")),
            false => Ok(()),
        }
    }

    /// The call has ended; whether it was `stopped`.
    pub(super) fn end(&self, stopped: bool) {
        let mut plan = self.plan();
        plan.hit = stopped && (plan.at.take().is_some_and(|(at, _)| at <= plan.seen));
    }
}
