//! What a snapshot leaves on the server's disk: nothing.

use super::{Server, project, ready, refused};
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

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
