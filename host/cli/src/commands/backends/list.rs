//! `snapback backends list`: all of them, the broken ones too.

use super::{Item, Used};
use crate::context::Context;
use crate::exit::Code;
use crate::json;
use crate::render::table;
use snapback_core::error::Result;
use snapback_runtime::Registry;

/// Does it.
///
/// # Errors
/// When standard output cannot be written.
pub fn run(context: &mut Context, registry: &Registry, used: Option<&Used<'_>>) -> Result<Code> {
    let backends = registry.list();
    let items: Vec<Item<'_>> = backends.iter().map(|info| Item::new(info, registry, used)).collect();
    if context.global.json {
        json::write(&mut context.out, &items)?;
        return Ok(Code::DONE);
    }
    let rows: Vec<[String; 5]> = items.iter().map(row).collect();
    let head = ["NAME", "VERSION", "STATUS", "TARGETS", "ORIGIN"];
    let lines = table::lay_out(head, &[], &rows, context.terminal.width);
    table::write(&mut context.out, &context.terminal, &lines)?;
    Ok(Code::DONE)
}

fn row(item: &Item<'_>) -> [String; 5] {
    [
        item.name.to_owned(),
        item.version.unwrap_or("?").to_owned(),
        item.status.clone(),
        if item.targets.is_empty() { "-".to_owned() } else { item.targets.join(", ") },
        item.origin.to_owned(),
    ]
}
