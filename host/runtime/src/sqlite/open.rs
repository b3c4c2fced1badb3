//! Connections: to the database itself, and to copies that only we know of.
//!
//! A connection to the database follows no link, trusts no schema, runs no trigger or
//! view, keeps nothing in temporary files, and is to the very inode that was looked at.
//! One for reading never checkpoints, so it leaves the log to whoever wrote it.

use super::claim::Claim;
use super::fault;
use super::place::{Place, path_of};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::AtFlags;
use snapback_core::backend::Cancel;
use snapback_core::database::Deed;
use snapback_core::disk::Dir;
use snapback_core::error::{Error, Kind, Result};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// Whether SQLite was built as it is needed here: looked at once.
///
/// # Errors
/// When it was not.
pub fn able() -> Result<()> {
    static ABLE: OnceLock<bool> = OnceLock::new();
    let able = || {
        let reads = |c: Connection| c.prepare("SELECT data FROM sqlite_dbpage").map(drop);
        Connection::open_in_memory().and_then(reads).is_ok()
    };
    if *ABLE.get_or_init(able) {
        return Ok(());
    }
    let text = "this program was built with a SQLite that cannot read databases by their pages";
    Err(Error::new(Kind::Other, text)
        .hint("build it in its own repository: `.cargo/config.toml` there says how SQLite is built"))
}

/// What is done with a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// It is read.
    Read,
    /// It is read and written.
    Write,
}

/// Where a database is, and how it is worked on.
#[derive(Clone, Copy)]
pub struct At<'a> {
    /// Its place.
    pub place: &'a Place,
    /// Its directory.
    pub dir: &'a Dir,
    /// How long to wait for others.
    pub timeout: Duration,
    /// Looked at while waiting and reading.
    pub cancel: &'a Cancel,
}

impl At<'_> {
    /// Turns what SQLite says into words: `doing` is what was attempted.
    pub fn told<'s>(&'s self, doing: &'s str) -> impl Fn(rusqlite::Error) -> Error + 's {
        move |error| match self.cancel.check() {
            Err(cancelled) => cancelled,
            Ok(()) => fault::told(&error, doing, self.place, self.dir),
        }
    }

    /// Device and inode of what is at the place.
    ///
    /// # Errors
    /// `NotFound` when nothing is.
    pub fn id(&self) -> Result<(u64, u64)> {
        match self.dir.stat(self.place.name())? {
            Some(stat) => Ok((stat.st_dev, stat.st_ino)),
            None => Err(Error::new(Kind::NotFound, format!("{} is not there", self.place.shown()))),
        }
    }
}

/// A connection to the database. What is closed last stands last: closing a descriptor
/// lets go of the locks.
pub struct Opened {
    /// The connection.
    pub connection: Connection,
    /// The same file, for reading.
    pub file: File,
    _claim: Claim,
}

impl Opened {
    /// Opens the database at `at`, which is the file that was claimed.
    ///
    /// # Errors
    /// `Denied` when it may not be used so, `Changed` when it was replaced meanwhile.
    pub fn open(at: At<'_>, access: Access, claim: Claim) -> Result<Self> {
        let file = at.dir.open_file(at.place.name())?;
        let id = claim.id();
        let before = descriptors(id);
        let flags = match access {
            Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
            Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE,
        };
        let flags = flags | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_NOFOLLOW;
        let told = at.told("could not open");
        let path = path_of(at.dir, at.place.name())?;
        let mut connection = Connection::open_with_flags(path, flags).map_err(&told)?;
        let stat =
            rustix::fs::fstat(&file).map_err(|e| Error::io(e, "could not look at", at.place.shown()))?;
        if (stat.st_dev, stat.st_ino) != id || descriptors(id) <= before || at.id()? != id {
            let text = format!("{} was replaced while it was opened", at.place.shown());
            return Err(Error::new(Kind::Changed, text).hint("try again"));
        }
        if access == Access::Write && connection.is_readonly("main").map_err(&told)? {
            let text = format!("{} may not be written by this user", at.place.shown());
            let hint = fault::access_hint(at.dir, at.place.name(), Deed::Write);
            return Err(Error::new(Kind::Denied, text).hint(hint));
        }
        configure(&connection, access).map_err(&told)?;
        let (timeout, cancel, mut since) = (at.timeout, at.cancel.clone(), Instant::now());
        let wait = move |count: i32| {
            if count == 0 {
                since = Instant::now();
            }
            // Short sleeps: a steady writer leaves little time between its commits.
            let pause = Duration::from_millis(u64::from(count.unsigned_abs()).clamp(1, 10));
            let goes_on = since.elapsed() < timeout && !cancel.is_cancelled();
            if goes_on {
                std::thread::sleep(pause);
            }
            goes_on
        };
        connection.busy_handler(Some(wait)).map_err(&told)?;
        Ok(Self { connection, file, _claim: claim })
    }
}

/// A connection to a file of our own: to recover it or, `as_is`, to read exactly it.
///
/// # Errors
/// What SQLite says.
pub fn private(dir: &Dir, name: &str, as_is: bool, cancel: &Cancel) -> rusqlite::Result<Connection> {
    let path = format!("/proc/self/fd/{}/{name}", dir.as_fd().as_raw_fd());
    let mut connection = match as_is {
        true => Connection::open_with_flags(
            format!("file:{path}?immutable=1"),
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?,
        false => Connection::open_with_flags(
            path,
            OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
        )?,
    };
    configure(&connection, Access::Read)?;
    let cancel = cancel.clone();
    connection.progress_handler(10_000, Some(move || cancel.is_cancelled()))?;
    Ok(connection)
}

/// A connection that has files of our own attached as `before` and `after`, only to read
/// them; where there is none, an empty database.
///
/// # Errors
/// What SQLite says.
pub fn compared(dir: &Dir, files: [Option<&str>; 2], cancel: &Cancel) -> rusqlite::Result<Connection> {
    let flags =
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_URI | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(":memory:", flags)?;
    configure(&connection, Access::Read)?;
    for (schema, file) in ["before", "after"].into_iter().zip(files) {
        let fd = dir.as_fd().as_raw_fd();
        let path = file.map_or_else(
            || ":memory:".to_owned(),
            |file| format!("file:/proc/self/fd/{fd}/{file}?immutable=1"),
        );
        connection.execute(&format!("ATTACH ?1 AS {schema}"), [path])?;
    }
    let cancel = cancel.clone();
    connection.progress_handler(10_000, Some(move || cancel.is_cancelled()))?;
    connection.pragma_update(None, "query_only", true)?;
    Ok(connection)
}

fn configure(connection: &Connection, access: Access) -> rusqlite::Result<()> {
    for (what, on) in [
        (DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false),
        (DbConfig::SQLITE_DBCONFIG_ENABLE_FKEY, false),
        // Pages are read and written whatever the schema and the header say.
        (DbConfig::SQLITE_DBCONFIG_WRITABLE_SCHEMA, true),
        (DbConfig::SQLITE_DBCONFIG_DEFENSIVE, false),
        (DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, access == Access::Read),
    ] {
        connection.set_db_config(what, on)?;
    }
    connection.execute_batch("PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;")
}

/// How many descriptors of this process lead to the file `id`.
fn descriptors(id: (u64, u64)) -> usize {
    let own = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let is_it = |path: std::path::PathBuf| {
        let stat = rustix::fs::statat(rustix::fs::CWD, &path, AtFlags::empty());
        stat.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == id)
    };
    own.filter(|entry| is_it(entry.path())).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_trusts_no_schema_and_runs_nothing_of_it() {
        for access in [Access::Read, Access::Write] {
            let connection = Connection::open_in_memory().unwrap();
            let made = "CREATE TABLE t(a); CREATE TABLE log(a); CREATE VIEW v AS SELECT a FROM t;
                        CREATE TRIGGER tr AFTER INSERT ON t BEGIN INSERT INTO log VALUES(new.a); END";
            connection.execute_batch(made).unwrap();
            configure(&connection, access).unwrap();
            let is = |what| connection.db_config(what).unwrap();
            assert!(!is(DbConfig::SQLITE_DBCONFIG_TRUSTED_SCHEMA));
            assert_eq!(is(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE), access == Access::Read);
            connection.execute_batch("INSERT INTO t VALUES(1)").unwrap();
            let count = |of: &str| {
                connection.query_row(&format!("SELECT count(*) FROM {of}"), [], |row| row.get::<_, u32>(0))
            };
            assert_eq!((count("t").unwrap(), count("log").unwrap()), (1, 0), "no trigger runs");
            assert!(count("v").is_err(), "no view is looked into");
        }
    }
}
