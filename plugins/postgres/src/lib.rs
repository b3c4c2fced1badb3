//! The postgres backend: one database of a Postgres server (12 and later), over TCP, without TLS.
//!
//! A snapshot is a copy that the server makes and keeps; nothing of it comes into the store
//! but its name. That needs the database for itself: sessions of others are ended where the
//! settings allow it, or named. Where the programs for it were given, the database is dumped
//! into the store instead, beside those sessions.
//!
//! Covered: the database with everything in it, its owner, rights, settings and comment. Not
//! covered: roles, other databases, what is set for the whole server; sequences that are read
//! ahead by a session come back as they were stored, not as it remembers them.

mod amount;
mod attributes;
mod auth;
mod beyond;
mod dump;
mod exchange;
mod note;
mod server;
mod sessions;
mod state;
mod tables;
mod template;
mod ties;
mod wire;

use attributes::ATTRIBUTES;
use dump::DUMP;
use exchange::Exchange;
use server::Server;
use sessions::Policy;
use snapback_sdk::{Backend, Change, Error, ErrorKind, Explain, Part, Release, Result, Target};
use state::{STATE, State, Stored};
use tables::TABLES;
use template::Capture;
use wire::{Fault, Wire};

struct Postgres;

impl Backend for Postgres {
    const MANIFEST: &'static str = include_str!("../manifest.toml");

    fn snapshot(target: &Target, previous: Vec<Part>) -> Result<Vec<Part>> {
        let mut server = Server::connect(target)?;
        let occasion = target.occasion();
        let database = server.database.clone();
        let Some(number) = server.number(&database)? else {
            return Ok(vec![State::Absent.store()?]);
        };
        let facts = attributes::read(&mut server.wire, &database)?;
        let policy = Policy::of(target, occasion == "restore" || occasion == "again");
        let mut parts = Vec::new();
        let before = State::of(&previous).ok();
        let (state, tables) = match way(target, &mut server, policy)? {
            Way::Copy => {
                let capture = Capture { target, number: &number, before: before.as_ref(), policy };
                capture.run(&mut server, occasion == "look")?
            }
            Way::Dump => {
                let made = server.made_with(&database)?;
                parts.push(Part { name: DUMP.into(), content: dump::take(target, &database)? });
                let mut inside = Wire::connect(target, &database)?;
                let tables = tables::read(&mut inside)?;
                if occasion.is_empty() {
                    beyond::forewarn_of_load(&mut inside)?;
                }
                inside.close();
                (State::Dumped(made), Some(tables))
            }
        };
        match &*occasion {
            "" => {
                ties::forewarn(&mut server.wire, &database)?;
                if let State::Copied(copied) = &state
                    && before.as_ref() != Some(&state)
                {
                    amount::tell(target, &mut server, &copied.owner, &copied.name())?;
                }
                beyond::forewarn(&mut server.wire, &facts)?;
            }
            // Where undos left them, undos name them.
            "restore" => server.name_leftovers()?,
            _ => {}
        }
        parts.push(state.store()?);
        parts.push(Part { name: ATTRIBUTES.into(), content: state::write(&facts)? });
        parts.extend(match tables {
            Some(tables) => Some(Part { name: TABLES.into(), content: state::write(&tables)? }),
            None => previous.into_iter().find(|part| part.name == TABLES),
        });
        Ok(parts)
    }

    fn restore(target: &Target, mut parts: Vec<Part>, mut current: Vec<Part>) -> Result<()> {
        let mut server = Server::connect(target)?;
        let (stored, current) = (Stored::of(&mut parts)?, Stored::of(&mut current)?);
        let (policy, again) = (Policy::of(target, true), target.occasion() == "again");
        let exchange = Exchange { target, stored: &stored, current: &current, policy, again };
        Ok(exchange.run(&mut server)?)
    }
}

impl Explain for Postgres {
    fn compare(_target: &Target, before: Vec<Part>, after: Vec<Part>) -> Result<Vec<Change>> {
        let text = |parts: &[Part], name: &str| {
            let part = parts.iter().find(|part| part.name == name);
            part.map_or_else(|| Ok(String::new()), |part| state::read(&part.content))
        };
        let mut changes = tables::compare(&text(&before, TABLES)?, &text(&after, TABLES)?);
        let absent = |parts: &[Part]| Ok::<_, Error>(State::of(parts)? == State::Absent);
        let (kind, detail) = match (absent(&before)?, absent(&after)?) {
            (true, false) => ("added", "the database itself"),
            (false, true) => ("deleted", "the database itself"),
            _ if text(&before, ATTRIBUTES)? != text(&after, ATTRIBUTES)? => {
                ("modified", "owner, rights, settings or comment of the database")
            }
            // What is not told would not be taken back.
            _ if changes.is_empty() => (
                "modified",
                "no table has another definition or number of rows; perhaps rows, sequences or functions are \
                 others, or nothing is and there was other work on the server",
            ),
            _ => return Ok(changes),
        };
        let change = Change { kind: kind.into(), subject: b"database".to_vec(), detail: Some(detail.into()) };
        changes.insert(0, change);
        Ok(changes)
    }
}

impl Release for Postgres {
    fn discard(target: &Target, parts: Vec<Part>) -> Result<()> {
        // Parts that a snapshot still has are not among these; a copy has a state of its own.
        if !parts.iter().any(|part| part.name == STATE) {
            return Ok(());
        }
        let State::Copied(copied) = State::of(&parts)? else { return Ok(()) };
        let mut server = Server::connect(target)?;
        // Another server than the one that has the copy has nothing to let go of.
        if copied.system == server.system {
            server.drop_database(&copied.name())?;
        }
        Ok(())
    }
}

/// How a snapshot is taken.
enum Way {
    Copy,
    Dump,
}

/// What the settings and those who are connected leave.
fn way(target: &Target, server: &mut Server, policy: Policy) -> Result<Way> {
    let given = dump::is_given(target);
    match target.setting("strategy").as_deref() {
        Some("dump") if given => Ok(Way::Dump),
        Some("dump") => Err(Error::invalid("a dump needs the programs pg_dump and pg_restore")
            .with_hint("`pg-dump` and `pg-restore` name them, by their full paths")),
        Some("template") => Ok(Way::Copy),
        _ if policy == Policy::End || !given => Ok(Way::Copy),
        _ => {
            let database = server.database.clone();
            match sessions::nobody(&mut server.wire, &database) {
                Ok(()) => Ok(Way::Copy),
                Err(fault) if fault.error.kind == ErrorKind::Busy => Ok(Way::Dump),
                Err(fault) => Err(fault.into()),
            }
        }
    }
}

/// A server that answers nothing where it should.
fn silent() -> Fault {
    Error::new(
        ErrorKind::Incompatible,
        "the server does not answer as Postgres does: nothing where there should be",
    )
    .with_hint("is `address` that of a Postgres server?")
    .into()
}

snapback_sdk::export!(Postgres, explain, release);
