//! What a component tells the user: bounded, on one line each, without what a terminal
//! would act on. Beyond the limit it is counted, and the count is told at the end.

use snapback_core::backend::Call;
use snapback_core::report::{Report, and_more};
use std::sync::Arc;

/// Longest message, in characters.
const MAX_TEXT: usize = 1000;
/// Longest name of something in a target, in bytes: as long as a path.
const MAX_SUBJECT: usize = 4096;
/// The level of what a component says when it gives up.
const PANIC: &str = "panic";

/// What was told in one call.
pub struct Told {
    to: Option<(Arc<dyn Report>, String)>,
    left: u32,
    dropped: Dropped,
    last_words: Option<String>,
    tasks: u32,
}

#[derive(Default)]
struct Dropped {
    logged: u64,
    omitted: u64,
    refused: u64,
}

impl Told {
    pub(super) fn new(call: Option<&Call>, limit: u32) -> Self {
        Self {
            to: call.map(|call| (call.report.clone(), call.target.name.clone())),
            left: limit,
            dropped: Dropped::default(),
            last_words: None,
            tasks: 0,
        }
    }

    /// One more message, if it may be passed on.
    fn next(&mut self) -> Option<(&dyn Report, &str)> {
        self.left = self.left.checked_sub(1)?;
        self.to.as_ref().map(|(report, target)| (&**report, target.as_str()))
    }

    /// A message; an unknown level counts as info.
    pub fn log(&mut self, level: &str, message: &str) {
        let message = one_line(message);
        if level == PANIC {
            self.last_words = Some(message);
            return;
        }
        let level = ["debug", "warn"].into_iter().find(|known| *known == level).unwrap_or("info");
        match self.next() {
            Some((report, target)) => report.log(target, level, &message),
            None => self.dropped.logged += 1,
        }
    }

    /// Part of the target is not in this snapshot.
    pub fn omitted(&mut self, subject: &[u8], reason: &str) {
        match self.next() {
            Some((report, target)) => report.omitted(target, short(subject), &one_line(reason)),
            None => self.dropped.omitted += 1,
        }
    }

    /// Part of the target was not restored.
    pub fn refused(&mut self, subject: &[u8], reason: &str) {
        match self.next() {
            Some((report, target)) => report.refused(target, short(subject), &one_line(reason)),
            None => self.dropped.refused += 1,
        }
    }

    /// Work began.
    pub fn begin(&mut self, title: &str, total: Option<u64>, unit: &str) {
        self.tasks += 1;
        if let Some((report, _)) = &self.to {
            report.begin(&one_line(title), total, if unit == "bytes" { unit } else { "items" });
        }
    }

    /// Work went on.
    pub fn advance(&mut self, by: u64) {
        if let Some((report, _)) = &self.to {
            report.advance(by);
        }
    }

    /// Work ended.
    pub fn end(&mut self) {
        self.tasks = self.tasks.saturating_sub(1);
        if let Some((report, _)) = &self.to {
            report.end();
        }
    }

    /// The call is over: ends what is still going on, tells what was only counted.
    pub(super) fn finish(&mut self) {
        while self.tasks > 0 {
            self.end();
        }
        let Some((report, target)) = &self.to else { return };
        let Dropped { logged, omitted, refused } = std::mem::take(&mut self.dropped);
        if logged > 0 {
            report.log(target, "warn", &format!("{logged} more messages were not shown"));
        }
        if omitted > 0 {
            report.omitted(target, b"", &and_more(omitted));
        }
        if refused > 0 {
            report.refused(target, b"", &and_more(refused));
        }
    }

    /// What the component said when it gave up.
    pub(super) fn last_words(&self) -> Option<&str> {
        self.last_words.as_deref()
    }
}

fn short(subject: &[u8]) -> &[u8] {
    &subject[..subject.len().min(MAX_SUBJECT)]
}

/// `text` on one line, at most [`MAX_TEXT`] characters of it.
pub fn one_line(text: &str) -> String {
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX_TEXT).collect()
}
