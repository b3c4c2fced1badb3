//! What a snapshot leaves on the server's disk: nothing.

use super::{Server, project, ready, refused};
use std::fs::Permissions;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};

/// A change that an undo takes back.
#[track_caller]
fn works(server: &Server) {
    let s = project(server, "");
    let before = server.cli("GET a");
    s.run(&format!("redis-cli -p {} SET a other", server.port));
    s.ok(["undo"]);
    assert_eq!(server.cli("GET a"), before);
}

#[test]
fn the_file_that_it_starts_from_stays_as_it_was() {
    if !ready() {
        return;
    }
    let mut server = Server::start(&[]);
    server.cli("SET seed 1\nSAVE\nDEL seed\nSET a 1");
    let file = server.file("dump.rdb");
    let seed = std::fs::read(&file).unwrap();
    works(&server);
    assert_eq!(std::fs::read(&file).unwrap(), seed);
    let names = |dir: &std::path::Path| std::fs::read_dir(dir).unwrap().count();
    assert_eq!(names(file.parent().unwrap()), 1);
    // Nor does it stay set up otherwise.
    assert_eq!(server.cli("CONFIG GET repl-diskless-sync-delay"), "repl-diskless-sync-delay\n5");
    server.cli("SHUTDOWN NOSAVE");
    server.restart();
    assert_eq!(server.cli("KEYS *"), "seed");
}

#[test]
fn one_that_cannot_write_there_is_covered_and_goes_on_taking_writes() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--save 3600 1"]);
    server.cli("SET a 1");
    let file = server.file("dump.rdb");
    let dir = file.parent().unwrap();
    std::fs::set_permissions(dir, Permissions::from_mode(0o555)).unwrap();
    works(&server);
    std::fs::set_permissions(dir, Permissions::from_mode(0o755)).unwrap();
    assert!(server.cli("INFO persistence").contains("rdb_last_bgsave_status:ok"));
    assert_eq!(server.cli("SET a 2"), "OK");
}

#[test]
fn one_that_would_write_it_is_refused_before_it_does() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--repl-diskless-sync no"]);
    server.cli("SET a 1");
    let s = project(&server, "");
    refused(&s, &["would write its dump file", "CONFIG SET repl-diskless-sync yes"]);
    assert!(!server.file("dump.rdb").exists());
    server.cli("CONFIG SET repl-diskless-sync yes");
    works(&server);
    assert!(!server.file("dump.rdb").exists());
}

#[test]
fn a_server_that_tells_nothing_of_its_configuration_is_covered() {
    if !ready() {
        return;
    }
    // There the replicas' delay is waited for.
    let server = Server::start(&["--rename-command CONFIG hidden", "--repl-diskless-sync-delay 1"]);
    server.cli("SET a 1");
    works(&server);
    assert!(!server.file("dump.rdb").exists());
}

/// A port that leads to the server, until it is asked for a copy: with the message that does that all
/// connections end, as when whoever sent it is killed.
fn cut_at_the_copy(server: &Server) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (port, there) = (listener.local_addr().unwrap().port(), server.port);
    let all = Arc::new(Mutex::new(Vec::<[TcpStream; 2]>::new()));
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let server = TcpStream::connect(("127.0.0.1", there)).unwrap();
            let clones = [&client, &server].map(|stream| stream.try_clone().unwrap());
            all.lock().unwrap().push(clones);
            let [(mut from, mut to), (mut back, mut away)] = [(&client, &server), (&server, &client)]
                .map(|(from, to)| (from.try_clone().unwrap(), to.try_clone().unwrap()));
            std::thread::spawn(move || std::io::copy(&mut back, &mut away));
            let all = all.clone();
            std::thread::spawn(move || {
                let mut message = vec![0; 64 * 1024];
                while let Ok(length @ 1..) = from.read(&mut message) {
                    let is_last = message[..length].windows(5).any(|word| word == b"PSYNC");
                    let ended = if is_last { std::mem::take(&mut *all.lock().unwrap()) } else { Vec::new() };
                    // Whoever sent it hears nothing more, and what was sent arrives.
                    ended.iter().for_each(|[client, _]| drop(client.shutdown(Shutdown::Both)));
                    let _ = to.write_all(&message[..length]);
                    ended.iter().for_each(|[_, server]| drop(server.shutdown(Shutdown::Write)));
                }
            });
        }
    });
    port
}

#[test]
fn a_snapshot_that_is_killed_leaves_nothing_set_otherwise() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--repl-diskless-sync-delay 3"]);
    server.cli("SET a 1");
    let s = super::with("redis");
    s.write("snapback.toml", super::target(cut_at_the_copy(&server), ""));
    super::agree(&s);
    s.snapback(["snap"]).exits(1).says("the server closed the connection");
    // What was sent is worked on, and then something else.
    assert_eq!(server.cli("CONFIG GET repl-diskless-sync-delay"), "repl-diskless-sync-delay\n3");
    works(&server);
    assert_eq!(server.cli("CONFIG GET repl-diskless-sync-delay"), "repl-diskless-sync-delay\n3");
}

#[test]
fn who_may_not_leave_out_a_reply_waits_for_the_copy() {
    if !ready() {
        return;
    }
    let server = Server::start(&["--repl-diskless-sync-delay 1"]);
    server.cli("SET a 1\nACL SETUSER default -client|reply");
    works(&server);
    server.cli("ACL SETUSER default +@all -config|set");
    works(&server);
}
