//! A project that was copied: both have the same copies on the server, and neither lets go of
//! what the other needs.

use super::{Server, project, ready};
use snapback_tests::{Output, Sandbox};

/// A project with a snapshot, and a copy of it, agreed to; the snapshot.
fn copied(server: &Server) -> (Sandbox, String) {
    server.psql("app", "CREATE TABLE t AS SELECT 1 AS a");
    let s = project(server, "");
    let id = s.ok(["snap"]).out().trim().to_owned();
    assert_eq!(server.ours().len(), 1);
    server.psql("app", "UPDATE t SET a = 2");
    s.sh("cp -a . ../copy");
    let said = in_copy(&s, &["trust"]).err();
    for digest in said.split("trust --digest ").skip(1) {
        let digest: String = digest.chars().take_while(char::is_ascii_hexdigit).collect();
        in_copy(&s, &["trust", "--digest", &digest]).exits(0);
    }
    (s, id)
}

fn in_copy(s: &Sandbox, words: &[&str]) -> Output {
    s.finish(s.program().current_dir(s.project().join("../copy")).args(words))
}

#[test]
fn what_the_copy_forgets_the_original_still_has() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let (s, id) = copied(&server);
    in_copy(&s, &["forget", "--yes", &id]).exits(0);
    in_copy(&s, &["gc"]).exits(0);
    s.ok(["restore", "--yes", &id]);
    assert_eq!(server.psql("app", "SELECT a FROM t"), "1");
    // Forgotten by both, it goes.
    let there = server.ours().len();
    s.ok(["forget", "--yes", &id]);
    assert_eq!(server.ours().len(), there - 1);
}

#[test]
fn what_goes_with_the_originals_history_the_copy_still_has() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let (s, id) = copied(&server);
    in_copy(&s, &["snap"]).exits(0);
    s.sh("cd ..; rm -rf project/.snapback; find \"$XDG_STATE_HOME\" -exec touch -h -d '60 days ago' {} +");
    in_copy(&s, &["gc", "--all", "--yes"]).exits(0);
    in_copy(&s, &["restore", "--yes", &id]).exits(0);
    assert_eq!(server.psql("app", "SELECT a FROM t"), "1");
}
