//! Letting a database that was made ready take the place of the one that is there, by an
//! exchange of names in one transaction, so that a failure leaves the old one.
//!
//! The old one is dropped afterwards, and only when it is proven that the snapshot taken
//! before holds it; else it is kept under a name of its own, and said.

use crate::attributes;
use crate::beyond;
use crate::dump;
use crate::note::{self, Note};
use crate::server::Server;
use crate::sessions::{Policy, alone, nobody};
use crate::state::{Copied, Dumped, PREFIX, State, Stored};
use crate::ties;
use crate::wire::{Fault, Wire, ident, literal};
use snapback_sdk::{Error, ErrorKind, Result, Target, random, report};

/// The code with which our own check fails.
const MOVED: &str = "SB001";
/// How often an exchange is tried that was overtaken by one of ours.
const TRIES: usize = 3;

/// An exchange: what is wanted, what the snapshot taken before holds, and what may be done for it.
pub struct Exchange<'a> {
    pub target: &'a Target,
    pub stored: &'a Stored,
    pub current: &'a Stored,
    pub policy: Policy,
    /// The database was found changed before.
    pub again: bool,
}

/// A database that was made ready.
struct Next {
    name: String,
    number: String,
}

impl Exchange<'_> {
    /// Does it.
    ///
    /// # Errors
    /// `Changed` when the database is no longer as the snapshot taken before, unless this is
    /// tried again; `Busy` when others are connected. The old one is untouched after any error.
    pub fn run(&self, server: &mut Server) -> Result<(), Fault> {
        let mut ours = Vec::new();
        for _ in 0..TRIES {
            match self.attempt(server, &mut ours) {
                Err(fault) if fault.code == MOVED => {
                    // The number that the attempt took, so that it is not taken for somebody else's.
                    let number =
                        fault.error.message.rsplit(' ').next().and_then(|number| number.parse::<u64>().ok());
                    ours.extend(number);
                }
                done => return done,
            }
        }
        Err(changed(&server.database).into())
    }

    fn attempt(&self, server: &mut Server, ours: &mut Vec<u64>) -> Result<(), Fault> {
        let database = server.database.clone();
        if let State::Copied(copied) = &self.stored.state {
            server.wait_for(&copied.digits)?;
        }
        if let State::Copied(other) = &self.current.state
            && self.current.state != self.stored.state
        {
            // Of an exchange the other way that was cut short.
            server.wait_for(&other.digits)?;
            let now = note::next(&mut server.wire)?;
            if let Some(made) = note::made(&mut server.wire, &other.next(), now)? {
                ours.push(made);
                drop_counted(server, &other.next(), ours)?;
            }
        }
        let live = server.number(&database)?;
        let copies = server.copies()?;
        let now = note::next(&mut server.wire)?;
        if let State::Copied(copied) = &self.stored.state {
            let is_there = copies.iter().any(|(name, _)| *name == copied.name());
            if !is_there || copied.system != server.system {
                return Err(gone(&copied.name()).into());
            }
            if let Some(made) = note::made(&mut server.wire, &copied.next(), now)? {
                // An attempt that was cut short had made it already.
                ours.push(made);
            }
        }
        let [is_done, is_current] = self.look(&database, live.as_deref(), &copies, now, ours)?;
        let old = self.old();
        let left = copies.iter().any(|(name, _)| *name == old);
        let beyond = beyond::find(&mut server.wire, &self.stored.facts)?;
        let facts = beyond::without(&self.stored.facts, &beyond);
        let is_given = |found: String| beyond::without(&found, &beyond) == facts;
        if is_done && (live.is_none() || is_given(attributes::read(&mut server.wire, &database)?)) {
            self.clear(server, &old);
            return Ok(());
        }
        if live.is_some() {
            ties::none(&mut server.wire, &database)?;
        }
        if !is_current && !self.again {
            return Err(changed(&database).into());
        }
        if self.policy == Policy::Leave && live.is_some() {
            nobody(&mut server.wire, &database)?;
        }
        let next = self.make_ready(server, ours)?;
        let with = next.as_ref().map(|next| (next, &*facts));
        let done = self.swap(server, ours, (&database, live.as_deref()), with, (&old, left));
        match done {
            Ok(()) => {
                beyond::tell(&database, &beyond);
                Ok(())
            }
            Err(fault) if fault.code != MOVED || !matches!(self.stored.state, State::Copied(_)) => {
                if let Some(next) = &next {
                    // It is named as a leftover by the next call when this fails.
                    let _ = server.drop_database(&next.name);
                }
                Err(fault)
            }
            done => done,
        }
    }

    /// Whether the database is as it is to be, and as the snapshot taken before holds it.
    fn look(
        &self,
        database: &str,
        live: Option<&str>,
        copies: &[(String, Option<Note>)],
        now: u64,
        ours: &[u64],
    ) -> Result<[bool; 2], Fault> {
        let there = |name: &str| copies.iter().any(|(copy, _)| copy == name);
        let proven = |copied: &Copied| {
            let note =
                copies.iter().find(|(name, _)| *name == copied.name()).and_then(|(_, note)| note.as_ref());
            live.zip(note).is_some_and(|(live, note)| note.proves(live, now, ours, there))
        };
        let dumps = [self.stored.dump.as_ref(), self.current.dump.as_ref()];
        let same = match live {
            Some(_) if dumps.iter().any(Option::is_some) => dump::is(self.target, database, &dumps)?,
            _ => vec![false; 2],
        };
        let is = |stored: &Stored, same: bool| match &stored.state {
            State::Absent => live.is_none(),
            State::Copied(copied) => proven(copied),
            State::Dumped(_) => same,
        };
        Ok([is(self.stored, same[0]), is(self.current, same[1])])
    }

    /// Makes the database ready that is to take the place; the numbers that takes are added
    /// to `ours`.
    fn make_ready(&self, server: &mut Server, ours: &mut Vec<u64>) -> Result<Option<Next>, Fault> {
        let name = match &self.stored.state {
            State::Absent => return Ok(None),
            State::Copied(copied) => copied.next(),
            State::Dumped(_) => format!("{PREFIX}new_{}", crate::auth::hex(&random::bytes(8))),
        };
        if server.number(&name)?.is_none() {
            let _task = report::Task::new("making the stored database", None, "items");
            let with = match &self.stored.state {
                State::Dumped(dumped) => made_like(dumped, server.wire.version),
                State::Copied(copied) => {
                    format!("TEMPLATE {} ALLOW_CONNECTIONS false", ident(&copied.name()))
                }
                State::Absent => String::new(),
            };
            server.wire.ask(&format!("CREATE DATABASE {} {with}", ident(&name)))?;
            let now = note::next(&mut server.wire)?;
            ours.extend(note::made(&mut server.wire, &name, now)?);
            if let Some(stored) = &self.stored.dump {
                let loaded = dump::load(self.target, &name, stored).map_err(Fault::from);
                match loaded.and_then(|()| written(self.target, server, &name)) {
                    Ok(numbers) => ours.extend(numbers),
                    Err(fault) => {
                        let _ = server.drop_database(&name);
                        return Err(fault);
                    }
                }
            }
        }
        let number = server.number(&name)?.ok_or_else(crate::silent)?;
        Ok(Some(Next { name, number }))
    }

    fn swap(
        &self,
        server: &mut Server,
        ours: &mut Vec<u64>,
        (database, live): (&str, Option<&str>),
        next: Option<(&Next, &str)>,
        (old, left): (&str, bool),
    ) -> Result<(), Fault> {
        if left {
            // Of an exchange that was cut short.
            drop_counted(server, old, ours)?;
        }
        let copies = server.copies()?;
        let now = note::next(&mut server.wire)?;
        let [_, proven] = self.look(database, live, &copies, now, ours)?;
        if !proven && !self.again {
            return Err(changed(database).into());
        }
        let kept = format!("{PREFIX}kept_{}", crate::auth::hex(&random::bytes(4)));
        let old = if proven { old } else { &kept };
        let mut batch = String::new();
        if live.is_some() {
            // A template cannot be dropped.
            let (from, to) = (ident(database), ident(old));
            let plain = format!("ALTER DATABASE {from} IS_TEMPLATE false;");
            batch.push_str(&format!("{plain} ALTER DATABASE {from} RENAME TO {to};"));
        }
        if proven && live.is_some() {
            batch.push_str(&format!(
                "DO $snapback$ BEGIN IF txid_current() <> {now} THEN RAISE EXCEPTION 'changed by %', txid_current() \
                 USING ERRCODE = '{MOVED}'; END IF; END $snapback$;"
            ));
        }
        if let Some((Next { name, number }, facts)) = next {
            let (from, to) = (ident(name), ident(database));
            batch.push_str(&format!(
                "ALTER DATABASE {from} RENAME TO {to}; ALTER DATABASE {to} ALLOW_CONNECTIONS true;"
            ));
            batch.push_str(&attributes::statements(facts, database)?);
            if let State::Copied(copied) = &self.stored.state {
                let note = copies
                    .iter()
                    .find(|(name, _)| *name == copied.name())
                    .and_then(|(_, note)| note.as_ref());
                let sequences = note.and_then(|note| note.sequences.as_deref());
                let old = live.filter(|_| proven).map(|_| old);
                batch.push_str(&Note::statement(copied, number, "txid_current() + 1", sequences, old));
            }
        }
        match live.is_some() {
            true => alone(&mut server.wire, database, self.policy, &batch)?,
            false => server.wire.ask(&batch).map(drop)?,
        }
        match live {
            Some(_) if proven => self.clear(server, old),
            Some(_) => report::refused(database.as_bytes(), &self.why_kept(old)),
            None => {}
        }
        Ok(())
    }

    /// Why the old one is kept, as the database `old`.
    fn why_kept(&self, old: &str) -> String {
        let why = match &self.current.state {
            // Only the server knows of a copy whether it is still the same, and it knows of all its
            // databases at once.
            State::Copied(_) => {
                "others write on this server: it is not proven that nobody wrote to it meanwhile"
            }
            State::Absent | State::Dumped(_) => "it was written to meanwhile",
        };
        format!(
            "{why}; as it was then it is kept as the database {old}: `DROP DATABASE {old}` when nobody needs it"
        )
    }

    /// What the old one is called until it is dropped.
    fn old(&self) -> String {
        match &self.stored.state {
            State::Copied(copied) => format!("{PREFIX}old_{}", copied.digits),
            State::Absent => format!("{PREFIX}old_absent"),
            State::Dumped(_) => format!("{PREFIX}old_dumped"),
        }
    }

    /// Drops the old database after the exchange. That is done, whatever becomes of the old one.
    fn clear(&self, server: &mut Server, old: &str) {
        if let Err(Fault { error, .. }) = self.drop_old(server, old) {
            let why = error.message;
            let what = format!("the database {old}, which was replaced, could not be dropped: {why}");
            report::log("warn", &format!("{what}; `DROP DATABASE {old}` does it"));
        }
    }

    /// Drops it, and lets the note take that into account.
    fn drop_old(&self, server: &mut Server, old: &str) -> Result<(), Fault> {
        // What was tied to it since it was looked at stays with it.
        ties::none(&mut server.wire, old)?;
        let note = |server: &mut Server, now: u64| {
            let State::Copied(copied) = &self.stored.state else { return Ok(None) };
            let (live, copies) = (server.number(&server.database.clone())?, server.copies()?);
            let there = |name: &str| copies.iter().any(|(copy, _)| copy == name);
            let note =
                copies.iter().find(|(copy, _)| *copy == copied.name()).and_then(|(_, note)| note.as_ref());
            let found = live
                .zip(note)
                .filter(|(live, note)| note.old.is_some() && note.proves(live, now, &[], there));
            Ok::<_, Fault>(found.map(|(live, note)| (copied, live, note.sequences.clone())))
        };
        // Before and after it, since it takes a number only when there is something to drop.
        let before = note::next(&mut server.wire)?;
        let was_proven = note(server, before)?.is_some();
        server.drop_database(old)?;
        let now = note::next(&mut server.wire)?;
        if was_proven && let Some((copied, live, sequences)) = note(server, now)? {
            let next = format!("CASE txid_current() WHEN {now} THEN {now} + 1 ELSE 0 END");
            server.wire.ask(&Note::statement(copied, &live, &next, sequences.as_deref(), None))?;
        }
        Ok(())
    }
}

/// Drops a database of ours that is there, and adds the number that this takes to `ours`.
fn drop_counted(server: &mut Server, name: &str, ours: &mut Vec<u64>) -> Result<(), Fault> {
    let before = note::next(&mut server.wire)?;
    server.drop_database(name)?;
    ours.push(before);
    Ok(())
}

/// What a statement says that makes a database for a dump, on a server of this version.
fn made_like(Dumped { encoding, collate, ctype, more }: &Dumped, version: u32) -> String {
    let of = |key: &str| more.iter().find(|(name, _)| name == key).map(|(_, value)| literal(value));
    let [encoding, collate, ctype] = [encoding, collate, ctype].map(|text| literal(text));
    let mut with = format!("TEMPLATE template0 ENCODING {encoding} LC_COLLATE {collate} LC_CTYPE {ctype}");
    let provider = of("provider");
    // Else it is the template's; before 15 there is only the one.
    if provider.is_some() || version >= 15 {
        with.push_str(&format!(" LOCALE_PROVIDER {}", provider.as_deref().unwrap_or("'libc'")));
    }
    let locale = if provider.as_deref() == Some("'builtin'") { "BUILTIN_LOCALE" } else { "ICU_LOCALE" };
    for (key, word) in [("locale", locale), ("rules", "ICU_RULES")] {
        if let Some(value) = of(key).filter(|_| provider.is_some()) {
            with.push_str(&format!(" {word} {value}"));
        }
    }
    if let Some((_, tablespace)) = more.iter().find(|(key, _)| key == "tablespace") {
        with.push_str(&format!(" TABLESPACE {}", ident(tablespace)));
    }
    with
}

/// The numbers of the changes that what is in `database` was written by: a change is of one
/// database alone.
fn written(target: &Target, server: &mut Server, database: &str) -> Result<Vec<u64>, Fault> {
    let mut inside = Wire::connect(target, database)?;
    let rows = inside.ask(
        "SELECT DISTINCT xmin::text FROM (SELECT xmin FROM pg_class UNION SELECT xmin FROM pg_depend \
         UNION SELECT xmin FROM pg_namespace UNION SELECT xmin FROM pg_proc UNION SELECT xmin FROM pg_type \
         UNION SELECT xmin FROM pg_largeobject_metadata) AS all_of_it",
    )?;
    inside.close();
    let now = note::next(&mut server.wire)?;
    let low = rows.into_iter().filter_map(|row| row.into_iter().next()??.parse().ok());
    Ok(low.map(|low| note::whole(low, now)).collect())
}

fn changed(database: &str) -> Error {
    Error::new(ErrorKind::Changed, format!("the database `{database}` may have been written to meanwhile"))
        .with_hint("something else was at work on the server: try again when it is still")
}

fn gone(name: &str) -> Error {
    Error::new(ErrorKind::NotFound, format!("the copy of the database, {name}, is not on the server"))
        .with_hint("it was dropped there, or `address` is another server now")
}
