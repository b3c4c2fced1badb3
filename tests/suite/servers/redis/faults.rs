//! What can be wrong with a server, told in words, before anything runs.

use super::{Server, agree, component, declare, free_port, project, ready, refused, target, with};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;

#[test]
fn passwords_are_read_from_the_variable_that_was_named() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--requirepass secret"]);
    let s = project(&server, "");
    refused(&s, &["noauth", "`password` names the variable"]);
    declare(&s, &server, "password = \"REDIS_PASSWORD\"");
    agree(&s);
    refused(&s, &["the variable REDIS_PASSWORD is not set"]);
    let snap = |password: &str| s.finish(s.program().env("REDIS_PASSWORD", password).arg("snap"));
    snap("wrong").exits(1).says("WRONGPASS").says("right?");
    let done = snap("secret");
    done.exits(0);
    // It is kept nowhere.
    let found = s.sh("grep -rl 'secret' .snapback ../../state ../../cache 2>/dev/null | head -n 1; true");
    assert_eq!(found, "");
}

#[test]
fn a_user_with_rights_of_its_own_signs_in_by_name() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    server.cli("ACL SETUSER back on >pw ~* +@all\nACL SETUSER poor on >pw ~* +info +time\nSET a 1");
    let s = project(&server, "user = \"back\"\npassword = \"PW\"");
    let run = |command: &str| s.finish(s.program().env("PW", "pw").args(["run", "--", "sh", "-c", command]));
    run(&format!("redis-cli -p {} SET a 2", server.port)).exits(0);
    s.finish(s.program().env("PW", "pw").arg("undo")).exits(0);
    assert_eq!(server.cli("GET a"), "1");
    declare(&s, &server, "user = \"poor\"\npassword = \"PW\"");
    agree(&s);
    run("true").exits(125).says("NOPERM").says("+psync");
}

#[test]
fn a_server_that_is_away_is_named() {
    if !ready() {
        return;
    }
    let mut server = Server::start(&[]);
    server.cli("SET a 1");
    let s = project(&server, "");
    s.run(&format!("redis-cli -p {} SET a 2", server.port));
    server.stop();
    refused(&s, &["could not connect", "nothing listens there", "is the server running"]);
    s.snapback(["undo"]).exits(1).says("could not connect");
    // The way round.
    s.ok(["run", "--skip", "redis", "--", "true"]);
}

/// A server that says `version` of itself, and one that is none at all.
fn fake(answer: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let mut stream = stream;
            while let Some(Ok(line)) = lines.next() {
                if line == "INFO" || answer.starts_with("HTTP") {
                    let _ = stream.write_all(answer.as_bytes());
                }
            }
        }
    });
    port
}

#[test]
fn what_is_too_old_or_something_else_is_said() {
    if !ready() {
        return;
    }
    for (answer, words) in [
        ("$22\r\nredis_version:5.0.14\r\n\r\n", ["redis 5.0.14, which is too old", "Redis 6 and later"]),
        ("$41\r\nredis_version:7.0.15\r\ncluster_enabled:1\r\n\r\n", ["part of a cluster", "single servers"]),
        ("HTTP/1.1 400 Bad Request\r\n\r\n", ["does not answer as Redis does", "without TLS"]),
    ] {
        let s = with("redis");
        s.write("snapback.toml", target(fake(answer), ""));
        agree(&s);
        refused(&s, &words);
    }
}

#[test]
fn it_asks_for_an_address_and_a_variable_and_for_nothing_else() {
    let s = with("redis");
    let shown = s.ok(["backends", "show", "redis"]).out();
    for other in ["filesystem", "process", "tree", "sqlite", "udp"] {
        assert!(!shown.contains(other), "{other}: {shown}");
    }
    assert!(shown.contains("address (address") && shown.contains("password (env"), "{shown}");
    assert!(std::fs::metadata(component("redis")).unwrap().len() < 1 << 20);
}

#[test]
fn nothing_is_connected_to_before_it_was_agreed_to() {
    if !ready() {
        return;
    }
    let port = free_port();
    let listener = TcpListener::bind(("127.0.0.1", port)).unwrap();
    listener.set_nonblocking(true).unwrap();
    let s = with("redis");
    s.write("snapback.toml", target(port, ""));
    s.snapback(["run", "--", "true"]).fails(125, &["you have not agreed"]);
    assert!(listener.accept().is_err());
}
