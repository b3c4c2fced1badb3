//! Undo as a whole: cut short, with what it left, with too little room.

use super::{Server, killed, project, ready, refused, there_and_back};
use snapback_tests::{Chance, times};
use std::fmt::Write;
use std::time::Duration;

fn many(server: &Server, count: usize) {
    let mut lines = String::new();
    for n in 0..count {
        let _ = writeln!(lines, "SET key:{n} value-{n}");
    }
    server.cli(&lines);
}

#[test]
fn killed_in_the_middle_it_is_finished_by_the_next_command() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    many(&server, 20_000);
    let s = project(&server, "");
    let before = server.record();
    let mut chance = Chance::new("kills of an undo of Redis", 11);
    let mut in_the_middle = 0;
    for round in 0..times("SNAPBACK_KILLS", 6) {
        s.run(&format!("redis-cli -p {} FLUSHALL; redis-cli -p {0} SET round {round}", server.port));
        killed(&s, round, chance.moment(Duration::from_millis(400)));
        assert_eq!(server.cli("CONFIG GET repl-diskless-sync-delay"), "repl-diskless-sync-delay\n5");
        // What clients see is never anything in between.
        let size = server.cli("DBSIZE");
        assert!(size == "20000" || size == "1", "{size}");
        // Finished, or not begun: then it is asked for once more.
        let done = s.snapback(["status", "--json"]).json();
        in_the_middle += u32::from(!done["pending"].is_null());
        if done["pending"].is_null() && server.record() != before {
            s.ok(["undo"]);
        } else if !done["pending"].is_null() {
            s.ok(["undo", "--resume"]);
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
    let server = Server::start(&[]);
    // 20 MB, or as many as are asked for: a thousand keys each, of bytes that hardly can be packed.
    let keys = times("SNAPBACK_SERVER_MB", 20) * 1000;
    let each = |work: &str| format!("EVAL \"for i = 1, {keys} do local key = 'key:' .. i {work} end\" 0");
    let value = "local parts = {} for n = 1, 25 do parts[n] = redis.sha1hex(key .. n) end";
    server.cli(&each(&format!("{value} redis.call('SET', key, table.concat(parts))")));
    assert_eq!(server.cli("DBSIZE"), keys.to_string());
    let s = project(&server, "");
    let change = each("redis.call(i % 2 == 0 and 'DEL' or 'INCR', i % 2 == 0 and key or 'odd' .. key)");
    let change = format!("redis-cli -p {} {change}", server.port);
    there_and_back(&s, &change, || server.cli("DEBUG DIGEST\nDBSIZE"));
    // It has no files, and a size: a kilobyte a key, packed.
    s.ok(["snap"]);
    let shown = s.ok(["show", "@0"]).out();
    let line = shown.lines().find(|line| line.starts_with("target redis")).unwrap_or_default();
    let size = line.strip_prefix("target redis (backend redis): ").unwrap_or_default();
    let size: f64 = size.strip_suffix(" MB in the store").unwrap_or_default().parse().expect(line);
    assert!(size > keys as f64 * 0.0008 && size < keys as f64 * 0.0011, "{shown}");
}

#[test]
fn what_a_restore_left_is_no_data_and_goes() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    server.cli("SET a 1\nSELECT 5\nSET snapback:staging \"database 5\"\nSET a 2\nSELECT 6\nSET snapback:staging \"database 5\"");
    let s = project(&server, "");
    s.run(&format!("redis-cli -p {} SET a 3", server.port));
    s.ok(["undo"]).says("emptied database 5");
    assert_eq!(server.cli("GET a\nSELECT 5\nDBSIZE\nSELECT 6\nDBSIZE"), "1\nOK\n0\nOK\n1");
}

#[test]
fn what_others_put_beside_what_a_restore_left_stays() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    server.cli("SET a 1\nSELECT 5\nSET snapback:staging \"database 5\"\nSET a 2\nRPUSH queue job");
    let s = project(&server, "");
    s.run(&format!("redis-cli -p {} SET a 3", server.port));
    s.ok(["undo"]).says("keys that are not of it").says("remove the key snapback:staging");
    assert_eq!(server.cli("GET a\nSELECT 5\nEXISTS a\nLRANGE queue 0 -1"), "1\nOK\n0\njob");
    // It is in nobody's way, and once it is named data it is data.
    s.ok(["redo"]);
    assert_eq!(server.cli("GET a\nSELECT 5\nDEL snapback:staging"), "3\nOK\n1");
    s.run(&format!("redis-cli -p {} -n 5 LPOP queue", server.port));
    s.ok(["undo"]);
    assert_eq!(server.cli("SELECT 5\nLRANGE queue 0 -1"), "OK\njob");
}

#[test]
fn a_user_that_may_do_only_part_of_it_does_no_harm() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    server.cli("SET a 1\nACL SETUSER root on >pw ~* &* +@all");
    let s = project(&server, "");
    s.run(&format!("redis-cli -p {} SET a 2", server.port));
    for command in
        ["swapdb", "eval", "restore", "set", "select", "del", "client|pause", "flushdb", "info", "psync"]
    {
        server.cli(&format!("ACL SETUSER default +@all -{command}"));
        let code = s.snapback(["undo"]).code();
        let now = server.feed(&["--user", "root", "--pass", "pw"], "ACL SETUSER default +@all\nGET a");
        let now = now.lines().last().unwrap_or_default();
        assert_eq!(now, if code == 0 { "1" } else { "2" }, "-{command}");
        if code == 0 {
            s.ok(["redo"]);
        }
    }
    s.ok(["undo"]);
    assert_eq!(server.cli("GET a\nDBSIZE"), "1\n1");
}

#[test]
fn without_an_empty_database_nothing_starts() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--databases 1"]);
    let s = project(&server, "");
    let words = ["an empty database is needed", "raise `databases`", "`--skip`"];
    // Nor where it is empty itself: that state could not come back.
    for lines in ["FLUSHALL", "SET a 1"] {
        server.cli(lines);
        refused(&s, &words);
    }
    s.ok(["run", "--skip", "redis", "--", "true"]);
    // A look at what is there needs none.
    s.ok(["diff"]);
}

#[test]
fn with_too_few_empty_databases_it_is_said_before_and_nothing_is_touched() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--databases 3"]);
    server.cli("SET a 1");
    let s = project(&server, "");
    let port = server.port;
    s.run(&format!("redis-cli -p {port} SET a 2; redis-cli -p {port} -n 1 SET b 1"))
        .never_says("an undo of what changes");
    let said = s.run(&format!("redis-cli -p {port} SET a 3; redis-cli -p {port} -n 1 SET b 2"));
    said.says("an undo of what changes more databases is refused: only 1 database is empty");
    s.snapback(["undo"]).exits(1).says("2 empty databases are needed").says("raise `databases`");
    assert_eq!(server.cli("GET a\nSELECT 1\nGET b"), "3\nOK\n2");
    // What a restore left takes up none.
    server.cli("SELECT 2\nSET snapback:staging \"database 2\"");
    s.run(&format!("redis-cli -p {port} SET a 4"));
    s.ok(["undo"]);
    assert_eq!(server.cli("GET a"), "3");
}

#[test]
fn no_key_is_evicted_for_what_is_restored() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--maxmemory 7mb", "--maxmemory-policy allkeys-lru"]);
    let mut lines = String::new();
    for n in 0..3000 {
        // Packed, it is a few bytes.
        let _ = writeln!(lines, "SET key:{n} {}", "x".repeat(800));
    }
    server.cli(&lines);
    let state = || {
        server
            .cli("DBSIZE\nGET key:7\nINFO stats")
            .lines()
            .filter(|line| line.starts_with("evicted_keys") || !line.contains(':') && !line.starts_with('#'))
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    let before = state();
    assert_eq!(
        (&*before[0], before.iter().any(|line| line == "evicted_keys:0")),
        ("3000", true),
        "{before:?}"
    );
    let s = project(&server, "");
    s.run(&format!("redis-cli -p {} SET key:7 other", server.port))
        .says("an undo may be refused for want of memory");
    let changed = state();
    s.snapback(["undo"]).exits(1).says("would evict keys").says("raise `maxmemory` by");
    assert_eq!(state(), changed);
    server.cli("CONFIG SET maxmemory 40mb");
    s.ok(["undo"]);
    assert_eq!(state(), before);
}

#[test]
fn older_and_newer_states_come_back_in_any_order() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    let s = project(&server, "");
    let mut known = Vec::new();
    for n in 0..3 {
        server.cli(&format!("SET a {n}\nSADD grows {n}"));
        known.push((s.ok(["snap"]).out().trim().to_owned(), server.record()));
    }
    for at in [0, 2, 1, 1, 0, 2] {
        s.ok(["restore", &known[at].0]);
        assert_eq!(server.record(), known[at].1, "{at}");
    }
}
