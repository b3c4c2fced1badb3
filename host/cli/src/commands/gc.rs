//! `snapback gc`: drop old snapshots and give their space back.

use super::histories;
use crate::args::GcArgs;
use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, FreedReport};
use crate::render::words::count;
use snapback_core::error::Result;
use snapback_core::project::units::human;
use snapback_core::session::{Bounds, Freed, History, Listing, Project};
use snapback_core::tree::apply::Left;
use std::collections::BTreeSet;

/// Does it.
///
/// # Errors
/// Inside a run; when the store cannot be read or written.
pub fn run(context: &mut Context, args: &GcArgs) -> Result<Code> {
    context.refuse_inside_run("gc")?;
    let project = context.open()?;
    let (freed, left) = match project.store() {
        // With `--all` it need not be called in a project.
        None if args.all => (Freed::default(), Vec::new()),
        _ => {
            project.need_store()?;
            let bounds = Bounds { keep: args.keep, keep_within: args.keep_within, max_size: args.max_size };
            match args.dry {
                true => {
                    context.tell_outlived(&project);
                    let freed = project.would_free(&bounds)?;
                    let left = left(&project, args, freed.bytes)?;
                    (freed, left)
                }
                // Also while a step is unfinished: what that needs is kept, and it may need the space.
                false => {
                    let session = project.lock_unrecovered()?;
                    (session.gc(&bounds)?, left(&session, args, 0)?)
                }
            }
        }
    };
    let histories = if args.all { Some(histories::collect(context, args.dry)?.dropped) } else { None };
    let code = tell(context, &freed, histories.as_deref(), args.dry)?;
    left.iter().for_each(|line| context.talk.say(line));
    Ok(code)
}

/// What is said of a size that was asked for, once `freed` bytes more are given back: when more is
/// left, and when it is not all.
fn left(project: &Project, args: &GcArgs, freed: u64) -> Result<Vec<String>> {
    let Some(most) = args.max_size else { return Ok(Vec::new()) };
    let rest = project.need_store()?.usage()?.1.saturating_sub(freed);
    let more = (rest > most).then(|| format!("{} stay, more than {}: {NEEDED}", human(rest), human(most)));
    Ok(more.into_iter().chain(outside(&project.list()?.0)).collect())
}

/// Why not everything can go.
const NEEDED: &str =
    "what the next undo and redo need, the newest run and pinned snapshots are never dropped";

/// What is said of files that restores kept; nothing where there are none.
pub fn kept(left: &Left) -> Option<String> {
    let files = count(left.files, "file");
    let what = "that an undo replaced and somebody wrote to, or may";
    (left.files > 0).then(|| {
        format!(
            "{files}, {}, {what}, stay in .snapback/saved; remove what you do not need",
            human(left.bytes)
        )
    })
}

/// What is said of what snapshots may hold outside the store, as copies on a server: no size limit
/// counts it.
pub fn outside(listings: &[Listing]) -> Option<String> {
    let holding = |listing: &Listing| listing.snapshot.targets.iter().any(|captured| captured.releases);
    let snapshots = listings.iter().filter(|listing| holding(listing)).count() as u64;
    let all = listings.iter().flat_map(|listing| &listing.snapshot.targets);
    let names: BTreeSet<&str> = all.filter(|c| c.releases).map(|c| &*c.target.name).collect();
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    (snapshots > 0).then(|| {
        let (names, snapshots) = (names.join(", "), count(snapshots, "snapshot"));
        format!("what {snapshots} may hold outside the store for {names} counts in no size limit")
    })
}

/// Says what was dropped.
///
/// # Errors
/// When standard output cannot be written.
pub fn report(context: &mut Context, freed: &Freed) -> Result<Code> {
    tell(context, freed, None, false)
}

fn tell(context: &mut Context, freed: &Freed, histories: Option<&[History]>, dry: bool) -> Result<Code> {
    let dropped = count(freed.dropped.len() as u64, "snapshot");
    match dry {
        true => {
            context.talk.say(format_args!("would drop {dropped} and give {} back", human(freed.bytes)));
        }
        false => context.talk.say(format_args!("dropped {dropped}, {} given back", human(freed.bytes))),
    }
    for problem in &freed.problems {
        context.talk.say(format_args!("not all could be given back: {problem}"));
    }
    kept(&freed.left).iter().for_each(|line| context.talk.say(line));
    if context.global.json {
        json::write(&mut context.out, &FreedReport::new(freed, histories))?;
    } else {
        for id in &freed.dropped {
            context.out.line(id.as_str())?;
        }
        context.out.flush()?;
    }
    Ok(Code::DONE)
}
