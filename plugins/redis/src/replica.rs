//! Asking for a copy as a replica does: over the connection, never by way of the server's disk.
//!
//! For a replica that does not say that it takes a copy of unknown length, and where
//! `repl-diskless-sync` is off, a server writes its own dump file: what it starts from next
//! time. One that cannot write it refuses all writes from then on. Such a server is refused
//! before it is asked.
//!
//! A server lets replicas wait for each other for some seconds. That wait is taken off while
//! the copy begins, where we may, and then put back.

use crate::wire::{Reply, Wire, put, refused, strange};
use snapback_sdk::{Error, ErrorKind, Result, report};

const DISKLESS: &[u8] = b"repl-diskless-sync";
const DELAY: &[u8] = b"repl-diskless-sync-delay";
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
    replica.ask(&[b"REPLCONF", b"capa", b"eof"])?;
    let delay = setting(wire, DELAY)?.filter(|delay| delay != "0");
    let delay = delay.filter(|_| wire.ask(&[b"CONFIG", b"SET", DELAY, b"0"]).is_ok());
    let position = position(replica);
    if let Some(delay) = delay {
        wire.ask(&[b"CONFIG", b"SET", DELAY, delay.as_bytes()])?;
    }
    let position = position?;
    let head = next_line(replica)?;
    let end = end(&head).ok_or_else(|| strange("no size of the copy"))?;
    if diskless.is_none() && matches!(end, End::After(_)) {
        report::log("warn", "the server wrote its dump file for the copy (`repl-diskless-sync` is off)");
    }
    Ok(Begun { position, end })
}

fn position(replica: &mut Wire) -> Result<u64> {
    let mut command = Vec::new();
    put(&mut command, &[b"PSYNC", b"?", b"-1"]);
    replica.send(&command)?;
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
