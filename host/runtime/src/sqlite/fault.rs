//! What went wrong in SQLite, in words. Its own codes are not shown.

use super::holders;
use super::place::Place;
use rusqlite::{Error as Sqlite, ErrorCode, ffi};
use snapback_core::database::{Deed, barred};
use snapback_core::disk::Dir;
use snapback_core::error::{Error, Kind};

/// A hot journal lies beside a database that is only read.
pub fn is_hot(error: &Sqlite) -> bool {
    matches!(error, Sqlite::SqliteFailure(ffi::Error { extended_code: ffi::SQLITE_READONLY_ROLLBACK, .. }, _))
}

/// Whether the file is not what SQLite can read at all.
pub fn is_foreign(error: &Sqlite) -> bool {
    let code = error.sqlite_error_code();
    matches!(code, Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt | ErrorCode::Unknown))
}

/// Whether what was read makes no sense.
pub fn is_damage(error: &Sqlite) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt))
}

/// The file is not what SQLite can read: part of it is missing.
pub fn foreign() -> Sqlite {
    Sqlite::SqliteFailure(ffi::Error::new(ffi::SQLITE_NOTADB), None)
}

/// Whether another process holds a lock.
pub fn is_busy(error: &Sqlite) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Whether a log is shorter than whoever uses it has it.
fn is_cut_log(error: &Sqlite) -> bool {
    matches!(error, Sqlite::SqliteFailure(ffi::Error { extended_code: ffi::SQLITE_IOERR_SHORT_READ, .. }, _))
}

/// Says in words why `doing` ("could not read") failed on the database at `place`.
pub fn told(error: &Sqlite, doing: &str, place: &Place, dir: &Dir) -> Error {
    if is_busy(error) {
        return busy(place, dir);
    }
    if is_cut_log(error) {
        let who = holders::of(dir, place.name());
        if !who.is_empty() {
            return other_log(place, &who);
        }
    }
    let shown = place.shown();
    let (kind, why) = explain(error);
    let said = Error::new(kind, format!("{doing} {shown}: {why}"));
    match kind {
        Kind::Corrupt => said.hint("`sqlite3 FILE .recover` may save what is in it"),
        Kind::Denied => said.hint(access_hint(dir, place.name(), Deed::Write)),
        Kind::NoSpace => said.hint("free some space, and try again"),
        _ => said,
    }
}

/// How this user may come to do `deed` with what is in `dir` as `name`, and to read it.
pub fn access_hint(dir: &Dir, name: &[u8], deed: Deed) -> String {
    let mend = |deed| barred(dir, name, deed).ok().flatten()?.mend;
    match mend(Deed::Read).or_else(|| mend(deed)) {
        Some(mend) => format!("`{mend}` gives it to you"),
        None => "the database, the files beside it and its directory must be accessible".to_owned(),
    }
}

/// The database is locked by others, who are named.
pub fn busy(place: &Place, dir: &Dir) -> Error {
    let who = holders::of(dir, place.name());
    let shown = place.shown();
    let (text, hint) = match &who[..] {
        [] => (
            format!("{shown} is locked by another process"),
            "end what uses it, in another container perhaps".to_owned(),
        ),
        who => {
            let names = holders::list(who);
            (format!("{shown} is in use by {names}"), format!("end or pause {names}"))
        }
    };
    Error::new(Kind::Busy, text)
        .hint(format!("{hint}, or wait; `busy-timeout` of its [[target]] says how long is waited"))
}

/// The database is used by `who`, with a log that is not whole beside it.
pub fn other_log(place: &Place, who: &[holders::Holder]) -> Error {
    let (names, shown) = (holders::list(who), place.shown());
    let text = format!("{shown} is in use by {names}, and its log was removed, moved away or cut short");
    let hint = format!("end {names}, which may bring its log into the database then, and try again");
    Error::new(Kind::Busy, text).hint(hint)
}

/// Somebody whom nobody can name uses the database, or the log beside it, without the other.
pub fn astray(place: &Place) -> Error {
    let text = format!("{} and its log have come apart under another process that uses them", place.shown());
    Error::new(Kind::Busy, text).hint("end what uses it, in a container perhaps, and try again")
}

/// The database was replaced under `who`, whose log lies beside it.
pub fn other_file(place: &Place, who: &[holders::Holder]) -> Error {
    let (names, shown) = (holders::list(who), place.shown());
    let text =
        format!("{shown} was replaced while {names} had it open, and the log beside it is still in use");
    let hint = format!("end {names}, which takes that log along, and try again");
    Error::new(Kind::Busy, text).hint(hint)
}

fn explain(error: &Sqlite) -> (Kind, String) {
    use ErrorCode as C;
    let Sqlite::SqliteFailure(_, message) = error else { return (Kind::Other, plain(&error.to_string())) };
    let known = match error.sqlite_error_code() {
        Some(C::DatabaseCorrupt) => (Kind::Corrupt, "the database is damaged"),
        Some(C::NotADatabase) => (Kind::Incompatible, "it is not a SQLite database"),
        Some(C::PermissionDenied | C::AuthorizationForStatementDenied) => (Kind::Denied, "permission denied"),
        Some(C::ReadOnly) => (Kind::Denied, "it is read-only for this user"),
        Some(C::CannotOpen) => (Kind::Denied, "it could not be opened"),
        Some(C::DiskFull) => (Kind::NoSpace, "no space left on the disk"),
        Some(C::OperationInterrupted | C::OperationAborted) => (Kind::Cancelled, "stopped as asked"),
        Some(C::SystemIoFailure) => (Kind::Other, "the disk could not be read or written"),
        _ => {
            let why = message.as_deref().map_or_else(|| "an unknown fault of SQLite".into(), plain);
            return (Kind::Other, why);
        }
    };
    (known.0, known.1.to_owned())
}

/// SQLite's words on one line: they may quote what a stranger wrote.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(200).collect()
}

/// What SQLite says, in words.
pub fn words(error: &Sqlite) -> String {
    explain(error).1
}
