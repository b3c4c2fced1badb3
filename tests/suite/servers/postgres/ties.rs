//! What holds a database or is tied to it: an undo that would destroy it or leave it behind is
//! refused, and nothing is touched.

use super::{Server, project, ready, refused};
use snapback_tests::Sandbox;

/// That an undo is announced as refused, is refused with `words` on standard error, touches
/// nothing, and works once `remedy` was done in the database.
#[track_caller]
fn refused_until(server: &Server, s: &Sandbox, words: &[&str], remedy: &str) {
    s.run(&format!("psql {} -Xq -d app -c 'INSERT INTO t VALUES (1)'; echo 1 > f", server.words()))
        .says("an undo is refused as it is")
        .says(words[0]);
    let said = s.snapback(["undo"]);
    said.exits(1).never_says("could not be taken back");
    for word in words {
        said.says(word);
    }
    assert_eq!((server.psql("app", "SELECT count(*) FROM t").as_str(), &*s.read("f")), ("1", "1\n"));
    assert_eq!(s.ok(["status", "--json"]).json()["pending"], serde_json::json!(null));
    let left: Vec<String> = server.ours().into_iter().filter(|name| name.len() != 25).collect();
    assert_eq!(left, [""; 0], "nothing but copies");
    server.psql("app", remedy);
    s.ok(["undo"]);
    assert_eq!((server.psql("app", "SELECT count(*) FROM t").as_str(), &*s.read("f")), ("0", "0\n"));
}

#[test]
fn a_logical_replication_slot_is_not_destroyed() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", "CREATE TABLE t(a int)");
    server.psql("app", "SELECT pg_create_logical_replication_slot('changes', 'pgoutput')");
    let s = project(&server, "");
    let remedy = "SELECT pg_drop_replication_slot('changes')";
    refused_until(&server, &s, &["the logical replication slot changes", remedy], remedy);
}

#[test]
fn a_subscription_is_not_left_behind() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", "CREATE TABLE t(a int)");
    server.psql(
        "app",
        "CREATE SUBSCRIPTION news CONNECTION 'host=127.0.0.1 port=1 dbname=x' PUBLICATION p \
         WITH (connect = false, slot_name = NONE)",
    );
    let s = project(&server, "");
    let words = ["the subscription news", "`DROP SUBSCRIPTION \"news\"` in the database"];
    refused_until(&server, &s, &words, "DROP SUBSCRIPTION news");
}

#[test]
fn a_prepared_transaction_is_named_with_what_ends_it() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", "CREATE TABLE t(a int)");
    let prepare = |name: &str| {
        let sql = format!("BEGIN; INSERT INTO t VALUES (1); PREPARE TRANSACTION '{name}'");
        server.psql("app", &sql);
    };
    let s = project(&server, "disconnect = \"always\"");
    prepare("it''s mine");
    let words = ["held by what was prepared in it: it's mine", "`ROLLBACK PREPARED 'it''s mine'`"];
    refused(&s, &words);
    server.psql("app", "ROLLBACK PREPARED 'it''s mine'");
    s.run(&format!("psql {} -Xq -d app -c 'INSERT INTO t VALUES (1)'", server.words()));
    prepare("second");
    s.snapback(["undo"]).exits(1).says("prepared in it: second");
    server.psql("app", "ROLLBACK PREPARED 'second'");
    s.ok(["undo"]);
    assert_eq!(server.psql("app", "SELECT count(*) FROM t"), "0");
}

#[test]
fn a_template_is_replaced_and_is_one_again() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", "CREATE TABLE t(a int)");
    server.psql("postgres", "ALTER DATABASE app IS_TEMPLATE true");
    let s = project(&server, "strategy = \"template\"");
    s.run(&format!(
        "psql {} -Xq -d app -c 'DROP TABLE t' -c 'ALTER DATABASE app IS_TEMPLATE false'",
        server.words()
    ));
    let templates = || {
        let sql = "SELECT datname FROM pg_database WHERE datistemplate AND datname NOT LIKE 'template_'";
        server.psql("postgres", sql)
    };
    s.ok(["undo"]).never_says("could not be dropped");
    assert_eq!((server.psql("app", "SELECT count(*) FROM t"), templates()), ("0".into(), "app".into()));
    // From a template to what is none, and back.
    s.ok(["redo"]).never_says("could not be dropped");
    assert_eq!(templates(), "");
    s.ok(["undo"]);
    assert_eq!(templates(), "app");
    assert!(server.ours().iter().all(|name| name.len() == 25), "{:?}", server.ours());
}
