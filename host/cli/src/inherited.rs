//! What this program was started with that Rust's standard library changes before `main`, or in
//! what it starts: a standard stream that was closed becomes /dev/null, SIGPIPE is ignored here and
//! is as by default there, and there nothing is blocked.
//!
//! Invariant: it is only looked at before `main`, and the wrapped command has it as the user gave
//! it: streams that were closed are closed again when it starts, and GNU's `env`, in whose place the
//! command then runs, ignores and blocks signals first. Where that `env` is missing, or would take
//! the command's name for a variable, signals are as by default.

use crate::caught::{bits, mask};
use rustix::io::{FdFlags, fcntl_setfd};
use signal_hook::consts::{SIGCHLD, SIGPIPE};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

/// Sets signals up and becomes another program.
const ENV: &str = "/usr/bin/env";

/// What was looked at.
#[derive(Debug, Default, Clone, Copy)]
struct Inherited {
    /// Signals that are ignored and that are blocked, one bit each, the first signal lowest.
    ignored: u64,
    blocked: u64,
    /// Of standard input, output and error, those that are closed.
    closed: [bool; 3],
}

static INHERITED: OnceLock<Inherited> = OnceLock::new();

ctor::declarative::ctor! {
    /// Looks, before the standard library changes it. The macro wants the word, for what runs this
    /// early may not count on anything: this reads from /proc alone.
    #[ctor(unsafe)]
    fn look() {
        let _ = INHERITED.set(Inherited::look());
    }
}

impl Inherited {
    fn look() -> Self {
        let Ok(status) = fs::read_to_string("/proc/self/status") else { return Self::default() };
        let closed = [0, 1, 2].map(|stream| fs::symlink_metadata(format!("/proc/self/fd/{stream}")).is_err());
        Self { ignored: mask(&status, "SigIgn:"), blocked: mask(&status, "SigBlk:"), closed }
    }

    /// What `env` is to be told of signals.
    fn options(&self) -> Vec<String> {
        // All others that are ignored stay so by themselves.
        let lost = 1 << (SIGPIPE - 1) | 1 << (SIGCHLD - 1);
        let option = |name: &str, signals: u64| {
            let numbers: Vec<String> = bits(signals).map(|signal| signal.to_string()).collect();
            (signals != 0).then(|| format!("--{name}-signal={}", numbers.join(",")))
        };
        [option("ignore", self.ignored & lost), option("block", self.blocked)].into_iter().flatten().collect()
    }
}

fn inherited() -> Inherited {
    INHERITED.get().copied().unwrap_or_default()
}

/// The signals that are ignored, one bit each, the first signal lowest.
pub fn ignored() -> u64 {
    inherited().ignored
}

/// What starts `name` with the signals as they were given.
pub fn command(name: &OsStr) -> Command {
    let options = inherited().options();
    if options.is_empty() || name.as_bytes().contains(&b'=') || !is_able(&options) {
        return Command::new(name);
    }
    let mut command = Command::new(ENV);
    command.args(options).arg("--").arg(name);
    command
}

/// Whether `env` takes these options.
fn is_able(options: &[String]) -> bool {
    let mut tried = Command::new(ENV);
    tried.args(options).args(["--", "true"]);
    let tried = tried.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    tried.is_ok_and(|status| status.success())
}

/// Lets the streams that were closed be closed in what is started from now on.
pub fn close_streams() {
    let [input, output, error] = inherited().closed;
    if input {
        let _ = fcntl_setfd(io::stdin(), FdFlags::CLOEXEC);
    }
    if output {
        let _ = fcntl_setfd(io::stdout(), FdFlags::CLOEXEC);
    }
    if error {
        let _ = fcntl_setfd(io::stderr(), FdFlags::CLOEXEC);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_otherwise_is_told_to_env() {
        let of = |ignored, blocked| Inherited { ignored, blocked, closed: [false; 3] }.options();
        assert_eq!(of(0, 0), [""; 0]);
        assert_eq!(of(1, 0), [""; 0], "one that is ignored stays so");
        assert_eq!(of(0x1_1001, 0), ["--ignore-signal=13,17"]);
        assert_eq!(of(0x1000, 0x201), ["--ignore-signal=13", "--block-signal=1,10"]);
    }
}
