//! What this program does for itself in a process of its own: words that nobody types.

use crate::exit::Code;
use crate::witness;
use snapback_core::error::{Error, Result};
use snapback_runtime::docker::{inside, watch};

/// Does what it was started for by another process of this program; none when it was
/// started by people.
pub fn run() -> Option<Code> {
    let mut words = std::env::args_os().skip(1);
    let done: Result<()> = match words.next()?.to_str()? {
        watch::WORD => watch::serve(std::io::stdin()),
        witness::WORD => {
            let ended = witness::serve(std::io::stdin(), std::io::stdout());
            ended.map_err(|error| Error::io(error, "could not watch for", "signals"))
        }
        inside::WORD => inside::serve(std::io::stdin(), std::io::stdout()),
        _ => return None,
    };
    // Nobody listens.
    Some(if done.is_ok() { Code::DONE } else { Code::FAILED })
}
