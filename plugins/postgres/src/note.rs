//! What proves that a database is still as a copy of it: a note that the copy carries.
//!
//! Whoever changes anything on a server is given a number first, one after the other. The
//! note says which database the copy was equal to, and which number was next at that
//! moment; it is written in the transaction that has the number before. While the next
//! number is that one, nobody on the whole server has changed anything, but for sequences,
//! which hand out values without one: these are compared, too. The note lies in the server
//! that it is about, so that a server which is set back knows only what was true then.
//!
//! Work in other databases of the server makes the proof fail although nothing changed
//! here. Then the database is copied once more; it is never the other way round.

use crate::state::Copied;
use crate::wire::{Fault, Rows, Wire, literal};
use sha2::{Digest, Sha256};

/// What a note begins with.
const HEAD: &str = "snapback: a copy";
/// In place of the sequences, where they may not be read.
const UNKNOWN: &str = "unknown";

/// A note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The number (oid) of the database that the copy was equal to.
    pub of: String,
    /// The number that the next change on the server gets.
    pub next: u64,
    /// A digest of the sequences' values; none where they may not be read.
    pub sequences: Option<String>,
    /// The history that the copy belongs to.
    pub owner: String,
    /// The old database that is dropped after an exchange: that takes one number more.
    pub old: Option<String>,
}

impl Note {
    /// As it is written on the copy; `next` is an expression of SQL, `old` a database that is
    /// about to be dropped.
    pub fn statement(
        copy: &Copied,
        of: &str,
        next: &str,
        sequences: Option<&str>,
        old: Option<&str>,
    ) -> String {
        let before = format!("{HEAD}, of {of} next ");
        let mut after = format!(" sequences {} owner {}", sequences.unwrap_or(UNKNOWN), copy.owner);
        if let Some(old) = old {
            after.push_str(&format!(" old {old}"));
        }
        format!(
            "DO $snapback$ BEGIN EXECUTE format('COMMENT ON DATABASE %I IS %L', {}, {} || ({next})::text || {}); END $snapback$;",
            literal(&copy.name()),
            literal(&before),
            literal(&after),
        )
    }

    /// Reads one.
    pub fn parse(text: &str) -> Option<Self> {
        let mut words: Vec<&str> = text.strip_prefix(HEAD)?.split(' ').collect();
        let old = match words[..] {
            [.., "old", old] => Some(old.to_owned()),
            _ => None,
        };
        words.truncate(words.len() - if old.is_some() { 2 } else { 0 });
        match words[..] {
            [",", "of", of, "next", next, "sequences", sequences, "owner", owner] => Some(Self {
                of: of.to_owned(),
                next: next.parse().ok()?,
                sequences: (sequences != UNKNOWN).then(|| sequences.to_owned()),
                owner: owner.to_owned(),
                old,
            }),
            _ => None,
        }
    }

    /// Whether database `of` is as the copy, when `now` is the next number and the changes
    /// since had the numbers `ours`. `there`: whether a database of that name is.
    pub fn proves(&self, of: &str, now: u64, ours: &[u64], there: impl Fn(&str) -> bool) -> bool {
        let dropped = u64::from(self.old.as_ref().is_some_and(|old| !there(old)));
        let most = ours.len() as u64 + dropped;
        let others = || (self.next..now).filter(|number| !ours.contains(number)).count() as u64;
        self.of == of && self.next <= now && now - self.next <= most && others() == dropped
    }
}

/// The number that the next change on the server gets.
///
/// # Errors
/// When the server does not say.
pub fn next(wire: &mut Wire) -> Result<u64, Fault> {
    let said = wire.one("SELECT txid_snapshot_xmax(txid_current_snapshot())")?;
    said.and_then(|said| said.parse().ok()).ok_or_else(crate::silent)
}

/// The number of the change that made `database`; none when it is not there. The server
/// tells its lower half; the upper one is that of `now`, or one less.
///
/// # Errors
/// When the server does not say.
pub fn made(wire: &mut Wire, database: &str, now: u64) -> Result<Option<u64>, Fault> {
    let question = format!("SELECT xmin::text FROM pg_database WHERE datname = {}", literal(database));
    let low = wire.one(&question)?.and_then(|low| low.parse::<u64>().ok());
    Ok(low.map(|low| whole(low, now)))
}

/// The number whose lower half is `low`, before `now`.
pub fn whole(low: u64, now: u64) -> u64 {
    let whole = now >> 32 << 32 | low;
    if whole >= now { whole.saturating_sub(1 << 32) } else { whole }
}

/// A digest of the values of all sequences of the database that `wire` is in; none when
/// one may not be read.
///
/// # Errors
/// When the server does not say.
pub fn sequences(wire: &mut Wire) -> Result<Option<String>, Fault> {
    let names = wire.ask(
        "SELECT format('%I.%I', n.nspname, c.relname), has_sequence_privilege(c.oid, 'SELECT')::text \
         FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace \
         WHERE c.relkind = 'S' AND c.relpersistence <> 't' ORDER BY c.oid",
    )?;
    let name = |row: &Vec<Option<String>>| row.first().cloned().flatten().unwrap_or_default();
    if names.iter().any(|row| row.get(1).cloned().flatten().as_deref() != Some("true")) {
        return Ok(None);
    }
    let mut digest = Sha256::new();
    for some in names.chunks(500) {
        let each = |row| format!("SELECT {}, last_value, is_called FROM {}", literal(&name(row)), name(row));
        let question = some.iter().map(each).collect::<Vec<_>>().join(" UNION ALL ");
        digest.update(format!("{:?}", sorted(wire.ask(&question)?)));
    }
    Ok(Some(crate::auth::hex(&digest.finalize()[..16])))
}

fn sorted(mut rows: Rows) -> Rows {
    rows.sort();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn note(next: u64, old: Option<&str>) -> Note {
        Note { of: "5".into(), next, sequences: None, owner: String::new(), old: old.map(str::to_owned) }
    }

    #[test]
    fn it_proves_nothing_once_somebody_else_changed_anything() {
        let proves = |of: &str, now, ours: &[u64]| note(100, None).proves(of, now, ours, |_| false);
        assert!(proves("5", 100, &[]));
        assert!(proves("5", 102, &[100, 101]));
        for (of, now, ours) in [("6", 100, &[][..]), ("5", 101, &[]), ("5", 102, &[100]), ("5", 99, &[])] {
            assert!(!proves(of, now, ours), "{of} {now} {ours:?}");
        }
        assert!(!proves("5", 102, &[101, 102]));
    }

    #[test]
    fn what_was_dropped_took_one_number() {
        let proves = |now, there: bool| note(100, Some("old")).proves("5", now, &[], |_| there);
        assert!(proves(100, true) && proves(101, false));
        assert!(!proves(101, true) && !proves(100, false) && !proves(102, false));
    }

    #[test]
    fn notes_are_read() {
        let text = "snapback: a copy, of 16384 next 731 sequences abc owner me";
        let note = Note::parse(text).unwrap();
        assert_eq!((note.of.as_str(), note.next, note.sequences.as_deref()), ("16384", 731, Some("abc")));
        assert_eq!(
            Note::parse("snapback: a copy, of 1 next 2 sequences unknown owner me").unwrap().sequences,
            None
        );
        let with = Note::parse("snapback: a copy, of 1 next 2 sequences abc owner me old it").unwrap();
        assert_eq!((with.owner.as_str(), with.old.as_deref()), ("me", Some("it")));
        for other in ["", "mine", "snapback: a copy, of 1 next x sequences abc owner me"] {
            assert_eq!(Note::parse(other), None, "{other}");
        }
    }
}
