//! Signals while `run` is at work: snapback lives on, the command gets them.
//!
//! Invariants: what the terminal sends reaches every process in the foreground by itself and
//! is not sent a second time; nor is what anybody sends to the whole group, nor what the
//! command or a process beneath it sends, which means its group, and so itself, or snapback
//! alone. What anybody sends to snapback alone is passed on, each time; one too many is better
//! than one that is lost. A signal that was ignored when snapback started stays ignored, for
//! the command too. A number is never signalled after its process was waited for, since it may
//! belong to another one by then.

use crate::caught::{self, sent};
use crate::witness::{Sent, Witness};
use crate::{inherited, process, terminal};
use rustix::process::{Pid, Signal, WaitStatus, getpgid, getpgrp, kill_process};
use signal_hook::consts::{SIGCHLD, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGURG, SIGWINCH};
use signal_hook::iterator::Handle;
use signal_hook::iterator::backend::SignalDelivery;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::{Cause, Origin};
use snapback_core::backend::Cancel;
use snapback_core::error::{Error, Kind, Result};
use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;

/// What a terminal sends.
const OF_A_TERMINAL: [i32; 6] = [SIGINT, SIGQUIT, SIGHUP, SIGTSTP, SIGWINCH, SIGCONT];
/// Who sends to one after the other, as timeout does to its child and then to the group, is
/// through by then.
const TURN: Duration = Duration::from_millis(5);
/// A command that has ended by then needs nobody who watches its group.
const SHORT: Duration = Duration::from_millis(50);
/// Between the command's part of a signal and this process's.
const MOMENT: Duration = Duration::from_millis(50);

/// Where the run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The command was not started: a signal stops the snapshot, and keeps the command from
    /// being started; a second one stops everything.
    Before { asked: Option<i32> },
    /// The command runs, and had the last of its signals from the terminal. `told` says that
    /// this process was told to stop, as its group was.
    Running { command: Pid, shared: Option<i32>, told: bool },
    /// The command has ended, by the signal `death` or by itself: a signal stops what snapback
    /// still does, a second one everything. The terminal's own `death` may come here late.
    After { asked: bool, death: Option<i32>, shared: Option<i32> },
}

/// Catches signals until it is dropped.
pub struct Signals {
    watch: Arc<Mutex<Watch>>,
    handle: Handle,
    thread: Option<JoinHandle<()>>,
    /// Whether somebody is to watch for what is sent to the whole group.
    witnessed: bool,
    /// Who starts that one, and what ends the wait for it.
    starts: Mutex<Option<(Sender<()>, JoinHandle<()>)>>,
}

/// What came, and what is done about it.
struct Watch {
    incoming: SignalDelivery<UnixStream, WithOrigin>,
    phase: Phase,
    cancel: Cancel,
    /// None in the first moment of a command, and where the system had no process left for it.
    witness: Option<Witness>,
}

impl Signals {
    /// Begins to catch them; `cancel` is asked to stop what is not the command.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn watch(cancel: Cancel) -> Result<Self> {
        Self::with(cancel, true).map_err(|error| Error::io(error, "could not watch for", "signals"))
    }

    fn with(cancel: Cancel, witnessed: bool) -> io::Result<Self> {
        let (read, write) = UnixStream::pair()?;
        let mut woken = read.try_clone()?;
        let none = std::iter::empty::<i32>();
        let incoming = SignalDelivery::with_pipe(read, write, WithOrigin::default(), none)?;
        let (handle, ignored) = (incoming.handle(), inherited::ignored());
        if ignored >> (SIGCHLD - 1) & 1 == 1 {
            // Else the system would throw away how the command ended.
            handle.add_signal(SIGCHLD)?;
        }
        caught::catch_all(&handle, ignored);
        let watch = Watch { incoming, phase: Phase::Before { asked: None }, cancel, witness: None };
        let watch = Arc::new(Mutex::new(watch));
        let (shared, closed) = (watch.clone(), handle.clone());
        let work = move || {
            let mut byte = [0];
            while !closed.is_closed() {
                match woken.read(&mut byte) {
                    Ok(0) => break,
                    Err(error) if error.kind() != io::ErrorKind::Interrupted => break,
                    // Closing it wakes it as well.
                    _ if closed.is_closed() => break,
                    _ => {
                        std::thread::sleep(TURN);
                        lock(&shared).take(false);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("signals".into()).spawn(work)?;
        Ok(Self { watch, handle, thread: Some(thread), witnessed, starts: Mutex::default() })
    }

    /// Starts the command, unless a signal came before. From then on signals are for it, also
    /// those that come while it is being started: it may be at work before this program knows
    /// its number.
    ///
    /// # Errors
    /// `Cancelled` where a signal came before; inside, what `spawn` returns.
    pub fn starting(&self, spawn: impl FnOnce() -> io::Result<Child>) -> Result<io::Result<Child>> {
        let mut watch = lock(&self.watch);
        watch.take(false);
        if watch.phase != (Phase::Before { asked: None }) {
            return Err(Error::new(Kind::Cancelled, "stopped as asked"));
        }
        let child = match spawn() {
            Ok(child) => child,
            failed => return Ok(failed),
        };
        watch.phase = Phase::Running { command: Pid::from_child(&child), shared: None, told: false };
        watch.take(true);
        if self.witnessed {
            *self.starts.lock().expect("no holder panics") = start_late(&self.watch);
        }
        Ok(Ok(child))
    }

    /// The signal that asked to stop what comes before a command, or what there is no command for.
    pub fn asked(&self) -> Option<i32> {
        match lock(&self.watch).phase {
            Phase::Before { asked } => asked,
            Phase::Running { .. } | Phase::After { .. } => None,
        }
    }

    /// Does `reap` while no signal is passed on; when that says that the command is
    /// gone, none is from then on.
    pub fn reaping(&self, reap: impl FnOnce() -> Option<WaitStatus>) -> Option<WaitStatus> {
        let mut watch = lock(&self.watch);
        // Else what ended the command would be taken for one that came after its end.
        watch.take(false);
        let status = reap();
        if let Some(status) = status.filter(|status| status.exited() || status.signaled()) {
            watch.phase.end(status.terminating_signal());
        }
        status
    }

    /// The command is gone, nobody knows how.
    pub fn lost(&self) {
        lock(&self.watch).phase.end(None);
    }

    /// Whether who stopped the command told this process to stop as well: they wake both.
    pub fn told_to_stop(&self) -> bool {
        let told = || {
            let mut watch = lock(&self.watch);
            watch.take(false);
            match &mut watch.phase {
                Phase::Running { told, .. } => std::mem::take(told),
                Phase::Before { .. } | Phase::After { .. } => false,
            }
        };
        told() || {
            std::thread::sleep(MOMENT);
            told()
        }
    }

    /// The signal from the terminal that ended the command, if one did. It reached this process
    /// as well, which lived on to record the end.
    pub fn shared_death(&self) -> Option<i32> {
        let mut watch = lock(&self.watch);
        watch.take(false);
        match watch.phase {
            Phase::After { death, shared, .. } => death.filter(|_| death == shared),
            Phase::Before { .. } | Phase::Running { .. } => None,
        }
    }
}

/// Starts the witness once the command has run for a moment: short ones do not pay for it.
fn start_late(watch: &Arc<Mutex<Watch>>) -> Option<(Sender<()>, JoinHandle<()>)> {
    let ((end, ended), watch) = (mpsc::channel(), watch.clone());
    let work = move || {
        if ended.recv_timeout(SHORT) == Err(RecvTimeoutError::Timeout)
            && matches!(lock(&watch).phase, Phase::Running { .. })
            && let Ok(witness) = Witness::start()
        {
            lock(&watch).witness = Some(witness);
        }
    };
    let thread = std::thread::Builder::new().name("witness".into()).spawn(work).ok()?;
    Some((end, thread))
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

impl Watch {
    /// Does what there is to do about all that came. In a `start` of the command, it may have
    /// come before there was a command.
    fn take(&mut self, start: bool) {
        let mut seen = BTreeSet::new();
        loop {
            let came: Vec<Origin> = self.incoming.pending().collect();
            if came.is_empty() {
                return;
            }
            if matches!(self.phase, Phase::Running { .. }) {
                // Of a group the newest gets a signal first: the witness before this process.
                seen.extend(self.seen());
            }
            for origin in &came {
                let of_group = !start && sent(origin).is_some_and(|sent| seen.contains(&sent));
                self.arrived(origin, of_group, start);
            }
            let done: BTreeSet<Sent> = came.iter().filter_map(sent).collect();
            seen.retain(|sent| !done.contains(sent));
        }
    }

    /// What came to the whole group since the last time.
    fn seen(&mut self) -> BTreeSet<Sent> {
        self.witness.as_mut().map(Witness::seen).unwrap_or_default()
    }

    fn arrived(&mut self, origin: &Origin, of_group: bool, start: bool) {
        let signal = origin.signal;
        let is_terminals = origin.cause == Cause::Kernel && OF_A_TERMINAL.contains(&signal);
        let stops = matches!(signal, SIGINT | SIGQUIT | SIGTERM | SIGHUP);
        match self.phase {
            _ if signal == SIGCHLD || caught::is_own_limit(origin) => {}
            // The terminal has sent it to the command as well, if there was one.
            Phase::Running { command, told, .. } if is_terminals => {
                let told = told || signal == SIGTSTP;
                self.phase = Phase::Running { command, shared: Some(signal), told };
                if start {
                    send(command, signal);
                }
            }
            // It has reached whom it was meant for. A sender that is gone is taken for a stranger.
            Phase::Running { command, shared, told }
                if of_group && is_in_group(command) || is_from(origin, command) =>
            {
                self.phase = Phase::Running { command, shared, told: told || signal == SIGTSTP };
            }
            Phase::Running { command, .. } => send(command, signal),
            Phase::Before { .. } | Phase::After { .. } if matches!(signal, SIGCONT | SIGWINCH | SIGURG) => {}
            // What interrupts a question ends the program at once, as it ends any: nothing is at work.
            Phase::Before { asked: None } if signal != SIGTSTP && !terminal::is_asking() => {
                self.cancel.cancel();
                self.phase = Phase::Before { asked: Some(signal) };
            }
            // The command was ended before this process took its own copy.
            Phase::After { asked, death, shared }
                if is_terminals && death == Some(signal) && shared != death =>
            {
                self.phase = Phase::After { asked, death, shared: death };
            }
            Phase::After { asked: false, death, shared } if stops => {
                self.cancel.cancel();
                self.phase = Phase::After { asked: true, death, shared };
            }
            Phase::After { .. } if !stops && signal != SIGTSTP => {}
            Phase::Before { .. } | Phase::After { .. } => caught::by_itself(signal),
        }
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        if let Some((end, thread)) = self.starts.lock().expect("no holder panics").take() {
            drop(end);
            let _ = thread.join();
        }
        self.handle.close();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn lock(watch: &Mutex<Watch>) -> MutexGuard<'_, Watch> {
    watch.lock().expect("no holder panics")
}

/// Whether the command is in this process's group, so that it gets what that gets.
fn is_in_group(command: Pid) -> bool {
    getpgid(Some(command)).is_ok_and(|group| group == getpgrp())
}

/// Passes `signal` on.
fn send(command: Pid, signal: i32) {
    let Some(named) = Signal::from_named_raw(signal) else {
        // One for realtime programs, which have numbers alone.
        let line = format!("kill -{signal} {}", command.as_raw_nonzero());
        let mut shell = Command::new("/bin/sh");
        shell.args(["-c", &line]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let _ = shell.status();
        return;
    };
    let _ = kill_process(command, named);
}

/// Whether the command or a process beneath it sent it.
fn is_from(origin: &Origin, command: Pid) -> bool {
    let command = command.as_raw_nonzero().get();
    origin.process.is_some_and(|sender| process::is_in_tree_of(sender.pid, command))
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
    use rustix::process::getpid;
    use signal_hook::consts::SIGUSR1;

    /// A signal to this process reaches whoever watches in it: one test at a time does.
    static WATCHING: Mutex<()> = Mutex::new(());

    #[test]
    fn a_signal_that_comes_first_keeps_the_command_from_being_started() {
        let _alone = WATCHING.lock().unwrap();
        for signal in [Signal::HUP, Signal::USR1, Signal::ALARM] {
            let cancel = Cancel::default();
            let signals = Signals::with(cancel.clone(), false).unwrap();
            kill_process(getpid(), signal).unwrap();
            while !cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
            let started = signals.starting(|| panic!("it was to stop"));
            assert_eq!(started.unwrap_err().kind(), Kind::Cancelled, "{signal:?}");
        }
    }

    #[test]
    fn a_signal_that_comes_before_the_number_is_known_reaches_it() {
        let _alone = WATCHING.lock().unwrap();
        let signals = Signals::with(Cancel::default(), false).unwrap();
        let spawn = || {
            let child = Command::new("sleep").arg("600").spawn();
            kill_process(getpid(), Signal::USR1).unwrap();
            // The one that watches gets it now, and has to wait.
            std::thread::sleep(MOMENT);
            child
        };
        let status = signals.starting(spawn).unwrap().unwrap().wait().unwrap();
        assert_eq!(std::os::unix::process::ExitStatusExt::signal(&status), Some(SIGUSR1));
    }
}
