//! Clients that go on reading and writing.

use super::{Server, project, ready};
use snapback_tests::{Running, Sandbox};

/// A client that writes: a pair of keys in one transaction, a counter, as fast as it can.
/// It ends with an error when the server refuses anything.
const WRITER: &str = r#"
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
f = s.makefile("rb")
n = 0
while True:
    n += 1
    s.sendall(f"MULTI\r\nSET left {n}\r\nSET right {n}\r\nINCR count\r\nEXEC\r\n".encode())
    for expected in (b"+OK", b"+QUEUED", b"+QUEUED", b"+QUEUED", b"*3", b"+OK", b"+OK", b":"):
        line = f.readline()
        if not line.startswith(expected):
            open("../writer-failed", "wb").write(line)
            sys.exit(1)
"#;

/// A client that reads two keys which only a restore changes, and notes what it saw.
const READER: &str = r#"
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
f = s.makefile("rb")
seen = set()
while True:
    s.sendall(b"MGET first second\r\n")
    assert f.readline() == b"*2\r\n"
    got = []
    for _ in range(2):
        head = f.readline()
        got.append("-" if head == b"$-1\r\n" else f.readline().decode().strip())
    if tuple(got) not in seen:
        seen.add(tuple(got))
        open("../seen", "a").write(" ".join(got) + "\n")
"#;

/// A client of a database that was empty: once something is put into it that is no job of its
/// own, it adds a job, and says where.
const PRODUCER: &str = r#"
import socket, sys
s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
f = s.makefile("rb")
def ask(line):
    s.sendall(line.encode() + b"\r\n")
    return f.readline()
while True:
    for n in range(1, 16):
        ask(f"SELECT {n}")
        if ask("DBSIZE") != b":0\r\n":
            ask("RPUSH queue job")
            open("../pushed", "w").write(str(n))
            sys.exit(0)
"#;

fn client(s: &Sandbox, server: &Server, script: &str) -> Running {
    Running::of(s.command("python3").args(["-c", script, &server.port.to_string()]))
}

#[test]
fn a_copy_is_of_one_moment_while_clients_write() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    let s = project(&server, "");
    let writer = client(&s, &server, WRITER);
    super::until("the first write", || !server.cli("GET count").is_empty());
    let known: Vec<String> = (0..5).map(|_| s.ok(["snap"]).out().trim().to_owned()).collect();
    drop(writer);
    for id in &known {
        s.ok(["restore", id]);
        let both = server.cli("GET left\nGET right");
        let (left, right) = both.split_once('\n').unwrap();
        assert_eq!(left, right);
    }
    assert!(!s.has("../writer-failed"));
}

#[test]
fn an_undo_among_writers_is_whole_and_loses_nothing() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    server.cli("SET first old\nSET second old\nSET count 0");
    let s = project(&server, "");
    s.run(&format!("redis-cli -p {} MSET first new second new", server.port));
    let writer = client(&s, &server, WRITER);
    let reader = client(&s, &server, READER);
    super::until("the first write", || server.cli("GET count") != "0");
    super::until("the first read", || s.has("../seen"));
    let counted: u64 = server.cli("GET count").parse().unwrap();
    // What is written all the time keeps its value, and is named.
    let said = s.snapback(["undo"]);
    said.exits(3).says("count").says("keeps its value");
    let goes_on: u64 = server.cli("GET count").parse().unwrap();
    assert!(goes_on >= counted, "{goes_on} after {counted}");
    assert_eq!(server.cli("MGET first second"), "old\nold");
    super::until("more writes", || server.cli("GET count").parse::<u64>().unwrap() > goes_on);
    super::until("the last read", || s.read("../seen").lines().count() > 1);
    drop((writer, reader));
    assert_eq!(s.read("../seen"), "new new\nold old\n");
    assert!(!s.has("../writer-failed"), "{}", s.read("../writer-failed"));
    let both = server.cli("GET left\nGET right");
    let (left, right) = both.split_once('\n').unwrap();
    assert_eq!(left, right);
}

#[test]
fn what_a_client_puts_into_an_empty_database_meanwhile_stays_there() {
    if !ready() {
        return;
    }
    for (database, which) in [("0", "database = \"0\""), ("all", "")] {
        let server = Server::start(&[]);
        server.cli("DEBUG POPULATE 100000 k 50");
        let s = project(&server, which);
        s.run(&format!("redis-cli -p {} SET k:1 changed", server.port));
        let producer = client(&s, &server, PRODUCER);
        s.ok(["undo"]);
        super::until("the job", || s.has("../pushed"));
        drop(producer);
        let pushed = s.read("../pushed");
        if database == "all" {
            // That one is put back, too: what was in it is in the snapshot before.
            s.ok(["redo"]);
        }
        let found = server.feed(&["-n", &pushed], "LRANGE queue 0 -1\nDBSIZE");
        assert_eq!(found, "job\n1", "{database}: in {pushed}");
        assert_eq!(server.cli("DBSIZE\nEXISTS queue"), "100000\n0", "{database}");
    }
}

#[test]
fn what_was_written_before_the_undo_acts_is_captured_first() {
    if !ready() {
        return;
    }
    let server = Server::start(&[]);
    server.cli("SET a 1");
    let s = project(&server, "");
    s.run(&format!("redis-cli -p {} SET a 2", server.port));
    server.cli("SET a 3\nSET b 1");
    s.ok(["undo"]);
    assert_eq!(server.cli("GET a\nEXISTS b"), "1\n0");
    s.ok(["redo"]);
    assert_eq!(server.cli("GET a\nGET b"), "3\n1");
}
