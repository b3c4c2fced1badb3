//! `snapback list`: the snapshots, newest first; damaged ones are named, not hidden.

use super::histories;
use crate::args::ListArgs;
use crate::contents;
use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, Lacks, ListItem};
use crate::render::{table, words};
use crate::talk::Talk;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::history::SnapshotKind;
use snapback_core::project::units::human;
use snapback_core::session::{Listing, Project};
use std::collections::HashSet;

/// Columns that WHAT wants, before others give way to it.
const WANTED: usize = 12;
/// Signs of an ID that are shown at least.
const LEAST: usize = 4;

/// Does it.
///
/// # Errors
/// When the snapshots cannot be listed at all.
pub fn run(context: &mut Context, args: &ListArgs) -> Result<Code> {
    if args.all {
        return histories::list(context);
    }
    let project = context.look()?;
    let (mut listings, damaged) = project.list()?;
    for damaged in &damaged {
        context.talk.say(format_args!("{}; it cannot be restored", damaged.error));
        context.talk.detail(format_args!("`snapback forget {}` drops it", damaged.id));
    }
    let ids = listings.iter().map(|listing| &listing.snapshot.id).chain(damaged.iter().map(|d| &d.id));
    let enough = enough(&ids.map(|id| id.as_str()).collect::<Vec<_>>());
    if let Some(run) = &args.run {
        let run = project.find(run)?;
        if run.kind != SnapshotKind::Run {
            let why = format!("snapshot {} was not taken for a run", run.id);
            return Err(Error::new(Kind::Invalid, why).hint("`snapback list` shows the runs"));
        }
        listings.retain(|l| l.snapshot.id == run.id || l.snapshot.run.as_ref() == Some(&run.id));
    }
    if context.global.json {
        let described: Vec<_> =
            listings.into_iter().map(|listing| Described::new(&project, listing, &context.talk)).collect();
        let items: Vec<_> = described.iter().map(Described::item).collect();
        json::write(&mut context.out, &items)?;
        return Ok(Code::DONE);
    }
    if listings.is_empty() && damaged.is_empty() {
        context.talk.say(format_args!("there are no snapshots of {} yet", show(project.root())));
        match project.known_beneath() {
            Some(root) => context.talk.detail(format_args!("there are of {}", show(&root))),
            None => context.talk.detail("`snapback run -- COMMAND` or `snapback snap` takes one"),
        }
        return Ok(Code::DONE);
    }
    let now = context.now();
    let rows: Vec<[String; 6]> = listings.iter().map(|listing| row(&project, listing, now)).collect();
    let lines = lay_out(rows, enough, context.terminal.width);
    context.page();
    table::write(&mut context.out, &context.terminal, &lines)?;
    Ok(Code::DONE)
}

/// The table; where the terminal is too narrow for it, with `enough` of the ends of IDs, and where
/// that is too wide as well, without the kinds.
fn lay_out(mut rows: Vec<[String; 6]>, enough: usize, width: Option<usize>) -> Vec<String> {
    let mut head = ["ID", "AGE", "KIND", "ADDED", "CHANGES", "WHAT"];
    let is_narrow = |head: [&str; 6], rows: &[[String; 6]]| {
        width.is_some_and(|width| table::left(head, rows, width) < WANTED)
    };
    if is_narrow(head, &rows) {
        rows.iter_mut().for_each(|[id, ..]| drop(id.drain(..id.len().saturating_sub(enough))));
    }
    if is_narrow(head, &rows) {
        head[2] = "";
        for [_, _, kind, _, _, what] in &mut rows {
            let kind = std::mem::take(kind);
            if what.is_empty() {
                *what = kind;
            }
        }
    }
    table::lay_out(head, &[1, 3, 4], &rows, width)
}

/// How many signs at the ends of `ids` tell them apart.
fn enough(ids: &[&str]) -> usize {
    let longest = ids.iter().map(|id| id.len()).max().unwrap_or(LEAST);
    let differ = |signs: &usize| {
        let ends: HashSet<&str> = ids.iter().map(|id| &id[id.len().saturating_sub(*signs)..]).collect();
        ends.len() == ids.len()
    };
    (LEAST..longest).find(differ).unwrap_or(longest)
}

fn row(project: &Project, listing: &Listing, now: i64) -> [String; 6] {
    let snapshot = &listing.snapshot;
    let changes = project.apart(snapshot).count();
    let command = snapshot.command.as_deref().map(words::command_line);
    let message = snapshot.message.as_deref().map(|text| format!("\"{}\"", words::one_line(text)));
    let mut what: Vec<String> = message.into_iter().chain(command).collect();
    if what.is_empty() && !matches!(snapshot.kind, SnapshotKind::Manual | SnapshotKind::Interval) {
        what.push(words::about(snapshot));
    }
    let inside = snapshot.run.as_ref().filter(|run| **run != snapshot.id);
    let notes = [
        words::outcome(listing),
        inside.map(|run| format!("inside {run}")),
        snapshot.pinned.then(|| "pinned".to_owned()),
    ];
    let notes: Vec<String> = notes.into_iter().flatten().collect();
    if !notes.is_empty() {
        what.insert(0, format!("[{}]", notes.join(", ")));
    }
    [
        snapshot.id.to_string(),
        words::short_age(snapshot.created.0.as_millisecond(), now),
        snapshot.kind.word().to_owned(),
        human(snapshot.bytes_added),
        changes.map(|count| words::grouped(count as u64)).unwrap_or_default(),
        what.join("  "),
    ]
}

/// A snapshot and what it lacks, for JSON.
pub struct Described {
    listing: Listing,
    lacks: Lacks,
}

impl Described {
    /// Reads what the snapshot lacks; what cannot be read of that is said.
    pub fn new(project: &Project, listing: Listing, talk: &Talk) -> Self {
        let id = &listing.snapshot.id;
        let roots: Vec<_> = (listing.snapshot.targets.iter())
            .map(|captured| {
                let roots = project.need_store().and_then(|store| contents::roots(&**store, captured));
                let roots = roots.unwrap_or_else(|error| {
                    let target = &captured.target.name;
                    talk.say(format_args!("what `{target}` lacks in snapshot {id} cannot be read: {error}"));
                    Vec::new()
                });
                (captured, roots)
            })
            .collect();
        let lacks = Lacks::of(roots.iter().map(|(captured, roots)| (*captured, &roots[..])));
        drop(roots);
        Self { listing, lacks }
    }

    /// For JSON.
    pub fn item(&self) -> ListItem<'_> {
        ListItem::new(&self.listing, &self.lacks)
    }

    /// The snapshot.
    pub fn listing(&self) -> &Listing {
        &self.listing
    }

    /// What it lacks.
    pub fn lacks(&self) -> &Lacks {
        &self.lacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrow_terminal_keeps_what_is_looked_for() {
        let row =
            |id: &str, kind: &str, what: &str| [id, "3m", kind, "28.5 MB", "16,659", what].map(str::to_owned);
        let rows = [
            row("20260102-030405-7f3a", "run", "npx codemod src"),
            row("20260102-030405-0001", "interval", ""),
        ];
        let at = |width| lay_out(rows.to_vec(), 4, width);
        let whole = at(None);
        assert_eq!(whole[0], "ID                    AGE  KIND        ADDED  CHANGES  WHAT");
        assert_eq!(at(Some(80)), whole, "it fits");
        assert_eq!(
            at(Some(60)),
            [
                "ID    AGE  KIND        ADDED  CHANGES  WHAT",
                "7f3a   3m  run       28.5 MB   16,659  npx codemod src",
                "0001   3m  interval  28.5 MB   16,659",
            ]
        );
        assert_eq!(
            at(Some(40)),
            [
                "ID    AGE    ADDED  CHANGES  WHAT",
                "7f3a   3m  28.5 MB   16,659  npx codemo…",
                "0001   3m  28.5 MB   16,659  interval",
            ]
        );
    }

    #[test]
    fn the_ends_that_are_shown_tell_ids_apart() {
        assert_eq!(enough(&[]), 4);
        assert_eq!(enough(&["20260102-030405-7f3a", "20260102-030406-7f3b"]), 4);
        assert_eq!(enough(&["20260102-030405-7f3a", "20260102-030406-7f3a"]), 6);
        assert_eq!(enough(&["20260102-030405-7f3a", "20260103-030405-7f3a"]), 13);
    }
}
