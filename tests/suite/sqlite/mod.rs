//! Databases that applications hold open, with Python and its own SQLite at work on them.

mod declared;
mod diff;
mod found;
mod in_use;
mod large;
mod left_out;
mod leftovers;
mod length;
mod lost_log;
mod names;
mod power;
mod python;
mod replaced;
mod steps;
mod unwritable;
mod writers;

use python::Python;
use snapback_tests::{Sandbox, have};

/// The project's databases, each with a target of its own, named like the file.
fn declare(s: &Sandbox, names: &[&str]) {
    let targets = names.iter().map(|name| {
        format!("[[target]]\nname = \"{name}\"\nbackend = \"sqlite\"\npath = \"{name}.db\"\nbusy-timeout = \"1s\"\n")
    });
    s.write("snapback.toml", targets.collect::<String>());
}

/// Runs statements, one a line, on a database, in a process that ends then.
fn sql(s: &Sandbox, name: &str, lines: &str) -> String {
    let mut python = Python::start(s);
    python.open(name);
    let mut last = String::new();
    for line in lines.lines().map(str::trim).filter(|line| !line.is_empty()) {
        last = python.sql(line);
        assert!(!last.starts_with('!'), "{line}: {last}");
    }
    python.say("c.close()");
    last
}

/// A database with a table of `rows` rows.
fn make(s: &Sandbox, name: &str, mode: &str, rows: u32) {
    sql(
        s,
        name,
        &format!(
            "PRAGMA journal_mode = {mode}
             CREATE TABLE t(a INTEGER PRIMARY KEY, b)
             WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows}) \
             INSERT INTO t SELECT i, 'row ' || i FROM n"
        ),
    );
}

fn count(s: &Sandbox, name: &str) -> String {
    sql(s, name, "SELECT count(*) FROM t")
}

#[track_caller]
fn is_sound(s: &Sandbox, name: &str) {
    assert_eq!(sql(s, name, "PRAGMA integrity_check"), "[('ok',)]");
}

/// What a shell does to a database: statements in one transaction.
fn migrate(name: &str, statements: &str) -> String {
    format!(
        "python3 -c \"import sqlite3; c = sqlite3.connect('{name}.db'); c.executescript('{statements}'); c.close()\""
    )
}

fn inode(s: &Sandbox, path: &str) -> u64 {
    std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(s.project().join(path)).unwrap())
}

fn ready() -> bool {
    have("python3")
}
