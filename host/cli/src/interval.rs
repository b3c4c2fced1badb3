//! Snapshots while the wrapped command runs, by time.
//!
//! Invariant: the command never waits for them and is never talked over: they are taken
//! by one thread that gives way to everybody, say nothing before the command has ended,
//! and are stopped when it has.

use snapback_core::backend::Cancel;
use snapback_core::error::{Error, Kind, Result};
use snapback_core::history::Snapshot;
use snapback_core::pace::{self, Pace};
use snapback_core::report::Report;
use snapback_core::session::{Environment, Project};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// After a snapshot there is a pause of so many times what it took, however short the
/// interval is: they are at work a fifth of the time at most.
const PAUSE: u32 = 4;

/// Snapshots that are being taken.
pub struct Intervals {
    stop: Sender<()>,
    cancel: Cancel,
    thread: JoinHandle<Told>,
}

/// What became of them.
#[derive(Default)]
pub struct Told {
    /// How many were taken.
    pub taken: usize,
    /// What kept the last that failed from being taken.
    pub problem: Option<Error>,
}

impl Intervals {
    /// Begins to take one of the targets called `names` after each `every`, during the run
    /// of the snapshot `run`.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn start(env: Environment, run: &Snapshot, names: Vec<String>, every: Duration) -> Result<Self> {
        let (stop, stopped) = channel();
        let cancel = Cancel::default();
        let quiet = Arc::new(Quiet::default());
        let (report, cancelled) = (quiet.clone(), cancel.clone());
        let env = Environment { report, cancel: cancelled, pace: Pace::gentle()?, ..env };
        let run = run.id.clone();
        let take = move || Project::open(env.clone())?.take_during(&run, &names);
        let work = move || {
            pace::give_way();
            all(every, &stopped, take, &quiet)
        };
        let thread = std::thread::Builder::new().name("interval".into()).spawn(work);
        let thread = thread.map_err(|error| Error::io(error, "could not start", "snapshots by time"))?;
        Ok(Self { stop, cancel, thread })
    }

    /// Takes no more, gives up the one that is being taken, and tells what became of them.
    pub fn stop(self) -> Told {
        self.cancel.cancel();
        drop(self.stop);
        self.thread.join().unwrap_or_default()
    }
}

fn all(
    every: Duration,
    stopped: &Receiver<()>,
    take: impl Fn() -> Result<Option<Snapshot>>,
    quiet: &Quiet,
) -> Told {
    let (mut told, mut pause) = (Told::default(), every);
    while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let started = Instant::now();
        match take() {
            Ok(taken) => told.taken += usize::from(taken.is_some()),
            Err(error) => quiet.keep(&error),
        }
        pause = every.max(started.elapsed() * PAUSE);
    }
    told.problem = quiet.problem().take();
    told
}

/// Keeps the last problem for when it can be told.
#[derive(Default)]
struct Quiet(Mutex<Option<Error>>);

impl Quiet {
    fn problem(&self) -> MutexGuard<'_, Option<Error>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Not that it was stopped, nor that the command removed its own project.
    fn keep(&self, error: &Error) {
        if !matches!(error.kind(), Kind::Cancelled | Kind::NotFound) {
            *self.problem() = Some(error.clone());
        }
    }
}

impl Report for Quiet {
    fn troubled(&self, doing: &str, error: &Error) {
        self.keep(&error.clone().context(doing));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_stops_when_it_is_told_to_and_tells_the_last_problem() {
        let (stop, stopped) = channel::<()>();
        let quiet = Quiet::default();
        let tries = std::sync::atomic::AtomicUsize::new(0);
        let take = || {
            let n = tries.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            if n == 2 {
                stop.send(()).unwrap();
            }
            let kinds = [Kind::NotFound, Kind::NoSpace, Kind::Cancelled];
            Err(Error::new(kinds[n], format!("number {n}")))
        };
        let told = all(Duration::ZERO, &stopped, take, &quiet);
        assert_eq!((tries.into_inner(), told.taken), (3, 0));
        assert_eq!(told.problem.unwrap().kind(), Kind::NoSpace);
    }
}
