//! What a snapshot would hold and leave out, before anything happens.

use super::Project;
use super::take::HUGE;
use crate::backend::{Call, Target};
use crate::error::Result;
use crate::project::config::TREE;
use crate::tree::{Survey, Surveys};
use std::sync::Arc;

impl Project {
    /// What the tree's targets would hold and leave out now, by target. Other backends
    /// would have to do their work to know. There need not be a store.
    ///
    /// # Errors
    /// When snapback.toml is wrong, or a target could not be captured at all.
    pub fn survey(&self) -> Result<Vec<(String, Survey)>> {
        self.check_place(false)?;
        let mut all = Vec::new();
        let targets = || self.config().map(|config| config.targets.iter().map(|c| &c.target));
        let known = |target: &&Target| self.env.backends.is_known(&target.backend);
        let declared = self.all_claims(targets()?.filter(known))?;
        for target in targets()?.filter(|target| target.backend == TREE) {
            let surveys = Arc::new(Surveys::new(HUGE.files));
            let call = Call { survey: Some(surveys.clone()), ..Call::new(&self.env, target, self.store()) };
            self.env.backends.get(&target.backend)?.snapshot(&call, &[])?;
            for mut survey in surveys.take() {
                survey.databases.retain(|path| declared.iter().all(|claim| claim.path != *path));
                all.push((target.name.clone(), survey));
            }
        }
        Ok(all)
    }

    /// Whether a snapshot of what was surveyed would be asked for first.
    pub fn asks_first(&self, survey: &Survey) -> bool {
        let huge = !survey.complete || survey.files > HUGE.files || survey.bytes > HUGE.bytes;
        huge && self.ids().is_ok_and(|ids| ids.is_empty())
    }
}
