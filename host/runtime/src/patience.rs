//! Telling somebody about work that takes its time, while it goes on; what is done soon is not
//! worth a word.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Who is told, with what the work is about.
pub type Slow = Arc<dyn Fn(&str) + Send + Sync>;

/// Work that is done by then needs no word.
const SOON: Duration = Duration::from_millis(500);

/// Work that goes on until this is dropped.
pub struct Patience(Arc<(Mutex<bool>, Condvar)>);

impl Patience {
    /// It begins, and is about `what`; `slow` is told when it takes long.
    pub fn new(what: &str, slow: Option<Slow>) -> Self {
        let done: Arc<(Mutex<bool>, Condvar)> = Arc::default();
        if let Some(slow) = slow {
            let (what, over) = (what.to_owned(), done.clone());
            // Where there is no thread to be had, nothing is said.
            let _ = std::thread::Builder::new().name("patience".into()).spawn(move || {
                let waited = over.1.wait_timeout_while(lock(&over.0), SOON, |done| !*done);
                // What is said is said before the work is taken for done.
                let done = waited.unwrap_or_else(PoisonError::into_inner).0;
                if !*done {
                    slow(&what);
                }
            });
        }
        Self(done)
    }
}

impl Drop for Patience {
    fn drop(&mut self) {
        *lock(&self.0.0) = true;
        self.0.1.notify_all();
    }
}

fn lock(done: &Mutex<bool>) -> MutexGuard<'_, bool> {
    done.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    #[test]
    fn long_work_is_told_of_once_while_it_goes_on() {
        let (told, tells) = channel();
        let told = Mutex::new(told);
        let slow: Slow = Arc::new(move |what| told.lock().unwrap().send(what.to_owned()).unwrap());
        let long = Patience::new("long", Some(slow));
        assert_eq!(tells.recv().unwrap(), "long");
        drop(long);
        assert!(tells.recv().is_err(), "and once");
    }
}
