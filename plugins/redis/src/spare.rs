//! Databases that hold nothing: claimed for a restore, and given back.
//!
//! They are taken from the last one down, for clients count from the first. One that is claimed
//! holds a key that says so and names it: what a restore leaves when it is cut short is known
//! by it. Others may write there all the same, who take it for empty: nothing is removed but
//! keys that were put there for a restore.

use crate::compare::{Entries, Stored};
use crate::copy::{MARKER, database_of, mark};
use crate::follow::{Follower, Place};
use crate::scope::{Scope, Server};
use crate::wire::{Reply, Wire, put};
use snapback_sdk::{Error, ErrorKind, Part, Result, report};
use std::collections::{BTreeMap, BTreeSet};

/// The number of databases that no server has.
const MOST: u64 = 100_000;
/// Commands that are sent before replies are read.
const BATCH: usize = 1000;
/// What to do where there are too few databases.
const MORE: &str = "raise `databases` in the server's configuration";

/// Looks whether what is stored of `scope` now could be put back, of a server whose databases
/// `used` have keys: each database that a restore concerns needs an empty one beside it.
///
/// # Errors
/// `Incompatible` when there is none at all.
pub fn prepare(wire: &mut Wire, scope: Scope, used: &[u64]) -> Result<()> {
    let mut taken = BTreeSet::new();
    for database in used {
        if !is_claimed(wire, *database)? {
            taken.insert(*database);
        }
    }
    // One that is restored to be empty needs one beside it, too.
    taken.insert(match scope {
        Scope::All => taken.first().copied().unwrap_or(0),
        Scope::One(database) => database,
    });
    let wanted = taken.iter().filter(|database| scope.has(**database)).count() as u64;
    match count(wire)?.saturating_sub(taken.len() as u64) {
        0 => Err(too_few(1).with_hint(format!("{MORE}, or go on without it with `--skip`"))),
        free if free < wanted => {
            let some = if free == 1 { "1 database is".to_owned() } else { format!("{free} databases are") };
            let why =
                format!("an undo of what changes more databases is refused: only {some} empty ({MORE})");
            report::log("warn", &why);
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Empties what earlier restores left, as far as the keys are `known`; returns the databases
/// that are in use after it.
///
/// # Errors
/// When the server cannot be asked. What it does not let us remove stays, and is named.
pub fn clear(wire: &mut Wire, server: &Server, known: &[&[Part]]) -> Result<BTreeSet<u64>> {
    let mut used: BTreeSet<u64> = server.used.iter().copied().collect();
    for database in &server.used {
        if !is_claimed(wire, *database)? {
            continue;
        }
        let said = match clear_one(wire, known) {
            Ok(true) => {
                used.remove(database);
                format!("emptied database {database}, which a restore had left")
            }
            Ok(false) => format!(
                "database {database} has what a restore had left, and keys that are not of it: it is left \
                 alone (remove the key {} to keep them)",
                String::from_utf8_lossy(MARKER)
            ),
            Err(error) => {
                format!("database {database}, which a restore had left, stays: {}", error.message)
            }
        };
        report::log("warn", &said);
    }
    Ok(used)
}

/// Empties the database that is selected, if nothing else is in it.
fn clear_one(wire: &mut Wire, known: &[&[Part]]) -> Result<bool> {
    withdraw(wire, known, &[])?;
    if size(wire)? > 1 {
        return Ok(false);
    }
    wire.ask(&[b"DEL", MARKER]).map(|_| true)
}

/// Claims an empty database that is not of `used` for each of `wanted`.
///
/// # Errors
/// `Incompatible` when there are not so many: then none is claimed.
pub fn claim(
    wire: &mut Wire,
    follower: &mut Follower,
    used: &BTreeSet<u64>,
    wanted: &[u64],
) -> Result<BTreeMap<u64, u64>> {
    let mut claimed = BTreeMap::new();
    let all = (0..count(wire)?).rev();
    let mut free = all.filter(|number| !used.contains(number) && !wanted.contains(number));
    for database in wanted {
        let next = loop {
            match free.next() {
                Some(number) if !claim_one(wire, follower, number)? => {}
                next => break next,
            }
        };
        let Some(number) = next else {
            give_back(wire, &claimed, &[], &BTreeSet::new())?;
            return Err(too_few(wanted.len()));
        };
        claimed.insert(*database, number);
    }
    Ok(claimed)
}

/// Claims `database`, unless it is another one's or holds something by now.
fn claim_one(wire: &mut Wire, follower: &mut Follower, database: u64) -> Result<bool> {
    select(wire, database)?;
    follower.own(database);
    follower.expect(database, b"SET", MARKER, None);
    if wire.ask(&[b"SET", MARKER, &mark(database), b"NX"])? == Reply::Nothing {
        follower.disown(database);
        return Ok(false);
    }
    if size(wire)? == 1 {
        return Ok(true);
    }
    follower.expect(database, b"DEL", MARKER, None);
    wire.ask(&[b"DEL", MARKER])?;
    Ok(false)
}

/// Removes from what is still `claimed` the keys that are `known` and those `besides`: what is
/// left is others'.
///
/// # Errors
/// When the server refuses.
pub fn give_back(
    wire: &mut Wire,
    claimed: &BTreeMap<u64, u64>,
    known: &[Part],
    besides: &BTreeSet<Place>,
) -> Result<()> {
    for (database, number) in claimed {
        if is_claimed(wire, *number)? {
            let besides = besides.iter().filter(|(of, _)| of == database).map(|(_, key)| &**key);
            withdraw(wire, &[known], &besides.collect::<Vec<_>>())?;
            // The last one: until then it is known whose the rest is.
            wire.ask(&[b"DEL", MARKER])?;
        }
    }
    Ok(())
}

/// Removes from the database that is selected the keys that are `known` and those `besides`.
fn withdraw(wire: &mut Wire, known: &[&[Part]], besides: &[&[u8]]) -> Result<()> {
    let mut batch = Batch::default();
    besides.iter().try_for_each(|key| batch.remove(wire, key))?;
    let data = |part: &&Part| database_of(&part.name).is_some();
    for part in known.iter().flat_map(|parts| parts.iter()).filter(data) {
        let mut stored = Stored::of(Some(&part.content))?;
        while stored.next()? {
            batch.remove(wire, stored.entry().key)?;
        }
    }
    batch.finish(wire)
}

/// Commands that are sent together.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    count: usize,
}

impl Batch {
    fn remove(&mut self, wire: &mut Wire, key: &[u8]) -> Result<()> {
        if key == MARKER {
            return Ok(());
        }
        put(&mut self.bytes, &[b"DEL", key]);
        self.count += 1;
        if self.count == BATCH { self.finish(wire) } else { Ok(()) }
    }

    fn finish(&mut self, wire: &mut Wire) -> Result<()> {
        wire.send(&self.bytes)?;
        self.bytes.clear();
        wire.replies(std::mem::take(&mut self.count))
    }
}

/// Whether `database` is one that a restore works on, or left: it is selected.
fn is_claimed(wire: &mut Wire, database: u64) -> Result<bool> {
    select(wire, database)?;
    // A key of that name is none of ours, unless its value names the database it is in.
    Ok(wire.get(MARKER)? == Some(mark(database)))
}

/// How many databases the server has.
fn count(wire: &mut Wire) -> Result<u64> {
    // The first is there, and the one of that number is not.
    let (mut there, mut away) = (0, MOST);
    while away - there > 1 {
        let middle = there + (away - there) / 2;
        match select(wire, middle) {
            Ok(()) => there = middle,
            Err(error) if error.kind == ErrorKind::Denied => return Err(error),
            Err(_) => away = middle,
        }
    }
    Ok(away)
}

/// How many keys the database that is selected has.
fn size(wire: &mut Wire) -> Result<i64> {
    match wire.ask(&[b"DBSIZE"])? {
        Reply::Number(count) => Ok(count),
        other => Err(crate::wire::strange(&format!("{other:?}"))),
    }
}

fn too_few(wanted: usize) -> Error {
    let many =
        if wanted == 1 { "an empty database is".to_owned() } else { format!("{wanted} empty databases are") };
    let why = format!("{many} needed to restore beside what is there, and the server has too few");
    Error::new(ErrorKind::Incompatible, why).with_hint(MORE)
}

/// Works on `database` from here on.
///
/// # Errors
/// When the server has none of that number.
pub fn select(wire: &mut Wire, database: u64) -> Result<()> {
    wire.ask(&[b"SELECT", database.to_string().as_bytes()]).map(drop)
}
