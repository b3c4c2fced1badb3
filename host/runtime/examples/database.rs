//! The least that the capture and the restore of a SQLite database can cost: what they are
//! measured against.
//!
//! `database capture DB FILE` reads all pages in one transaction, takes their SHA-256 with
//! the CPU's instructions, and appends them to FILE, which is made. `database restore FROM
//! DB` puts FROM over the existing DB with SQLite's backup, takes the SHA-256 of what came
//! of it, and checks it. Prints the hash and the bytes.

#![allow(clippy::print_stdout, reason = "it says what it did")]

use rusqlite::backup::{Backup, StepResult};
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{Read, Write};

/// Bytes read or appended at once: what stays in a core's own cache.
const CHUNK: usize = 256 << 10;

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let (hash, bytes) = match words[..] {
        ["capture", database, file] => capture(database, file).expect("a database that can be read"),
        ["restore", from, database] => restore(from, database).expect("a database that can be written"),
        _ => panic!("database capture DB FILE | restore FROM DB"),
    };
    println!("{hash}, {bytes} bytes");
}

fn capture(database: &str, file: &str) -> rusqlite::Result<(String, usize)> {
    let connection = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.execute_batch("BEGIN")?;
    let (mut hash, mut bytes, mut chunk) = (Sha256::new(), 0, Vec::with_capacity(2 * CHUNK));
    let mut out = File::create_new(file).expect("a new file");
    let mut take = |chunk: &mut Vec<u8>| {
        hash.update(&*chunk);
        out.write_all(chunk).expect("the disk takes it");
        chunk.clear();
    };
    let mut pages = connection.prepare("SELECT data FROM sqlite_dbpage('main')")?;
    let mut rows = pages.query([])?;
    while let Some(row) = rows.next()? {
        let page = row.get_ref(0)?.as_blob()?;
        bytes += page.len();
        chunk.extend_from_slice(page);
        if chunk.len() >= CHUNK {
            take(&mut chunk);
        }
    }
    take(&mut chunk);
    Ok((hex(hash), bytes))
}

fn restore(from: &str, database: &str) -> rusqlite::Result<(String, usize)> {
    let source = Connection::open_with_flags(from, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let mut target = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let backup = Backup::new(&source, &mut target)?;
    while backup.step(-1)? != StepResult::Done {}
    drop(backup);
    let (mut hash, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; CHUNK]);
    let mut file = File::open(database).expect("the database is there");
    loop {
        match file.read(&mut chunk).expect("it can be read") {
            0 => break,
            more => {
                hash.update(&chunk[..more]);
                bytes += more;
            }
        }
    }
    let said: String = target.query_row("PRAGMA quick_check(1)", [], |row| row.get(0))?;
    assert_eq!(said, "ok");
    Ok((hex(hash), bytes))
}

fn hex(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
