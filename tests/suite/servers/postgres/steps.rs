//! Undo and redo of what people do to databases.

use super::{Server, killed, project, ready};
use snapback_tests::{Chance, times};
use std::time::Duration;

/// Tables, a sequence, a view, a function, an index, a large object.
pub const SCHEMA: &str = "CREATE TYPE mood AS ENUM ('sad', 'ok');
    CREATE TABLE people(id serial PRIMARY KEY, name text NOT NULL UNIQUE, age int CHECK (age > 0), mood mood);
    CREATE TABLE orders(id bigint GENERATED ALWAYS AS IDENTITY, person int REFERENCES people, what jsonb);
    CREATE UNLOGGED TABLE scratch(a int);
    INSERT INTO people(name, age, mood) SELECT 'p' || i, i, 'ok' FROM generate_series(1, 500) i;
    INSERT INTO orders(person, what) SELECT i, '{\"n\": 1}' FROM generate_series(1, 500) i;
    INSERT INTO scratch VALUES (1);
    CREATE VIEW grown AS SELECT * FROM people WHERE age > 18;
    CREATE INDEX ON orders(person);
    CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 7';
    SELECT lo_from_bytea(4242, 'large');
    COMMENT ON DATABASE app IS 'it''s mine';
    CREATE ROLE ann LOGIN; GRANT CONNECT ON DATABASE app TO ann; REVOKE TEMPORARY ON DATABASE app FROM PUBLIC;
    ALTER DATABASE app SET search_path TO \"$user\", public, pg_catalog;
    ALTER ROLE ann IN DATABASE app SET work_mem TO '7MB'; ALTER DATABASE app CONNECTION LIMIT 40;";

/// What a migration that went wrong does.
pub const MIGRATION: &str = "DROP VIEW grown; DROP TABLE orders; ALTER TABLE people ALTER age TYPE numeric, ALTER name TYPE varchar(80); DELETE FROM people WHERE id > 250;
    SELECT setval('people_id_seq', 100000); ALTER TYPE mood ADD VALUE 'happy'; CREATE TABLE new(a int);
    DROP FUNCTION f(); SELECT lo_unlink(4242); TRUNCATE scratch; ALTER DATABASE app RESET ALL;
    COMMENT ON DATABASE app IS 'other'; REVOKE CONNECT ON DATABASE app FROM ann; ALTER DATABASE app OWNER TO ann";

pub fn migrate(server: &Server, sql: &str) -> String {
    let sql = sql.replace('\n', " ").replace('\'', "'\\''");
    format!("psql {} -Xq -v ON_ERROR_STOP=1 -d app -c '{sql}'", server.words())
}

#[test]
fn a_migration_that_went_wrong_is_undone_and_redone() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", SCHEMA);
    let s = project(&server, "");
    let before = server.record();
    assert!(
        before.contains("it''s mine") && before.contains("search_path") && before.contains("work_mem"),
        "{before}"
    );
    s.run(&format!("echo 1 > f; {}", migrate(&server, MIGRATION)));
    let after = server.record();
    assert_ne!(before, after);
    s.ok(["undo"]);
    assert_eq!((server.record(), s.read("f")), (before.clone(), "0\n".to_owned()));
    assert_eq!(server.psql("app", "SELECT nextval('people_id_seq'), f(), count(*) FROM scratch"), "501|7|1");
    s.ok(["redo"]);
    s.ok(["undo"]);
    let value = "SELECT last_value FROM people_id_seq";
    assert_eq!(server.psql("app", value), "501");
    s.ok(["redo"]);
    assert_eq!((server.record(), s.read("f")), (after, "1\n".to_owned()));
    let left = server.ours();
    assert!(
        left.iter()
            .all(|name| !name.contains("_new_") && !name.contains("_old_") && !name.contains("_kept_")),
        "{left:?}"
    );
}

#[test]
fn a_dropped_database_comes_back() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", SCHEMA);
    let s = project(&server, "");
    let before = server.record();
    s.run(&format!("dropdb {} app", server.words()));
    s.ok(["undo"]);
    assert_eq!(server.record(), before);
    s.ok(["redo"]);
    assert_eq!(server.psql("postgres", "SELECT count(*) FROM pg_database WHERE datname = 'app'"), "0");
    s.ok(["undo"]);
    assert_eq!(server.record(), before);
}

#[test]
fn older_and_newer_states_come_back_in_any_order() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let s = project(&server, "");
    let mut known = Vec::new();
    for n in 0..3 {
        server.psql("app", &format!("CREATE TABLE t{n}(a int); INSERT INTO t0 SELECT {n}"));
        known.push((s.ok(["snap"]).out().trim().to_owned(), server.record()));
    }
    for at in [0, 2, 1, 1, 0, 2] {
        s.ok(["restore", &known[at].0]);
        assert_eq!(server.record(), known[at].1, "{at}");
    }
}

#[test]
fn killed_in_the_middle_it_is_finished_by_the_next_command() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", SCHEMA);
    let s = project(&server, "");
    let before = server.record();
    let mut chance = Chance::new("kills of an undo of Postgres", 5);
    let mut in_the_middle = 0;
    for round in 0..times("SNAPBACK_KILLS", 6) {
        s.run(&migrate(&server, &format!("DROP TABLE orders; UPDATE people SET age = {round} + 1")));
        let after = server.record();
        killed(&s, round, chance.moment(Duration::from_millis(700)));
        // The database is there under its name, as one or the other.
        let now = server.record();
        assert!(now == before || now == after, "{now}");
        let pending = !s.ok(["status", "--json"]).json()["pending"].is_null();
        in_the_middle += u32::from(pending);
        match pending {
            true => drop(s.ok(["undo", "--resume"])),
            false if server.record() != before => drop(s.ok(["undo"])),
            false => {}
        }
        assert_eq!(server.record(), before, "round {round}");
    }
    assert!(in_the_middle > 0, "no kill hit the middle of an undo");
}

#[test]
fn a_larger_database_comes_back() {
    if !ready() {
        return;
    }
    let server = Server::start();
    // 20 MB, or as many as are asked for.
    let megabytes = times("SNAPBACK_SERVER_MB", 20);
    server.psql(
        "app",
        &format!(
            "CREATE TABLE big AS SELECT i, repeat(md5(i::text), 30) AS text FROM generate_series(1, {} * 1000) i",
            megabytes
        ),
    );
    let sum = "SELECT count(*), sum(hashtext(text)) FROM big";
    let before = server.psql("app", sum);
    let s = project(&server, "");
    s.run(&migrate(&server, "DELETE FROM big WHERE i % 2 = 0; UPDATE big SET text = upper(text)"));
    assert_ne!(server.psql("app", sum), before);
    s.ok(["undo"]);
    assert_eq!(server.psql("app", sum), before);
}

#[test]
fn rows_that_were_changed_are_not_said_to_be_unchanged() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server
        .psql("app", "CREATE TABLE accounts AS SELECT i AS id, 100 AS balance FROM generate_series(1, 9) i");
    let s = project(&server, "");
    s.ok(["snap"]);
    server.psql("app", "UPDATE accounts SET balance = 0");
    let said = s.ok(["diff", "-p", "@0"]).out();
    assert!(said.contains("perhaps rows") && !said.contains("not its tables"), "{said}");
}
