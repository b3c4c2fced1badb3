//! What undo, redo and restore have in common: plan, say it, ask where that is needed,
//! do it, say what was done.
//!
//! Invariant: nothing is touched before the plan was said; with `-n` nothing is touched
//! at all. A step that was cut short is finished first; who asked for that one gets no
//! second step. Refuses to act while a run is going on without a yes.

use super::take;
use crate::consent;
use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, Restored};
use crate::render::beyond;
use crate::render::plan as text;
use crate::render::words::{self, Counts, count};
use crate::signals::Signals;
use snapback_core::error::{Error, Kind, Result, shell_word};
use snapback_core::history::journal::Verb;
use snapback_core::history::timeline::Step;
use snapback_core::history::{Id, Snapshot};
use snapback_core::project::config::{FILE, TREE};
use snapback_core::session::{
    Action, Ask, Difference, Finished, Narrow, Outcome, Pending, Plan, Project, Saved, Session,
};
use std::collections::BTreeSet;
use std::path::PathBuf;

/// What is wished for.
pub struct Wish<'a> {
    /// What to go to.
    pub ask: Ask,
    /// How much of it.
    pub part: Part<'a>,
    /// Only say it.
    pub dry: bool,
    /// One target that fails does not take back the others.
    pub partial: bool,
}

/// How much of it is wished for.
pub enum Part<'a> {
    /// Only these targets and these paths, as they were typed; empty: all.
    Typed {
        /// Names.
        targets: &'a [String],
        /// Paths, seen from where the user is.
        paths: &'a [PathBuf],
    },
    /// What was chosen of what is known to have changed.
    Chosen(&'a Narrow),
}

/// Where `undo` would go.
///
/// # Errors
/// `NotFound` when there is nothing to undo.
pub fn before_last_step(project: &Project) -> Result<Snapshot> {
    match project.timeline()?.last_done()? {
        Some(step) => project.load(&step.before),
        None => Err(Error::new(Kind::NotFound, "there is nothing to undo, so nothing to compare with")
            .hint("name a snapshot: `snapback diff @0` compares the newest with the present")),
    }
}

/// Where what the newest step changed began, whatever was put back of it since.
///
/// # Errors
/// `NotFound` when there is nothing to undo.
pub fn before_last_change(project: &Project) -> Result<Snapshot> {
    match project.timeline()?.last_change()? {
        Some(step) => project.load(&step.before),
        None => before_last_step(project),
    }
}

/// Does it.
///
/// # Errors
/// When it cannot be planned, is not wanted, or fails.
pub fn put_back(context: &mut Context, project: Project, wish: &Wish<'_>) -> Result<Code> {
    // Planning would make a store where there is none.
    project.need_store()?;
    take::interrupted(context, &project);
    let narrow = match &wish.part {
        Part::Chosen(narrow) => Narrow { partial: wish.partial, ..(*narrow).clone() },
        Part::Typed { targets, paths } => {
            let paths = context.inside(&project, paths)?;
            Narrow { targets: targets.to_vec(), paths, whole: Vec::new(), partial: wish.partial }
        }
    };
    let narrowed = narrow.is_any();
    if wish.dry {
        return foretell(context, &project, wish, &narrow);
    }
    let (mut project, mut agreed) = (project, None::<(Id, Vec<Difference>)>);
    let (session, plan) = loop {
        project.make_root()?;
        let session = project.lock()?;
        if let Some(finished) = session.finished().filter(|finished| wish.ask.means(&finished.step, narrowed))
        {
            return was_finished(context, &session, finished);
        }
        let plan =
            consent::with(context, &session, || session.plan_part(&wish.ask, &narrow)).map_err(in_use)?;
        if agreed.as_ref().is_some_and(|(to, changes)| (to, changes) == (&plan.to.id, &plan.changes)) {
            break (session, plan);
        }
        if agreed.is_some() {
            context.talk.say("what there is to do is another since you were asked");
        }
        forewarn(context, &plan);
        announce(context, &plan, &session);
        let Some(question) = question(context, &plan)? else { break (session, plan) };
        // Nobody waits for an answer: what it was about is looked at once more afterwards.
        let shown = shown(plan);
        drop(session);
        if context.confirm(&question) != Some(true) {
            return Err(not_wanted());
        }
        (project, agreed) = (context.open()?, Some(shown));
    };
    let (beyond, lacks) = (json::Beyond::new(&plan.beyond, &plan.to.id), plan.lacks.clone());
    let outcome = match stoppable(context, || carry_out(context, &session, plan, wish.partial))? {
        Ok(outcome) => outcome,
        Err(code) => return Ok(code),
    };
    if context.global.json {
        let saved = outcome.saved_as.as_ref().map(Id::as_str);
        let report =
            Restored::new(outcome.restored_to.as_str(), saved, &outcome.changes, &outcome.not_restored);
        json::write(&mut context.out, &report.with(beyond, lacks))?;
    }
    Ok(code(outcome.not_restored.is_empty()))
}

/// Does `act`, which a signal stops: what was done is put back then, that is said, and the
/// command ends as the signal would have ended it. A second one ends it at once.
///
/// # Errors
/// What `act` fails with else.
pub fn stoppable<T>(context: &Context, act: impl FnOnce() -> Result<T>) -> Result<Result<T, Code>> {
    let signals = Signals::watch(context.cancel.clone())?;
    match (act(), signals.asked()) {
        (Err(error), Some(signal)) if error.kind() == Kind::Cancelled => {
            context.talk.error(&error);
            Ok(Err(Code::of_signal(signal).shared(Some(signal))))
        }
        (done, _) => done.map(Ok),
    }
}

/// What is in use keeps all targets back; the others can be named.
fn in_use(error: Error) -> Error {
    if error.kind() != Kind::Busy {
        return error;
    }
    let hint = format!("{}; `--target NAME` puts back one of the others", crate::talk::hint(&error));
    error.context("nothing was put back").hint(hint)
}

/// A dry run: says what would be done. Nothing is written, not even what a lost store lacks.
fn foretell(context: &mut Context, project: &Project, wish: &Wish<'_>, narrow: &Narrow) -> Result<Code> {
    context.tell_outlived(project);
    if let Some(step) = project.pending()? {
        return would_finish(context, project, &step);
    }
    let plan = consent::with(context, project, || project.foresee(&wish.ask, narrow))?;
    forewarn(context, &plan);
    announce(context, &plan, project);
    if plan.is_empty() {
        let next = plan.next.as_ref().map(|step| describe(project, step));
        context.talk.say(text::nothing_changed(&plan, next));
    }
    text::refusals(&plan.blocked, "cannot be put back").iter().for_each(|line| context.talk.detail(line));
    let not_restored = [&plan.not_restored[..], &plan.blocked].concat();
    if context.global.json {
        let report = Restored::new(plan.to.id.as_str(), None, &plan.changes, &not_restored);
        json::write(
            &mut context.out,
            &report.with(json::Beyond::new(&plan.beyond, &plan.to.id), plan.lacks.clone()),
        )?;
    }
    Ok(code(not_restored.is_empty()))
}

/// A dry run while a step is unfinished: finishing that comes first, and what is there
/// until then is half of it, so nothing is known of what follows.
fn would_finish(context: &mut Context, project: &Project, step: &Pending) -> Result<Code> {
    let (verb, to, rest) = (step.verb.word(), &step.to, project.rest_of(step)?);
    let counts = Counts::of(rest.iter().map(|change| change.kind));
    let amount = if rest.is_empty() { "nothing differs".to_owned() } else { counts.as_happened() };
    context
        .talk
        .say(format_args!("the {verb} to snapshot {to} was cut short, and is finished first: {amount}"));
    text::first_paths(&rest).iter().for_each(|line| context.talk.detail(line));
    if context.global.json {
        json::write(&mut context.out, &Restored::new(to.as_str(), None, &rest, &[]))?;
    }
    Ok(Code::DONE)
}

/// The command was given again after it had been cut short: that one is finished now, and
/// nothing more is done.
fn was_finished(context: &mut Context, session: &Session, finished: &Finished) -> Result<Code> {
    let Finished { step, not_restored } = finished;
    let (verb, saved) = (step.verb.word(), &step.saved);
    let timeline = session.timeline()?;
    let next = match step.verb {
        Verb::Redo => timeline.undone.last(),
        Verb::Undo | Verb::Restore => timeline.done.last(),
    };
    let next = match (next, step.verb) {
        (Some(next), Verb::Redo) => {
            let before = session.load(&next.before).ok();
            format!("the next `snapback redo` {}", words::again(next, before.as_ref()))
        }
        (Some(next), _) => format!("the next `snapback undo` takes back {}", describe(session, next)),
        (None, _) => format!("there is nothing more to {verb}"),
    };
    context.talk.say(format_args!("that was this {verb}: what was there is in {saved}; {next}"));
    if context.global.json {
        let report = Restored::new(step.to.as_str(), Some(saved.as_str()), &[], not_restored);
        json::write(&mut context.out, &report)?;
    }
    Ok(code(not_restored.is_empty()))
}

/// Says first what `plan` cannot do: take git back, or what is not covered.
pub fn forewarn(context: &Context, plan: &Plan) {
    let Plan { beyond, to, .. } = plan;
    let uncovered = beyond::uncovered(beyond, "changed since");
    beyond::git(beyond, &to.id).iter().chain(&uncovered).for_each(|line| context.talk.say(line));
    if let Some(lost) = &plan.lost {
        let to = &to.id;
        context
            .talk
            .say(format_args!("snapshot {lost}, which the last step began from, is lost; {to} is older"));
    }
    if !plan.lacks.is_empty() {
        let lacks = plan.lacks.join(", ");
        context.talk.say(format_args!("not in {}, and left as it is: {lacks}", to.id));
    }
}

/// Says what `plan` will do.
fn announce(context: &Context, plan: &Plan, project: &Project) {
    if plan.is_empty() {
        return;
    }
    let redone = plan.step.as_ref().filter(|_| plan.action == Action::Redo);
    let redone = redone.map(|step| describe(project, step));
    let announcement = text::announce(plan, redone.as_deref(), project.root(), context.now());
    context.talk.say(&announcement.first);
    announcement.rest.iter().for_each(|line| context.talk.detail(line));
    if plan.changes.iter().any(|change| *change.target == *TREE && change.path == FILE.as_bytes()) {
        context
            .talk
            .detail(format_args!("{FILE} is one of them: what is covered and left out is as it says then"));
    }
}

/// What is to be asked before `plan` is carried out; none where nothing is, or nobody can be.
///
/// # Errors
/// `Busy` where a yes is needed and nobody can be asked.
fn question(context: &Context, plan: &Plan) -> Result<Option<String>> {
    let is_no_step = plan.is_empty() && plan.action == Action::Restore;
    if is_no_step || context.global.yes {
        return Ok(None);
    }
    let can_ask = context.terminal.can_ask();
    if !plan.running.is_empty() {
        let ids: Vec<&str> = plan.running.iter().map(Id::as_str).collect();
        let why = format!("a run is going on ({}), and what it still writes is not undone", ids.join(", "));
        return match can_ask {
            true => Ok(Some(format!("snapback: {why}. Do it all the same?"))),
            false => Err(Error::new(Kind::Busy, why).hint("wait until it has ended, or say `--yes`")),
        };
    }
    let edits = plan.edits().count();
    // Where nobody can be asked, it was said, and it is kept.
    if edits == 0 || !can_ask {
        return Ok(None);
    }
    let edits = count(edits as u64, "path");
    Ok(Some(match plan.action {
        Action::Redo => format!("snapback: {edits} changed after the undo. Replace that? It is kept"),
        _ => format!("snapback: {edits} changed after the run had ended. Undo that too? It is kept"),
    }))
}

/// What was shown of `plan`: where it goes, and what it changes. All else of it is let go of.
fn shown(plan: Plan) -> (Id, Vec<Difference>) {
    (plan.to.id, plan.changes)
}

fn not_wanted() -> Error {
    Error::new(Kind::Cancelled, "nothing was done")
        .hint("`--path P` takes back only what is named; `--yes` answers the question")
}

/// Executes `plan` and says what was done.
///
/// # Errors
/// When it fails.
pub fn carry_out(context: &Context, session: &Session, plan: Plan, partial: bool) -> Result<Outcome> {
    let next = plan.next.as_ref().map(|step| describe(session, step));
    let nothing = text::nothing_changed(&plan, next);
    let (is_new, is_empty) = (matches!(plan.saved, Saved::New(_)), plan.is_empty());
    let to = plan.to.clone();
    let outcome = session.execute(plan, partial)?;
    match &outcome.saved_as {
        Some(saved) if !is_empty => {
            let saved = if is_new { format!("kept as {saved}") } else { format!("in {saved} already") };
            context.talk.say(text::done(outcome.action, &to, &saved, &outcome.changes));
        }
        _ => context.talk.say(nothing),
    }
    text::refusals(&outcome.not_restored, "not restored").iter().for_each(|line| context.talk.detail(line));
    if outcome.again && outcome.action != Action::Restore || partial && !outcome.not_restored.is_empty() {
        let names: BTreeSet<&str> = outcome.not_restored.iter().map(|item| &*item.target).collect();
        let names: String = names.iter().map(|name| format!(" --target {}", shell_word(name))).collect();
        context.talk.detail(format_args!("`snapback restore {}{names}` tries the rest again", to.id));
    }
    Ok(outcome)
}

/// A step in a few words.
pub fn describe(project: &Project, step: &Step) -> String {
    words::step(step, project.load(&step.before).ok().as_ref())
}

/// The exit code for something that was done, wholly or not.
pub fn code(wholly: bool) -> Code {
    if wholly { Code::DONE } else { Code::PARTLY }
}

/// Whether `plan` takes back the run of `id`, and nothing else.
pub fn takes_back(plan: &Plan, id: &Id) -> bool {
    plan.action == Action::Undo && plan.step.as_ref().is_some_and(|step| step.before == *id)
}
