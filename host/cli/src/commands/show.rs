//! `snapback show`: all about one snapshot, also what is not in it.

use super::list::Described;
use crate::args::ShowArgs;
use crate::contents;
use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, ShowItem};
use crate::render::{beyond, left_out, words};
use snapback_core::backend::Part;
use snapback_core::error::Result;
use snapback_core::history::snapshot::Captured;
use snapback_core::object::ObjectKind;
use snapback_core::project::units::human;
use snapback_core::session::{Listing, Project, State};
use snapback_core::store::Store;
use snapback_core::store::opaque::Opaque;
use snapback_core::tree::git::Position;

/// Does it.
///
/// # Errors
/// When there is no such snapshot, or it is damaged.
pub fn run(context: &mut Context, args: &ShowArgs) -> Result<Code> {
    let project = context.look()?;
    let listing = project.listing(project.find(&args.id)?);
    context.page();
    if context.global.json {
        let described = Described::new(&project, listing, &context.talk);
        json::write(&mut context.out, &ShowItem::new(described.listing(), described.lacks()))?;
        return Ok(Code::DONE);
    }
    for line in head(&listing, context.now()) {
        context.out.line(&line)?;
    }
    for captured in &listing.snapshot.targets {
        context.out.line("")?;
        for line in target(&project, captured)? {
            context.out.line(&line)?;
        }
    }
    context.out.flush()?;
    Ok(Code::DONE)
}

fn head(listing: &Listing, now: i64) -> Vec<String> {
    let snapshot = &listing.snapshot;
    let mut lines = Vec::new();
    let mut row = |name: &str, value: String| lines.push(format!("{name:<9} {value}"));
    row("snapshot", format!("{} ({})", snapshot.id, snapshot.kind.word()));
    let taken = words::age(snapshot.created.0.as_millisecond(), now);
    row("taken", format!("{}, {taken}", snapshot.created));
    if let Some(command) = &snapshot.command {
        row("command", words::command_line(command));
    }
    match (&listing.end, listing.state) {
        (Some(end), _) => row("ended", format!("{}, exit code {}", end.ended, end.exit_code)),
        (None, State::Complete) => {}
        (None, state) => row("state", state.word().to_owned()),
    }
    if let Some(message) = &snapshot.message {
        row("message", words::one_line(message));
    }
    row("root", snapshot.root.to_string());
    if let Some(run) = snapshot.run.as_ref().filter(|run| **run != snapshot.id) {
        row("inside", run.to_string());
    }
    if snapshot.pinned {
        row("pinned", "yes".to_owned());
    }
    if !snapshot.skipped.is_empty() {
        row("skipped", snapshot.skipped.join(", "));
    }
    row("added", human(snapshot.bytes_added));
    lines
}

/// How much it is. What consists of a component's own bytes has no files that could be counted.
fn amount(store: &Store, captured: &Captured) -> Result<String> {
    let is_own = |part: &Part| part.content.kind() == ObjectKind::Opaque;
    if captured.parts.is_empty() || !captured.parts.iter().all(is_own) {
        return Ok(format!("{}, {}", words::count(captured.files, "file"), human(captured.bytes)));
    }
    let sizes = captured.parts.iter().map(|part| Ok(Opaque::read(store, &part.content)?.size));
    let size: u64 = sizes.sum::<Result<u64>>()?;
    let beyond = if captured.releases { ", perhaps more outside of it" } else { "" };
    Ok(format!("{} in the store{beyond}", human(size)))
}

fn target(project: &Project, captured: &Captured) -> Result<Vec<String>> {
    let target = &captured.target;
    let store = project.need_store()?;
    let amount = amount(store, captured)?;
    let mut lines = vec![format!("target {} (backend {}): {amount}", target.name, target.backend)];
    for (key, value) in &target.settings {
        lines.push(format!("  {key} = {}", words::one_line(&value.replace('\n', ", "))));
    }
    let mut lacks = Vec::new();
    for root in contents::roots(&**store, captured)? {
        if let Some(git) = root.git {
            let position = Position::read(&**store, &git.tree)?;
            lines.push(format!("  repository: {}", beyond::recorded(&position, git.whole)));
        }
        lacks.extend(left_out::lines(&root));
    }
    let omitted = captured.omitted.iter();
    lacks.extend(omitted.map(|(subject, reason)| format!("{subject}  {}", words::one_line(reason))));
    if !lacks.is_empty() {
        lines.push("  not in it:".into());
        lines.extend(lacks.into_iter().map(|line| format!("    {line}")));
    }
    Ok(lines)
}
