//! `snapback status`: the project, its store, and what undo and redo would do.
//!
//! Invariant: it answers whatever state the store is in: what cannot be read is named
//! in its place, and the rest is shown. A wrong snapback.toml is an error as it is for every
//! command that needs it, said after all that does not depend on it.

use super::gc;
use super::list::Described;
use super::put_back::describe;
use crate::contents;
use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, HeldItem, Status, StatusStep, StoreItem, SurveyItem, TargetItem};
use crate::render::{left_out, survey, words};
use crate::talk;
use snapback_core::backend::Target;
use snapback_core::error::{Error, Result, show};
use snapback_core::history::timeline::{Step, Timeline};
use snapback_core::history::{Id, Snapshot};
use snapback_core::project::config::{FILE, TREE};
use snapback_core::project::units::human;
use snapback_core::session::{Damaged, Listing, Project, Release, State, Twin};
use snapback_core::text::Bytes;
use snapback_core::tree::Survey;
use snapback_core::tree::apply::{self, Left};
use snapback_runtime::docker::Kept;
use std::fs;

/// What there is to tell.
struct Facts {
    project: Project,
    listings: Vec<Listing>,
    damaged: Vec<Damaged>,
    timeline: Timeline,
    /// Bytes of the store's packs.
    bytes: u64,
    /// What a snapshot would hold and leave out now, by target.
    surveys: Result<Vec<(String, Survey)>>,
    /// Containers that stay held until the unfinished step goes on.
    kept: Result<Vec<Kept>>,
}

/// Does it.
///
/// # Errors
/// When the project or its store cannot be opened, or snapback.toml is wrong.
pub fn run(context: &mut Context) -> Result<Code> {
    let project = context.look()?;
    let (listings, damaged) = project.list()?;
    let (timeline, bytes) = (project.timeline()?, size(&project)?);
    let surveys = project.survey();
    let kept = kept(context, &project);
    let facts = Facts { project, listings, damaged, timeline, bytes, surveys, kept };
    if context.global.json {
        as_json(context, &facts)?;
    } else {
        for (name, value) in rows(&facts, context.now()) {
            context.out.line(&format!("{name:<9} {value}"))?;
        }
        context.out.flush()?;
    }
    facts.project.config().map(|_| Code::DONE)
}

/// Containers that stay held; nobody is asked unless a step is unfinished.
fn kept(context: &Context, project: &Project) -> Result<Vec<Kept>> {
    let Ok(Some(pending)) = project.pending() else { return Ok(Vec::new()) };
    let to = project.load(&pending.to)?;
    let meant = to.targets.iter().filter(|c| pending.targets.contains(&c.target.name));
    let backends: Vec<&str> = meant.map(|captured| &*captured.target.backend).collect();
    context.backends(project.root()).kept_held(project.root(), &backends)
}

fn size(project: &Project) -> Result<u64> {
    let Some(store) = project.store() else { return Ok(0) };
    let packs = store.path().join("packs");
    let entries = fs::read_dir(&packs).map_err(|error| Error::io(error, "could not list", &packs))?;
    Ok(entries.flatten().filter_map(|entry| entry.metadata().ok()).map(|meta| meta.len()).sum())
}

/// What restores kept because somebody wrote to it, or may.
fn saved(project: &Project) -> Result<Left> {
    project.store().map_or(Ok(Left::default()), |store| apply::saved(store.dir()))
}

fn rows(facts: &Facts, now: i64) -> Vec<(&'static str, String)> {
    let Facts { project, listings, damaged, timeline, .. } = facts;
    let mut rows = vec![("root", show(project.root()))];
    rows.extend(project.over_network().map(|kind| ("network", network(&kind))));
    let Some(store) = project.store() else {
        rows.push(("store", "none yet; `snapback run -- COMMAND` or `snapback snap` makes it".into()));
        rows.push(("targets", targets(project)));
        rows.extend(surveyed(facts));
        return rows;
    };
    let snapshots = words::count(listings.len() as u64, "snapshot");
    rows.push(("store", format!("{}, {}, {snapshots}", show(store.path()), human(facts.bytes))));
    match project.foreign() {
        Some(foreign) => rows.push(("foreign", format!("only read; {}", foreign.hint(store.path())))),
        None => rows.extend(twin(project).map(|text| ("twin", text))),
    }
    rows.extend(saved(project).ok().and_then(|left| gc::kept(&left)).map(|text| ("saved", text)));
    rows.extend(gc::outside(listings).map(|text| ("outside", text)));
    rows.extend(damaged.iter().map(|damaged| ("damaged", damaged.error.to_string())));
    if timeline.damaged > 0 {
        rows.push(("damaged", format!("{} of the timeline", words::count(timeline.damaged as u64, "line"))));
    }
    match project.pending() {
        Ok(None) => {}
        Ok(Some(pending)) => rows.push((
            "pending",
            format!(
                "the {} to snapshot {} was cut short ({}); the next snapshot or undo finishes it first, \
                 `snapback undo --take-back` takes it back",
                pending.verb.word(),
                pending.to,
                pending.targets.join(", ")
            ),
        )),
        Err(error) => rows.push(("pending", error.to_string())),
    }
    match &facts.kept {
        Ok(all) => rows.extend(all.iter().map(|kept| ("held", stays(kept)))),
        Err(error) => rows.push(("held", format!("which containers stay held is not known: {error}"))),
    }
    match project.releases() {
        Ok(releases) => rows.extend(releases.iter().map(|release| ("pending", held(release)))),
        Err(error) => rows.push(("pending", error.to_string())),
    }
    let runs = listings.iter().filter(|listing| listing.state == State::Running);
    rows.extend(runs.map(|run| ("running", running(&run.snapshot, now))));
    if let Some(run) = listings.first().filter(|listing| listing.state == State::Interrupted) {
        let (id, about) = (&run.snapshot.id, words::about(&run.snapshot));
        rows.push(("last run", format!("interrupted: its end is not known ({id}, {about})")));
    }
    rows.push(("undo", undo(facts, now)));
    rows.push(("redo", redo(facts)));
    rows.push(("targets", targets(project)));
    rows.extend(surveyed(facts));
    if let Some(newest) = listings.first() {
        let id = &newest.snapshot.id;
        let roots = newest.snapshot.targets.iter().map(|target| contents::roots(&**store, target));
        match roots.collect::<Result<Vec<_>>>() {
            Ok(roots) if roots.is_empty() => rows.push(("newest", format!("{id}; {}", left_out::NOTHING))),
            Ok(roots) => {
                let clause = left_out::clause(&roots.concat()).unwrap_or_else(|| "nothing left out".into());
                rows.push(("newest", format!("{id}; {clause}")));
            }
            Err(error) => rows.push(("newest", format!("{id}: {error}"))),
        }
    }
    rows
}

/// What stays held while a volume is half put back.
fn stays(kept: &Kept) -> String {
    let Kept { volume, containers, running, how } = kept;
    let held = (!containers.is_empty()).then(|| format!("{containers} {}", how.stays()));
    let runs = (!running.is_empty()).then(|| format!("{running} was started, and should not run now"));
    let mut all: Vec<String> = held.into_iter().chain(runs).collect();
    all.push(format!("the volume {volume} is half put back"));
    all.join(": ")
}

/// A run that is going on.
fn running(snapshot: &Snapshot, now: i64) -> String {
    let command = words::short_command(snapshot.command.as_deref().unwrap_or_default());
    let since = words::age(snapshot.created.0.as_millisecond(), now);
    format!("`{command}` (its snapshot {} was taken {since})", snapshot.id)
}

/// What a dropped snapshot still holds outside the store.
fn held(release: &Release) -> String {
    let Release { snapshot, target, reason, .. } = release;
    let why = reason.as_ref().map_or(String::new(), |why| format!(": {why}"));
    format!(
        "what `{}` of the dropped snapshot {snapshot} holds is to go with the next `gc`{why}",
        target.name
    )
}

/// What holds on a file system of `kind`.
fn network(kind: &str) -> String {
    format!(
        "the project lies on {kind}: locks may not reach other machines, so work in it from one at a time"
    )
}

/// Whether the history outlives the project's folder.
fn twin(project: &Project) -> Option<String> {
    match project.twin() {
        Ok(None) => None,
        Ok(Some(Twin::Whole(place))) => Some(format!("{}: the history outlives the folder", show(&place))),
        Ok(Some(Twin::Behind(place))) => Some(format!(
            "{}: without what the step that was cut short saved, until it is finished",
            show(&place)
        )),
        Ok(Some(Twin::Missing(why))) => Some(format!("none: the history goes with the folder; {why}")),
        Err(error) => Some(error.to_string()),
    }
}

/// What a snapshot would hold and leave out.
fn surveyed(facts: &Facts) -> Vec<(&'static str, String)> {
    let surveys = match &facts.surveys {
        Ok(surveys) => surveys,
        // That is said by the error itself.
        Err(_) if facts.project.config().is_err() => return Vec::new(),
        Err(error) => return vec![("covers", format!("not known: {error}; {}", talk::hint(error)))],
    };
    let mut rows = Vec::new();
    for (target, survey) in surveys {
        let of = survey::rows(survey, facts.project.asks_first(survey));
        rows.extend(of.into_iter().map(|(name, value)| match target == TREE {
            true => (name, value),
            false => (name, format!("{target}: {value}")),
        }));
    }
    rows
}

fn undo(facts: &Facts, now: i64) -> String {
    let Some(step) = facts.timeline.done.last() else { return "nothing".into() };
    let when = match facts.project.load(&step.before) {
        Ok(snapshot) => words::age(snapshot.created.0.as_millisecond(), now),
        Err(error) => format!("which cannot be read: {error}"),
    };
    format!("takes back {}, to snapshot {}, {when}", describe(&facts.project, step), step.before)
}

fn redo(facts: &Facts) -> String {
    match facts.timeline.undone.last() {
        Some(step @ Step { after: Some(after), .. }) => {
            let before = facts.project.load(&step.before).ok();
            format!("{}, to snapshot {after}", words::again(step, before.as_ref()))
        }
        _ => "nothing".into(),
    }
}

fn targets(project: &Project) -> String {
    let Ok(config) = project.config() else { return format!("not known: {FILE} is wrong") };
    let name = |target: &Target| match target.name == target.backend {
        true => target.name.clone(),
        false => format!("{} ({})", target.name, target.backend),
    };
    let targets: Vec<String> = config.targets.iter().map(|c| name(&c.target)).collect();
    if targets.is_empty() { "none: nothing is captured".into() } else { targets.join(", ") }
}

fn as_json(context: &mut Context, facts: &Facts) -> Result<()> {
    let Facts { project, listings, damaged, timeline, bytes, surveys, kept } = facts;
    let (pending, releases) = (project.pending()?, project.releases()?);
    let is_running = |listing: &&Listing| listing.state == State::Running;
    let running: Vec<Id> = listings.iter().filter(is_running).map(|l| l.snapshot.id.clone()).collect();
    let newest = listings.first().map(|newest| Described::new(project, newest.clone(), &context.talk));
    let step = |step: &Step, to: &Id| StatusStep {
        kind: step.kind.word(),
        to: to.to_string(),
        what: describe(project, step),
    };
    let (root, over_network) = (Bytes::from(project.root()), project.over_network());
    let store = project.store().map(|store| Bytes::from(store.path()));
    let outlives = matches!(project.twin()?, Some(Twin::Whole(_)));
    let status = Status {
        root: json::root(&root),
        over_network: over_network.as_deref(),
        store: store.as_ref().map(|path| StoreItem::new(path, *bytes, outlives, project.foreign().is_some())),
        saved: saved(project)?.into(),
        snapshots: listings.len(),
        damaged: damaged.iter().map(Into::into).collect(),
        pending: pending.as_ref().map(Into::into),
        held: kept.iter().flatten().map(HeldItem::from).collect(),
        releases: releases.iter().map(Into::into).collect(),
        undo: timeline.done.last().map(|s| step(s, &s.before)),
        redo: timeline.undone.last().and_then(|s| Some(step(s, s.after.as_ref()?))),
        running: &running,
        targets: (project.config().into_iter().flat_map(|config| &config.targets))
            .map(|c| TargetItem { name: &c.target.name, backend: &c.target.backend })
            .collect(),
        excluded: json::excluded(newest.as_ref().map(Described::lacks)),
        survey: surveys.as_ref().ok().map(|all| all.iter().map(SurveyItem::from).collect()),
        survey_problem: surveys.as_ref().err().map(Error::message),
    };
    json::write(&mut context.out, &status)
}
