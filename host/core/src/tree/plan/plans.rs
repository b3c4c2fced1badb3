//! Plans that were made and shown and are still to be carried out: what was shown is what
//! is done, and the trees are not compared again for it.

use super::Plan;
use crate::object::Key;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The plans of one step, all within the same paths.
#[derive(Debug, Default)]
pub struct Plans(Mutex<Vec<(Key, Key, Plan)>>);

impl Plans {
    /// Keeps the plan that leads from the root `current` to the root `stored`.
    pub fn keep(&self, stored: &Key, current: &Key, plan: Plan) {
        self.lock().push((*stored, *current, plan));
    }

    /// Takes out the plan that leads from `current` to `stored`, if there is one: a second
    /// call finds another tree, and makes its own.
    pub fn take(&self, stored: &Key, current: &Key) -> Option<Plan> {
        let mut plans = self.lock();
        let at = plans.iter().position(|(to, from, _)| (to, from) == (stored, current))?;
        Some(plans.swap_remove(at).2)
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Key, Key, Plan)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
