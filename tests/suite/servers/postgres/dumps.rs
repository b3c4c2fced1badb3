//! Dumps, by programs that the settings give, beside sessions of others.

use super::steps::{MIGRATION, SCHEMA, migrate};
use super::{PROGRAMS, Server, project, ready, there_and_back};

/// Settings that give the programs.
fn programs(more: &str) -> String {
    format!("pg-dump = \"{PROGRAMS}/pg_dump\"\npg-restore = \"{PROGRAMS}/pg_restore\"\n{more}")
}

#[test]
fn a_dump_brings_everything_back() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", SCHEMA);
    server.psql("app", "CREATE EXTENSION pgcrypto; ALTER TABLE people OWNER TO ann");
    let s = project(&server, &programs("strategy = \"dump\""));
    let record = || {
        assert_eq!(server.ours(), [""; 0], "it is all in the store");
        server.record()
    };
    there_and_back(&s, &migrate(&server, &format!("DROP EXTENSION pgcrypto; {MIGRATION}")), record);
    assert_eq!(server.ours(), [""; 0]);
}

#[test]
fn what_a_database_was_made_with_comes_back_with_its_dump() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.tablespace("elsewhere");
    server.psql("postgres", "DROP DATABASE app");
    server.psql(
        "postgres",
        "CREATE DATABASE app TEMPLATE template0 LOCALE_PROVIDER icu ICU_LOCALE 'de-DE' TABLESPACE elsewhere",
    );
    server.psql("app", "CREATE TABLE t(a text); INSERT INTO t VALUES ('a'), ('Z'), ('ä')");
    let s = project(&server, &programs("strategy = \"dump\""));
    let record = || {
        let made = "SELECT datlocprovider, daticulocale, spcname FROM pg_database d \
                    JOIN pg_tablespace t ON t.oid = dattablespace WHERE datname = 'app'";
        format!("{}\n{}", server.psql("postgres", made), server.record())
    };
    assert!(record().starts_with("i|de-DE|elsewhere\n"), "{}", record());
    there_and_back(&s, &migrate(&server, "DELETE FROM t"), record);
    assert_eq!(server.psql("app", "SELECT string_agg(a, '' ORDER BY a) FROM t"), "aäZ");
}

#[test]
fn a_look_at_another_dump_of_the_same_kind_of_database_is_let_go_of() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let s = project(&server, &programs("strategy = \"dump\""));
    s.run(&migrate(&server, "CREATE TABLE t(a int)")).never_says("is not gone");
    s.ok(["diff"]).never_says("is not gone");
    let id = s.ok(["snap"]).out().trim().to_owned();
    s.ok(["forget", "--yes", &id]).never_says("is not gone");
}

#[test]
fn a_dump_is_taken_when_somebody_is_connected_and_a_copy_when_nobody_is() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", SCHEMA);
    let s = project(&server, &programs("disconnect = \"restore\""));
    let before = server.record();
    let session = server.session();
    s.run(&migrate(&server, "DROP TABLE orders"));
    assert_eq!(server.ours(), [""; 0]);
    drop(session);
    server.end_sessions();
    // Before the undo it is copied: nobody is there.
    s.ok(["undo"]);
    assert_eq!(server.record(), before);
    assert_eq!(server.ours().len(), 1, "{:?}", server.ours());
    s.ok(["redo"]);
    assert!(!server.record().contains("orders"));
}

#[test]
fn what_did_not_change_has_the_same_dump() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", SCHEMA);
    let s = project(&server, &programs("strategy = \"dump\""));
    s.ok(["snap"]);
    std::thread::sleep(std::time::Duration::from_millis(1100));
    assert_eq!(s.ok(["diff", "@0", "--json"]).json()["changes"], serde_json::json!([]));
}

#[test]
fn a_program_that_fails_or_passes_over_something_is_a_failure() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", SCHEMA);
    // As programs do that report an error and end well.
    let careless =
        "#!/bin/sh\necho 'pg_restore: warning: errors ignored on restore: 1' >&2\ncat >/dev/null\n";
    let s = project(&server, "");
    s.write("../careless", careless);
    s.sh("chmod 755 ../careless");
    let settings = format!(
        "strategy = \"dump\"\npg-dump = \"{PROGRAMS}/pg_dump\"\npg-restore = \"{}\"",
        s.home().join("careless").display()
    );
    super::declare(&s, &server, &settings);
    super::agree(&s);
    s.run(&migrate(&server, "DROP TABLE orders"));
    let after = server.record();
    s.snapback(["undo"]).exits(1).says("pg_restore failed").says("errors ignored");
    assert_eq!(server.record(), after);
    assert_eq!(server.ours(), [""; 0]);
    // One that is not there is no way at all.
    super::declare(&s, &server, "strategy = \"dump\"");
    super::agree(&s);
    s.snapback(["run", "--", "true"]).exits(125).says("a dump needs the programs");
}

#[test]
fn a_program_is_shown_as_leaving_the_sandbox() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let s = super::with("postgres");
    super::declare(&s, &server, &programs(""));
    s.snapback(["trust"]).says(&format!("{PROGRAMS}/pg_dump")).says("sandbox");
}
