//! Which signals are caught, what one of them tells, and what it does by itself.

use crate::witness::Sent;
use rustix::process::{DumpableBehavior, getpid, set_dumpable_behavior};
use signal_hook::consts::{
    SIGABRT, SIGBUS, SIGCHLD, SIGFPE, SIGILL, SIGKILL, SIGPIPE, SIGSEGV, SIGSTOP, SIGSYS, SIGTERM, SIGTRAP,
    SIGTTIN, SIGTTOU, SIGXCPU, SIGXFSZ,
};
use signal_hook::iterator::Handle;
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::Origin;

/// The highest number of a signal.
const HIGHEST: i32 = 64;
/// What is left as it is: what cannot be caught, a process's own faults, the end of a pipe,
/// which is an error here, what becomes of children, and what a background process is stopped
/// by, as its whole group is.
const LEFT: [i32; 13] = [
    SIGKILL, SIGSTOP, SIGILL, SIGFPE, SIGSEGV, SIGBUS, SIGTRAP, SIGSYS, SIGABRT, SIGPIPE, SIGCHLD, SIGTTIN,
    SIGTTOU,
];

/// Lets `handle` catch all signals but those of [`LEFT`] and those that are `ignored`, one bit
/// each. Some numbers the C library keeps for itself.
pub fn catch_all(handle: &Handle, ignored: u64) {
    bits(!ignored).filter(|signal| !LEFT.contains(signal)).for_each(|signal| drop(handle.add_signal(signal)));
}

/// The signal and who sent it; none when it was the system.
pub fn sent(origin: &Origin) -> Option<Sent> {
    origin.process.map(|sender| (origin.signal, sender.pid))
}

/// Whether this process itself has reached a limit: then what it did failed, and says so.
pub fn is_own_limit(origin: &Origin) -> bool {
    let own = getpid().as_raw_nonzero().get();
    matches!(origin.signal, SIGXCPU | SIGXFSZ) && origin.process.is_none_or(|sender| sender.pid == own)
}

/// Ends this process as `signal` ends one that does nothing about it, without a core of its own.
/// Comes back where that cannot be: the first process of a container is spared by the kernel.
pub fn die_of(signal: i32) {
    if !getpid().is_init() && set_dumpable_behavior(DumpableBehavior::NotDumpable).is_ok() {
        let _ = emulate_default_handler(signal);
    }
}

/// Does to this process what `signal` does to one that does nothing about it.
pub fn by_itself(signal: i32) {
    // One that has no name there ends a process, too.
    let _ = emulate_default_handler(signal).or_else(|_| emulate_default_handler(SIGTERM));
}

/// The signals that the line `name` of a process's `status` has, one bit each, the first lowest.
pub fn mask(status: &str, name: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix(name));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// The numbers of the signals in a `mask`.
pub fn bits(mask: u64) -> impl Iterator<Item = i32> {
    (1..=HIGHEST).filter(move |signal| mask >> (signal - 1) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_from_the_status() {
        let status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t8000000000001003\n";
        assert_eq!((mask(status, "SigBlk:"), mask(status, "SigIgn:")), (1, 0x8000_0000_0000_1003));
        assert_eq!(bits(mask(status, "SigIgn:")).collect::<Vec<_>>(), [1, 2, 13, 64]);
        assert_eq!(mask("", "SigIgn:"), 0);
    }
}
