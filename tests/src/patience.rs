//! Waiting for what is to happen, and giving up at last.

use std::time::{Duration, Instant};

/// How long a test waits for something before it fails.
pub const PATIENCE: Duration = Duration::from_secs(60);
/// Between two looks.
const BETWEEN: Duration = Duration::from_millis(5);

/// Waits until `is`.
///
/// # Panics
/// When `what` never comes about.
#[track_caller]
pub fn until(what: &str, mut is: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is() {
        assert!(started.elapsed() < PATIENCE, "it never came: {what}");
        std::thread::sleep(BETWEEN);
    }
}
