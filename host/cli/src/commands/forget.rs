//! `snapback forget`: drop one snapshot, and remove from the disk what only it holds.

use super::gc;
use crate::args::ForgetArgs;
use crate::context::Context;
use crate::exit::Code;
use crate::render::words;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::session::State;

/// Does it. On a terminal it is asked for first: there is no way back. Without one, what the
/// next undo or redo needs stays, unless a yes was given.
///
/// # Errors
/// Inside a run; when there is no such snapshot, or it is needed.
pub fn run(context: &mut Context, args: &ForgetArgs) -> Result<Code> {
    context.refuse_inside_run("forget")?;
    let project = context.open()?;
    project.need_store()?;
    // By name: a record that is damaged can be dropped as well.
    let id = match project.resolve(&args.id) {
        Ok(id) => id,
        // Perhaps it was cut short: then locking the store completes it.
        Err(error) => {
            let session = project.lock_unrecovered()?;
            let Some(id) = session.forgotten().filter(|id| id.as_str().contains(&args.id)) else {
                return Err(error);
            };
            context.talk.say(format_args!("snapshot {id} is forgotten, which had been cut short"));
            return Ok(Code::DONE);
        }
    };
    let about = match project.load(&id) {
        Ok(snapshot) => words::about(&snapshot),
        Err(error) => error.message().to_owned(),
    };
    // No yes changes that: it is refused below.
    let goes_on = project.load(&id).is_ok_and(|snapshot| project.listing(snapshot).state == State::Running);
    // What an undo or a redo needs is not dropped by itself, and not unasked.
    let needed = project.timeline().is_ok_and(|timeline| timeline.needed().contains(&&id));
    let but = if needed { "The next undo or redo needs it, and it" } else { "It" };
    match context.confirm(&format!("snapback: forget {id} ({about})? {but} cannot be brought back")) {
        Some(true) => {}
        None if !needed || goes_on => {}
        Some(false) => {
            return Err(
                Error::new(Kind::Cancelled, "nothing was forgotten").hint("`--yes` answers the question")
            );
        }
        None => {
            let why = format!("the next undo or redo needs snapshot {id} ({about})");
            return Err(Error::new(Kind::Denied, why).hint("`--yes` forgets it all the same"));
        }
    }
    let freed = project.lock_unrecovered()?.forget(&id)?;
    let code = gc::report(context, &freed)?;
    if freed.problems.is_empty() {
        return Ok(code);
    }
    context.talk.say("what only that snapshot held may still be on the disk");
    Ok(Code::FAILED)
}
