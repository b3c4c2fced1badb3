//! What can be wrong with a server, told in words, before anything runs.

use super::{Server, agree, declare, project, ready, refused, target, with};
use std::io::{Read, Write};
use std::net::TcpListener;

#[test]
fn each_way_to_sign_in_works_and_a_wrong_password_is_said() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("postgres", "CREATE ROLE scram SUPERUSER LOGIN PASSWORD 'pa''ss,=wörd'");
    server.psql(
        "postgres",
        "SET password_encryption = 'md5'; CREATE ROLE mdfive SUPERUSER LOGIN PASSWORD 'pa''ss,=wörd'",
    );
    let s = project(&server, "");
    s.ok(["snap"]);
    for user in ["scram", "mdfive"] {
        declare(&s, &server, &format!("user = \"{user}\""));
        agree(&s);
        refused(&s, &["wants a password", "`password` names the variable"]);
        declare(&s, &server, &format!("user = \"{user}\"\npassword = \"APP_PW\""));
        agree(&s);
        refused(&s, &["the variable APP_PW is not set"]);
        let snap = |password: &str| s.finish(s.program().env("APP_PW", password).arg("snap"));
        snap("wrong").exits(1).says("password authentication failed").says("right?");
        snap("pa'ss,=wörd").exits(0);
    }
}

#[test]
fn a_server_that_insists_on_tls_is_said() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("postgres", "CREATE ROLE tls SUPERUSER LOGIN");
    let s = project(&server, "user = \"tls\"");
    refused(&s, &["no encryption", "TLS is not spoken here"]);
}

#[test]
fn a_server_or_a_database_that_is_away_is_named() {
    if !ready() {
        return;
    }
    let mut server = Server::start();
    let s = project(&server, "");
    s.run(&format!("psql {} -Xq -d app -c 'CREATE TABLE t(a int)'", server.words()));
    server.stop();
    refused(&s, &["could not connect", "nothing listens there"]);
    s.snapback(["undo"]).exits(1).says("could not connect");
    s.ok(["run", "--skip", "postgres", "--", "true"]);
    server.up();
    declare(&s, &server, "maintenance-database = \"none\"");
    agree(&s);
    refused(&s, &["database \"none\" does not exist", "maintenance-database"]);
    declare(&s, &server, "maintenance-database = \"app\"");
    agree(&s);
    s.snapback(["snap"]).exits(2).says("`database` cannot be `app`");
}

/// A server that answers this to whatever comes first.
fn fake(answer: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer);
            // Until the other side goes.
            let _ = stream.read(&mut [0; 1024]);
        }
    });
    port
}

#[test]
fn what_is_too_old_or_something_else_is_said() {
    for (answer, words) in [
        (
            &b"R\0\0\0\x08\0\0\0\0S\0\0\0\x18server_version\x0011.22\0Z\0\0\0\x05I"[..],
            ["Postgres 11.22, which is too old", "Postgres 12 and later"],
        ),
        (
            b"HTTP/1.1 400 Bad Request\r\n\r\n",
            ["does not answer as Postgres does", "is `address` that of a Postgres"],
        ),
        (b"R\0\0\0\x08\0\0\0\x07", ["in a way that is not known here", "scram-sha-256, md5"]),
    ] {
        let s = with("postgres");
        s.write("snapback.toml", target(fake(answer), ""));
        agree(&s);
        refused(&s, &words);
    }
}

#[test]
fn nothing_of_a_password_is_kept() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("postgres", "CREATE ROLE scram SUPERUSER LOGIN PASSWORD 'extraordinary'");
    let s = project(&server, "user = \"scram\"\npassword = \"APP_PW\"");
    s.finish(s.program().env("APP_PW", "extraordinary").args(["run", "--", "true"])).exits(0);
    assert_eq!(
        s.sh("grep -rl extraordinary .snapback ../../state ../../cache 2>/dev/null | head -n 1; true"),
        ""
    );
}
