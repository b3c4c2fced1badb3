//! What comes back is what was there, to the byte.

use super::{Server, agree, declare, project, ready, there_and_back};
use std::fmt::Write;

/// One of each type and encoding, in two databases, and a library of functions.
pub fn fill(server: &Server) {
    types(server);
    let load = "FUNCTION LOAD \"#!lua name=mylib\\nredis.register_function('f', function() return 7 end)\"";
    assert_eq!(server.cli(load), "mylib");
}

/// One of each type and encoding, in two databases.
pub fn types(server: &Server) {
    let mut lines = String::from(
        "SET text hello\nSET number 12345\nSET \"\\x00\\xff\\r\\n key\" \"\\x00\\xfe\\r\\n value\"\nSET empty \"\"\n\
         SET later 1 PXAT 4102444800123\nAPPEND packed aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n\
         SADD numbers 3 1 2\nSADD words b a c\nHSET h f v g w\nRPUSH l b a c\nZADD z 1.5 one -inf low inf high\n\
         PFADD hll a b c\nSETBIT bits 100 1\nGEOADD geo 13.361389 38.115556 Palermo\n\
         XADD s 1-1 a 1\nXADD s 2-1 b 2\nXADD s 3-1 c 3\nXDEL s 2-1\nXGROUP CREATE s g 0\n\
         XREADGROUP GROUP g alice COUNT 1 STREAMS s >\nXGROUP CREATECONSUMER s g bob\n",
    );
    for n in 0..600 {
        let _ = writeln!(
            lines,
            "SADD bigset m{n}\nHSET bighash f{n} v{n}\nRPUSH biglist e{n}\nZADD bigz {n} e{n}"
        );
    }
    lines.push_str("SET large \"");
    lines.push_str(&"0123456789abcdef".repeat(4000));
    lines.push_str("\"\nSELECT 1\nSET other 1\nSADD bigset x y z\n");
    let said = server.cli(&lines);
    assert!(!said.contains("ERR"), "{said}");
}

#[test]
fn every_type_comes_back_as_it_was() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    fill(&server);
    let s = project(&server, "");
    let port = server.port;
    let change = format!(
        "redis-cli -p {port} FLUSHALL; redis-cli -p {port} FUNCTION FLUSH; redis-cli -p {port} SET text bye; \
         redis-cli -p {port} -n 2 SET new 1; redis-cli -p {port} PEXPIRE text 100000000000"
    );
    there_and_back(&s, &change, || server.record());
    assert_eq!(server.cli("FCALL f 0"), "7");
}

#[test]
fn what_did_not_change_is_the_same_snapshot() {
    if !ready() {
        return;
    }
    let mut server = Server::start(&["--appendonly yes"]);
    fill(&server);
    let s = project(&server, "");
    s.ok(["snap"]);
    let changes = |s: &snapback_tests::Sandbox| s.ok(["diff", "@0", "--json"]).json()["changes"].clone();
    assert_eq!(changes(&s), serde_json::json!([]));
    // Another process has other seeds: its hash tables have another order. (When a consumer was
    // seen is not in that file.)
    server.cli("DEL s");
    s.ok(["snap"]);
    server.restart();
    assert_eq!(changes(&s), serde_json::json!([]));
    server.cli("HSET bighash f1 other");
    assert_eq!(changes(&s).as_array().unwrap().len(), 1);
}

#[test]
fn a_restore_outlives_a_restart_with_the_append_only_file() {
    if !ready() {
        return;
    }
    let mut server = Server::start(&["--appendonly yes"]);
    fill(&server);
    let s = project(&server, "");
    let before = server.record();
    s.run(&format!("redis-cli -p {} DEL text bighash s", server.port));
    s.ok(["undo"]);
    assert_eq!(server.record(), before);
    server.restart();
    assert_eq!(server.record(), before);
}

#[test]
fn of_one_database_the_others_are_left_alone() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    fill(&server);
    let s = project(&server, "database = \"1\"");
    let port = server.port;
    s.run(&format!("redis-cli -p {port} SET text bye; redis-cli -p {port} -n 1 SET other 2"));
    s.ok(["undo"]);
    assert_eq!(server.cli("GET text"), "bye");
    assert_eq!(server.feed(&["-n", "1"], "GET other"), "1");
    declare(&s, &server, "database = \"one\"");
    agree(&s);
    s.snapback(["snap"]).exits(2).says("`database` is a number or `all`, not `one`");
}

#[test]
fn what_expires_is_not_brought_back_and_the_rest_keeps_its_time() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    server.cli("SET soon 1 PX 1500\nSET late 1 PX 500000\nSET stays 1");
    let at = server.cli("PEXPIRETIME late");
    let s = project(&server, "");
    s.run(&format!("redis-cli -p {} DEL late; sleep 2", server.port));
    s.ok(["undo"]);
    assert_eq!(server.cli("PEXPIRETIME late\nEXISTS soon\nGET stays"), format!("{at}\n0\n1"));
}

#[test]
fn keys_that_differ_are_named() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    fill(&server);
    let s = project(&server, "");
    s.ok(["snap"]);
    server.cli("SET text bye\nDEL number\nSADD bigset one-more\nSELECT 1\nSET fresh 1\nFUNCTION FLUSH");
    let changes = s.ok(["diff", "@0", "--json"]).json()["changes"].clone();
    let text = |change: &serde_json::Value, key: &str| change[key].as_str().unwrap().to_owned();
    let told = changes.as_array().unwrap().iter();
    let told: Vec<String> = told.map(|c| format!("{} {}", text(c, "kind"), text(c, "path"))).collect();
    let expected = [
        "modified 0/bigset",
        "deleted 0/number",
        "modified 0/text",
        "added 1/fresh",
        "deleted functions #!lua name=mylib",
    ];
    assert_eq!(told, expected);
}
