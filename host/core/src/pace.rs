//! How fast bulk work goes: with all processors, or beside somebody who needs them.
//!
//! Gentle work has one thread of the lowest priority, so whoever runs meanwhile loses
//! nothing to it but what nobody else wants.

use crate::error::{Error, Kind, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::sync::Arc;

/// The priority that gives way to every other.
const LOWEST: i32 = 19;

/// What bulk work may use.
#[derive(Clone, Default)]
pub struct Pace(Option<Arc<ThreadPool>>);

impl Pace {
    /// One thread that gives way to all others.
    ///
    /// # Errors
    /// When the system has no thread left.
    pub fn gentle() -> Result<Self> {
        let pool = ThreadPoolBuilder::new().num_threads(1).start_handler(|_| give_way()).build();
        let pool = pool.map_err(|error| {
            Error::new(Kind::Other, format!("could not start a thread: {error}"))
                .hint("the system may be short of threads or memory; try again")
        })?;
        Ok(Self(Some(Arc::new(pool))))
    }

    /// Does `work` at this pace.
    pub fn work<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        match &self.0 {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }
}

/// From now on the calling thread, and what it starts, gives way to all others. Where the
/// system refuses that, it works like any other.
pub fn give_way() {
    // Of the system's own kind: for the calling thread alone.
    let _ = rustix::process::setpriority_process(None, LOWEST);
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn gentle_work_has_one_thread_that_gives_way_and_others_stay_as_they_are() {
        let before = getpriority_process(None).unwrap();
        let gentle = Pace::gentle().unwrap();
        let seen = gentle.work(|| (rayon::current_num_threads(), getpriority_process(None).unwrap()));
        assert_eq!(seen, (1, LOWEST));
        assert_eq!(Pace::default().work(|| getpriority_process(None).unwrap()), before);
        assert_eq!(getpriority_process(None).unwrap(), before);
    }
}
