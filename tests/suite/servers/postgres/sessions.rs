//! Sessions of others: named, or ended where the settings say so.

use super::{PROGRAMS, Server, agree, declare, project, ready};
use snapback_tests::Running;

#[test]
fn a_session_is_named_with_both_remedies_and_nothing_starts() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let s = project(&server, "");
    let session = server.session();
    let said = s.snapback(["run", "--", "touch", "started"]);
    said.exits(125).says("webapp (user postgres").says("`disconnect").says("pg-dump");
    assert!(!s.has("started"));
    drop(session);
    server.end_sessions();
    s.run(&format!("psql {} -Xq -d app -c 'CREATE TABLE t(a int)'", server.words()));
    let _session = server.session();
    let after = server.record();
    s.snapback(["undo"]).exits(1).says("webapp (user postgres");
    assert_eq!(server.record(), after);
}

#[test]
fn for_an_undo_sessions_are_ended_where_that_is_set() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let s = project(&server, "disconnect = \"restore\"");
    let before = server.record();
    s.run(&format!("psql {} -Xq -d app -c 'CREATE TABLE t(a int)'", server.words()));
    let mut session = server.session();
    // A look at what changed ends nobody.
    s.ok(["diff"]);
    assert!(
        server.psql("postgres", "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'webapp'")
            == "1"
    );
    s.ok(["undo"]);
    assert_eq!(session.wait().code(), Some(2), "psql was told that its session had ended");
    assert_eq!(server.record(), before);
    // A snapshot may not, when there is anything to copy.
    server.psql("app", "CREATE TABLE more(a int)");
    let _session = server.session();
    s.snapback(["run", "--", "true"]).exits(125).says("webapp");
    declare(&s, &server, "disconnect = \"always\"");
    agree(&s);
    s.ok(["run", "--", "true"]);
}

#[test]
fn what_writers_write_during_an_undo_is_not_lost() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", "CREATE TABLE old(a int); CREATE TABLE log(n serial)");
    let s = project(&server, "disconnect = \"always\"");
    s.run(&format!("psql {} -Xq -d app -c 'DROP TABLE old'", server.words()));
    // Connects again as soon as it is thrown out, and notes what the server said it has.
    let script = "while :; do psql $WORDS -XAtq -d app -c 'INSERT INTO log DEFAULT VALUES RETURNING n' >> ../written 2>/dev/null; done";
    let writer = Running::of(s.command("sh").args(["-c", script]).env("WORDS", server.words()));
    super::until("some rows", || s.has("../written") && s.read("../written").lines().count() > 3);
    let said = s.snapback(["undo"]);
    drop(writer);
    assert!(said.code() == 0 || said.code() == 3, "{said}");
    assert_eq!(server.psql("app", "SELECT count(*) FROM old"), "0");
    // Each row that was written is in the database, or in a copy that is kept of what it was.
    let mut found = Vec::new();
    for name in server.ours().into_iter().chain(["app".to_owned()]) {
        server.psql("postgres", &format!("ALTER DATABASE {name} ALLOW_CONNECTIONS true"));
        found.extend(server.psql(&name, "SELECT n FROM log").lines().map(str::to_owned));
    }
    for row in s.read("../written").lines() {
        assert!(found.iter().any(|known| known == row), "row {row} is lost\n{said}");
    }
}

#[test]
fn work_in_another_database_is_not_taken_for_writes_to_this_one() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", "CREATE TABLE t(a int)");
    server.psql("postgres", "CREATE TABLE other(n int)");
    let s = project(&server, "");
    s.run(&format!("psql {} -Xq -d app -c 'DROP TABLE t'", server.words()));
    let work = "DO $$ BEGIN LOOP INSERT INTO other VALUES (1); COMMIT; END LOOP; END $$";
    let words = server.words();
    let mut psql = s.command("psql");
    let _writer = Running::of(psql.args(words.split(' ')).args(["-Xq", "-d", "postgres", "-c", work]));
    super::until("some rows", || server.psql("postgres", "SELECT count(*) > 99 FROM other") == "t");
    let said = s.snapback(["undo"]);
    said.exits(3)
        .says("others write on this server: it is not proven")
        .never_says("was written to meanwhile");
    assert_eq!(server.psql("app", "SELECT count(*) FROM t"), "0");
    let kept = server.ours().into_iter().find(|name| name.contains("_kept_")).expect("it is kept");
    said.says(&format!("`DROP DATABASE {kept}`"));
}

#[test]
fn a_user_whose_transactions_only_read_is_no_obstacle() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql(
        "postgres",
        "CREATE ROLE reader SUPERUSER LOGIN; ALTER ROLE reader SET default_transaction_read_only = on",
    );
    server.psql("app", "CREATE TABLE t(a int)");
    let programs = format!("pg-dump = \"{PROGRAMS}/pg_dump\"\npg-restore = \"{PROGRAMS}/pg_restore\"");
    for strategy in ["template", "dump"] {
        let s = project(&server, &format!("user = \"reader\"\nstrategy = \"{strategy}\"\n{programs}"));
        s.run(&format!("psql {} -Xq -d app -c 'DROP TABLE t'", server.words()));
        s.ok(["undo"]);
        assert_eq!(server.psql("app", "SELECT count(*) FROM t"), "0", "{strategy}");
    }
}

#[test]
fn a_missing_right_is_a_hint() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("postgres", "CREATE ROLE poor LOGIN; ALTER DATABASE app OWNER TO poor");
    let s = project(&server, "user = \"poor\"");
    s.snapback(["run", "--", "true"])
        .exits(125)
        .says("permission denied to create database")
        .says("CREATEDB");
    server.psql("postgres", "ALTER ROLE poor CREATEDB");
    let words = server.words().replace("-U postgres", "-U poor");
    s.run(&format!("psql {words} -Xq -d app -c 'CREATE TABLE t(a int)'"));
    s.ok(["undo"]);
    assert_eq!(server.psql("app", "SELECT count(*) FROM pg_tables WHERE tablename = 't'"), "0");
}
