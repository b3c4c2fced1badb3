//! `snapback redo`: do the step that was undone last again.

use super::put_back::{Part, Wish, put_back};
use crate::args::RedoArgs;
use crate::context::Context;
use crate::exit::Code;
use snapback_core::error::Result;
use snapback_core::session::Ask;

/// Does it.
///
/// # Errors
/// When there is nothing to redo, or it fails.
pub fn run(context: &mut Context, args: &RedoArgs) -> Result<Code> {
    let project = context.open()?;
    put_back(
        context,
        project,
        &Wish {
            ask: Ask::Redo,
            part: Part::Typed { targets: &[], paths: &[] },
            dry: args.dry,
            partial: args.partial,
        },
    )
}
