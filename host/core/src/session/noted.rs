//! Listening in on one call: everything is passed on, and what was omitted or refused
//! is remembered for the snapshot's record and for the outcome.

use super::NotRestored;
use crate::report::{self, Report};
use crate::text::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Passes everything on and remembers what was left.
pub(super) struct Noted {
    inner: Arc<dyn Report>,
    omitted: Mutex<(Vec<(Bytes, String)>, u64)>,
    refused: Mutex<Vec<NotRestored>>,
    late: Late,
}

/// What was told when calls were over, since what was held for them was let go of only then.
#[derive(Clone, Default)]
pub(super) struct Late(Arc<Mutex<Vec<NotRestored>>>);

impl Late {
    /// What was told since the last time.
    pub fn take(&self) -> Vec<NotRestored> {
        std::mem::take(&mut *held(&self.0))
    }

    /// Has `report` tell it, where no outcome does.
    pub fn tell(&self, report: &dyn Report) {
        self.take().iter().for_each(|item| report.log(&item.target, "warn", &item.reason));
    }
}

/// A capture that omits more than this many things names these and counts the others.
const MOST_OMITTED: usize = 1000;

impl Noted {
    /// Listens in on what is told to `inner`; what comes too late goes to `late`.
    pub fn new(inner: &Arc<dyn Report>, late: &Late) -> Arc<Self> {
        let (inner, late) = (inner.clone(), late.clone());
        Arc::new(Self { inner, omitted: Mutex::default(), refused: Mutex::default(), late })
    }

    /// What was omitted: subject, reason.
    pub fn take_omitted(&self) -> Vec<(Bytes, String)> {
        let (mut list, more) = std::mem::take(&mut *held(&self.omitted));
        if more > 0 {
            list.push((Bytes::default(), report::and_more(more)));
        }
        list
    }

    /// What was refused.
    pub fn take_refused(&self) -> Vec<NotRestored> {
        std::mem::take(&mut *held(&self.refused))
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_restored(target: &str, subject: &[u8], reason: &str, in_part: bool) -> NotRestored {
    let (target, path) = (target.to_owned(), Bytes(subject.to_vec()));
    NotRestored { target, path, reason: reason.to_owned(), in_part }
}

impl Report for Noted {
    fn log(&self, target: &str, level: &str, message: &str) {
        self.inner.log(target, level, message);
    }

    fn omitted(&self, target: &str, subject: &[u8], reason: &str) {
        let mut omitted = held(&self.omitted);
        if let (true, Some(more)) = (subject.is_empty(), report::more(reason)) {
            omitted.1 = omitted.1.saturating_add(more);
        } else if omitted.0.len() < MOST_OMITTED {
            omitted.0.push((Bytes(subject.to_vec()), reason.to_owned()));
        } else {
            omitted.1 += 1;
        }
        drop(omitted);
        self.inner.omitted(target, subject, reason);
    }

    fn refused(&self, target: &str, subject: &[u8], reason: &str) {
        held(&self.refused).push(not_restored(target, subject, reason, false));
        self.inner.refused(target, subject, reason);
    }

    fn stays(&self, target: &str, why: &str) {
        let (target, path, reason) = (target.to_owned(), Bytes::default(), why.to_owned());
        held(&self.late.0).push(NotRestored { target, path, reason, in_part: false });
    }

    fn partly(&self, target: &str, subject: &[u8], reason: &str) {
        held(&self.refused).push(not_restored(target, subject, reason, true));
        self.inner.partly(target, subject, reason);
    }

    fn begin(&self, title: &str, total: Option<u64>, unit: &str) {
        self.inner.begin(title, total, unit);
    }

    fn advance(&self, by: u64) {
        self.inner.advance(by);
    }

    fn end(&self) {
        self.inner.end();
    }
}
