//! Listening in on one call: everything is passed on, and what was omitted or refused
//! is remembered for the snapshot's record and for the outcome.

use super::NotRestored;
use crate::report::Report;
use crate::text::Bytes;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Passes everything on and remembers what was left.
pub(super) struct Noted {
    inner: Arc<dyn Report>,
    omitted: Mutex<(Vec<(Bytes, String)>, u64)>,
    refused: Mutex<Vec<NotRestored>>,
}

/// A capture that omits more than this many things names these and counts the others.
const MOST_OMITTED: usize = 1000;

impl Noted {
    /// Listens in on what is told to `inner`.
    pub fn new(inner: &Arc<dyn Report>) -> Arc<Self> {
        Arc::new(Self { inner: inner.clone(), omitted: Mutex::default(), refused: Mutex::default() })
    }

    /// What was omitted: subject, reason.
    pub fn take_omitted(&self) -> Vec<(Bytes, String)> {
        let (mut list, more) = std::mem::take(&mut *held(&self.omitted));
        if more > 0 {
            list.push((Bytes::default(), format!("and {more} more")));
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

impl Report for Noted {
    fn log(&self, target: &str, level: &str, message: &str) {
        self.inner.log(target, level, message);
    }

    fn omitted(&self, target: &str, subject: &[u8], reason: &str) {
        let mut omitted = held(&self.omitted);
        if omitted.0.len() < MOST_OMITTED {
            omitted.0.push((Bytes(subject.to_vec()), reason.to_owned()));
        } else {
            omitted.1 += 1;
        }
        drop(omitted);
        self.inner.omitted(target, subject, reason);
    }

    fn refused(&self, target: &str, subject: &[u8], reason: &str) {
        held(&self.refused).push(NotRestored {
            target: target.to_owned(),
            path: Bytes(subject.to_vec()),
            reason: reason.to_owned(),
        });
        self.inner.refused(target, subject, reason);
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
