//! Signals while `run` is at work: snapback lives on, the command gets them.
//!
//! Invariants: what the terminal sends reaches every process in the foreground by
//! itself and is not sent a second time; nor is what the command or a process beneath it
//! sends, which means its whole group, and so itself, or snapback alone; what anybody else
//! sends is passed on, each time. A signal that was ignored when snapback started stays
//! ignored, for the command too. A number is never signalled after its process was
//! waited for, since it may belong to another one by then.

use crate::{process, terminal};
use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitStatus, getpid, kill_process, set_dumpable_behavior,
};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::exfiltrator::origin::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::{Cause, Origin};
use snapback_core::backend::Cancel;
use snapback_core::error::{Error, Kind, Result};
use std::fs;
use std::process::Child;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;

/// What is passed on, or left to the terminal.
const WATCHED: [i32; 8] = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGTSTP];

/// Where the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The command was not started: a signal stops the snapshot, a second one everything.
    /// The first one, where somebody sent it to snapback alone, is kept for the command,
    /// which may be starting at this moment.
    Before { asked: bool, kept: Option<Signal> },
    /// The command runs, and had the last of its signals from the terminal.
    Running { command: Pid, shared: Option<i32> },
    /// The command has ended, by the signal `death` or by itself: a signal stops what snapback
    /// still does, a second one everything. The terminal's own `death` may come here late.
    After { asked: bool, death: Option<i32>, shared: Option<i32> },
}

/// Catches signals until it is dropped.
pub struct Signals {
    phase: Arc<Mutex<Phase>>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
}

impl Signals {
    /// Begins to catch them; `cancel` is asked to stop what is not the command.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn watch(cancel: Cancel) -> Result<Self> {
        let failed = |error| Error::io(error, "could not watch for", "signals");
        let ignored = ignored();
        let is_ignored = |signal: i32| ignored >> (signal - 1) & 1 == 1;
        let mut signals: Vec<i32> = WATCHED.into_iter().filter(|&signal| !is_ignored(signal)).collect();
        if is_ignored(SIGCHLD) {
            // Else the system would throw away how the command ended.
            signals.push(SIGCHLD);
        }
        let mut incoming = SignalsInfo::<WithOrigin>::new(signals).map_err(failed)?;
        let (handle, phase) =
            (incoming.handle(), Arc::new(Mutex::new(Phase::Before { asked: false, kept: None })));
        let shared = phase.clone();
        let thread = std::thread::Builder::new()
            .name("signals".into())
            .spawn(move || {
                for origin in incoming.forever() {
                    arrived(&origin, &mut lock(&shared), &cancel);
                }
            })
            .map_err(failed)?;
        Ok(Self { phase, handle, thread: Some(thread) })
    }

    /// Starts the command; from then on signals are for it, also those that come while it
    /// is being started: it may be at work before this program knows its number.
    ///
    /// # Errors
    /// What `spawn` returns.
    pub fn starting<E>(&self, spawn: impl FnOnce() -> Result<Child, E>) -> Result<Child, E> {
        let mut phase = lock(&self.phase);
        let child = spawn()?;
        let command = Pid::from_child(&child);
        if let Phase::Before { kept: Some(signal), .. } = *phase {
            let _ = kill_process(command, signal);
        }
        *phase = Phase::Running { command, shared: None };
        Ok(child)
    }

    /// Does `reap` while no signal is passed on; when that says that the command is
    /// gone, none is from then on.
    pub fn reaping(&self, reap: impl FnOnce() -> Option<WaitStatus>) -> Option<WaitStatus> {
        let mut phase = lock(&self.phase);
        let status = reap();
        if let Some(status) = status.filter(|status| status.exited() || status.signaled()) {
            phase.end(status.terminating_signal());
        }
        status
    }

    /// The command is gone, nobody knows how.
    pub fn lost(&self) {
        lock(&self.phase).end(None);
    }

    /// The signal from the terminal that ended the command, if one did. It reached this process
    /// as well, which lived on to record the end.
    pub fn shared_death(&self) -> Option<i32> {
        match *lock(&self.phase) {
            Phase::After { death, shared, .. } => death.filter(|_| death == shared),
            Phase::Before { .. } | Phase::Running { .. } => None,
        }
    }
}

impl Phase {
    /// The command has ended, by the signal `death` or by itself.
    fn end(&mut self, death: Option<i32>) {
        let shared = match *self {
            Self::Running { shared, .. } => shared,
            Self::Before { .. } | Self::After { .. } => None,
        };
        *self = Self::After { asked: false, death, shared };
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(phase: &Mutex<Phase>) -> MutexGuard<'_, Phase> {
    phase.lock().expect("no holder panics")
}

fn arrived(origin: &Origin, phase: &mut Phase, cancel: &Cancel) {
    let signal = origin.signal;
    let stops = matches!(signal, SIGINT | SIGQUIT | SIGTERM | SIGHUP);
    let is_terminals = matches!(origin.cause, Cause::Kernel);
    match *phase {
        _ if signal == SIGCHLD => {}
        // The terminal has sent it to the command as well.
        Phase::Running { command, .. } if is_terminals => {
            *phase = Phase::Running { command, shared: Some(signal) };
        }
        // It has reached whom it was meant for. A sender that is gone is taken for a stranger:
        // a signal too many is better than one that is lost.
        Phase::Running { command, .. } if is_from(origin, command) => {}
        Phase::Running { command, .. } => {
            if let Some(signal) = Signal::from_named_raw(signal) {
                let _ = kill_process(command, signal);
            }
        }
        // What interrupts a question ends the program at once, as it ends any: nothing is at work.
        Phase::Before { asked: false, .. } if stops && !terminal::is_asking() => {
            cancel.cancel();
            *phase =
                Phase::Before { asked: true, kept: Signal::from_named_raw(signal).filter(|_| !is_terminals) };
        }
        // The command was ended before this process took its own copy.
        Phase::After { asked, death, shared } if is_terminals && death == Some(signal) && shared != death => {
            *phase = Phase::After { asked, death, shared: death };
        }
        Phase::After { asked: false, death, shared } if stops => {
            cancel.cancel();
            *phase = Phase::After { asked: true, death, shared };
        }
        Phase::After { .. } if !stops && signal != SIGTSTP => {}
        Phase::Before { .. } | Phase::After { .. } => drop(emulate_default_handler(signal)),
    }
}

/// Ends this process as `signal` ends one that does nothing about it, without a core of its own.
/// Comes back where that cannot be: the first process of a container is spared by the kernel.
pub fn die_of(signal: i32) {
    if !getpid().is_init() && set_dumpable_behavior(DumpableBehavior::NotDumpable).is_ok() {
        let _ = emulate_default_handler(signal);
    }
}

/// Whether the command or a process beneath it sent it.
fn is_from(origin: &Origin, command: Pid) -> bool {
    let command = command.as_raw_nonzero().get();
    origin.process.is_some_and(|sender| process::is_in_tree_of(sender.pid, command))
}

/// The signals that are ignored, one bit each, the first signal lowest.
fn ignored() -> u64 {
    fs::read_to_string("/proc/self/status").map_or(0, |status| ignored_in(&status))
}

fn ignored_in(status: &str) -> u64 {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}

/// An error for a snapshot that a signal stopped, in words that say what became of it.
pub fn stopped(error: Error) -> Error {
    if error.kind() != Kind::Cancelled {
        return error;
    }
    Error::new(Kind::Cancelled, "stopped before the command was started")
        .hint("nothing was kept of the snapshot that was being taken")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A signal to this process reaches whoever watches in it: one test at a time does.
    static WATCHING: Mutex<()> = Mutex::new(());

    #[test]
    fn a_signal_while_the_command_starts_reaches_it() {
        let _alone = WATCHING.lock().unwrap();
        let cancel = Cancel::default();
        let signals = Signals::watch(cancel.clone()).unwrap();
        kill_process(rustix::process::getpid(), Signal::HUP).unwrap();
        while !cancel.is_cancelled() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let mut command = signals.starting(|| Command::new("sleep").arg("600").spawn()).unwrap();
        let status = command.wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(SIGHUP));
    }

    #[test]
    fn a_signal_that_comes_before_the_number_is_known_reaches_it_too() {
        let _alone = WATCHING.lock().unwrap();
        let signals = Signals::watch(Cancel::default()).unwrap();
        let spawn = || {
            let child = Command::new("sleep").arg("600").spawn();
            kill_process(rustix::process::getpid(), Signal::USR1).unwrap();
            // The one that watches gets it now, and has to wait.
            std::thread::sleep(std::time::Duration::from_millis(50));
            child
        };
        let status = signals.starting(spawn).unwrap().wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(SIGUSR1));
    }

    #[test]
    fn ignored_signals_are_read_from_the_status() {
        let status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001003\n";
        assert_eq!(ignored_in(status), 0x1003);
        assert_eq!(ignored_in(""), 0);
    }
}
