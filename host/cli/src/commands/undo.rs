//! `snapback undo`: take the last step back, or end one that was cut short.

use super::put_back::{Part, Wish, before_last_change, code, put_back, stoppable};
use super::review;
use crate::args::UndoArgs;
use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, Restored};
use crate::render::plan::refusals;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::session::{Ask, Recovery};

/// Does it.
///
/// # Errors
/// When there is nothing to undo, or it fails.
pub fn run(context: &mut Context, args: &UndoArgs) -> Result<Code> {
    let ending = match (&args.abandon, args.resume, args.take_back) {
        (Some(target), ..) => Some(Recovery::Abandon(target.clone())),
        (None, true, _) => Some(Recovery::Resume),
        (None, false, true) => Some(Recovery::TakeBack),
        (None, false, false) => None,
    };
    if let Some(how) = ending {
        return end(context, &how);
    }
    let project = context.open()?;
    if args.interactive {
        let from = before_last_change(&project)?;
        return review::choose(context, project, from, None, (args.dry, args.partial));
    }
    let ask = if args.step { Ask::UndoStep } else { Ask::Undo };
    put_back(
        context,
        project,
        &Wish {
            ask,
            part: Part::Typed { targets: &args.targets, paths: &args.paths },
            dry: args.dry,
            partial: args.partial,
        },
    )
}

/// Ends the step that was cut short.
fn end(context: &mut Context, how: &Recovery) -> Result<Code> {
    let project = context.open()?;
    project.need_store()?;
    let session = project.lock_unrecovered()?;
    let pending = match session.pending() {
        Err(error) if error.kind() == Kind::Corrupt && matches!(how, Recovery::Abandon(_)) => {
            session.end_pending(how)?;
            let aside = "what cannot be read is set aside, and all is left as it is";
            context.talk.say(format_args!("{error}; {aside}"));
            return Ok(Code::DONE);
        }
        pending => pending?,
    };
    let Some(pending) = pending else {
        return Err(Error::new(Kind::NotFound, "no step was cut short")
            .hint("`snapback undo` takes the last step back"));
    };
    // Where it is stopped it is unfinished still, and can be ended in any of these ways.
    let unfinished = |error: Error| match error.kind() {
        Kind::Cancelled => error
            .context("the step is unfinished still")
            .hint("`snapback undo --resume` goes on, `--take-back` goes back to where it began"),
        _ => error,
    };
    let not_restored = match stoppable(context, || session.end_pending(how).map_err(unfinished))? {
        Ok(not_restored) => not_restored,
        Err(code) => return Ok(code),
    };
    let (gone_to, came_from) = match how {
        Recovery::TakeBack => (&pending.saved, &pending.to),
        Recovery::Resume | Recovery::Abandon(_) => (&pending.to, &pending.saved),
    };
    match how {
        Recovery::Resume => context.talk.say(format_args!("finished: all is as in snapshot {gone_to}")),
        Recovery::TakeBack => context.talk.say(format_args!("taken back: all is as in snapshot {gone_to}")),
        Recovery::Abandon(target) => context
            .talk
            .say(format_args!("finished without `{target}`, which is as it is; the rest is as in {gone_to}")),
    }
    refusals(&not_restored, "not restored").iter().for_each(|line| context.talk.detail(line));
    if context.global.json {
        let report = Restored::new(gone_to.as_str(), Some(came_from.as_str()), &[], &not_restored);
        json::write(&mut context.out, &report)?;
    }
    Ok(code(not_restored.is_empty()))
}
