//! Telling which keys differ between two snapshots.

use crate::compare::{How, Stored, differences, functions};
use crate::copy::{FUNCTIONS, database_of, part_of};
use crate::scope::Scope;
use snapback_sdk::{Change, Part, Result, Target};
use std::collections::BTreeSet;

/// The keys that differ, by database; those of one alone by their names.
pub fn compare(target: &Target, before: &[Part], after: &[Part]) -> Result<Vec<Change>> {
    let scope = Scope::of(target)?;
    let part = |parts: &[Part], name: &str| parts.iter().position(|part| part.name == name);
    let mut changes = Vec::new();
    let all: BTreeSet<u64> = before.iter().chain(after).filter_map(|part| database_of(&part.name)).collect();
    for database in all {
        let name = part_of(database);
        let (old, new) = (
            part(before, &name).map(|at| &before[at].content),
            part(after, &name).map(|at| &after[at].content),
        );
        if let (Some(old), Some(new)) = (old, new)
            && old.same(new)
        {
            continue;
        }
        let (mut old, mut new) = (Stored::of(old)?, Stored::of(new)?);
        differences(&mut old, &mut new, 0, &mut |how, key| {
            let mut subject =
                if scope == Scope::All { format!("{database}/").into_bytes() } else { Vec::new() };
            subject.extend_from_slice(key);
            changes.push(Change { kind: word(how).into(), subject, detail: None });
        })?;
    }
    let libraries = |parts: &[Part]| functions(part(parts, FUNCTIONS).map(|at| &parts[at].content));
    let (old, new) = (libraries(before)?, libraries(after)?);
    let gone = old.iter().filter(|library| !new.contains(library)).map(|library| (How::Deleted, library));
    let come = new.iter().filter(|library| !old.contains(library)).map(|library| (How::Added, library));
    changes.extend(gone.chain(come).map(|(how, library)| {
        // Its first line names it.
        let first = library.split(|byte| *byte == b'\n').next().unwrap_or_default();
        Change { kind: word(how).into(), subject: [b"functions ", first].concat(), detail: None }
    }));
    Ok(changes)
}

fn word(how: How) -> &'static str {
    match how {
        How::Added => "added",
        How::Modified => "modified",
        How::Deleted => "deleted",
    }
}
