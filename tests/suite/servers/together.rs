//! One step over files, a SQLite database, Postgres and Redis: all of it, or nothing.

use super::{agree, component, postgres, redis};
use crate::sandbox;
use snapback_tests::{Sandbox, have};

struct World {
    s: Sandbox,
    redis: redis::Server,
    postgres: postgres::Server,
}

/// What all of them look like.
fn looks(world: &World) -> [String; 4] {
    let rows =
        "python3 -c \"import sqlite3; print(sqlite3.connect('a.db').execute('select * from t').fetchall())\"";
    [
        world.s.read("f"),
        world.s.sh(rows),
        world.redis.cli("GET a"),
        world.postgres.psql("app", "SELECT * FROM t"),
    ]
}

/// A world in which a run has changed everything; how it was before, and is now.
fn changed() -> (World, [String; 4], [String; 4]) {
    let (redis, postgres) = (redis::Server::start(&[]), postgres::Server::start());
    let s = sandbox();
    s.ok(["backends", "add", &component("redis")]);
    s.ok(["backends", "add", &component("postgres")]);
    let targets = [redis::target(redis.port, ""), postgres::target(postgres.port, "")];
    s.write("snapback.toml", targets.concat());
    s.write("f", "0\n");
    let sqlite =
        |sql: &str| format!("python3 -c \"import sqlite3; sqlite3.connect('a.db').executescript('{sql}')\"");
    s.sh(&sqlite("create table t(a); insert into t values (0)"));
    redis.cli("SET a 0");
    postgres.psql("app", "CREATE TABLE t(a int); INSERT INTO t VALUES (0)");
    for _ in 0..2 {
        agree(&s);
    }
    let world = World { s, redis, postgres };
    let before = looks(&world);
    world.s.run(&format!(
        "echo 1 > f; {}; redis-cli -p {} SET a 1; psql {} -Xq -d app -c 'UPDATE t SET a = 1'",
        sqlite("update t set a = 1"),
        world.redis.port,
        world.postgres.words()
    ));
    let after = looks(&world);
    assert!(before.iter().zip(&after).all(|(before, after)| before != after));
    (world, before, after)
}

fn ready() -> bool {
    redis::ready() && postgres::ready() && have("python3")
}

#[test]
fn one_undo_takes_everything_back() {
    if !ready() {
        return;
    }
    let (world, before, after) = changed();
    world.s.ok(["undo"]);
    assert_eq!(looks(&world), before);
    world.s.ok(["redo"]);
    assert_eq!(looks(&world), after);
}

#[test]
fn when_redis_fails_all_are_as_they_were() {
    if !ready() {
        return;
    }
    let (world, before, after) = changed();
    // Its user may no longer exchange databases.
    world.redis.cli("ACL SETUSER default -swapdb");
    world.s.snapback(["undo"]).exits(1).says("could not put `redis` back").says("+swapdb");
    assert_eq!(looks(&world), after);
    world.redis.cli("ACL SETUSER default +@all");
    world.s.ok(["undo"]);
    assert_eq!(looks(&world), before);
}

#[test]
fn when_postgres_fails_all_are_as_they_were() {
    if !ready() {
        return;
    }
    let (world, before, after) = changed();
    let session = world.postgres.session();
    world.s.snapback(["undo"]).exits(1).says("webapp");
    assert_eq!(looks(&world), after);
    drop(session);
    world.postgres.end_sessions();
    world.s.ok(["undo"]);
    assert_eq!(looks(&world), before);
}

#[test]
fn when_the_files_fail_all_are_as_they_were() {
    if !ready() || !snapback_tests::is_root() {
        return;
    }
    let (world, before, after) = changed();
    world.s.sh("chattr +i f");
    let said = world.s.snapback(["undo"]);
    world.s.sh("chattr -i f");
    said.exits(1);
    assert_eq!(looks(&world), after);
    world.s.ok(["undo"]);
    assert_eq!(looks(&world), before);
}

#[test]
fn when_sqlite_fails_all_are_as_they_were() {
    if !ready() {
        return;
    }
    let (world, before, after) = changed();
    let hold = "import sqlite3, time; c = sqlite3.connect('a.db', isolation_level=None); c.execute('begin exclusive'); \
                open('../held', 'w').close(); time.sleep(600)";
    let holder = snapback_tests::Running::of(world.s.command("python3").args(["-c", hold]));
    super::until("the lock", || world.s.has("../held"));
    world.s.snapback(["undo"]).exits(1);
    drop(holder);
    assert_eq!(looks(&world), after);
    world.s.ok(["undo"]);
    assert_eq!(looks(&world), before);
}
