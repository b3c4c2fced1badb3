//! Sessions of others: who is connected to the database, and ending them where the user
//! allows it. Transactions that were prepared hold it like a session, and are only named.

use crate::wire::{Fault, Wire, literal};
use snapback_sdk::{Error, ErrorKind, Result, Target};

/// Sessions, or prepared transactions, that a refusal names.
const NAMED: usize = 5;
/// How often sessions that come back at once are ended again.
const TRIES: usize = 20;
/// How often it is looked, in twentieths of a second, whether a session is about to go: a
/// client that ended is gone before its session is.
const GRACE: usize = 20;
/// The code of a server that finds a database in use.
const IN_USE: &str = "55006";

/// Whether sessions may be ended now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    Leave,
    End,
}

impl Policy {
    /// What the setting says, for a call in which the database is `replaced`, or is about to be.
    pub fn of(target: &Target, replaced: bool) -> Self {
        match target.setting("disconnect").as_deref() {
            Some("always") => Self::End,
            Some("restore") if replaced => Self::End,
            _ => Self::Leave,
        }
    }
}

/// Runs statements that want `database` for themselves, once nobody else is connected to it.
///
/// # Errors
/// `Busy`, naming the sessions, when they may not be ended or do not stay away.
pub fn alone(wire: &mut Wire, database: &str, policy: Policy, statements: &str) -> Result<(), Fault> {
    for _ in 0..TRIES {
        unprepared(wire, database)?;
        match policy {
            Policy::Leave => nobody(wire, database)?,
            Policy::End => {
                let end = format!(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {} \
                     AND pid <> pg_backend_pid()",
                    literal(database)
                );
                wire.ask(&end).map_err(may_not_end)?;
            }
        }
        match wire.ask(statements) {
            Err(fault) if fault.code == IN_USE => {}
            done => return done.map(drop),
        }
    }
    let others = others(wire, database)?;
    Err(busy(database, &others).into())
}

/// Waits a little for sessions that are about to go.
///
/// # Errors
/// `Busy`, naming those that stay.
pub fn nobody(wire: &mut Wire, database: &str) -> Result<(), Fault> {
    unprepared(wire, database)?;
    let mut left = others(wire, database)?;
    for _ in 0..GRACE {
        if left.is_empty() {
            return Ok(());
        }
        wire.ask("SELECT pg_sleep(0.05)")?;
        left = others(wire, database)?;
    }
    if left.is_empty() { Ok(()) } else { Err(busy(database, &left).into()) }
}

/// Looks for transactions that were prepared in `database`: they hold it without a session, for
/// as long as nobody ends them.
///
/// # Errors
/// `Busy`, naming them.
fn unprepared(wire: &mut Wire, database: &str) -> Result<(), Fault> {
    let question =
        format!("SELECT gid FROM pg_prepared_xacts WHERE database = {} ORDER BY prepared", literal(database));
    let rows = wire.ask(&question)?;
    let all: Vec<String> = rows.into_iter().filter_map(|row| row.into_iter().next()?).collect();
    let Some(first) = all.first().map(|gid| literal(gid)) else { return Ok(()) };
    let why = format!("the database `{database}` is held by what was prepared in it: {}", some_of(&all));
    let hint = format!("end it: `COMMIT PREPARED {first}` or `ROLLBACK PREPARED {first}`");
    Err(Error::new(ErrorKind::Busy, why).with_hint(hint).into())
}

/// Who else is connected to `database`, in words.
///
/// # Errors
/// When the server does not say.
pub fn others(wire: &mut Wire, database: &str) -> Result<Vec<String>, Fault> {
    // Of our own sessions the last one may be about to go: the server waits for that.
    let question = format!(
        "SELECT coalesce(nullif(application_name, ''), backend_type), coalesce(usename, '?'), pid::text \
         FROM pg_stat_activity WHERE datname = {} AND pid <> pg_backend_pid() \
         AND backend_type NOT IN ('autovacuum worker', 'parallel worker') \
         AND application_name <> 'snapback' ORDER BY pid",
        literal(database)
    );
    let said = |row: &Vec<Option<String>>| {
        let field = |at: usize| row.get(at).cloned().flatten().unwrap_or_default();
        format!("{} (user {}, pid {})", field(0), field(1), field(2))
    };
    Ok(wire.ask(&question)?.iter().map(said).collect())
}

/// That the database is in use, by whom, and both remedies.
pub fn busy(database: &str, others: &[String]) -> Error {
    let names = some_of(others);
    let why = match others.len() {
        0 => format!("sessions come and go in the database `{database}`"),
        1 => format!("a session is connected to the database `{database}`: {names}"),
        many => format!("{many} sessions are connected to the database `{database}`: {names}"),
    };
    Error::new(ErrorKind::Busy, why).with_hint(
        "end them, or let snapback do it with `disconnect = \"restore\"` (for an undo) or \"always\"; \
         or have it dumped beside them with `pg-dump` and `pg-restore`",
    )
}

fn some_of(all: &[String]) -> String {
    let mut names = all.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    if all.len() > NAMED {
        names.push_str(&format!(" and {} more", all.len() - NAMED));
    }
    names
}

fn may_not_end(fault: Fault) -> Fault {
    let error =
        fault.error.with_hint("to end sessions of others the user needs `GRANT pg_signal_backend TO name`");
    Fault { code: fault.code, error }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_named_with_both_remedies() {
        let others: Vec<String> = (0..7).map(|n| format!("psql (user app, pid {n})")).collect();
        let error = busy("app", &others);
        assert_eq!(error.kind, ErrorKind::Busy);
        assert!(
            error
                .message
                .starts_with("7 sessions are connected to the database `app`: psql (user app, pid 0), ")
        );
        assert!(error.message.ends_with("pid 4) and 2 more"));
        let hint = error.hint.unwrap();
        assert!(hint.contains("disconnect") && hint.contains("pg-dump"));
    }
}
