//! What a restore needs of a server, found out before a run starts, and what it does without.

use super::{Server, agree, declare, project, ready, refused, there_and_back, until};
use std::fmt::Write;

#[test]
fn on_a_replica_nothing_starts() {
    if !ready() {
        return;
    }
    let master = Server::start(&["--repl-diskless-sync-delay 0"]);
    master.cli("SET a 1");
    let server = Server::start(&[&format!("--replicaof 127.0.0.1 {}", master.port)]);
    until("the copy", || server.cli("GET a") == "1");
    let s = project(&server, "");
    refused(&s, &["the server is a replica", "that of its master"]);
    s.ok(["run", "--skip", "redis", "--", "true"]);
}

#[test]
fn a_user_who_could_not_put_it_back_starts_nothing() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    server.cli("SET a 1");
    // To read is not enough; then all that is listed, but for one each.
    let read = "+@read +psync +replconf +info +time +select +type +get +config|get +multi +discard";
    let all = "+psync +replconf +info +time +config|get +select +dbsize +type +get +set +del +restore +dump \
               +pttl +flushdb +swapdb +eval +multi +discard +function +command";
    server.cli(&format!("ACL SETUSER bob on >pw ~* {read}\nACL SETUSER ann on >pw ~* {all}"));
    let s = project(&server, "user = \"bob\"\npassword = \"PW\"");
    let run = |command: &str| s.finish(s.program().env("PW", "pw").args(["run", "--", "sh", "-c", command]));
    run("touch started").exits(125).says("NOPERM").says("the user needs").says("+swapdb");
    assert!(!s.has("started"));
    declare(&s, &server, "user = \"ann\"\npassword = \"PW\"");
    agree(&s);
    for one in ["swapdb", "restore", "dump", "pttl", "eval", "set", "del", "dbsize", "multi", "config|get"] {
        server.cli(&format!("ACL SETUSER ann -{one}"));
        run("touch started").exits(125).says("NOPERM");
        server.cli(&format!("ACL SETUSER ann +{one}"));
    }
    assert!(!s.has("started"));
    run(&format!("redis-cli -p {} SET a 2", server.port)).exits(0);
    s.finish(s.program().env("PW", "pw").arg("undo")).exits(0);
    assert_eq!(server.cli("GET a"), "1");
}

#[test]
fn a_command_that_is_switched_off_is_named_or_done_without() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--rename-command SWAPDB hidden"]);
    let s = project(&server, "");
    refused(&s, &["unknown command", "SWAPDB", "renames or switches off"]);
    let server = Server::start(&["--rename-command FLUSHDB hidden", "--rename-command FLUSHALL gone"]);
    let mut lines = String::new();
    for n in 0..3000 {
        let _ = writeln!(lines, "SET key:{n} {n}");
    }
    server.cli(&lines);
    let s = project(&server, "");
    let change = format!("redis-cli -p {} DEL key:1 key:2; redis-cli -p {0} SET key:3 other", server.port);
    there_and_back(&s, &change, || server.record());
    // Nothing is left beside it.
    assert!(!server.cli("INFO keyspace").contains("db15"));
    assert_eq!(server.cli("INFO keyspace").lines().filter(|line| line.starts_with("db")).count(), 1);
    let status = s.snapback(["status", "--json"]).json();
    assert!(status["pending"].is_null());
}

#[test]
fn two_projects_put_back_at_once_each_whole() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--databases 4"]);
    server.cli("SET a 1\nSELECT 1\nSET b 1");
    let (first, second) = (project(&server, "database = \"0\""), project(&server, "database = \"1\""));
    for round in 0..3 {
        first.run(&format!("redis-cli -p {} SET a other{round}", server.port));
        second.run(&format!("redis-cli -p {} -n 1 SET b other{round}", server.port));
        let undos = [&first, &second].map(|s| s.start(["undo"]));
        for (mut undo, s) in undos.into_iter().zip([&first, &second]) {
            // One of the two may have been in the other's way: then nothing was touched.
            if undo.wait().code() != Some(0) {
                s.ok(["undo"]);
            }
        }
        assert_eq!(server.cli("GET a\nSELECT 1\nGET b\nDBSIZE\nSELECT 0\nDBSIZE"), "1\nOK\n1\n1\nOK\n1");
    }
}
