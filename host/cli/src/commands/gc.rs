//! `snapback gc`: drop old snapshots and give their space back.

use super::histories;
use crate::args::GcArgs;
use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, FreedReport};
use crate::render::words::count;
use snapback_core::error::Result;
use snapback_core::project::units::human;
use snapback_core::session::{Bounds, Freed, History};

/// Does it.
///
/// # Errors
/// Inside a run; when the store cannot be read or written.
pub fn run(context: &mut Context, args: &GcArgs) -> Result<Code> {
    context.refuse_inside_run("gc")?;
    let project = context.open()?;
    let mut rest = None;
    let freed = match project.store() {
        // With `--all` it need not be called in a project.
        None if args.all => Freed::default(),
        _ => {
            project.need_store()?;
            let bounds = Bounds { keep: args.keep, keep_within: args.keep_within, max_size: args.max_size };
            match args.dry {
                true => {
                    context.tell_outlived(&project);
                    let freed = project.would_free(&bounds)?;
                    rest = Some(project.need_store()?.usage()?.1.saturating_sub(freed.bytes));
                    freed
                }
                // Also while a step is unfinished: what that needs is kept, and it may need the space.
                false => {
                    let session = project.lock_unrecovered()?;
                    let freed = session.gc(&bounds)?;
                    rest = Some(session.need_store()?.usage()?.1);
                    freed
                }
            }
        }
    };
    let histories = if args.all { Some(histories::collect(context, args.dry)?.dropped) } else { None };
    let code = tell(context, &freed, histories.as_deref(), args.dry)?;
    if let (Some(most), Some(rest)) =
        (args.max_size, rest.filter(|rest| args.max_size.is_some_and(|most| *rest > most)))
    {
        let (rest, most) = (human(rest), human(most));
        context.talk.say(format_args!("{rest} stay, more than {most}: {NEEDED}"));
    }
    Ok(code)
}

/// Why not everything can go.
const NEEDED: &str =
    "what the next undo and redo need, the newest run and pinned snapshots are never dropped";

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
