//! Dumping the database into the store with `pg_dump`, beside sessions of others, and loading
//! it with `pg_restore`. Both programs leave the sandbox; they are run only where they were
//! given.
//!
//! A dump of what did not change has the same bytes: the time at its head is left out. It is
//! loaded in one transaction, and whatever the program says beside success is a failure.

use snapback_sdk::process::{Command, Ended};
use snapback_sdk::{Error, ErrorKind, Object, Reader, Result, Target, Writer, env, report, splice};
use std::io::{Read, Write};

/// The part that holds a dump.
pub const DUMP: &str = "dump";
/// Bytes at the start of a dump that its head is among.
const HEAD: usize = 64;
/// Bytes that are compared at once.
const CHUNK: usize = 64 * 1024;

/// Whether both programs were given.
pub fn is_given(target: &Target) -> bool {
    ["pg-dump", "pg-restore"].iter().all(|key| target.setting(key).is_some())
}

/// Dumps `database` into the store.
///
/// # Errors
/// When the program fails.
pub fn take(target: &Target, database: &str) -> Result<Object> {
    let _task = report::Task::new("dumping the database", None, "items");
    let mut child = dumping(target, database).spawn()?;
    let mut writer = Writer::new()?;
    let mut stdout = child.stdout()?;
    let head = head(&mut stdout)?;
    writer.write_all(&head)?;
    splice(stdout.stream(), writer.stream())?;
    drop(stdout);
    succeeded("pg_dump", &child.wait()?)?;
    writer.finish()
}

/// Whether `database` is as each of these dumps now.
///
/// # Errors
/// When the program fails.
pub fn is(target: &Target, database: &str, dumps: &[Option<&Object>]) -> Result<Vec<bool>> {
    let mut child = dumping(target, database).spawn()?;
    let mut stdout = child.stdout()?;
    let mut stored: Vec<Option<Reader>> =
        dumps.iter().map(|dump| dump.map(Reader::new).transpose()).collect::<Result<_>>()?;
    let (mut bytes, mut other) = (head(&mut stdout)?, vec![0; CHUNK]);
    loop {
        for place in &mut stored {
            let Some(reader) = place else { continue };
            let other = &mut other[..bytes.len().max(1)];
            let read = fill(reader, other)?;
            // At the end of the one the other must end, too.
            if (bytes.is_empty() && read > 0) || other[..read] != bytes[..] {
                *place = None;
            }
        }
        if bytes.is_empty() {
            break;
        }
        bytes.resize(CHUNK, 0);
        let read = fill(&mut stdout, &mut bytes)?;
        bytes.truncate(read);
    }
    drop(stdout);
    succeeded("pg_dump", &child.wait()?)?;
    Ok(stored.iter().map(Option::is_some).collect())
}

/// Loads a dump into the empty `database`.
///
/// # Errors
/// When the program fails, or says that it passed over something.
pub fn load(target: &Target, database: &str, dump: &Object) -> Result<()> {
    let _task = report::Task::new("loading the database", None, "items");
    let command = command(target, "pg-restore", database);
    let mut child = command.args(["--single-transaction", "--exit-on-error"]).spawn()?;
    let stdin = child.stdin()?;
    let sent = splice(Reader::new(dump)?.stream(), stdin.stream());
    drop(stdin);
    // A program that failed reads no more: what it says is the reason.
    succeeded("pg_restore", &child.wait()?)?;
    sent.map(drop)
}

fn dumping<'a>(target: &'a Target, database: &str) -> Command<'a> {
    command(target, "pg-dump", database).args(["--format=custom", "--compress=0"])
}

fn command<'a>(target: &'a Target, key: &'a str, database: &str) -> Command<'a> {
    let address = target.setting("address").unwrap_or_default();
    let (host, port) = address.rsplit_once(':').unwrap_or((&address, "5432"));
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let user = target.setting("user").unwrap_or_default();
    // One with a `=` would be taken for a list of settings.
    let database = format!("dbname='{}'", database.replace('\\', "\\\\").replace('\'', "\\'"));
    let words = ["--no-password", "--host", host, "--port", port, "--username", &user, "--dbname", &database];
    let command = Command::new(target, key).args(words).env("LC_ALL", "C").env("PGCONNECT_TIMEOUT", "30");
    // As our own sessions have it.
    let command = command.env("PGOPTIONS", "-c default_transaction_read_only=off");
    match env::var(target, "password") {
        Some(password) => command.env("PGPASSWORD", password),
        None => command,
    }
}

/// The start of a dump, without its time.
fn head(stdout: &mut Reader) -> Result<Vec<u8>> {
    let mut head = vec![0; HEAD];
    let read = fill(stdout, &mut head)?;
    head.truncate(read);
    forget_time(&mut head);
    Ok(head)
}

/// Leaves out the time from the head of a dump: seven numbers behind what tells how it is packed.
fn forget_time(head: &mut [u8]) {
    let Some([b'P', b'G', b'D', b'M', b'P', 1, minor, _, size, _, _]) = head.first_chunk::<11>() else {
        return;
    };
    let number = 1 + usize::from(*size);
    let packed = if *minor >= 15 { 1 } else { number };
    let from = (11 + packed).min(head.len());
    let to = (from + 7 * number).min(head.len());
    head[from..to].fill(0);
}

fn fill(from: &mut impl Read, to: &mut [u8]) -> Result<usize> {
    let mut done = 0;
    while done < to.len() {
        match from.read(&mut to[done..])? {
            0 => break,
            read => done += read,
        }
    }
    Ok(done)
}

fn succeeded(program: &str, ended: &Ended) -> Result<()> {
    let said: Vec<&str> = ended.stderr.lines().filter(|line| !line.trim().is_empty()).collect();
    if ended.status == 0 && !said.iter().any(|line| line.contains("error")) {
        return Ok(());
    }
    let error = said.iter().find(|line| line.contains("error")).or(said.last()).unwrap_or(&"it said nothing");
    let why = format!("{program} failed ({}): {}", ended.status, error.trim());
    Err(Error::new(ErrorKind::Other, why)
        .with_hint("it must be as new as the server, and the user may need more rights"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_has_no_time() {
        let mut old = [&b"PGDMP\x01\x0e\x00\x04\x08\x01"[..], &[0, 0, 0, 0, 0], &[7; 35], b"rest"].concat();
        forget_time(&mut old);
        assert_eq!(old, [&b"PGDMP\x01\x0e\x00\x04\x08\x01"[..], &[0; 40], b"rest"].concat());
        let mut new = [&b"PGDMP\x01\x10\x00\x04\x08\x01"[..], &[3], &[7; 35], b"rest"].concat();
        forget_time(&mut new);
        assert_eq!(new, [&b"PGDMP\x01\x10\x00\x04\x08\x01"[..], &[3], &[0; 35], b"rest"].concat());
        for mut other in [b"PGDMP".to_vec(), b"something else".to_vec(), Vec::new()] {
            let before = other.clone();
            forget_time(&mut other);
            assert_eq!(other, before);
        }
    }

    #[test]
    fn what_was_passed_over_is_a_failure() {
        let ended = |status, stderr: &str| Ended { status, stderr: stderr.into() };
        assert!(succeeded("x", &ended(0, "")).is_ok());
        assert!(succeeded("x", &ended(0, "pg_restore: warning: errors ignored on restore: 1\n")).is_err());
        let error = succeeded("x", &ended(1, "x: error: no\nx: detail\n")).unwrap_err();
        assert_eq!(error.message, "x failed (1): x: error: no");
    }
}
