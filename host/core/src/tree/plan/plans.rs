//! Plans that were made and are still to be shown and carried out: what is shown is what is
//! done, and the trees are compared once.

use super::Plan;
use crate::error::Result;
use crate::object::Key;
use crate::tree::compare::Change;
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

    /// Calls `act` for each change that is told of, as the plan from `current` to `stored`
    /// makes, sorted by path; none if there is no such plan.
    pub fn changes(
        &self,
        stored: &Key,
        current: &Key,
        act: &mut dyn FnMut(&Change) -> Result<()>,
    ) -> Option<Result<()>> {
        let plans = self.lock();
        let (.., plan) = plans.iter().find(|(to, from, _)| (to, from) == (stored, current))?;
        Some(plan.tape.each(|step| {
            if step.leaves || step.traits.passage() {
                return Ok(());
            }
            let change = step.change()?;
            if change.is_told(plan.times) { act(&change) } else { Ok(()) }
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(Key, Key, Plan)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
