//! What is tied to a database by its number and goes over to no other one: logical replication
//! slots, and subscriptions. A slot would be destroyed with the database that is replaced, and
//! a subscription would go on writing to it.
//!
//! While there is one, the database is not replaced, and a snapshot says so beforehand.

use crate::wire::{Fault, Wire, ident, literal};
use snapback_sdk::{Error, ErrorKind, report};

/// Something that is tied to a database: what it is, and what does away with it.
struct Tie {
    what: String,
    remedy: String,
}

/// Refuses to have `database` replaced while anything is tied to it.
///
/// # Errors
/// `Busy`, naming what is.
pub fn none(wire: &mut Wire, database: &str) -> Result<(), Fault> {
    let ties = find(wire, database)?;
    if ties.is_empty() { Ok(()) } else { Err(refusal(database, &ties).into()) }
}

/// Tells the user of a snapshot what an undo of it would be refused for.
///
/// # Errors
/// When the server does not say.
pub fn forewarn(wire: &mut Wire, database: &str) -> Result<(), Fault> {
    let ties = find(wire, database)?;
    if !ties.is_empty() {
        report::log("warn", &format!("an undo is refused as it is: {}", refusal(database, &ties).message));
    }
    Ok(())
}

fn find(wire: &mut Wire, database: &str) -> Result<Vec<Tie>, Fault> {
    let text = literal(database);
    let rows = wire.ask(&format!(
        "SELECT 'slot', slot_name::text FROM pg_replication_slots WHERE database = {text} AND NOT temporary \
         UNION ALL SELECT 'subscription', subname::text FROM pg_subscription s \
         JOIN pg_database d ON d.oid = s.subdbid WHERE d.datname = {text} ORDER BY 1, 2"
    ))?;
    let tie = |row: Vec<Option<String>>| {
        let mut fields = row.into_iter().map(Option::unwrap_or_default);
        let (kind, name) = (fields.next().unwrap_or_default(), fields.next().unwrap_or_default());
        match &*kind {
            "slot" => Tie {
                what: format!("the logical replication slot {name}, which would be destroyed"),
                remedy: format!(
                    "`SELECT pg_drop_replication_slot({})` when its reader can begin anew",
                    literal(&name)
                ),
            },
            _ => Tie {
                what: format!("the subscription {name}, which does not go over to another database"),
                remedy: format!(
                    "`DROP SUBSCRIPTION {}` in the database, and make it again after it",
                    ident(&name)
                ),
            },
        }
    };
    Ok(rows.into_iter().map(tie).collect())
}

fn refusal(database: &str, ties: &[Tie]) -> Error {
    let all = |of: fn(&Tie) -> &str, between: &str| ties.iter().map(of).collect::<Vec<_>>().join(between);
    let why =
        format!("the database `{database}` is not replaced while it has {}", all(|tie| &tie.what, ", and "));
    Error::new(ErrorKind::Busy, why).with_hint(format!("{}; then try again", all(|tie| &tie.remedy, "; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_named_with_what_does_away_with_it() {
        let tie = |name: &str| Tie { what: format!("the slot {name}"), remedy: format!("drop {name}") };
        let error = refusal("app", &[tie("a"), tie("b")]);
        assert_eq!(error.kind, ErrorKind::Busy);
        assert_eq!(
            error.message,
            "the database `app` is not replaced while it has the slot a, and the slot b"
        );
        assert_eq!(error.hint.as_deref(), Some("drop a; drop b; then try again"));
    }
}
