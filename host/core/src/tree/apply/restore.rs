//! The restore as a whole: plan, prepare aside, act, make durable, clean up; and when
//! something goes wrong in between, put everything back.

use super::action::{Action, removes, removes_dir};
use super::aside::Asides;
use super::outcome::{Outcome, Refusal};
use super::place::{Places, split};
use super::rights::Rights;
use super::{Run, lock, of_others};
use crate::backend::Cancel;
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result, show_bytes};
use crate::report::{Report, Silent};
use crate::store::{Source, Store};
use crate::tree::compare::{Change, Kept, Only};
use crate::tree::plan::Plan;
use crate::tree::root::Root;
use crate::tree::statcache::StatCache;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};

/// Paths that an error about refusals shows.
const SHOWN: usize = 5;

/// How a restore is done.
#[derive(Debug, Clone, Copy, Default)]
pub struct Options {
    /// Regular files whose bytes are written get their stored time instead of the
    /// present one.
    pub stored_times: bool,
    /// What cannot be done is left out; without this, nothing is begun then.
    pub partial: bool,
    /// Blocks are written, and never shared with the store.
    pub copy: bool,
}

/// What a restore is to do, and with what.
pub struct Request<'a> {
    /// The directory that is restored.
    pub directory: &'a Dir,
    /// What it is to be.
    pub stored: &'a Root,
    /// What was captured of it just before.
    pub current: &'a Root,
    /// What was left out of it and later snapshots have: path, and path before.
    pub carried: &'a [(Vec<u8>, Vec<u8>)],
    /// The paths that are restored.
    pub only: &'a Only,
    /// Where stored objects are read from.
    pub source: &'a dyn Source,
    /// The store: things are put aside and saved in its directory.
    pub store: &'a Arc<Store>,
    /// The door.
    pub disk: &'a Disk,
    /// The target's name.
    pub target: &'a str,
    /// What the capture of `current` saw, where that is known: what is still exactly so
    /// is not read again.
    pub witness: Option<&'a StatCache>,
    /// How.
    pub options: Options,
    /// Looked at by every loop.
    pub cancel: &'a Cancel,
    /// Who is told how far it is.
    pub report: &'a dyn Report,
}

/// Makes the directory equal to the stored tree. A call that was cut short is completed
/// by the same call, or taken back by one with `stored` and `current` exchanged.
///
/// # Errors
/// `Denied` or `NoSpace` when something is known to be impossible: nothing was touched.
/// Otherwise what went wrong; what was done before has been put back, or the error
/// says what was not. What is left alone is no error but in the outcome.
pub fn run(request: &Request<'_>) -> Result<Outcome> {
    carry_out(request, Plan::make(request)?)
}

/// The same by a plan of `request` that was made before.
///
/// # Errors
/// As [`run`] has them.
pub fn carry_out(request: &Request<'_>, mut plan: Plan) -> Result<Outcome> {
    if !request.options.partial
        && let Some(error) = plan.refused()
    {
        return Err(error);
    }
    let run = Run::new(request, &mut plan)?;
    if plan.is_empty() && !run.has_leftovers() {
        return Ok(run.outcome());
    }
    request.report.begin("restoring", Some(plan.bytes), "bytes");
    let done = run.go(&plan);
    request.report.end();
    match done {
        Ok(()) => Ok(run.outcome()),
        Err(Failed::Before(error)) => {
            run.discard();
            Err(match error.kind() {
                Kind::Corrupt => error.hint(DAMAGED),
                _ => error,
            })
        }
        Err(Failed::Within(error)) => {
            let outcome = run.outcome();
            drop(run);
            Err(take_back(request, error, &outcome))
        }
    }
}

/// What can be done where something is damaged in the store.
pub(in crate::tree) const DAMAGED: &str =
    "--partial puts back all that is whole; `snapback verify` names the snapshots that are concerned";

/// When it went wrong.
enum Failed {
    /// Nothing in the tree was touched.
    Before(Error),
    /// Something may have been.
    Within(Error),
}

/// Puts back what was done, and tells `error` with how that went.
fn take_back(request: &Request<'_>, error: Error, before: &Outcome) -> Error {
    let back = Request {
        stored: request.current,
        current: request.stored,
        witness: None,
        options: Options { partial: true, ..request.options },
        cancel: &Cancel::default(),
        report: &Silent,
        ..*request
    };
    let done = Plan::unchecked(&back).and_then(|mut plan| {
        let run = Run::new(&back, &mut plan)?;
        match run.go(&plan) {
            Ok(()) => Ok(run.outcome()),
            Err(Failed::Before(error) | Failed::Within(error)) => Err(error),
        }
    });
    let again = |error: Error, text: String| {
        let new = Error::new(error.kind(), format!("{error}; {text}"));
        match error.hint_text() {
            Some(hint) => new.hint(hint),
            None => new,
        }
    };
    match done {
        Err(second) => again(error, format!("putting back what was done failed as well: {second}"))
            .hint("`snapback undo --resume` tries again to finish, `--take-back` to put everything back"),
        Ok(outcome) => {
            let known = |r: &&Refusal| !before.refused.iter().any(|b| b.path == r.path);
            let mut not: Vec<&Refusal> = outcome.refused.iter().filter(known).collect();
            not.sort_by(|a, b| a.path.cmp(&b.path));
            match not.first() {
                None => again(error, "what was done has been put back".to_owned()),
                Some(first) => {
                    let text = format!("what was done has been put back, but not {}", list(&not));
                    again(error, format!("{text} ({})", first.reason))
                }
            }
        }
    }
}

/// Paths in words.
fn list(refusals: &[&Refusal]) -> String {
    let shown: Vec<String> = refusals.iter().take(SHOWN).map(|r| show_bytes(&r.path)).collect();
    let more = refusals.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

impl Plan {
    /// The error when something is known to be impossible.
    fn refused(&self) -> Option<Error> {
        if let Some(error) = &self.no_space {
            return Some(error.clone());
        }
        let first = self.refusals.first()?;
        let all: Vec<&Refusal> = self.refusals.iter().collect();
        let what = match all.len() {
            1 => format!("{} cannot be restored: {}", list(&all), first.reason),
            n => format!("{n} paths cannot be restored: {} ({})", list(&all), first.reason),
        };
        let error = Error::new(Kind::Denied, format!("{what}; nothing was changed"));
        Some(match &first.hint {
            Some(hint) => {
                error.hint(format!("`{hint}`, or leave out what cannot be restored with --partial"))
            }
            None => error.hint("leave out what cannot be restored with --partial"),
        })
    }
}

impl<'a> Run<'a> {
    fn new(request: &'a Request<'_>, plan: &mut Plan) -> Result<Self> {
        let setting = &request.stored.setting;
        let run = Self {
            source: request.source,
            store: request.store,
            disk: request.disk,
            rights: Rights::of_process(),
            places: Places::new(request.disk, request.directory.try_clone()?, request.witness)?,
            asides: Asides::open(request.disk, request.store.dir(), request.target, setting)?,
            tape: std::mem::take(&mut plan.tape),
            options: &request.options,
            cancel: request.cancel,
            report: request.report,
            links: std::mem::take(&mut plan.links).into(),
            displaced: Default::default(),
            displaced_names: Default::default(),
            outcome: Default::default(),
            left: Default::default(),
            theirs: of_others(request.stored),
            made: Default::default(),
            noticed: Once::new(),
        };
        plan.refusals.drain(..).chain(plan.left.drain(..)).for_each(|refusal| run.refuse(refusal));
        lock(&run.outcome).notes.append(&mut plan.notes);
        Ok(run)
    }

    /// What was done, sorted by path.
    fn outcome(&self) -> Outcome {
        let mut outcome = lock(&self.outcome).clone();
        outcome.refused.sort_by(|a, b| a.path.cmp(&b.path));
        outcome.notes.sort_by(|a, b| a.path.cmp(&b.path));
        outcome.saved.sort_by(|a, b| a.path.cmp(&b.path));
        outcome
    }

    fn go(&self, plan: &Plan) -> Result<(), Failed> {
        self.prepare().map_err(Failed::Before)?;
        self.act(plan).and_then(|()| self.complete()).map_err(Failed::Within)
    }

    /// Makes everything new aside.
    fn prepare(&self) -> Result<()> {
        // A call that was cut short left something aside, or had put all of it in place: without
        // leftovers, the first look tells. What it says is not there is seen when it is put.
        let resumes = self.has_leftovers();
        let is_fresh = AtomicBool::new(false);
        let wanted = |step: &Kept<'_>| Ok(matches!(self.action(step)?, Action::Put | Action::Unshare));
        self.each(wanted, |change| {
            // What lies in a directory that is to be made is there only if a call was cut short.
            let in_both = change.common == split(&change.path).0.len();
            let may_be_there = resumes || (in_both && !is_fresh.load(Ordering::Relaxed));
            if may_be_there && self.is_there(change)? {
                return Ok(());
            }
            is_fresh.fetch_or(may_be_there, Ordering::Relaxed);
            self.stage(change).map(drop)
        })?;
        // What stands aside is durable before it takes a name in the tree: else a power
        // cut could leave an empty file where the old one was.
        self.asides.all().iter().try_for_each(|aside| self.disk.sync_filesystem(&aside.dir))
    }

    fn act(&self, plan: &Plan) -> Result<()> {
        if plan.deleted > 0 || plan.modified > 0 {
            self.each(|step| Ok(removes(step.traits)), |change| self.remove(change))?;
            let gone = |step: &Kept<'_>| Ok(step.leaves && removes_dir(step.traits));
            self.in_order(gone, |change| self.remove_dir(change))?;
        }
        let made = |step: &Kept<'_>| Ok(!step.leaves && self.action(step)? == Action::MakeDir);
        self.in_order(made, |change| self.make_dir(change))?;
        self.each(|step| Ok(self.action(step)? == Action::Put), |change| self.put(change))?;
        // Names of one inode are never worked on at the same time: each would see the
        // other's doing as somebody's.
        let alone = |step: &Kept<'_>| Ok(!step.traits.linked() && self.action(step)? == Action::Settle);
        self.each(alone, |change| self.settle(change))?;
        self.join()?;
        // A directory that was not opened has nothing in it that differs.
        let done = |step: &Kept<'_>| {
            let unopened = !step.entered && step.traits.was_dir() && step.traits.becomes_dir();
            Ok(step.leaves || unopened)
        };
        self.in_order(done, |change| self.finish_dir(change))
    }

    /// Works on what has other names, or had them.
    fn join(&self) -> Result<()> {
        self.tape.each(|step| {
            if step.leaves || !step.traits.linked() || self.is_refused(step.path) {
                return Ok(());
            }
            self.cancel.check()?;
            match self.action(step)? {
                Action::Link => self.link(&step.change()?),
                Action::Unshare => self.unshare(&step.change()?),
                Action::Settle => self.settle(&step.change()?),
                _ => Ok(()),
            }
        })
    }

    /// Goes through the steps that `pick` wants one after the other, without those that
    /// were refused.
    fn in_order(
        &self,
        pick: impl Fn(&Kept<'_>) -> Result<bool>,
        mut act: impl FnMut(&Change) -> Result<()>,
    ) -> Result<()> {
        self.tape.each(|step| {
            self.cancel.check()?;
            match pick(step)? && !self.is_refused(step.path) {
                true => act(&step.change()?),
                false => Ok(()),
            }
        })
    }
}
