//! `snapback trust --list`: the stores that were trusted, and what targets were allowed.

use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, ConsentItem, HistoryItem, Trusted};
use snapback_core::error::{Result, show};
use snapback_core::project::consents::Consents;
use snapback_core::session::Histories;

/// Does it.
///
/// # Errors
/// When the state directory cannot be read.
pub fn run(context: &mut Context) -> Result<Code> {
    let env = context.environment()?;
    let histories = Histories::of(&env).all();
    let stores: Vec<_> = histories.iter().filter_map(|history| Some((history, history.trusted?))).collect();
    let consents = Consents::new(&env.state).all();
    if context.global.json {
        let stores = stores.iter().map(|(history, _)| HistoryItem::from(*history)).collect();
        let consents =
            consents.iter().map(|(key, consent)| ConsentItem::new(key, consent.as_ref())).collect();
        json::write(&mut context.out, &Trusted { stores, consents })?;
        return Ok(Code::DONE);
    }
    if stores.is_empty() && consents.is_empty() {
        context.talk.say("nothing was trusted");
    }
    for (history, when) in stores {
        let root = history.root.as_deref().map_or_else(|| history.store.clone(), show);
        context.out.line(&format!("store   {when:.0}  {root}"))?;
    }
    for (key, consent) in &consents {
        let Some(consent) = consent else {
            context.out.line(&format!("target  {key}: its text cannot be read"))?;
            continue;
        };
        let (when, root) = (consent.given.0, show(consent.root.path()));
        context.out.line(&format!("target  {when:.0}  {root}  {}", consent.target))?;
        for line in &consent.reaches {
            context.out.line(&format!("        {line}"))?;
        }
    }
    context.out.flush()?;
    Ok(Code::DONE)
}
