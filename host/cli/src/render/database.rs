//! What differs between two databases, as `diff` shows it: under the line of its file.

use super::words::grouped;
use crate::terminal::{Terminal, Tone};
use snapback_core::error::escaped;
use snapback_core::tree::compare::ChangeKind;
use snapback_runtime::sqlite::{Comparison, Table};

/// Lines about `found`: tables with how many rows, objects of the schema; with `rows`, the
/// rows that are in it.
pub fn lines(found: &Comparison, rows: bool, terminal: &Terminal) -> Vec<String> {
    let (open, close) = if rows { ("@@ ", " @@") } else { ("  ", "") };
    let mut lines = Vec::new();
    for object in &found.schema {
        let text = format!("{} {}: {}", object.what, object.name, happened(object.kind));
        lines.push(format!("{open}{}{close}", escaped(&text)));
    }
    for table in &found.tables {
        lines.push(format!("{open}{}{close}", escaped(&format!("{}: {}", table.name, counts(table)))));
        if rows {
            let mut shown = 0;
            for change in &table.rows {
                let sides = [("-", Tone::Deleted, &change.before), ("+", Tone::Added, &change.after)];
                for (sign, tone, text) in sides {
                    lines.extend(
                        text.as_ref().map(|text| terminal.paint(tone, &format!("{sign}{}", escaped(text)))),
                    );
                }
                shown += 1;
            }
            if table.rows() > shown {
                lines.push(format!("... and {} more rows", grouped(table.rows() - shown)));
            }
        }
    }
    lines
}

fn happened(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Added => "added",
        ChangeKind::Modified => "changed",
        ChangeKind::Deleted => "removed",
    }
}

/// How many rows of a table came, changed, went.
fn counts(table: &Table) -> String {
    let counts = [(table.added, "added"), (table.modified, "modified"), (table.deleted, "deleted")];
    let parts = counts.iter().filter(|(count, _)| *count > 0);
    let parts: Vec<String> = parts.map(|(count, word)| format!("{} {word}", grouped(*count))).collect();
    let rows = if table.rows() == 1 { "row" } else { "rows" };
    format!("{rows} {}", parts.join(", "))
}
