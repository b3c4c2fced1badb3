//! A database that nobody else can change: under the write lock of SQLite.
//!
//! In rollback mode and in write-ahead mode alike this is the lock that writers take;
//! readers go on. Dropped, it lets go and nothing was changed.

use super::image;
use super::open::{At, Opened};
use std::time::Instant;

/// A database under the write lock.
pub struct Locked {
    /// The connection, in a transaction.
    pub opened: Opened,
    /// Whether it writes to a log.
    pub wal: bool,
}

impl Locked {
    /// Takes the write lock.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn new(opened: Opened) -> rusqlite::Result<Self> {
        opened.connection.execute_batch("BEGIN IMMEDIATE")?;
        let wal = image::writes_ahead(&opened.connection)?;
        Ok(Self { opened, wal })
    }
}

/// Makes the database one without a log, for which nobody else may have it open: what
/// is in the log is brought into the file, and the log goes. The content stays.
///
/// # Errors
/// What SQLite says; that somebody has it open after the timeout.
pub fn leave_log(at: At<'_>, opened: &Opened) -> rusqlite::Result<()> {
    let since = Instant::now();
    loop {
        let left =
            opened.connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get::<_, String>(0));
        match left {
            Ok(mode) if mode.eq_ignore_ascii_case("delete") => return Ok(()),
            Ok(_) => {}
            Err(error) if super::fault::is_busy(&error) => {
                if since.elapsed() >= at.timeout || at.cancel.is_cancelled() {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
}
