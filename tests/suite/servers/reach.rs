//! What the two components reach when they are granted less than they ask for: each is the one that is
//! shipped, whose manifest alone was changed, so that a setting that it goes by grants nothing.

use super::{agree, component, postgres, redis};
use crate::sandbox;
use snapback_tests::Sandbox;
use std::net::TcpListener;

/// The setting of the address that they connect to, as one that grants nothing.
const NO_ADDRESS: (&str, &str) =
    ("key = \"address\"\nkind = \"address\"\n", "key = \"address\"\nkind = \"text\"   \n");

/// A sandbox with the component `name`, whose manifest was changed.
fn changed(name: &str, changes: &[(&str, &str)]) -> Sandbox {
    let mut bytes = std::fs::read(component(name)).unwrap();
    for (from, to) in changes {
        assert_eq!(from.len(), to.len(), "{to}");
        let is_it = |window: &[u8]| window == from.as_bytes();
        let at = bytes.windows(from.len()).position(is_it).unwrap_or_else(|| panic!("no {from}"));
        assert_eq!(bytes.windows(from.len()).filter(|window| is_it(window)).count(), 1);
        bytes[at..at + to.len()].copy_from_slice(to.as_bytes());
    }
    let s = sandbox();
    let file = s.dir().join(format!("{name}.wasm"));
    std::fs::write(&file, bytes).unwrap();
    s.ok(["backends", "add", file.to_str().unwrap()]);
    s
}

/// The settings of a target of the backend `name`, agreed to.
fn declare(s: &Sandbox, name: &str, settings: &str) {
    let database = if name == "postgres" { "database = \"app\"\n" } else { "" };
    s.write("snapback.toml", format!("[[target]]\nbackend = \"{name}\"\n{database}{settings}\n"));
    agree(s);
}

/// Somebody who listens, and the port.
fn listener(at: &str) -> (TcpListener, u16) {
    let listener = TcpListener::bind(at).unwrap();
    listener.set_nonblocking(true).unwrap();
    let port = listener.local_addr().unwrap().port();
    (listener, port)
}

#[test]
fn without_an_address_they_connect_to_nobody() {
    for name in ["postgres", "redis"] {
        let s = changed(name, &[NO_ADDRESS]);
        let (listener, port) = listener("127.0.0.1:0");
        for host in ["127.0.0.1", "localhost"] {
            declare(&s, name, &format!("address = \"{host}:{port}\""));
            s.snapback(["snap"]).exits(1).says(&format!("could not connect to {host}:{port}"));
        }
        assert!(listener.accept().is_err());
    }
}

#[test]
fn with_one_address_they_connect_to_no_other_port_and_no_other_host() {
    let redis = (
        "key = \"user\"\nkind = \"text\"\nhelp = \"the user to sign in as; without one, the default user\"",
        "key = \"user\"\nkind = \"address\"\nhelp = \"the user to sign in as; without one, the default  \"",
    );
    let postgres = (
        "key = \"user\"\nkind = \"text\"\ndefault = \"postgres\"\nhelp = \"whom to sign in as\"",
        "key = \"user\"\nkind = \"address\"\n                 \nhelp = \"whom to sign in as\"",
    );
    for (name, granted) in [("postgres", postgres), ("redis", redis)] {
        let s = changed(name, &[NO_ADDRESS, granted]);
        let (ours, port) = listener("127.0.0.1:0");
        let (other_port, other) = listener("127.0.0.1:0");
        let (other_host, _) = listener(&format!("127.0.0.2:{port}"));
        for address in
            [format!("127.0.0.1:{other}"), format!("127.0.0.2:{port}"), format!("localhost:{other}")]
        {
            declare(&s, name, &format!("user = \"127.0.0.1:{port}\"\naddress = \"{address}\""));
            s.snapback(["snap"]).exits(1).says(&format!("could not connect to {address}"));
        }
        for listener in [&other_port, &other_host] {
            assert!(listener.accept().is_err());
        }
        // The one that was granted is reached: what kept it from the others is that they were not.
        declare(&s, name, &format!("user = \"127.0.0.1:{port}\"\naddress = \"127.0.0.1:{port}\""));
        let mut connecting = s.start(["snap"]);
        super::until("a connection", || ours.accept().is_ok() || connecting.has_ended());
        drop(ours);
        connecting.wait();
        s.snapback(["snap"]).exits(1).says("nothing listens there");
    }
}

#[test]
fn without_the_variable_they_have_no_password() {
    if !redis::ready() {
        return;
    }
    let server = redis::Server::start(&["--requirepass secret"]);
    let granted = "key = \"password\"\nkind = \"env\"\nhelp = \"the variable that holds the password\"";
    let not = "key = \"password\"\nkind = \"text\"\nhelp = \"a variable that holds the password \"";
    let s = changed("redis", &[(granted, not)]);
    declare(&s, "redis", &format!("address = \"127.0.0.1:{}\"\npassword = \"PW\"", server.port));
    s.finish(s.program().env("PW", "secret").arg("snap")).exits(1).says("the variable PW is not set");
}

#[test]
fn a_program_that_was_not_granted_is_not_run() {
    if !postgres::ready() {
        return;
    }
    let server = postgres::Server::start();
    let text = |name: &str| {
        let [from, to] = ["kind = \"program\"", "kind = \"text\"   "]
            .map(|kind| format!("key = \"pg-{name}\"\n{kind}\nhelp = \"the program pg_{name}, for dumps\""));
        (from, to)
    };
    let (dump, restore) = (text("dump"), text("restore"));
    let s = changed("postgres", &[(&dump.0, &dump.1), (&restore.0, &restore.1)]);
    let program = s.dir().join("dump");
    std::fs::write(&program, format!("#!/bin/sh\ntouch {}/ran\n", s.dir().display())).unwrap();
    s.sh(&format!("chmod 755 {}", program.display()));
    let program = program.display();
    declare(
        &s,
        "postgres",
        &format!(
            "address = \"127.0.0.1:{}\"\nstrategy = \"dump\"\npg-dump = \"{program}\"\npg-restore = \"{program}\"",
            server.port
        ),
    );
    s.snapback(["snap"]).exits(1).says("pg-dump");
    assert!(!s.dir().join("ran").exists());
}

#[test]
fn they_have_no_way_to_a_file() {
    let s = sandbox();
    for (name, has) in [("postgres", "pg-dump (program)"), ("redis", "password (env)")] {
        s.ok(["backends", "add", &component(name)]);
        let shown = s.ok(["backends", "show", name]).out();
        assert!(shown.contains(has), "{shown}");
        // What is not asked for is not there: such a component would not start.
        for other in ["filesystem", "snapback:plugin/file", "snapback:plugin/tree", "sqlite", "docker", "udp"]
        {
            assert!(!shown.contains(other), "{name} {other}: {shown}");
        }
    }
}
