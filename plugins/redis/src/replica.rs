//! Asking for a copy as a replica does: over the connection, never by way of the server's disk.
//!
//! For a replica that does not say that it takes a copy of unknown length, and where
//! `repl-diskless-sync` is off, a server writes its own dump file: what it starts from next
//! time. One that cannot write it refuses all writes from then on. Such a server is refused
//! before it is asked.
//!
//! A server lets replicas wait for each other for some seconds. Where we may, that wait is taken off
//! for the moment in which the copy begins. All of that is one message, which ends with putting
//! it back: what becomes of us after it is sent changes nothing on the server.

use crate::scope::field;
use crate::wire::{Reply, Wire, put, refused, strange};
use snapback_sdk::{Error, ErrorKind, Result, report};
use std::time::Duration;

const DISKLESS: &[u8] = b"repl-diskless-sync";
const DELAY: &[u8] = b"repl-diskless-sync-delay";
/// Says that a copy of unknown length is taken.
const CAPABLE: &[&[u8]] = &[b"REPLCONF", b"capa", b"eof"];
/// Has the server say nothing to the next command.
const SILENT: &[&[u8]] = &[b"CLIENT", b"REPLY", b"SKIP"];
/// What a server does beside its work, one of them at once.
const WORKS: [&str; 3] = ["rdb_bgsave_in_progress", "aof_rewrite_in_progress", "module_fork_in_progress"];
/// How often, and how long each time, their end is waited for.
const TURNS: usize = 150;
const TURN: Duration = Duration::from_millis(20);
/// The first version that sends copies directly unless it is told not to.
const DIRECT: u32 = 7;

/// A copy that begins.
pub struct Begun {
    /// Where in the stream of what is written it is of.
    pub position: u64,
    pub end: End,
}

/// How it is told where it ends.
pub enum End {
    /// After so many bytes.
    After(u64),
    /// This follows it.
    Mark(Vec<u8>),
}

/// Has the server, of that `major` version, begin a copy on the connection `replica`, which
/// from then on carries what is written after it.
///
/// # Errors
/// `Incompatible` when the server would write its dump file for it; when it gives none.
pub fn begin(wire: &mut Wire, replica: &mut Wire, major: u32) -> Result<Begun> {
    let diskless = setting(wire, DISKLESS)?;
    refuse_disk(diskless.as_deref(), major)?;
    replica.ask(CAPABLE)?;
    let delay = setting(wire, DELAY)?.filter(|delay| delay != "0");
    let delay = if delay.is_some() && may_be_silent(replica)? { delay } else { None };
    await_turn(wire)?;
    let position = position(replica, delay.as_deref())?;
    let head = next_line(replica)?;
    let end = end(&head).ok_or_else(|| strange("no size of the copy"))?;
    if diskless.is_none() && matches!(end, End::After(_)) {
        report::log("warn", "the server wrote its dump file for the copy (`repl-diskless-sync` is off)");
    }
    Ok(Begun { position, end })
}

/// Waits a little until the server does nothing beside its work: the copy before this one may have ended just
/// now. While it does, it begins no other, and then only once the replicas' wait is over.
fn await_turn(wire: &mut Wire) -> Result<()> {
    for _ in 0..TURNS {
        let info = wire.text(&[b"INFO", b"persistence"])?;
        if WORKS.iter().all(|work| field(&info, work) != Some("1")) {
            break;
        }
        wire.await_more(TURN)?;
    }
    Ok(())
}

/// Whether the server leaves out a reply where it is asked to.
fn may_be_silent(replica: &mut Wire) -> Result<bool> {
    let mut commands = Vec::new();
    put(&mut commands, SILENT);
    // What it takes, as it did before.
    (0..2).for_each(|_| put(&mut commands, CAPABLE));
    replica.send(&commands)?;
    match replica.reply() {
        Ok(_) => Ok(true),
        Err(_) => replica.replies(2).map(|()| false),
    }
}

/// Asks for the copy; where it is of. `delay` is what the replicas' wait is set to, unless it stays: who
/// may not set it waits.
fn position(replica: &mut Wire, delay: Option<&str>) -> Result<u64> {
    let mut commands = Vec::new();
    if delay.is_some() {
        // While a reply waits to be sent no copy is begun, and one later would be taken for what follows it.
        put(&mut commands, SILENT);
        put(&mut commands, &[b"CONFIG", b"SET", DELAY, b"0"]);
    }
    put(&mut commands, &[b"PSYNC", b"?", b"-1"]);
    if let Some(delay) = delay {
        put(&mut commands, SILENT);
        put(&mut commands, &[b"CONFIG", b"SET", DELAY, delay.as_bytes()]);
    }
    replica.send(&commands)?;
    let said = next_line(replica)?;
    let position = said.strip_prefix("+FULLRESYNC ").and_then(|rest| rest.split(' ').nth(1)?.parse().ok());
    position.ok_or_else(|| said.strip_prefix('-').map_or_else(|| strange(&said), refused))
}

fn end(head: &str) -> Option<End> {
    let rest = head.strip_prefix('$')?;
    match rest.strip_prefix("EOF:") {
        Some(mark) => Some(End::Mark(mark.as_bytes().to_vec())).filter(|_| !mark.is_empty()),
        None => rest.parse().ok().map(End::After),
    }
}

fn refuse_disk(diskless: Option<&str>, major: u32) -> Result<()> {
    let why = match diskless {
        Some("yes") => return Ok(()),
        Some(_) => "the server would write its dump file for each snapshot, and may start from it",
        None if major >= DIRECT => return Ok(()),
        None => "whether the server would write its dump file for a snapshot cannot be told",
    };
    let hint = "with `redis-cli CONFIG SET repl-diskless-sync yes` it sends copies directly; \
                a line in its configuration keeps it so";
    Err(Error::new(ErrorKind::Incompatible, why).with_hint(hint))
}

/// What is set on the server; nothing where it has no command for that.
fn setting(wire: &mut Wire, name: &[u8]) -> Result<Option<String>> {
    let reply = match wire.ask(&[b"CONFIG", b"GET", name]) {
        Err(error) if error.kind == ErrorKind::Incompatible => return Ok(None),
        reply => reply?,
    };
    let Reply::List(pair) = reply else { return Err(strange("no setting")) };
    Ok(pair.into_iter().nth(1).and_then(|value| match value {
        Reply::Bytes(value) => String::from_utf8(value).ok(),
        _ => None,
    }))
}

/// The next line that says something: a server that prepares a copy sends empty ones.
fn next_line(wire: &mut Wire) -> Result<String> {
    loop {
        let line = wire.line()?;
        if !line.is_empty() {
            return Ok(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_ends_after_its_size_or_before_a_mark() {
        assert!(matches!(end("$17"), Some(End::After(17))));
        assert!(matches!(end("$EOF:abc"), Some(End::Mark(mark)) if mark == b"abc"));
        for none in ["", "+OK", "$", "$EOF:", "$x"] {
            assert!(end(none).is_none(), "{none}");
        }
    }

    #[test]
    fn what_would_write_a_file_is_refused_and_what_is_unknown_goes_by_the_version() {
        for (set, major, passes) in [
            (Some("yes"), 6, true),
            (Some("no"), 6, false),
            (Some("no"), 7, false),
            (None, 6, false),
            (None, 7, true),
        ] {
            assert_eq!(refuse_disk(set, major).is_ok(), passes, "{set:?} {major}");
        }
    }
}
