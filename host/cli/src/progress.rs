//! How far long work has come, on the terminal.
//!
//! Invariant: what takes less than half a second draws nothing, and neither does anything
//! where standard error is no terminal. What is said meanwhile stands above the bar.

use crate::talk::Talk;
use indicatif::{HumanCount, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use snapback_core::error::{Error, escaped};
use snapback_core::project::units::human;
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
            let bar = ProgressBar::with_draw_target(self.total, target).with_style(self.style());
            bar.set_message(self.title.clone());
            self.bar = Some(bar);
        }
        self.bar.as_ref()
    }
}

impl Work {
    /// Title, bar, amount, rate and what remains of the time. These two are of all the time since
    /// it began, of which the bar has not seen the first part.
    fn style(&self) -> ProgressStyle {
        let text = match self.total {
            Some(_) => "{msg} {wide_bar} {done}/{of}, {rate}/s, {left} left",
            None => "{msg} {spinner} {done}, {rate}/s",
        };
        let style = ProgressStyle::with_template(text).expect("it is one of these two");
        let (bytes, started) = (self.bytes, self.started.unwrap_or_else(Instant::now));
        let amount = move |n: u64| if bytes { human(n) } else { HumanCount(n).to_string() };
        let key = move |show: fn(&Pace) -> Option<u64>| {
            move |state: &ProgressState, to: &mut dyn Write| {
                let pace = Pace { done: state.pos(), total: state.len(), took: started.elapsed() };
                let _ = write!(to, "{}", show(&pace).map_or_else(|| "?".to_owned(), amount));
            }
        };
        style
            .with_key("done", key(|pace| Some(pace.done)))
            .with_key("of", key(|pace| pace.total))
            .with_key("rate", key(Pace::rate))
            .with_key("left", move |state: &ProgressState, to: &mut dyn Write| {
                let pace = Pace { done: state.pos(), total: state.len(), took: started.elapsed() };
                let left = pace.left().map(|left| format!("{:#}", HumanDuration(left)));
                let _ = to.write_str(left.as_deref().unwrap_or("?"));
            })
    }
}

/// How fast it goes: what was done in the time that it took, of so much in total.
struct Pace {
    done: u64,
    total: Option<u64>,
    took: Duration,
}

impl Pace {
    /// How much in a second.
    fn rate(&self) -> Option<u64> {
        let took = self.took.as_secs_f64();
        (took > 0.0).then(|| (self.done as f64 / took) as u64)
    }

    /// What remains of the time, if it goes on like this.
    fn left(&self) -> Option<Duration> {
        let rest = self.total?.saturating_sub(self.done);
        let rate = self.done as f64 / self.took.as_secs_f64();
        Duration::try_from_secs_f64(rest as f64 / rate).ok()
    }
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
                bar.set_style(work.style());
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

    fn set_aside(&self, place: &Path) {
        self.aside(|talk| talk.set_aside(place));
    }

    fn other_history(&self, place: &Path) {
        self.aside(|talk| talk.other_history(place));
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
                let work = Work { total, bytes, started: Some(Instant::now()), ..Work::default() };
                let _ = work.style();
            }
        }
    }

    #[test]
    fn rate_and_rest_are_of_all_the_time_that_it_took() {
        let of = |done, total, tenths: u64| {
            let pace = Pace { done, total, took: Duration::from_millis(tenths * 100) };
            (pace.rate(), pace.left().map(|left| left.as_secs_f64()))
        };
        // As at the moment when the bar appears.
        assert_eq!(of(500, Some(2000), 5), (Some(1000), Some(1.5)));
        assert_eq!(of(500, None, 20), (Some(250), None));
        assert_eq!(of(0, Some(10), 10), (Some(0), None), "nobody knows yet");
        assert_eq!(of(12, Some(10), 10), (Some(12), Some(0.0)), "more than was said");
        assert_eq!(of(1, Some(10), 0).0, None);
    }
}
