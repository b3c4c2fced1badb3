//! The server and what it has of ours: a session beside the database, the copies with
//! their notes, what was left by something that was cut short.

use crate::note::Note;
use crate::state::{Dumped, MORE, OWN, PREFIX};
use crate::wire::{Fault, Wire, ident, literal};
use snapback_sdk::{Error, ErrorKind, Result, Target, report};

/// Twentieths of a second that another one's statement is waited for: an hour, as long as one
/// of ours may take.
const PATIENCE: usize = 72_000;

/// A session in the maintenance database, and the database that the target is about.
pub struct Server {
    pub wire: Wire,
    /// The database's name.
    pub database: String,
    /// The number that no other server has.
    pub system: String,
}

impl Server {
    /// Connects.
    ///
    /// # Errors
    /// When the server cannot be used.
    pub fn connect(target: &Target) -> Result<Self> {
        let database = target.setting("database").unwrap_or_default();
        let beside = target.setting("maintenance-database").unwrap_or_default();
        if beside == database || database.starts_with(PREFIX) || database.is_empty() {
            return Err(Error::invalid(format!("`database` cannot be `{database}`")).with_hint(
                "it is one that holds your data; `maintenance-database` is another one, in which it is copied",
            ));
        }
        let mut wire = Wire::connect(target, &beside)?;
        let system = wire.one("SELECT system_identifier::text FROM pg_control_system()")?;
        Ok(Self { wire, database, system: system.ok_or_else(|| crate::silent().error)? })
    }

    /// The number (oid) of the database called `name`; none when there is none.
    ///
    /// # Errors
    /// When the server does not say.
    pub fn number(&mut self, name: &str) -> Result<Option<String>, Fault> {
        self.wire.one(&format!("SELECT oid::text FROM pg_database WHERE datname = {}", literal(name)))
    }

    /// The copies on the server, each with its note if it has one.
    ///
    /// # Errors
    /// When the server does not say.
    pub fn copies(&mut self) -> Result<Vec<(String, Option<Note>)>, Fault> {
        let rows = self.wire.ask(&format!(
            "SELECT datname, shobj_description(oid, 'pg_database') FROM pg_database WHERE left(datname, {}) = {}",
            PREFIX.len(),
            literal(PREFIX)
        ))?;
        let copy = |row: Vec<Option<String>>| {
            let mut fields = row.into_iter();
            let (name, note) = (fields.next().flatten(), fields.next().flatten());
            (name.unwrap_or_default(), note.and_then(|text| Note::parse(&text)))
        };
        Ok(rows.into_iter().map(copy).collect())
    }

    /// What the database called `name` was made with.
    ///
    /// # Errors
    /// When the server does not say.
    pub fn made_with(&mut self, name: &str) -> Result<Dumped, Fault> {
        let rows = self.wire.ask(&format!(
            // What is asked of `j` has other names, or none, in other versions.
            "SELECT pg_encoding_to_char(encoding), datcollate, datctype, \
             CASE j->>'datlocprovider' WHEN 'i' THEN 'icu' WHEN 'b' THEN 'builtin' END, \
             coalesce(j->>'datlocale', j->>'daticulocale'), j->>'daticurules', \
             nullif(t.spcname, 'pg_default') FROM pg_database d JOIN pg_tablespace t ON t.oid = d.dattablespace, \
             to_jsonb(d) AS j WHERE datname = {}",
            literal(name)
        ))?;
        let row = rows.into_iter().next().unwrap_or_default();
        let [Some(encoding), Some(collate), Some(ctype), others @ ..] = &row[..] else {
            return Err(crate::silent());
        };
        let more =
            MORE.iter().zip(others).filter_map(|(key, value)| Some(((*key).to_owned(), value.clone()?)));
        let [encoding, collate, ctype] = [encoding, collate, ctype].map(String::clone);
        Ok(Dumped { encoding, collate, ctype, more: more.collect() })
    }

    /// Waits for statements about a copy with these digits that the server still works on, although whoever
    /// sent them was cut short.
    ///
    /// # Errors
    /// `Busy` when they do not end.
    pub fn wait_for(&mut self, digits: &str) -> Result<(), Fault> {
        let question = format!(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'snapback' AND state = 'active' \
             AND pid <> pg_backend_pid() AND strpos(query, {}) > 0",
            literal(digits)
        );
        for _ in 0..PATIENCE {
            if self.wire.one(&question)?.as_deref() == Some("0") {
                return Ok(());
            }
            self.wire.ask("SELECT pg_sleep(0.05)")?;
        }
        let error = Error::new(ErrorKind::Busy, format!("another snapback is at work on the copy {digits}"));
        Err(error.with_hint("try again when it is done").into())
    }

    /// Drops a database of ours; one that is not there is none to drop.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn drop_database(&mut self, name: &str) -> Result<(), Fault> {
        self.wire.ask(&format!("DROP DATABASE IF EXISTS {}", ident(name))).map(drop)
    }

    /// Drops what was left of copies by calls of the history `owner` that were cut short before they
    /// had a note, and that nobody is at work on: anybody may connect to these still.
    ///
    /// # Errors
    /// When the server refuses.
    pub fn drop_unfinished(&mut self, owner: &str) -> Result<(), Fault> {
        let begin = format!("{PREFIX}{}", owner.get(..OWN).unwrap_or(owner));
        let names = self.wire.ask(&format!(
            "SELECT datname FROM pg_database d WHERE datallowconn AND left(datname, {}) = {} \
             AND shobj_description(oid, 'pg_database') IS NULL AND NOT EXISTS (SELECT FROM pg_stat_activity \
             WHERE application_name = 'snapback' AND pid <> pg_backend_pid() AND strpos(query, d.datname) > 0)",
            begin.len(),
            literal(&begin)
        ))?;
        for name in names.into_iter().filter_map(|row| row.into_iter().next()?) {
            self.drop_database(&name)?;
        }
        Ok(())
    }

    /// Names what was left by calls that were cut short.
    ///
    /// # Errors
    /// When the server does not say.
    pub fn name_leftovers(&mut self) -> Result<(), Fault> {
        for (name, note) in self.copies()? {
            if note.is_none() {
                let what = match name.strip_prefix(PREFIX).and_then(|rest| rest.split_once('_')) {
                    Some(("kept", _)) => {
                        "was kept by an undo, as it was not proven that nothing was written to it meanwhile"
                    }
                    Some(_) => "was left by an undo that was cut short",
                    None => "was left by a snapshot that was cut short",
                };
                report::log(
                    "warn",
                    &format!("the database {name} {what}: `DROP DATABASE {name}` when nobody needs it"),
                );
            }
        }
        Ok(())
    }
}
