//! Telling somebody what is going on. The library never prints; it calls this.

/// What is said of `count` more things that are not named one by one, as the reason of a thing
/// without a name.
pub fn and_more(count: u64) -> String {
    format!("and {count} more")
}

/// How many things are meant by a reason that [`and_more`] made; none by any other.
pub fn more(reason: &str) -> Option<u64> {
    reason.strip_prefix("and ")?.strip_suffix(" more")?.parse().ok()
}

/// Receives what a call tells. All methods may be called from several threads.
pub trait Report: Send + Sync {
    /// A message of a backend: `level` is debug, info or warn.
    fn log(&self, target: &str, level: &str, message: &str) {
        let _ = (target, level, message);
    }

    /// Part of the target is not in this snapshot.
    fn omitted(&self, target: &str, subject: &[u8], reason: &str) {
        let _ = (target, subject, reason);
    }

    /// Part of the target was not restored.
    fn refused(&self, target: &str, subject: &[u8], reason: &str) {
        let _ = (target, subject, reason);
    }

    /// What belongs to the target is not as it was after all was done, and `why`: a container
    /// that was stopped and does not start.
    fn stays(&self, target: &str, why: &str) {
        let _ = (target, why);
    }

    /// Part of the target was restored, and something of it besides its content was not.
    fn partly(&self, target: &str, subject: &[u8], reason: &str) {
        self.refused(target, subject, reason);
    }

    /// The command waits: `why` says for what.
    fn waiting(&self, why: &str) {
        let _ = why;
    }

    /// A step that an earlier command left unfinished was finished first.
    fn recovered(&self, finished: &crate::session::Finished) {
        let _ = finished;
    }

    /// What was asked for is done, but what belongs to it (`doing`: "dropping old
    /// snapshots") failed: nothing is lost by it.
    fn troubled(&self, doing: &str, error: &crate::error::Error) {
        let _ = (doing, error);
    }

    /// The project was moved to `root` while a command ran.
    fn moved(&self, root: &std::path::Path) {
        let _ = root;
    }

    /// The project at `root` could not be entered any more by its owner, and can again.
    fn regained(&self, root: &std::path::Path) {
        let _ = root;
    }

    /// The project's store was gone, in whole or in part, and was made again from what
    /// is kept of it at `place`.
    fn found_history(&self, place: &std::path::Path) {
        let _ = place;
    }

    /// Another store stood in the place of the project's own, and is at `place` now.
    fn set_aside(&self, place: &std::path::Path) {
        let _ = place;
    }

    /// The project's root has a store of its own; the history that it had before is kept at
    /// `place`.
    fn other_history(&self, place: &std::path::Path) {
        let _ = place;
    }

    /// Work began that may take long; `unit` is "bytes" or "items".
    fn begin(&self, title: &str, total: Option<u64>, unit: &str) {
        let _ = (title, total, unit);
    }

    /// The work that began last went on by `by`.
    fn advance(&self, by: u64) {
        let _ = by;
    }

    /// The work that began last has ended.
    fn end(&self) {}
}

/// Tells nobody.
pub struct Silent;

impl Report for Silent {}
