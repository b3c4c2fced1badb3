//! `snapback trust --store`: go on with a store that came from elsewhere, after it was
//! checked.

use crate::context::Context;
use crate::exit::Code;
use crate::render::words::count;
use snapback_core::error::{Error, Kind, Result, show};
use snapback_core::project::STORE;
use snapback_core::project::units::human;
use snapback_core::session::Stranger;

/// Does it.
///
/// # Errors
/// When something speaks against it, or the user does.
pub fn run(context: &mut Context) -> Result<Code> {
    let project = context.look()?;
    let store = show(&project.root().join(STORE));
    let Some(stranger) = project.examine()? else {
        context.talk.say(format_args!("the store {store} is your own; nothing is to be trusted"));
        return Ok(Code::DONE);
    };
    context.talk.detail(held(&stranger));
    let question = "snapback: trust it? `undo` then writes what it holds into this project";
    match context.confirm(question) {
        Some(true) => {}
        Some(false) => {
            return Err(Error::new(Kind::Cancelled, "the store was not trusted").hint("it is only read"));
        }
        None => {
            return Err(Error::new(Kind::Denied, format!("nobody can be asked whether to trust {store}"))
                .hint("`snapback trust --store --yes` trusts it"));
        }
    }
    project.trust()?;
    context.talk.say(format_args!("the store {store} is trusted from now on"));
    Ok(Code::DONE)
}

/// What a store holds, for who is to trust it.
fn held(stranger: &Stranger) -> String {
    let mut text = format!("it is whole and holds {}", count(stranger.snapshots as u64, "snapshot"));
    if let (Some(root), Some(taken)) = (&stranger.root, stranger.taken) {
        text.push_str(&format!(", the newest of {} at {taken}", show(root)));
    }
    let largest = &stranger.largest;
    text.push_str(&format!(
        "; the largest has {}, {}",
        count(largest.entries, "entry"),
        human(largest.bytes)
    ));
    let odd = [(largest.devices, "device"), (largest.privileged, "setuid or capable file")];
    for (number, what) in odd.into_iter().filter(|(number, _)| *number > 0) {
        text.push_str(&format!(", {} among them", count(number, what)));
    }
    text
}
