//! Faults of this program: a panic is told in a sentence, never with a backtrace.

use std::io::Write;
use std::panic::{self, AssertUnwindSafe};

/// From now on a panic is told in words.
pub fn in_words() {
    panic::set_hook(Box::new(|info| {
        let payload = info.payload();
        let what = payload
            .downcast_ref::<&str>()
            .copied()
            .or_else(|| payload.downcast_ref::<String>().map(String::as_str))
            .unwrap_or("unknown");
        let place = info.location().map(|at| format!(" ({}:{})", at.file(), at.line())).unwrap_or_default();
        let text = told(what, &place);
        let _ = std::io::stderr().write_all(text.as_bytes());
    }));
}

/// What is said of a panic. Where there are no more threads the libraries that start them know
/// no other way to say so.
fn told(what: &str, place: &str) -> String {
    if what.contains("Resource temporarily unavailable") {
        return "snapback: the system gives this user no more threads or processes\n\
                hint: end some, or raise the limit: `ulimit -u`, or that of the container\n"
            .to_owned();
    }
    format!(
        "snapback: a fault in snapback itself: {}{place}\n\
         hint: what is stored is whole; please report what you did\n",
        what.escape_debug()
    )
}

/// What `work` returns; none when it broke off, which was told then.
pub fn caught<T>(work: impl FnOnce() -> T) -> Option<T> {
    panic::catch_unwind(AssertUnwindSafe(work)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_cannot_be_had_are_no_fault() {
        let error = std::io::Error::from_raw_os_error(11);
        for what in [format!("OS can't spawn worker thread: {error}"), format!("failed to spawn: {error:?}")]
        {
            assert!(told(&what, "").contains("no more threads"), "{what}");
        }
        assert!(told("index out of bounds", " (a.rs:1)").contains("bounds (a.rs:1)\nhint"));
    }

    #[test]
    fn what_breaks_off_is_caught() {
        assert_eq!(caught(|| 5), Some(5));
        assert_eq!(caught(|| -> u8 { panic!("on purpose") }), None);
    }
}
