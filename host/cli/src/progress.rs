//! How far long work has come, on the terminal.
//!
//! Invariant: what takes less than half a second draws nothing, and neither does anything
//! where standard error is no terminal. What is said meanwhile stands above the bar.

use crate::talk::Talk;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use snapback_core::error::{Error, escaped};
use snapback_core::report::Report;
use snapback_core::session::Finished;
use std::fmt::Write;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Work that is done by then needs no bar.
const PATIENCE: Duration = Duration::from_millis(500);
/// The bar is drawn so often in a second.
const DRAWN: u8 = 10;

/// What goes on is told to `talk`, and on a terminal with a bar as well.
pub struct Progress {
    talk: Talk,
    draws: bool,
    done: AtomicU64,
    work: Mutex<Work>,
}

/// Work that has begun and not ended.
#[derive(Default)]
struct Work {
    /// How many have: those that go on side by side share one bar.
    depth: usize,
    started: Option<Instant>,
    title: String,
    total: Option<u64>,
    bytes: bool,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Draws a bar when `draws` says that there is a terminal for it.
    pub fn new(talk: Talk, draws: bool) -> Self {
        Self { talk, draws, done: AtomicU64::new(0), work: Mutex::default() }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says something without drawing over it.
    fn aside(&self, say: impl FnOnce(&Talk)) {
        match &self.work().bar {
            Some(bar) => bar.suspend(|| say(&self.talk)),
            None => say(&self.talk),
        }
    }
}

impl Work {
    /// The bar for it, once it has taken long enough.
    fn bar(&mut self) -> Option<&ProgressBar> {
        let is_late = self.started.is_some_and(|started| started.elapsed() >= PATIENCE);
        if self.bar.is_none() && is_late {
            let target = ProgressDrawTarget::stderr_with_hz(DRAWN);
            let bar =
                ProgressBar::with_draw_target(self.total, target).with_style(style(self.total, self.bytes));
            bar.set_message(self.title.clone());
            self.bar = Some(bar.with_elapsed(PATIENCE));
        }
        self.bar.as_ref()
    }
}

/// Title, bar, amount, rate and what remains of the time.
fn style(total: Option<u64>, bytes: bool) -> ProgressStyle {
    let text = match (total, bytes) {
        (Some(_), true) => "{msg} {wide_bar} {bytes}/{total_bytes}, {bytes_per_sec}, {eta} left",
        (Some(_), false) => "{msg} {wide_bar} {human_pos}/{human_len}, {rate}, {eta} left",
        (None, true) => "{msg} {spinner} {bytes}, {bytes_per_sec}",
        (None, false) => "{msg} {spinner} {human_pos}, {rate}",
    };
    let style = ProgressStyle::with_template(text).expect("it is one of these four");
    // There are no parts of an item.
    style.with_key("rate", |state: &ProgressState, to: &mut dyn Write| {
        let _ = write!(to, "{}/s", HumanCount(state.per_sec() as u64));
    })
}

impl Report for Progress {
    fn begin(&self, title: &str, total: Option<u64>, unit: &str) {
        if !self.draws {
            return;
        }
        let mut work = self.work();
        work.depth += 1;
        if work.depth == 1 {
            self.done.store(0, Ordering::Relaxed);
            let title = escaped(title).into_owned();
            *work = Work {
                depth: 1,
                started: Some(Instant::now()),
                title,
                total,
                bytes: unit == "bytes",
                bar: None,
            };
        } else {
            work.total = work.total.zip(total).map(|(a, b)| a.saturating_add(b));
            if let Some(bar) = &work.bar {
                bar.set_style(style(work.total, work.bytes));
                work.total.map_or_else(|| bar.unset_length(), |total| bar.set_length(total));
            }
        }
    }

    fn advance(&self, by: u64) {
        if !self.draws {
            return;
        }
        let done = self.done.fetch_add(by, Ordering::Relaxed).saturating_add(by);
        // Who finds somebody else drawing need not draw as well.
        if let Ok(mut work) = self.work.try_lock()
            && let Some(bar) = work.bar()
        {
            // Files that grow are more than was said of them.
            if bar.length().is_some_and(|total| total < done) {
                bar.set_length(done);
            }
            bar.set_position(done);
        }
    }

    fn end(&self) {
        if !self.draws {
            return;
        }
        let mut work = self.work();
        work.depth = work.depth.saturating_sub(1);
        if work.depth == 0 {
            work.started = None;
            if let Some(bar) = work.bar.take() {
                bar.finish_and_clear();
            }
        }
    }

    fn log(&self, target: &str, level: &str, message: &str) {
        self.aside(|talk| talk.log(target, level, message));
    }

    fn moved(&self, root: &Path) {
        self.aside(|talk| talk.moved(root));
    }

    fn regained(&self, root: &Path) {
        self.aside(|talk| talk.regained(root));
    }

    fn found_history(&self, place: &Path) {
        self.aside(|talk| talk.found_history(place));
    }

    fn omitted(&self, target: &str, subject: &[u8], reason: &str) {
        self.aside(|talk| talk.omitted(target, subject, reason));
    }

    // What is refused is listed at the end.
    fn refused(&self, _target: &str, _subject: &[u8], _reason: &str) {}

    fn waiting(&self, why: &str) {
        self.aside(|talk| talk.waiting(why));
    }

    fn recovered(&self, finished: &Finished) {
        self.aside(|talk| talk.recovered(finished));
    }

    fn troubled(&self, doing: &str, error: &Error) {
        self.aside(|talk| talk.troubled(doing, error));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_comes_when_work_takes_long_and_goes_with_it() {
        let progress = Progress::new(Talk::new(true, 0, false), true);
        progress.begin("reading", Some(10), "items");
        progress.begin("beside it", Some(5), "items");
        progress.advance(3);
        assert!(progress.work().bar.is_none(), "it has only begun");
        progress.work().started = Instant::now().checked_sub(PATIENCE);
        progress.advance(4);
        {
            let work = progress.work();
            let bar = work.bar.as_ref().expect("it takes long");
            assert_eq!((bar.position(), bar.length(), bar.message()), (7, Some(15), "reading".to_owned()));
        }
        let total = || progress.work().bar.as_ref().and_then(ProgressBar::length);
        // What begins while it is drawn, and what was more than it was said to be.
        progress.begin("and this", Some(5), "items");
        assert_eq!(total(), Some(20));
        progress.advance(23);
        assert_eq!(total(), Some(30));
        progress.begin("and something", None, "items");
        assert_eq!(total(), None);
        progress.end();
        progress.end();
        progress.end();
        assert!(progress.work().bar.is_some(), "the other one goes on");
        progress.end();
        assert!(progress.work().bar.is_none());
        progress.advance(1);
        assert!(progress.work().bar.is_none(), "nothing goes on");
    }

    #[test]
    fn every_form_of_it_can_be_drawn() {
        for total in [None, Some(1)] {
            for bytes in [false, true] {
                let _ = style(total, bytes);
            }
        }
    }
}
