//! The law for backends, with the program's own test of it.

use super::{component, postgres, redis};
use crate::sandbox;
use snapback_tests::Sandbox;

#[test]
fn redis_keeps_every_law() {
    if !redis::ready() {
        return;
    }
    let server = redis::Server::start(&[]);
    let s = sandbox();
    let cli = format!("redis-cli -p {}", server.port);
    s.write(
        "law.toml",
        format!(
            "[target]\naddress = \"127.0.0.1:{}\"\n[test]\n\
             setup = \"{cli} SET a 1; {cli} RPUSH l a b c; {cli} -n 3 SADD s x y\"\n\
             change = [\"{cli} SET a 2; {cli} -n 3 DEL s\", \"{cli} FLUSHALL; {cli} INCR n\", \"{cli} XADD x 1-1 a b\"]\n\
             probe = \"{cli} DEBUG DIGEST\"\n",
            server.port
        ),
    );
    all_kept(&s, "redis");
}

#[test]
fn postgres_keeps_every_law() {
    if !postgres::ready() {
        return;
    }
    let server = postgres::Server::start();
    let s = sandbox();
    let psql = |sql: &str| format!("psql {} -XAtq -d app -c '{sql}'", server.words());
    s.write(
        "law.toml",
        format!(
            "[target]\naddress = \"127.0.0.1:{}\"\ndatabase = \"app\"\n[test]\n\
             setup = \"{}\"\nchange = [\"{}\", \"{}\"]\n\
             probe = \"pg_dump {} --create app | grep -v restrict\"\n",
            server.port,
            psql("CREATE TABLE t(a serial PRIMARY KEY, b text); INSERT INTO t(b) SELECT repeat(i::text, 9) FROM generate_series(1, 500) i"),
            psql("DELETE FROM t WHERE a > 250; ALTER TABLE t ALTER b TYPE varchar(90); ALTER DATABASE app SET work_mem TO 777"),
            psql("INSERT INTO t(b) SELECT 9; CREATE TABLE IF NOT EXISTS u(a int)"),
            server.words()
        ),
    );
    all_kept(&s, "postgres");
}

#[test]
fn without_its_settings_a_component_is_not_called_broken() {
    let s = sandbox();
    s.write("law.toml", "[test]\nsetup = \"touch ran\"\nchange = [\"true\"]\nprobe = \"true\"\n");
    for name in ["postgres", "redis"] {
        for more in [&[][..], &["--settings", "law.toml"]] {
            let tried = s.snapback([&["backends", "test", &component(name)], more].concat());
            tried
                .exits(3)
                .prints("kept       it says the same")
                .prints("unchecked  a restore brings back what was stored")
                .prints("unchecked  without a setting that opens something")
                .prints("the setting `address` is missing")
                .prints("`--settings F` gives it");
            assert!(!tried.out().contains("broken"), "{tried}");
        }
    }
    let tried = s.snapback(["backends", "test", &component("postgres")]);
    tried.prints("unchecked  what it holds outside the store goes");
    s.ok(["backends", "add", &component("postgres")]);
    s.ok(["backends", "show", "postgres"]).prints("1 kept, 9 unchecked");
}

#[track_caller]
fn all_kept(s: &Sandbox, name: &str) {
    let said = s.ok(["backends", "test", &component(name), "--settings", "law.toml", "--json"]).json();
    for verdict in said.as_array().unwrap() {
        assert_eq!(verdict["outcome"], "kept", "{verdict}");
    }
}
