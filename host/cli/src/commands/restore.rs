//! `snapback restore`: put the state of a snapshot back, all of it or some paths.

use super::put_back::{Part, Wish, put_back};
use super::review;
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
    let to = context.find(&project, "restore", &args.id)?;
    if args.interactive {
        return review::choose(context, project, to, None, (args.dry, args.partial));
    }
    let ask = Ask::Restore(to.id);
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
