//! Filling empty databases with what was stored, and exchanging them with those that
//! clients see, in one step. What was there until then is emptied afterwards.
//!
//! A database that we work on holds a key that says so and names it: what a restore leaves
//! when it is cut short is known by it, and emptied by the next one.

use crate::compare::Stored;
use crate::copy::{MARKER, expired, mark};
use crate::follow::{Follower, Place};
use crate::memory::Memory;
use crate::scope::{Scope, Server, field};
use crate::wire::{Reply, Wire, put, strange};
use crc::{CRC_64_REDIS, Crc};
use snapback_sdk::{Error, ErrorKind, Result, report};
use std::collections::{BTreeMap, BTreeSet};

const SWAP: &str = include_str!("swap.lua");
static CRC: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);
/// Bytes and commands that are sent before replies are read: less than sockets hold of these.
const BATCH: (usize, usize) = (1 << 20, 2000);
/// How often the exchange is tried when the stream moved on meanwhile.
const TRIES: usize = 50;
/// Milliseconds after which writers go on whatever became of us.
const PAUSE: &[u8] = b"3000";
/// The number of databases that no server has.
const MOST: u64 = 100_000;

/// Empties what earlier restores left, of the databases that are `used`; returns those that are
/// in use after it.
///
/// # Errors
/// When the server refuses.
pub fn clear(wire: &mut Wire, server: Server) -> Result<BTreeSet<u64>> {
    let mut used = BTreeSet::new();
    for database in server.used {
        if is_ours(wire, database)? {
            report::log("warn", &format!("emptied database {database}, which a restore had left"));
            wire.ask(&[b"FLUSHDB", b"ASYNC"])?;
        } else {
            used.insert(database);
        }
    }
    Ok(used)
}

/// Whether `database` is one that a restore left: it is selected.
fn is_ours(wire: &mut Wire, database: u64) -> Result<bool> {
    select(wire, database)?;
    // A key of that name is none of ours, unless its value names the database it is in.
    Ok(wire.get(MARKER)? == Some(mark(database)))
}

/// Looks whether what is stored of `scope` now could be put back, of a server whose databases
/// `used` have keys: each database that a restore concerns needs an empty one beside it.
///
/// # Errors
/// `Incompatible` when there is none at all.
pub fn prepare(wire: &mut Wire, scope: Scope, used: &[u64]) -> Result<()> {
    let mut taken = BTreeSet::new();
    for database in used {
        if !is_ours(wire, *database)? {
            taken.insert(*database);
        }
    }
    // One that is restored to be empty needs one beside it, too.
    taken.insert(match scope {
        Scope::All => taken.first().copied().unwrap_or(0),
        Scope::One(database) => database,
    });
    let wanted = taken.iter().filter(|database| scope.has(**database)).count();
    let mut free = 0;
    for number in (0..MOST).filter(|number| !taken.contains(number)) {
        match select(wire, number) {
            _ if free == wanted => break,
            Ok(()) => free += 1,
            Err(error) if error.kind == ErrorKind::Denied => return Err(error),
            Err(_) => break,
        }
    }
    match free {
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

/// What to do where there are too few databases.
const MORE: &str = "raise `databases` in the server's configuration";

fn too_few(wanted: usize) -> Error {
    let many =
        if wanted == 1 { "an empty database is".to_owned() } else { format!("{wanted} empty databases are") };
    let why = format!("{many} needed to restore beside what is there, and the server has too few");
    Error::new(ErrorKind::Incompatible, why).with_hint(MORE)
}

/// As many databases as `wanted` holds that are empty and not of `used`, one for each.
///
/// # Errors
/// `Incompatible` when there are not so many.
pub fn find(wire: &mut Wire, used: &BTreeSet<u64>, wanted: &[u64]) -> Result<BTreeMap<u64, u64>> {
    let mut found = BTreeMap::new();
    let mut free = (0..MOST).filter(|number| !used.contains(number) && !wanted.contains(number));
    for database in wanted {
        let number = free.next().unwrap_or(MOST);
        if select(wire, number).is_err() {
            return Err(too_few(wanted.len()));
        }
        found.insert(*database, number);
    }
    Ok(found)
}

/// Fills the empty `database` with what was stored and has not expired at `now`; where the
/// server `evicts`, never so much at once that it would.
///
/// # Errors
/// When the server refuses, or would evict.
pub fn fill(
    wire: &mut Wire,
    follower: &mut Follower,
    database: u64,
    stored: &mut Stored,
    (now, evicts): (u64, bool),
) -> Result<()> {
    follower.own(database);
    select(wire, database)?;
    wire.ask(&[b"SET", MARKER, &mark(database)])?;
    let version = stored.version().to_le_bytes();
    let (mut out, mut count, mut room) = (Vec::new(), 0, 0u64);
    loop {
        let entry = stored.next()?;
        if out.len() > BATCH.0 || count == BATCH.1 || entry.is_none() {
            if evicts {
                Memory::ask(wire)?.admit(std::mem::take(&mut room))?;
            }
            wire.send(&out)?;
            out.clear();
            for _ in 0..std::mem::take(&mut count) {
                wire.reply()?;
            }
            follower.drain()?;
            follower.written(wire)?;
        }
        let Some(entry) = entry else { return Ok(()) };
        if expired(&entry, now) {
            continue;
        }
        room = room.saturating_add(stored.room());
        let mut value = Vec::with_capacity(entry.value.len() + 11);
        value.push(entry.kind);
        value.extend_from_slice(&entry.value);
        value.extend_from_slice(&version);
        value.extend_from_slice(&CRC.checksum(&value).to_le_bytes());
        let at = entry.expires.unwrap_or(0).to_string();
        put(&mut out, &[b"RESTORE", &entry.key, at.as_bytes(), &value, b"REPLACE", b"ABSTTL"]);
        count += 1;
    }
}

/// Exchanges each database with the one that was filled for it, once it is known that
/// nothing was written to it since the copy but what `accept` lets pass: these keys keep
/// their values. Returns them.
///
/// Writers wait meanwhile, for milliseconds, where the server can have them wait (6.2 and
/// later). The end of that and the exchange are sent as one, so that we come before those
/// who waited.
///
/// # Errors
/// Whatever `accept` says about keys that were written; `Busy` when the server is never still.
pub fn exchange(
    wire: &mut Wire,
    follower: &mut Follower,
    pairs: &BTreeMap<u64, u64>,
    accept: &mut dyn FnMut(&BTreeSet<Place>) -> Result<BTreeSet<Place>>,
) -> Result<BTreeSet<Place>> {
    for _ in 0..TRIES {
        let paused = wire.ask(&[b"CLIENT", b"PAUSE", PAUSE, b"WRITE"]).is_ok();
        let kept = look(wire, follower, accept);
        let mut out = Vec::new();
        if paused {
            put(&mut out, &[b"CLIENT", b"UNPAUSE"]);
        }
        if let Ok(kept) = &kept {
            put(
                &mut out,
                &swap(follower.position(), pairs, kept).iter().map(Vec::as_slice).collect::<Vec<_>>(),
            );
        }
        wire.send(&out)?;
        if paused {
            wire.reply()?;
        }
        let kept = kept?;
        if wire.reply()? == Reply::Number(1) {
            return Ok(kept);
        }
    }
    Err(Error::new(ErrorKind::Busy, "clients write to Redis without a pause")
        .with_hint("stop the clients that write, then try again"))
}

/// Follows the stream to its end; the keys that keep their values.
fn look(
    wire: &mut Wire,
    follower: &mut Follower,
    accept: &mut dyn FnMut(&BTreeSet<Place>) -> Result<BTreeSet<Place>>,
) -> Result<BTreeSet<Place>> {
    let info = wire.text(&[b"INFO", b"replication"])?;
    let position = field(&info, "master_repl_offset").and_then(|position| position.parse().ok());
    follower.reach(position.ok_or_else(|| strange("no replication offset"))?)?;
    accept(follower.written(wire)?)
}

/// The command that exchanges.
fn swap(position: u64, pairs: &BTreeMap<u64, u64>, kept: &BTreeSet<Place>) -> Vec<Vec<u8>> {
    let digits = |number: u64| number.to_string().into_bytes();
    let mut words = vec![b"EVAL".to_vec(), SWAP.as_bytes().to_vec(), b"0".to_vec()];
    words.extend([digits(position), MARKER.to_vec(), digits(pairs.len() as u64)]);
    for (database, filled) in pairs {
        words.extend([digits(*database), digits(*filled)]);
    }
    for (database, key) in kept {
        if let Some(filled) = pairs.get(database) {
            words.extend([digits(*database), digits(*filled), key.clone()]);
        }
    }
    words
}

/// Empties the databases that were filled, or hold what was there before.
///
/// # Errors
/// When the server refuses.
pub fn empty(wire: &mut Wire, pairs: &BTreeMap<u64, u64>) -> Result<()> {
    for filled in pairs.values() {
        select(wire, *filled)?;
        wire.ask(&[b"FLUSHDB", b"ASYNC"])?;
    }
    Ok(())
}

/// Replaces all functions by these.
///
/// # Errors
/// When the server refuses.
pub fn functions(wire: &mut Wire, sources: &[Vec<u8>], version: u16) -> Result<()> {
    if sources.is_empty() {
        return wire.ask(&[b"FUNCTION", b"FLUSH"]).map(drop);
    }
    let mut payload = Vec::new();
    for source in sources {
        payload.push(crate::rdb::FUNCTION);
        crate::copy::string(&mut payload, source);
    }
    payload.extend_from_slice(&version.to_le_bytes());
    payload.extend_from_slice(&CRC.checksum(&payload).to_le_bytes());
    wire.ask(&[b"FUNCTION", b"RESTORE", &payload, b"FLUSH"]).map(drop)
}

fn select(wire: &mut Wire, database: u64) -> Result<()> {
    wire.ask(&[b"SELECT", database.to_string().as_bytes()]).map(drop)
}
