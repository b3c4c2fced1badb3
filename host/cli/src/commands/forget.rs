//! `snapback forget`: drop one snapshot, and remove from the disk what only it holds.

use super::gc;
use crate::args::ForgetArgs;
use crate::context::Context;
use crate::exit::Code;
use crate::render::words;
use snapback_core::error::{Error, Kind, Result};

/// Does it. On a terminal it is asked for first: there is no way back.
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
    let question = format!("snapback: forget {id} ({about})? It cannot be brought back");
    if context.confirm(&question) == Some(false) {
        return Err(Error::new(Kind::Cancelled, "nothing was forgotten").hint("`--yes` answers the question"));
    }
    let freed = project.lock_unrecovered()?.forget(&id)?;
    let code = gc::report(context, &freed)?;
    if freed.problems.is_empty() {
        return Ok(code);
    }
    context.talk.say("what only that snapshot held may still be on the disk");
    Ok(Code::FAILED)
}
