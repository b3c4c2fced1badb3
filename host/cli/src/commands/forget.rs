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
    let id = project.resolve(&args.id)?;
    let about = match project.load(&id) {
        Ok(snapshot) => words::about(&snapshot),
        Err(error) => error.message().to_owned(),
    };
    let question = format!("snapback: forget {id} ({about})? It cannot be brought back");
    if context.confirm(&question) == Some(false) {
        return Err(Error::new(Kind::Cancelled, "nothing was forgotten").hint("`--yes` answers the question"));
    }
    let freed = project.lock_unrecovered()?.forget(&id)?;
    gc::report(context, &freed)
}
