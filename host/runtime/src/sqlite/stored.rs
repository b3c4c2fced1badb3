//! The image of a database that is to come back, as a file of our own: checked before
//! anything is touched, then read page by page.

use super::fault;
use super::open::private;
use super::place::Place;
use rusqlite::Connection;
use snapback_core::backend::{Call, Cancel};
use snapback_core::database;
use snapback_core::database::header::{self, Header};
use snapback_core::error::{Error, Kind, Result};
use snapback_core::store::{Source, Workspace};
use snapback_core::tree::node::Entry;
use std::fs::File;
use std::os::unix::fs::FileExt;

const NAME: &str = "db";

/// An image in a workspace.
pub struct Image<'a> {
    workspace: Workspace,
    file: File,
    place: &'a Place,
    cancel: Cancel,
    /// The length of its pages in bytes.
    pub size: u64,
    /// Its header; none for an empty database.
    pub header: Option<Header>,
}

impl<'a> Image<'a> {
    /// Reads the content of `entry` from `source`, checked against its hash.
    ///
    /// # Errors
    /// `NotFound` and `Corrupt` when it is not whole.
    pub fn make(call: &Call, source: &dyn Source, entry: &Entry, place: &'a Place) -> Result<Self> {
        let workspace = call.store()?.workspace()?;
        let size = database::fill_file(
            call.store()?.disk(),
            workspace.dir(),
            NAME.as_bytes(),
            source,
            entry,
            &call.cancel,
        )?;
        let file = workspace.dir().open_file(NAME.as_bytes())?;
        let mut image = Self { workspace, file, place, cancel: call.cancel.clone(), size, header: None };
        if size > 0 {
            let mut begin = [0; header::LENGTH];
            image.read(&mut begin, 0)?;
            let header = Header::parse(&begin).ok_or_else(|| image.damaged("it is no database"))?;
            image.size = header.image(size).unwrap_or(size);
            image.header = Some(header);
        }
        Ok(image)
    }

    /// Checks that it is a sound database, as far as that can be done without the
    /// application: by its own functions and collations it alone can check. What a newer
    /// version of SQLite wrote into the schema is passed over.
    ///
    /// # Errors
    /// `Corrupt` with what SQLite found first.
    pub fn check(&self) -> Result<()> {
        if self.header.is_none() {
            return Ok(());
        }
        let done = self.connect().and_then(|connection| {
            connection.execute_batch("PRAGMA ignore_check_constraints = ON")?;
            match quick_check(&connection, "1") {
                Err(error) if is_unknown(&error) => check_tables(&connection),
                done => done,
            }
        });
        match done {
            Ok(said) if said == "ok" => Ok(()),
            Ok(said) => Err(self.damaged(&fault::plain(&said))),
            Err(error) => {
                self.cancel.check()?;
                Err(self.damaged(&fault::words(&error)))
            }
        }
    }

    /// A connection that reads it.
    ///
    /// # Errors
    /// What SQLite says.
    pub fn connect(&self) -> rusqlite::Result<Connection> {
        private(self.workspace.dir(), NAME, true, &self.cancel)
    }

    /// Reads its page `number` (from 1) into `page`.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn page(&self, number: u32, page: &mut [u8]) -> Result<()> {
        self.read(page, u64::from(number - 1) * page.len() as u64)
    }

    fn read(&self, buffer: &mut [u8], at: u64) -> Result<()> {
        let read = self.file.read_exact_at(buffer, at);
        read.map_err(|e| Error::io(e, "could not read", self.workspace.dir().path()))
    }

    fn damaged(&self, how: &str) -> Error {
        let text = format!("{} was damaged when it was captured: {how}", self.place.shown());
        Error::new(Kind::Corrupt, text).hint("`sqlite3 FILE .recover` may save what is in it")
    }
}

/// What SQLite finds wrong with a database first, or with its table `of`; "ok" when nothing is.
///
/// # Errors
/// What SQLite says.
pub fn quick_check(connection: &Connection, of: &str) -> rusqlite::Result<String> {
    connection.query_row(&format!("PRAGMA quick_check({of})"), [], |row| row.get(0))
}

/// Whether a check needs what only the application has: functions, collations.
fn is_unknown(error: &rusqlite::Error) -> bool {
    matches!(error, rusqlite::Error::SqliteFailure(failure, _) if failure.extended_code & 0xff == 1)
}

/// Checks one table after the other, those aside that only the application can check.
fn check_tables(connection: &Connection) -> rusqlite::Result<String> {
    let mut names =
        connection.prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND rootpage > 0")?;
    let names: Vec<String> = names.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<_>>()?;
    for name in names {
        match quick_check(connection, &format!("\"{}\"", name.replace('"', "\"\""))) {
            Err(error) if is_unknown(&error) => {}
            Ok(said) if said == "ok" => {}
            done => return done,
        }
    }
    Ok("ok".to_owned())
}
