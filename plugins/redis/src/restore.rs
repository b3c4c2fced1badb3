//! Putting stored data back, so that a client sees either what was there or what is stored.
//!
//! Order: copy what is there and compare it with what was captured; fill spare databases
//! with what was stored; see who wrote meanwhile; exchange. Until then nothing that a
//! client sees is touched, and what is cut short is done again from the start.
//!
//! Data that is no longer as it was captured is refused as `changed`, so that the host
//! captures it once more. When that happened before, clients write all the time: then the
//! keys that they wrote keep their values, and are reported.

use crate::compare::{Entries, How, Present, Stored, differences, functions};
use crate::copy::{Copy, FUNCTIONS, database_of, expired, part_of};
use crate::follow::{Follower, Place};
use crate::memory::Memory;
use crate::scope::{Scope, Server, time};
use crate::spare;
use crate::stage;
use crate::wire::Wire;
use snapback_sdk::{Error, ErrorKind, Object, Part, Result, Target, report};
use std::collections::BTreeSet;

/// Keys that a refusal names.
const NAMED: usize = 3;

pub fn restore(target: &Target, parts: &[Part], current: &[Part]) -> Result<()> {
    let scope = Scope::of(target)?;
    let mut wire = Wire::connect(target)?;
    let server = Server::ask(&mut wire)?;
    let mut used = spare::clear(&mut wire, &server, &[parts, current])?;
    let now = time(&mut wire)?;
    let replica = Wire::connect(target)?;
    let (copy, replica, position) = Copy::take(&mut wire, replica, (scope, now, server.major))?;
    let mut follower = Follower::new(replica, scope, position);
    let again = target.occasion() == "again";
    let (todo, touched) = compare(&copy, parts, current, now)?;
    let sources = functions(part(parts, FUNCTIONS))?;
    if copy.functions != sources && copy.functions != functions(part(current, FUNCTIONS))? {
        return Err(changed("functions were changed"));
    }
    if !todo.is_empty() {
        let written = |touched: &BTreeSet<Place>| match again || touched.is_empty() {
            true => Ok(()),
            false => Err(changed(&format!("keys were written meanwhile: {}", named(touched)))),
        };
        written(&touched)?;
        used.extend(copy.databases.keys());
        drop(copy.databases);
        let memory = Memory::ask(&mut wire)?;
        if memory.evicts {
            memory.admit(room(parts, &todo, now)?)?;
        }
        let pairs = spare::claim(&mut wire, &mut follower, &used, &todo)?;
        let done = todo
            .iter()
            .try_for_each(|database| {
                let mut stored = Stored::of(part(parts, &part_of(*database)))?;
                stage::fill(&mut wire, &mut follower, pairs[database], &mut stored, (now, memory.evicts))
            })
            .and_then(|()| {
                stage::exchange(&mut wire, &mut follower, &pairs, &mut |since| {
                    let all = touched.union(since).cloned().collect();
                    written(&all).map(|()| all)
                })
            });
        // What was filled goes whatever came of it, and what was exchanged, too.
        let given_back = match &done {
            Ok(kept) => spare::give_back(&mut wire, &pairs, current, kept),
            Err(_) => spare::give_back(&mut wire, &pairs, parts, &BTreeSet::new()),
        };
        for (database, key) in done?.iter().filter(|(database, _)| pairs.contains_key(database)) {
            let why = format!("it is written all the time; in database {database} it keeps its value");
            report::refused(key, &why);
        }
        if let Err(error) = given_back {
            let why = format!("what was there before could not be removed: {}", error.message);
            report::log("warn", &why);
        }
    }
    if copy.functions != sources {
        let version = Stored::of(part(parts, FUNCTIONS))?.version();
        stage::functions(&mut wire, &sources, version)?;
    }
    Ok(())
}

/// The databases that are to be exchanged, and the keys in them that are not as `current` has
/// them.
fn compare(copy: &Copy, parts: &[Part], current: &[Part], now: u64) -> Result<(Vec<u64>, BTreeSet<Place>)> {
    let stored = parts.iter().chain(current).filter_map(|part| database_of(&part.name));
    let all: BTreeSet<u64> = stored.chain(copy.databases.keys().copied()).collect();
    let (mut todo, mut touched) = (Vec::new(), BTreeSet::new());
    for database in all {
        let name = part_of(database);
        let against = |side: &[Part], found: &mut dyn FnMut(How, &[u8])| {
            let mut stored = Stored::of(part(side, &name))?;
            differences(&mut stored, &mut Present::of(copy.databases.get(&database)), now, found)
        };
        let mut is_stored = true;
        against(parts, &mut |_, _| is_stored = false)?;
        if !is_stored {
            todo.push(database);
            against(current, &mut |_, key| {
                touched.insert((database, key.to_vec()));
            })?;
        }
    }
    Ok((todo, touched))
}

/// Bytes that what is stored of `databases` takes in the server's memory.
fn room(parts: &[Part], databases: &[u64], now: u64) -> Result<u64> {
    let mut room = 0u64;
    for database in databases {
        let mut stored = Stored::of(part(parts, &part_of(*database)))?;
        while stored.next()? {
            if !expired(&stored.entry(), now) {
                room = room.saturating_add(stored.room());
            }
        }
    }
    Ok(room)
}

fn part<'a>(parts: &'a [Part], name: &str) -> Option<&'a Object> {
    parts.iter().find(|part| part.name == name).map(|part| &part.content)
}

fn changed(why: &str) -> Error {
    Error::new(ErrorKind::Changed, why).with_hint("stop the clients that write to Redis, then try again")
}

fn named(places: &BTreeSet<Place>) -> String {
    let names = places.iter().take(NAMED).map(|(_, key)| String::from_utf8_lossy(key).into_owned());
    let mut text = names.collect::<Vec<_>>().join(", ");
    if places.len() > NAMED {
        text.push_str(&format!(" and {} more", places.len() - NAMED));
    }
    text
}
