//! `snapback trust`: what came from elsewhere, or reaches elsewhere, and may be gone on
//! with once the user has seen what it is.

mod list;
mod store;
mod targets;

use crate::args::TrustArgs;
use crate::context::Context;
use crate::exit::Code;
use snapback_core::error::Result;

/// Does it.
///
/// # Errors
/// Inside a run; when something speaks against it, or the user does.
pub fn run(context: &mut Context, args: &TrustArgs) -> Result<Code> {
    if args.list {
        return list::run(context);
    }
    context.refuse_inside_run("trust")?;
    if args.revoke {
        return targets::revoke(context, &args.target);
    }
    if let Some(digest) = &args.digest {
        return targets::agree(context, digest);
    }
    let foreign = context.look()?.foreign().is_some();
    if args.store || foreign { store::run(context) } else { targets::run(context) }
}
