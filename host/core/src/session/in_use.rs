//! Several databases that others use: all are named, as far as that is bounded, and not only the
//! first that was met. Nobody is waited for to find that out, and nothing is kept of it.

use super::capture::{Context, Job};
use super::take::Selection;
use super::{Project, Session};
use crate::error::{Error, Kind, Result};
use crate::history::snapshot::Snapshot;
use std::sync::Arc;

/// At most so many are named.
const NAMED: usize = 10;

impl Project {
    /// `first`, which kept a target from being captured, with what keeps those of `rest`.
    pub(super) fn in_use(&self, first: Error, rest: &[&Job], context: &Context<'_>) -> Error {
        let context = Context { elsewhere: context.elsewhere.clone(), hurry: true, ..*context };
        let mut all = vec![first];
        for job in rest {
            if all.len() == NAMED {
                break;
            }
            let found = self.capture_one(job, &context).err();
            all.extend(found.filter(|error| error.kind() == Kind::Busy));
        }
        together(all)
    }
}

impl Session {
    /// `first`, which kept a target from being put back, with what keeps those called `rest`, as
    /// far as they are files that `saved` has.
    pub(super) fn in_use_too(&self, first: Error, rest: &[String], saved: &Snapshot) -> Error {
        let look = || -> Result<Error> {
            let mut jobs = Vec::new();
            for captured in rest.iter().filter_map(|name| saved.target(name)) {
                if !self.claims(&captured.target)?.is_empty() {
                    jobs.push(Job { hold: Some(Arc::default()), ..Job::of(&captured.target) });
                }
            }
            let (writer, records) = (Arc::new(self.opened().scratch(true)), self.records()?);
            let elsewhere = Arc::new(self.all_claims(saved.targets.iter().map(|c| &c.target))?);
            let selection = Selection { allow_huge: true, ..Selection::default() };
            let (writer, selection, records) = (&writer, &selection, &records);
            let context = Context { elsewhere, writer, selection, records, hurry: true, left: None };
            Ok(self.in_use(first.clone(), &jobs.iter().collect::<Vec<_>>(), &context))
        };
        look().unwrap_or(first)
    }
}

/// One error for all of them.
fn together(mut all: Vec<Error>) -> Error {
    if all.len() == 1 {
        return all.remove(0);
    }
    let lines: Vec<String> = all.iter().map(|error| format!("\n  {}", error.message())).collect();
    let text = format!("{} databases are in use{}", lines.len(), lines.concat());
    Error::new(Kind::Busy, text).hint("end or pause what uses them, or wait")
}
