//! Copying the database on the server.
//!
//! A snapshot is another database of the server, to which nobody can connect, with a note
//! that tells whether the database is still equal to it.

use crate::note::{self, Note};
use crate::server::Server;
use crate::sessions::{Policy, alone};
use crate::state::{self, Copied, PREFIX, State};
use crate::tables;
use crate::wire::{Fault, Wire, ident};
use sha2::{Digest, Sha256};
use snapback_sdk::{Target, report};

/// A snapshot that is to be a copy.
pub struct Capture<'a> {
    pub target: &'a Target,
    /// The database's number.
    pub number: &'a str,
    /// The snapshot before.
    pub before: Option<&'a State>,
    pub policy: Policy,
}

impl Capture<'_> {
    /// Copies the database, unless a copy of the same history is proven equal to it; for a
    /// mere `look` it is only found out what the copy would be called. With it comes what is
    /// said about the tables; nothing when it is as the snapshot before has it.
    ///
    /// # Errors
    /// `Busy` when others are connected and may not be disconnected.
    pub fn run(&self, server: &mut Server, look: bool) -> Result<(State, Option<String>), Fault> {
        let (of, owner) = (self.number, state::owner(self.before));
        let now = note::next(&mut server.wire)?;
        let copies = server.copies()?;
        let there = |name: &str| copies.iter().any(|(copy, _)| copy == name);
        let equal = |(_, note): &(String, Option<Note>)| {
            note.as_ref().is_some_and(|note| note.owner == owner && note.proves(of, now, &[], there))
        };
        let equal = copies.iter().find(|copy| equal(copy));
        let mut inside = Wire::connect(self.target, &server.database)?;
        let sequences = note::sequences(&mut inside)?;
        if let Some((name, Some(note))) = equal
            && note.sequences.is_some()
            && note.sequences == sequences
            && let Some(digits) = name.strip_prefix(PREFIX)
        {
            let (system, digits) = (server.system.clone(), digits.to_owned());
            let state = State::Copied(Copied { system, digits, owner });
            let known = self.before == Some(&state);
            let tables = if known { None } else { Some(tables::read(&mut inside)?) };
            inside.close();
            return Ok((state, tables));
        }
        let all = server.wire.one("SELECT txid_current_snapshot()::text")?.ok_or_else(crate::silent)?;
        let signs = Sha256::digest(format!("{of} {owner} {all} {sequences:?}"));
        let copied = Copied::of(&server.system, &owner, &signs);
        if look {
            let tables = tables::read(&mut inside)?;
            inside.close();
            return Ok((State::Copied(copied), Some(tables)));
        }
        inside.close();
        let name = copied.name();
        // What cannot go is in nobody's way.
        let _ = server.drop_unfinished(&copied.owner);
        let _task = report::Task::new("copying the database", None, "items");
        let copy = format!("CREATE DATABASE {} TEMPLATE {}", ident(&name), ident(&server.database));
        alone(&mut server.wire, &server.database, self.policy, &copy)?;
        match self.seal(server, &copied) {
            Ok(tables) => Ok((State::Copied(copied), Some(tables))),
            Err(fault) => {
                // Without its note it is no copy.
                let _ = server.drop_database(&name);
                Err(fault)
            }
        }
    }

    /// Keeps everybody out of the new copy and writes its note; what is said about its tables.
    fn seal(&self, server: &mut Server, copied: &Copied) -> Result<String, Fault> {
        let name = copied.name();
        let now = note::next(&mut server.wire)?;
        let made = note::made(&mut server.wire, &name, now)?.ok_or_else(crate::silent)?;
        // In the copy they are as they were copied, whatever goes on in the database by now.
        let mut inside = Wire::connect(self.target, &name)?;
        let (sequences, tables) = (note::sequences(&mut inside)?, tables::read(&mut inside)?);
        inside.close();
        let next = format!("CASE txid_current() WHEN {made} + 1 THEN {made} + 2 ELSE 0 END");
        let note = Note::statement(copied, self.number, &next, sequences.as_deref(), None);
        server.wire.ask(&format!("ALTER DATABASE {} ALLOW_CONNECTIONS false; {note}", ident(&name)))?;
        Ok(tables)
    }
}
