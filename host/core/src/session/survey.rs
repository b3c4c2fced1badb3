//! What a snapshot would hold and leave out, before anything happens; and the places that are
//! seldom meant, which are measured for the question and refused without a yes.

use super::Project;
use super::take::HUGE;
use crate::backend::{Call, Target};
use crate::error::{Error, Kind, Result, show};
use crate::project::config::TREE;
use crate::tree::{Survey, Surveys};
use std::path::Path;
use std::sync::Arc;

/// Files that are counted of a place that is seldom meant: it may hold millions.
const MEASURED: u64 = 100_000;

impl Project {
    /// What the tree's targets would hold and leave out now, by target. Other backends
    /// would have to do their work to know. There need not be a store.
    ///
    /// # Errors
    /// When snapback.toml is wrong, or a target could not be captured at all.
    pub fn survey(&self) -> Result<Vec<(String, Survey)>> {
        if let Some(error) = self.seldom_meant()? {
            return Err(error);
        }
        self.surveyed(|| Surveys::new(HUGE.files))
    }

    /// What the tree's targets hold, found as `surveys` has it.
    fn surveyed(&self, surveys: impl Fn() -> Surveys) -> Result<Vec<(String, Survey)>> {
        let mut all = Vec::new();
        let targets = || self.config().map(|config| config.targets.iter().map(|c| &c.target));
        let known = |target: &&Target| self.env.backends.is_known(&target.backend);
        let declared = self.all_claims(targets()?.filter(known))?;
        for target in targets()?.filter(|target| target.backend == TREE) {
            let surveys = Arc::new(surveys());
            let call = Call { survey: Some(surveys.clone()), ..Call::new(&self.env, target, self.store()) };
            self.env.backends.get(&target.backend)?.snapshot(&call, &[])?;
            for mut survey in surveys.take() {
                survey.databases.retain(|path| declared.iter().all(|claim| claim.path != *path));
                all.push((target.name.clone(), survey));
            }
        }
        Ok(all)
    }

    /// Refuses the first snapshot of the home directory or of `/`, which are seldom what
    /// is meant; not with `insist`.
    ///
    /// # Errors
    /// `TooLarge`, with how much it is, where most of it lies and the way to insist; `Cancelled`.
    pub fn check_place(&self, insist: bool) -> Result<()> {
        let Some(error) = (if insist { None } else { self.seldom_meant()? }) else { return Ok(()) };
        let surveyed = self.surveyed(|| Surveys::brief(MEASURED));
        self.env.cancel.check()?;
        // Where it cannot be measured, the question is asked all the same.
        let surveyed = surveyed.unwrap_or_default();
        let Some((_, survey)) = surveyed.first() else { return Err(error) };
        let text = format!("{}: {}", error.message(), survey.holds.text());
        Err(Error::new(Kind::TooLarge, text)
            .hint(format!("change into a project; or {}", survey.holds.hint())))
    }

    /// What is said of the first snapshot of the home directory or of `/`.
    fn seldom_meant(&self) -> Result<Option<Error>> {
        let env = &self.env;
        let home = env.home.as_deref();
        if (env.root != Path::new("/") && Some(&*env.root) != home) || !self.ids()?.is_empty() {
            return Ok(None);
        }
        let which = if Some(&*env.root) == home { "your home directory" } else { "the whole system" };
        let why = format!("{} is {which}, not a project", show(&env.root));
        Ok(Some(
            Error::new(Kind::TooLarge, why)
                .hint("change into a project; `snapback run --allow-huge -- COMMAND` (or `snap`) insists"),
        ))
    }

    /// Whether a snapshot of what was surveyed would be asked for first.
    pub fn asks_first(&self, survey: &Survey) -> bool {
        let huge =
            !survey.holds.complete || survey.holds.files > HUGE.files || survey.holds.bytes > HUGE.bytes;
        huge && self.ids().is_ok_and(|ids| ids.is_empty())
    }
}
