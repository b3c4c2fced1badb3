//! Waiting for one of the host's streams, but not for ever.

use crate::bindings::wasi::clocks::monotonic_clock;
use crate::bindings::wasi::io::poll::{Pollable, poll};
use std::io;
use std::time::Duration;

/// Waits until `ready` is, or for `limit`.
///
/// # Errors
/// `TimedOut`.
pub(crate) fn wait(ready: &Pollable, limit: Option<Duration>) -> io::Result<()> {
    let Some(limit) = limit else {
        ready.block();
        return Ok(());
    };
    let nanoseconds = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
    let clock = monotonic_clock::subscribe_duration(nanoseconds);
    if poll(&[ready, &clock]).contains(&0) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, format!("nothing came for {} s", limit.as_secs_f32())))
}
