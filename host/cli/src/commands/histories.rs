//! All histories of the user, for `list --all` and `gc --all`.

use crate::context::Context;
use crate::exit::Code;
use crate::json::{self, HistoryItem};
use crate::render::{table, words};
use snapback_core::error::{Result, show};
use snapback_core::project::units::human;
use snapback_core::session::{Collected, Histories, History};

/// Lists them.
///
/// # Errors
/// When standard output cannot be written.
pub fn list(context: &mut Context) -> Result<Code> {
    let env = context.environment()?;
    let all = Histories::of(&env).all();
    if context.global.json {
        let items: Vec<_> = all.iter().map(HistoryItem::from).collect();
        json::write(&mut context.out, &items)?;
        return Ok(Code::DONE);
    }
    if all.is_empty() {
        context.talk.say("no project is known yet");
        context.talk.detail("`snapback run -- COMMAND` or `snapback snap` in one makes it known");
        return Ok(Code::DONE);
    }
    let now = context.now();
    let rows: Vec<[String; 5]> = all.iter().map(|history| row(history, now)).collect();
    let head = ["PROJECT", "SNAPSHOTS", "SIZE", "USED", "ROOT"];
    let lines = table::lay_out(head, &[1, 2, 3], &rows, context.terminal.width);
    table::write(&mut context.out, &context.terminal, &lines)?;
    Ok(Code::DONE)
}

fn row(history: &History, now: i64) -> [String; 5] {
    [
        history.whereabouts.word().to_owned(),
        words::grouped(history.snapshots as u64),
        human(history.bytes),
        history.used.map_or_else(String::new, |used| words::short_age(used.as_millisecond(), now)),
        root(history),
    ]
}

/// The root, or what is known instead.
fn root(history: &History) -> String {
    history.root.as_deref().map_or_else(|| format!("({})", history.store), show)
}

/// Removes those whose project is gone and that nobody used for thirty days, or says
/// which ones would go.
///
/// # Errors
/// When the state directory cannot be written.
pub fn collect(context: &Context, dry: bool) -> Result<Collected> {
    let env = context.environment()?;
    let collected = Histories::of(&env).collect(dry, true)?;
    let bytes = collected.dropped.iter().map(|history| history.bytes).fold(0, u64::saturating_add);
    let dropped = words::count(collected.dropped.len() as u64, "history");
    let verb = if dry { "would drop" } else { "dropped" };
    context.talk.say(format_args!("{verb} {dropped} of removed projects, {}", human(bytes)));
    for history in &collected.dropped {
        context.talk.detail(root(history));
    }
    if collected.young > 0 {
        let young = words::count(collected.young as u64, "history");
        context.talk.detail(format_args!("kept: {young} of removed projects, used in the last 30 days"));
    }
    if collected.holding > 0 {
        let holding = words::count(collected.holding as u64, "history");
        context.talk.detail(format_args!("kept: {holding} of removed projects, for what is not let go of"));
    }
    if collected.unknown > 0 {
        let unknown = words::count(collected.unknown as u64, "history");
        context.talk.detail(format_args!("kept: {unknown} of projects whose file system is not there"));
    }
    Ok(collected)
}
