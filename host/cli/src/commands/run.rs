//! `snapback run`: take a snapshot, run the command, say what it changed.
//!
//! Invariants: the command starts only after its snapshot is committed; once it has
//! started, its exit code is what this ends with, whatever happens to snapback; the
//! store's lock is not held while it runs.

use super::{put_back, take};
use crate::args::RunArgs;
use crate::child::{Unstartable, Wrapped};
use crate::context::Context;
use crate::exit::Code;
use crate::interval::{Intervals, Told};
use crate::json::{self, Change, Lacks, RunReport};
use crate::render::beyond;
use crate::render::words::{Counts, count};
use crate::signals::{self, Signals};
use crate::survivors::{self, Survivor};
use crate::{contents, places, reported};
use snapback_core::backend::Cancel;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::history::{Snapshot, SnapshotKind};
use snapback_core::project::STORE;
use snapback_core::session::{Ask, Difference, Ended, Environment, Project, Request, Running, Selection};
use snapback_core::text::Bytes;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Does it, and says itself what went wrong.
pub fn run(context: &mut Context, args: &RunArgs) -> Code {
    let report = match report_file(context, args) {
        Ok(report) => report,
        Err(error) => {
            context.talk.error(&error);
            return Code::NOT_STARTED;
        }
    };
    let report = report.as_deref();
    match start(context, args, report) {
        Ok(code) => code,
        Err(Unstartable { error, code }) => {
            context.talk.error(&error);
            if context.ended.is_none() {
                write_report(context, report, RunReport::not_started(code.0, &error));
            }
            code
        }
    }
}

/// Why there is no snapshot, with what that means for the command.
fn not_started(error: Error) -> Error {
    if error.kind() == Kind::Cancelled {
        // Who stopped it knows.
        return error;
    }
    let way = (error.kind() == Kind::Busy).then(|| {
        let hint = crate::talk::hint(&error);
        format!("{hint}; `snapback run --skip NAME` goes without a target, `snapback status` has their names")
    });
    let error = error.context("the command was not started");
    way.into_iter().fold(error, Error::hint)
}

/// A run whose snapshot is committed.
struct Begun {
    project: Project,
    snapshot: Snapshot,
    mark: Running,
    signals: Signals,
    intervals: Option<Intervals>,
}

/// What the end of a run needs besides.
struct Last<'a> {
    /// Where the report goes.
    report: Option<&'a Path>,
    /// Why the command was not started, if it was not.
    error: Option<&'a Error>,
    /// The processes that go on.
    left: &'a dyn Fn() -> Vec<Survivor>,
}

fn start(context: &mut Context, args: &RunArgs, report: Option<&Path>) -> Result<Code, Unstartable> {
    let directory = directory(context)?;
    let wrapped = Wrapped::find(&args.command, &context.places.path, directory.as_deref())?;
    let mut begun = begin(context, args).map_err(not_started)?;
    context.talk.say(take::line(&begun.project, &begun.snapshot));
    take::tell_alone(context, &begun.project, &begun.snapshot);
    begun.intervals = intervals(context, args, &begun).unwrap_or_else(|error| {
        context.talk.say(format_args!("no snapshots by time: {error}"));
        None
    });
    let started = Instant::now();
    let ended = wrapped.run(&begun.snapshot.id, begun.project.root(), &begun.signals);
    let (code, pid, unstartable) = match ended {
        Ok((code, pid)) => (code, Some(pid), None),
        Err(stopped) if stopped.error.kind() == Kind::Cancelled => {
            let Begun { project, snapshot, mark, signals: _signals, intervals } = begun;
            intervals.map(Intervals::stop);
            drop(mark);
            take_back(context, &project, &snapshot);
            return Err(signals::stopped(stopped.error).into());
        }
        Err(unstartable) => (unstartable.code, None, Some(unstartable)),
    };
    context.ended = Some(code);
    let id = begun.snapshot.id.clone();
    let left = || pid.map_or_else(Vec::new, |pid| survivors::of(&id, pid, started.elapsed()));
    let error = unstartable.as_ref().map(|unstartable| &unstartable.error);
    let code = end(context, args, begun, code, &Last { report, error, left: &left });
    unstartable.map_or(Ok(code), Err)
}

/// Where the command is to run, when `-C` says where.
fn directory(context: &Context) -> Result<Option<PathBuf>> {
    if context.global.json {
        return Err(Error::new(Kind::Invalid, "`run` leaves standard output to the command")
            .hint("`--report FILE` writes the report of a run as JSON"));
    }
    if context.global.directory.is_none() {
        return Ok(None);
    }
    match fs::metadata(&context.here) {
        Ok(meta) if meta.is_dir() => Ok(Some(context.here.clone())),
        Ok(_) => {
            let why = format!("{} is not a directory", show(&context.here));
            Err(Error::new(Kind::Invalid, why).hint("`-C` takes the directory to work in"))
        }
        Err(error) => Err(Error::io(error, "could not change into", &context.here)
            .hint("the command would run there; `--root` alone names the project")),
    }
}

/// Where the report goes. That it cannot be written is better known before the command runs.
fn report_file(context: &mut Context, args: &RunArgs) -> Result<Option<PathBuf>> {
    let Some(file) = &args.report else { return Ok(None) };
    if file.as_os_str() == "-" {
        let why = "standard output is the command's own: the report of a run does not go there";
        return Err(Error::new(Kind::Invalid, why).hint(
            "name a file (`./-` is one of that name), or a stream of its own: `--report /dev/fd/3 3>FILE`",
        ));
    }
    let file = places::resolve(&context.here, file);
    context.fifo = reported::ready(&file)?;
    Ok(Some(file))
}

/// Takes the snapshot and marks the run as going on.
fn begin(context: &Context, args: &RunArgs) -> Result<Begun> {
    let mut request = Request {
        kind: SnapshotKind::Run,
        message: args.message.clone(),
        command: Some(args.command.iter().map(|word| Bytes::from(&**word)).collect()),
        pinned: false,
        selection: Selection {
            only: args.only.clone(),
            skip: args.skip.clone(),
            allow_huge: args.allow_huge,
        },
    };
    let session = take::lock(context, &mut request)?;
    // From here on a signal must not leave half a snapshot.
    let signals = Signals::watch(context.cancel.clone())?;
    let taken = take::take(context, &session, request).map_err(signals::stopped)?;
    if let Err(error) = context.cancel.check() {
        // Asked too late to stop the snapshot, and still before the command.
        take_back(context, &session.unlock(), &taken.snapshot);
        return Err(signals::stopped(error));
    }
    let mark = session.begin_run(&taken.snapshot.id)?;
    Ok(Begun { project: session.unlock(), snapshot: taken.snapshot, mark, signals, intervals: None })
}

/// Drops `snapshot`, whose command is not started after all: what was asked to stop does not
/// stop that.
fn take_back(context: &Context, project: &Project, snapshot: &Snapshot) {
    let forget = || {
        let root = project.root().to_owned();
        let env = Environment { root, cancel: Cancel::default(), ..context.environment()? };
        Project::open(env)?.lock_unrecovered()?.forget(&snapshot.id)
    };
    if let Err(error) = forget() {
        context.talk.say(format_args!("snapshot {} could not be dropped: {error}", snapshot.id));
    }
}

/// Snapshots by time, where they were asked for.
fn intervals(context: &Context, args: &RunArgs, begun: &Begun) -> Result<Option<Intervals>> {
    let Begun { project, snapshot, .. } = begun;
    let every = match args.every {
        Some(every) => every,
        None => project.config()?.interval,
    };
    if every.is_zero() {
        return Ok(None);
    }
    let names = project.taken_during(snapshot)?;
    if names.is_empty() {
        context.talk.say("no snapshots by time: no target here says `every-interval = true`");
        return Ok(None);
    }
    let env = Environment { root: project.root().to_owned(), ..context.environment()? };
    Intervals::start(env, snapshot, names, every).map(Some)
}

/// Records the end, says what changed, and does what was asked for in the case of a
/// failure. Returns what to end with: the command's own code unless an undo failed.
fn end(context: &Context, args: &RunArgs, begun: Begun, code: Code, last: &Last<'_>) -> Code {
    let Begun { project, snapshot, mark, signals, intervals } = begun;
    let id = &snapshot.id;
    let told = intervals.map(Intervals::stop).unwrap_or_default();
    if let Some(problem) = &told.problem {
        context.talk.say(format_args!("a snapshot during the run failed: {problem}"));
    }
    let root = project.root().to_owned();
    let undoes = args.undo_on_failure && code != Code::DONE;
    let lacking = |project: &Project| last.report.map(|_| lacks(project, &snapshot)).unwrap_or_default();
    let known = lacking(&project);
    let lost = project.has_lost(id);
    let locked = match undoes {
        _ if lost => Err(lost_history(&root)),
        true => project.make_root().and_then(|()| project.lock()),
        // A command that removes the project means it: the folder is not made again.
        false => project.lock_unrecovered(),
    };
    let session = match locked {
        Ok(session) => session,
        Err(error) => {
            match lost {
                true => context.talk.say(&error),
                false => context.talk.say(format_args!("the end of run {id} could not be recorded: {error}")),
            }
            if !root.exists() {
                context.talk.detail(format_args!("the project's folder {} is gone", show(&root)));
            }
            let told = RunReport::new(id.as_str(), code.0, None, &known, None).because(last.error);
            write_report(context, last.report, told.undone(undoes.then_some(false)));
            return if undoes { Code::NOT_STARTED } else { code.shared(signals.shared_death()) };
        }
    };
    // The command may have removed the store that this was read from.
    let lacks = lacking(&session);
    let ended = session.end_run(id, i32::from(code.0));
    drop(mark);
    match &ended {
        Ok(ended) => {
            // Its step may have been taken back meanwhile, or another one stand on it.
            let timeline = session.timeline();
            let last = timeline.as_ref().ok().and_then(|timeline| timeline.done.last());
            let is_last = last.is_some_and(|step| step.before == *id);
            let way = if is_last { "undo".to_owned() } else { format!("restore {id}") };
            context.talk.say(changed(ended, &snapshot, (!undoes).then_some(&*way), &told));
            // An undo says it itself.
            let lines = beyond::after_run(&ended.beyond).filter(|_| !undoes);
            lines.iter().for_each(|line| context.talk.say(line));
        }
        Err(error) if error.kind() == Kind::Cancelled => context.talk.say("stopped looking for changes"),
        Err(error) => {
            context.talk.say(format_args!("what changed is not known: {error}"));
            let way =
                format!("`snapback undo` takes the run back all the same; {}", crate::talk::hint(error));
            context.talk.detail(way);
        }
    }
    let ended = ended.ok();
    let left = (last.left)();
    survivors::line(&left).iter().for_each(|line| context.talk.say(line));
    if !session.root().exists() {
        let root = show(session.root());
        context
            .talk
            .detail(format_args!("{root} is gone; `snapback -C {root} undo` brings it back from anywhere"));
    }
    let listed: Option<Vec<Change>> =
        ended.as_ref().map(|ended| ended.changes.iter().map(Change::from).collect());
    let beyond = ended.as_ref().map(|ended| json::Beyond::new(&ended.beyond, id));
    let report = |undone| {
        let told = RunReport::new(id.as_str(), code.0, listed.as_deref(), &lacks, beyond.as_ref());
        write_report(context, last.report, told.because(last.error).with(&left).undone(undone));
    };
    // Also where the undo is cut short.
    report(undoes.then_some(false));
    let code = code.shared(signals.shared_death());
    if !undoes {
        return code;
    }
    // The command has ended: what was asked of it does not stop the undo.
    drop(signals);
    let undo = match session.plan(&Ask::Undo, &[], &[]) {
        Ok(plan) if put_back::takes_back(&plan, id) => Ok(plan),
        Err(error) if error.kind() != Kind::NotFound => Err(error),
        // Inside another run, or after a step of the command's own, which may have been this
        // very undo: to the same state.
        _ => session.plan(&Ask::Restore(id.clone()), &[], &[]),
    };
    let undone = undo.and_then(|plan| {
        put_back::forewarn(context, &plan);
        put_back::carry_out(context, &session, plan, false)
    });
    match undone {
        Ok(outcome) => {
            report(Some(outcome.not_restored.is_empty()));
            code
        }
        Err(error) => {
            context.talk.error(&error.context("the run could not be undone"));
            Code::NOT_STARTED
        }
    }
}

/// What is said when a command removed the history of the project at `root`.
fn lost_history(root: &Path) -> Error {
    let store = show(&root.join(STORE));
    let why = format!("the command removed the history, {store}, which was kept nowhere else");
    Error::new(Kind::NotFound, format!("{why}: nothing can be undone"))
}

/// One line about what a run changed, and the `way` back; none where it is undone now.
fn changed(ended: &Ended, snapshot: &Snapshot, way: Option<&str>, told: &Told) -> String {
    let mut line = outcome(&ended.changes, snapshot, way, !ended.beyond.uncovered.is_empty());
    if told.taken > 0 {
        let taken = count(told.taken as u64, "snapshot");
        line.push_str(&format!("; {taken} on the way, for `snapback undo --step`"));
    }
    line
}

/// The same without the snapshots on the way; `lost`: something changed that is not covered.
fn outcome(changes: &[Difference], snapshot: &Snapshot, way: Option<&str>, lost: bool) -> String {
    let counts = Counts::of(changes.iter().map(|change| change.kind));
    match (counts.total(), way) {
        _ if snapshot.targets.is_empty() => {
            "what changed is not known, and cannot be undone: nothing is covered".into()
        }
        (0, _) if lost => "nothing changed in what is covered".into(),
        (0, _) => "nothing changed".into(),
        (_, None) => format!("{}; undoing it", counts.as_happened()),
        (_, Some(way)) => format!("{}; `snapback {way}` takes it back", counts.as_happened()),
    }
}

fn lacks(project: &Project, snapshot: &Snapshot) -> Lacks {
    let roots: Vec<_> = (snapshot.targets.iter())
        .map(|captured| {
            let roots = project.need_store().and_then(|store| contents::roots(&**store, captured));
            (captured, roots.unwrap_or_default())
        })
        .collect();
    Lacks::of(roots.iter().map(|(captured, roots)| (*captured, &roots[..])))
}

fn write_report(context: &Context, file: Option<&Path>, report: RunReport<'_>) {
    let Some(file) = file else { return };
    let mut text = serde_json::to_vec_pretty(&report).expect("a report can be written as JSON");
    text.push(b'\n');
    if let Err(error) = reported::write(file, &text) {
        context.talk.error(&Error::io(error, "could not write the report", file));
    }
}

impl From<Error> for Unstartable {
    fn from(error: Error) -> Self {
        Self { error, code: Code::NOT_STARTED }
    }
}
