//! `snapback restore`: put the state of a snapshot back, all of it or some paths.

use super::put_back::{Wish, put_back};
use crate::args::RestoreArgs;
use crate::context::Context;
use crate::exit::Code;
use snapback_core::error::Result;
use snapback_core::session::Ask;

/// Does it.
///
/// # Errors
/// When there is no such snapshot, or it fails.
pub fn run(context: &mut Context, args: &RestoreArgs) -> Result<Code> {
    let project = context.open()?;
    let ask = Ask::Restore(project.find(&args.id)?.id);
    put_back(
        context,
        project,
        &Wish { ask, targets: &args.targets, paths: &args.paths, dry: args.dry, partial: false },
    )
}
