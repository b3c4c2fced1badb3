//! Whether a restore could do what it does on this server, found out before it is needed.
//!
//! A server tells of each command of a transaction whether it would take it, and carries out
//! none when the transaction is given up.

use crate::copy::MARKER;
use crate::scope::Server;
use crate::wire::Wire;
use snapback_sdk::{Error, ErrorKind, Result};

/// What a restore gives in commands of its own or in its script.
const NEEDED: [&[&[u8]]; 9] = [
    &[b"SELECT", b"0"],
    &[b"DBSIZE"],
    &[b"SET", MARKER, b"", b"NX"],
    &[b"RESTORE", MARKER, b"0", b"", b"REPLACE", b"ABSTTL"],
    &[b"DUMP", MARKER],
    &[b"PTTL", MARKER],
    &[b"DEL", MARKER],
    &[b"SWAPDB", b"0", b"0"],
    &[b"EVAL", b"return 1", b"0"],
];

/// Looks whether it would be let.
///
/// # Errors
/// `Denied` when the user may not, or the server is a replica; `Incompatible` when the server
/// does not have a command.
pub fn look(wire: &mut Wire, server: &Server) -> Result<()> {
    if server.is_replica {
        return Err(Error::new(
            ErrorKind::Denied,
            "the server is a replica, on which nothing can be put back",
        )
        .with_hint("`address` should be that of its master"));
    }
    wire.ask(&[b"MULTI"])?;
    let tried = NEEDED.iter().map(|command| wire.ask(command).map(drop)).find(is_final);
    wire.ask(&[b"DISCARD"])?;
    tried.unwrap_or(Ok(()))
}

/// Whether it would be refused at any time: want of memory, say, may pass.
fn is_final(tried: &Result<()>) -> bool {
    tried.as_ref().is_err_and(|error| matches!(error.kind, ErrorKind::Denied | ErrorKind::Incompatible))
}
