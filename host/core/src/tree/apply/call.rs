//! A restore as a backend's call asks for it: with the store, the paths and the
//! reporter that were lent.

use super::outcome::{Outcome, Refusal, lines};
use super::restore::{Options, Request, carry_out};
use crate::backend::Call;
use crate::disk::Dir;
use crate::error::{Error, Kind, Result};
use crate::object::Key;
use crate::store::Source;
use crate::tree::Directory;
use crate::tree::compare::Only;
use crate::tree::plan::Plan;
use crate::tree::root::Root;
use crate::tree::select::{Strategy, Times};
use crate::tree::statcache::StatCache;
use crate::tree::view::read_root;

/// Makes what the tree `stored` selected of `dir` equal to it. `current` is what was
/// captured of it just before: what is no longer as in it is left alone and reported
/// as refused. What was planned before is carried out as it was planned. A second call
/// completes one that was cut short; a call with the two exchanged takes it back.
///
/// # Errors
/// `Incompatible` when one of the two is no tree of this directory; else as
/// [`super::run`] has them.
pub fn restore(dir: &Directory, call: &Call, stored: &Key, current: &Key) -> Result<Outcome> {
    let cache = StatCache::load(call.store()?.path(), &call.target.name, &dir.cached_as());
    let witness = cache.as_ref().filter(|cache| cache.is_of(current));
    with_request(dir, call, (stored, current), witness, |request| {
        let plan = match call.plans.take(stored, current) {
            Some(plan) => plan,
            None => Plan::make(request)?,
        };
        let outcome = carry_out(request, plan)?;
        let target = &call.target.name;
        for Refusal { path, reason, hint, in_part } in outcome.refused.iter().chain(&outcome.notes) {
            let hint = hint.as_ref().map_or(String::new(), |hint| format!(" (`{hint}`)"));
            let reason = format!("{reason}{hint}");
            match in_part {
                true => call.report.partly(target, path, &reason),
                false => call.report.refused(target, path, &reason),
            }
        }
        // What is to be there is: nothing of this was refused.
        lines(&outcome.saved).iter().for_each(|line| call.report.log(target, "warn", line));
        Ok(outcome)
    })
}

/// What [`restore`] is going to do, without touching anything. With `verify`, all
/// content that it will write is read and checked.
///
/// # Errors
/// As [`restore`] has them, and when something that is needed is damaged. What is known
/// to be impossible is in the plan.
pub fn preflight(dir: &Directory, call: &Call, stored: &Key, current: &Key, verify: bool) -> Result<Plan> {
    with_request(dir, call, (stored, current), None, |request| {
        let plan = Plan::make(request)?;
        if verify {
            plan.verify(request)?;
        }
        Ok(plan)
    })
}

fn with_request<T>(
    dir: &Directory,
    call: &Call,
    (stored, current): (&Key, &Key),
    witness: Option<&StatCache>,
    act: impl FnOnce(&Request<'_>) -> Result<T>,
) -> Result<T> {
    let source: &dyn Source = match &call.writer {
        // Before a restore, what was captured just now is not sealed yet.
        Some(writer) => &**writer,
        None => &**call.store()?,
    };
    let read = |key| -> Result<Root> {
        let root = read_root(source, key)?;
        if root.setting == dir.setting() {
            return Ok(root);
        }
        let (is, asked) = (&root.setting, dir.setting());
        Err(Error::new(Kind::Incompatible, format!("it is a tree of `{is}`, not of `{asked}`")))
    };
    let roots = (read(stored)?, read(current)?);
    let store = call.store()?;
    let handle = dir.handle().try_clone_to_owned().map_err(|e| Error::io(e, "could not open", dir.path()))?;
    act(&Request {
        directory: &Dir::from_fd(handle, dir.path().to_owned()),
        stored: &roots.0,
        current: &roots.1,
        carried: &call.carried,
        only: &Only::new(&call.only)?,
        source,
        store,
        disk: store.disk(),
        target: &call.target.name,
        witness,
        options: Options {
            stored_times: dir.options().times == Times::Stored,
            partial: call.partial,
            copy: dir.options().strategy == Strategy::Copy,
        },
        cancel: &call.cancel,
        report: &*call.report,
    })
}
