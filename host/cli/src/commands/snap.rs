//! `snapback snap`: take a snapshot, print its ID.

use super::list::Described;
use super::take;
use crate::args::SnapArgs;
use crate::context::Context;
use crate::exit::Code;
use crate::json;
use snapback_core::error::Result;
use snapback_core::history::SnapshotKind;
use snapback_core::session::{Request, Selection};

/// Does it.
///
/// # Errors
/// When it cannot be taken; nothing is kept then.
pub fn run(context: &mut Context, args: &SnapArgs) -> Result<Code> {
    let mut request = Request {
        kind: SnapshotKind::Manual,
        message: args.message.clone(),
        command: None,
        pinned: args.pin,
        selection: Selection {
            only: args.only.clone(),
            skip: args.skip.clone(),
            allow_huge: args.allow_huge,
        },
    };
    let session = take::lock(context, &mut request)?;
    let taken = take::take(context, &session, request)?;
    let project = session.unlock();
    if !taken.new && !taken.snapshot.targets.is_empty() {
        context.talk.say("nothing changed since the newest snapshot; this is its ID");
    } else {
        context.talk.say(take::line(&project, &taken.snapshot));
    }
    if taken.new {
        take::tell_alone(context, &project, &taken.snapshot);
    }
    if context.global.json {
        let described = Described::new(&project, project.listing(taken.snapshot), &context.talk);
        json::write(&mut context.out, &described.item())?;
    } else {
        context.out.line(taken.snapshot.id.as_str())?;
        context.out.flush()?;
    }
    Ok(Code::DONE)
}
