//! `snapback backends list`: all of them, the broken ones too; under each what it asks for, and
//! what its targets were granted.

use super::{Item, Used};
use crate::context::Context;
use crate::exit::Code;
use crate::json;
use crate::render::table;
use snapback_core::error::Result;
use snapback_runtime::Registry;

/// Digits of a digest that are shown: as many as in a question.
const DIGITS: usize = 12;

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
    let (head, width) = (["NAME", "VERSION", "DIGEST", "STATUS", "ORIGIN"], context.terminal.width);
    let mut lines = table::lay_out(head, &[], &rows, width).into_iter();
    let mut all: Vec<String> = lines.next().into_iter().collect();
    for (line, item) in lines.zip(&items) {
        all.push(line);
        all.extend(about(item).iter().flat_map(|text| table::wrap(text, "  ", width)));
    }
    table::write(&mut context.out, &context.terminal, &all)?;
    Ok(Code::DONE)
}

fn row(item: &Item<'_>) -> [String; 5] {
    // Why one is broken would make the column as wide.
    let status = item.status.split(':').next().unwrap_or_default();
    [
        item.name.to_owned(),
        item.version.unwrap_or("?").to_owned(),
        item.digest.map_or("-", |digest| digest.get(..DIGITS).unwrap_or(digest)).to_owned(),
        status.to_owned(),
        item.origin.to_owned(),
    ]
}

/// What there is to say of one beside its row.
fn about(item: &Item<'_>) -> Vec<String> {
    let why = item.status.split_once(": ").map(|(_, why)| why.to_owned());
    let wants = (!item.wants.is_empty()).then(|| format!("wants {}", item.wants.join(", ")));
    why.into_iter().chain(wants).chain(item.grants()).collect()
}
