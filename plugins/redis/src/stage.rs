//! Filling claimed databases with what was stored, and exchanging them with those that
//! clients see, in one step. What was there until then goes in the same step.

use crate::compare::{Entries, Stored};
use crate::copy::{MARKER, expired};
use crate::follow::{Follower, Place};
use crate::memory::Memory;
use crate::scope::field;
use crate::spare::select;
use crate::wire::{Reply, Wire, put, strange};
use crc::{CRC_64_REDIS, Crc};
use snapback_sdk::{Error, ErrorKind, Result};
use std::collections::{BTreeMap, BTreeSet};

const SWAP: &str = include_str!("swap.lua");
static CRC: Crc<u64> = Crc::<u64>::new(&CRC_64_REDIS);
/// Bytes and commands that are sent before replies are read: less than sockets hold of these.
const BATCH: (usize, usize) = (1 << 20, 2000);
/// How often the exchange is tried when the stream moved on meanwhile.
const TRIES: usize = 50;
/// Milliseconds after which writers go on whatever became of us.
const PAUSE: &[u8] = b"3000";

/// Fills the claimed `database` with what was stored and has not expired at `now`; where the
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
    select(wire, database)?;
    let version = stored.version().to_le_bytes();
    let (mut out, mut count, mut room) = (Vec::new(), 0, 0u64);
    loop {
        let is_there = stored.next()?;
        if out.len() > BATCH.0 || count == BATCH.1 || !is_there {
            if evicts {
                Memory::ask(wire)?.admit(std::mem::take(&mut room))?;
            }
            wire.send(&out)?;
            out.clear();
            wire.replies(std::mem::take(&mut count))?;
            follower.drain()?;
            follower.written(wire)?;
        }
        if !is_there {
            return Ok(());
        }
        let entry = stored.entry();
        if expired(&entry, now) {
            continue;
        }
        room = room.saturating_add(stored.room());
        let mut value = Vec::with_capacity(entry.value.len() + 11);
        value.push(entry.kind);
        value.extend_from_slice(entry.value);
        value.extend_from_slice(&version);
        value.extend_from_slice(&CRC.checksum(&value).to_le_bytes());
        let at = entry.expires.unwrap_or(0).to_string();
        follower.expect(database, b"RESTORE", entry.key, entry.expires);
        put(&mut out, &[b"RESTORE", entry.key, at.as_bytes(), &value, b"REPLACE", b"ABSTTL"]);
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
    // What takes long is done before anybody waits.
    look(wire, follower, accept)?;
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
            // It ends by itself, too.
            let _ = wire.replies(1);
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
        crate::text::string(&mut payload, source);
    }
    payload.extend_from_slice(&version.to_le_bytes());
    payload.extend_from_slice(&CRC.checksum(&payload).to_le_bytes());
    wire.ask(&[b"FUNCTION", b"RESTORE", &payload, b"FLUSH"]).map(drop)
}
