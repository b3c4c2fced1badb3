//! Taking a snapshot, for `run` and `snap`: the question before a huge one, and the one
//! line about what it holds.

use crate::consent;
use crate::contents;
use crate::context::Context;
use crate::render::{left_out, words};
use snapback_core::error::{Error, Kind, Result, shell_word, show};
use snapback_core::history::{Captured, Snapshot};
use snapback_core::project::STORE;
use snapback_core::project::config::FILE;
use snapback_core::session::{Project, Request, Session, State, Taken, Twin};
use snapback_core::tree::root::Root;
use std::path::Path;

/// Says when the newest run's end is not known: snapback itself was killed, or could not write.
pub fn interrupted(context: &Context, project: &Project) {
    let newest = project.ids().ok().and_then(|ids| project.load(ids.first()?).ok());
    let Some(listing) = newest.map(|newest| project.listing(newest)) else { return };
    if listing.state == State::Interrupted {
        let (id, about) = (&listing.snapshot.id, words::about(&listing.snapshot));
        let why = "it was interrupted, or its end could not be written";
        context.talk.say(format_args!("how the last run ended is not known: {why} ({id}, {about})"));
    }
}

/// Locks the project for a new snapshot; a place that is seldom meant is asked for
/// before anything is written there.
///
/// # Errors
/// When the project cannot be used, or the user does not want it.
pub fn lock(context: &Context, request: &mut Request) -> Result<Session> {
    let project = context.open()?;
    consent::with(context, &project, || project.config_for(&request.selection).map(drop))?;
    if let Err(error) = project.check_place(request.selection.allow_huge) {
        insist(context, error)?;
        request.selection.allow_huge = true;
    }
    interrupted(context, &project);
    // What lost its store may be another project by now.
    let is_anew = project.root().join(STORE).symlink_metadata().is_err();
    let before = project.outlived().filter(|_| is_anew).map(Path::to_owned);
    let session = project.lock()?;
    if let Some(place) = before {
        let (place, store) = (show(&place), show(&session.root().join(STORE)));
        context
            .talk
            .detail(format_args!("it is that of what was at this path; `rm -r {store} {place}` starts anew"));
    }
    Ok(session)
}

/// A yes to something huge.
fn insist(context: &Context, error: Error) -> Result<()> {
    context.cancel.check()?;
    match context.confirm(&format!("snapback: {error}. Take the snapshot all the same?")) {
        None => Err(error),
        Some(true) => Ok(()),
        Some(false) => Err(Error::new(Kind::Cancelled, "no snapshot was taken")
            .hint("leave directories out with `ignore` in snapback.toml; `--allow-huge` insists")),
    }
}

/// Takes it; a huge first one only after a yes.
///
/// # Errors
/// When it cannot be taken, or the user does not want it.
pub fn take(context: &Context, session: &Session, request: Request) -> Result<Taken> {
    let attempt = |request: &Request| consent::with(context, session, || session.take(request.clone()));
    let error = match attempt(&request) {
        Err(error) if error.kind() == Kind::TooLarge && !request.selection.allow_huge => error,
        other => return other,
    };
    insist(context, error)?;
    let mut request = request;
    request.selection.allow_huge = true;
    attempt(&request)
}

/// Says for whom and against what the history does not stand: with the first snapshot, and with
/// the first that is not kept outside of the project's folder any more.
pub fn tell_alone(context: &Context, project: &Project, snapshot: &Snapshot) {
    let ids = project.ids().unwrap_or_default();
    let before = ids.iter().find(|id| **id != snapshot.id);
    let is_alone = match before {
        None => true,
        Some(before) => project.is_kept_outside(before) && !project.is_kept_outside(&snapshot.id),
    };
    let store = project.root().join(STORE);
    if is_alone && let Ok(Some(Twin::Missing(why))) = project.twin() {
        let store = show(&store);
        context.talk.say(format_args!("the history lies in {store} alone, and goes with it: {why}"));
    }
    if before.is_none()
        && let Some(owner) = project.shut_out()
    {
        let give = format!("`sudo chown -R {owner} {}`", shell_word(&store));
        context.talk.say(format_args!(
            "the project belongs to another user ({owner}), who cannot use this history before {give}"
        ));
    }
}

/// One line about a new snapshot: its ID, files, what was left out.
pub fn line(project: &Project, snapshot: &Snapshot) -> String {
    let mut line = format!("snapshot {} of {}", snapshot.id, show(project.root()));
    if snapshot.targets.is_empty() {
        line.push_str(&format!(": {}", left_out::NOTHING));
    } else {
        let files = snapshot.targets.iter().map(|target| target.files).fold(0, u64::saturating_add);
        line.push_str(&format!(", {}", words::count(files, "file")));
    }
    // What a snapshot lacks is no reason to stop: its record has it.
    let lacks = project.need_store().ok().and_then(|store| {
        let roots: Result<Vec<Vec<Root>>> =
            snapshot.targets.iter().map(|target| contents::roots(&**store, target)).collect();
        left_out::clause(&roots.ok()?.concat())
    });
    let omitted = snapshot.targets.iter().map(Captured::omitted_count).fold(0, u64::saturating_add);
    let mut clauses: Vec<String> = lacks.into_iter().collect();
    if omitted > 0 {
        clauses.push(format!("{omitted} left out by a backend"));
    }
    if !snapshot.skipped.is_empty() {
        clauses.push(format!("skipped: {}", snapshot.skipped.join(", ")));
    } else if snapshot.targets.is_empty() {
        clauses.push(format!("no target is enabled in {FILE}"));
    }
    for clause in clauses {
        line.push_str(&format!("; {clause}"));
    }
    line
}
