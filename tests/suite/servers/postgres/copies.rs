//! The copies: made only where they must be, and never lost by a failure.

use super::{Server, project, ready};

#[test]
fn nothing_is_copied_again_when_it_is_proven_that_nothing_changed() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", "CREATE TABLE t(a serial); INSERT INTO t DEFAULT VALUES");
    let s = project(&server, "");
    for _ in 0..3 {
        s.run("date +%N > f");
        assert_eq!(server.psql("app", "SELECT count(*) FROM t"), "1");
    }
    let one = server.ours();
    assert_eq!(one.len(), 1);
    // Nor after an undo, which puts a copy of it in place.
    let drop_it = format!("psql {} -Xq -d app -c 'DELETE FROM t'", server.words());
    s.run(&drop_it);
    assert_eq!(server.ours(), one);
    s.ok(["undo"]);
    let two = server.ours();
    assert_eq!(two.len(), 2);
    for _ in 0..2 {
        s.run("date +%N > f");
        s.ok(["undo"]);
    }
    assert_eq!(server.ours(), two);
}

#[test]
fn whatever_changed_is_copied() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", "CREATE TABLE t(a serial); INSERT INTO t DEFAULT VALUES");
    let s = project(&server, "");
    s.ok(["snap"]);
    // The second one takes no number of a transaction: the server had logged it ahead.
    for (count, sql) in [
        (2, "SELECT nextval('t_a_seq')"),
        (3, "SELECT nextval('t_a_seq')"),
        (4, "INSERT INTO t DEFAULT VALUES"),
        (5, "TRUNCATE t"),
        (6, "BEGIN; CREATE INDEX ON t(a); COMMIT"),
        (7, "SELECT lo_create(7)"),
    ] {
        server.psql("app", sql);
        s.ok(["snap"]);
        assert_eq!(server.ours().len(), count, "{sql}");
    }
    // Work in another database cannot be told apart.
    server.psql("postgres", "CREATE TABLE other(a int)");
    s.ok(["snap"]);
    assert_eq!(server.ours().len(), 8);
}

#[test]
fn a_comparison_makes_no_copy() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let s = project(&server, "");
    s.ok(["snap"]);
    assert_eq!(s.ok(["diff", "@0", "--json"]).json()["changes"], serde_json::json!([]));
    server.psql("app", "CREATE TABLE t(a int)");
    assert_ne!(s.ok(["diff", "@0", "--json"]).json()["changes"], serde_json::json!([]));
    assert_eq!(server.ours().len(), 1);
}

#[test]
fn a_copy_that_somebody_dropped_is_named_and_nothing_is_touched() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let s = project(&server, "");
    s.run(&format!("psql {} -Xq -d app -c 'CREATE TABLE t(a int)'; echo 1 > f", server.words()));
    let after = server.record();
    let copy = server.ours().remove(0);
    server.psql("postgres", &format!("DROP DATABASE {copy}"));
    s.snapback(["undo"]).exits(1).says(&copy).says("is not on the server");
    assert_eq!((server.record(), s.read("f")), (after, "1\n".to_owned()));
}

#[test]
fn what_was_cut_short_is_found_and_named() {
    if !ready() {
        return;
    }
    let server = Server::start();
    for name in ["snapback_0123456789abcdef", "snapback_new_0123456789abcdef", "snapback_kept_01234567"] {
        server.psql("postgres", &format!("CREATE DATABASE {name}"));
    }
    let s = project(&server, "");
    let made = format!("psql {} -Xq -d app -c 'CREATE TABLE t(a int)'", server.words());
    s.run(&made).never_says("was left by").never_says("was kept by");
    let said = s.ok(["undo"]);
    said.says("snapback_0123456789abcdef was left by a snapshot")
        .says("snapback_new_0123456789abcdef was left by an undo")
        .says("snapback_kept_01234567 was kept by an undo");
    assert_eq!(said.err().matches("snapback_kept_01234567 was").count(), 1, "{said}");
}

#[test]
fn what_was_left_of_a_copy_goes_with_the_next_one_of_its_history() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let s = project(&server, "");
    s.ok(["snap"]);
    let first = server.ours().remove(0);
    let own = &first["snapback_".len()..][..8];
    // Nobody has written a note on them: one is of this history; of this one and whole, as its
    // note was lost; of another one.
    let (left, whole, other) = (
        format!("snapback_{own}00000000"),
        format!("snapback_{own}11111111"),
        "snapback_0123456700000000".to_owned(),
    );
    for name in [&left, &whole, &other] {
        server.psql("postgres", &format!("CREATE DATABASE {name}"));
    }
    server.psql("postgres", &format!("ALTER DATABASE {whole} ALLOW_CONNECTIONS false"));
    s.ok(["snap"]);
    let ours = server.ours();
    let there = [&first, &left, &whole, &other].map(|name| ours.contains(name));
    assert_eq!(there, [true, false, true, true], "{ours:?}");
}

#[test]
fn what_an_undo_was_about_to_put_in_place_goes_when_it_is_taken_back() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", super::steps::SCHEMA);
    let s = project(&server, "");
    s.run(&super::steps::migrate(&server, "DROP TABLE orders"));
    let (after, copy) = (server.record(), server.ours().remove(0));
    while !s.cut_short(&["undo"], std::time::Duration::ZERO) {
        s.ok(["redo"]);
    }
    // It may have been made already, or be about to be.
    let next = copy.replace("snapback_", "snapback_new_");
    let make = format!("CREATE DATABASE {next} TEMPLATE {copy} ALLOW_CONNECTIONS false");
    server.try_psql("postgres", &make);
    // Nothing was exchanged, and nobody has written anything.
    s.ok(["undo", "--take-back"]).never_says("kept as the database");
    assert_eq!(server.record(), after);
    assert!(server.ours().iter().all(|name| name.len() == copy.len()), "{:?}", server.ours());
}

#[test]
fn an_exchange_that_fails_leaves_the_old_one() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", "CREATE ROLE bob; ALTER DATABASE app OWNER TO bob");
    let s = project(&server, "");
    s.run(&format!(
        "psql {} -Xq -d app -c 'CREATE TABLE t(a int)' -c 'ALTER DATABASE app OWNER TO postgres' -c 'DROP OWNED BY bob' -c 'DROP ROLE bob'; echo 1 > f",
        server.words()
    ));
    let after = server.record();
    // The owner that it had is gone.
    s.snapback(["undo"]).exits(1).says("role \"bob\" does not exist");
    assert_eq!((server.record(), s.read("f")), (after, "1\n".to_owned()));
    assert_eq!(
        server.ours().iter().filter(|name| name.contains("_new_") || name.contains("_old_")).count(),
        0
    );
}

#[test]
fn a_copy_goes_with_the_last_snapshot_that_has_it() {
    if !ready() {
        return;
    }
    let mut server = Server::start();
    let s = project(&server, "");
    let id = |s: &snapback_tests::Sandbox| s.ok(["snap"]).out().trim().to_owned();
    let first = id(&s);
    server.psql("app", "CREATE TABLE t(a int)");
    let second = id(&s);
    assert_eq!(server.ours().len(), 2);
    // A look, and an undo that is only planned, leave nothing.
    server.psql("app", "CREATE TABLE u(a int)");
    s.ok(["diff"]);
    s.ok(["undo", "-n"]);
    assert_eq!(server.ours().len(), 2);
    s.ok(["forget", "--yes", &first]);
    assert_eq!(server.ours().len(), 1);
    // What cannot go is pending, is shown, and blocks nothing.
    server.stop();
    s.ok(["forget", "--yes", &second]).says("is not gone yet");
    s.ok(["status"]).prints("pending");
    s.ok(["run", "--skip", "postgres", "--", "true"]);
    server.up();
    s.ok(["gc"]);
    assert_eq!(server.ours(), [""; 0]);
    assert_eq!(s.ok(["status", "--json"]).json()["releases"], serde_json::json!([]));
}

#[test]
fn what_gc_drops_lets_its_copies_go() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let s = project(&server, "");
    let mut copies = Vec::new();
    for n in 0..4 {
        server.psql("app", &format!("CREATE TABLE t{n}(a int)"));
        s.ok(["snap"]);
        let ours = server.ours();
        copies.extend(ours.into_iter().find(|name| !copies.contains(name)));
    }
    assert_eq!(copies.len(), 4);
    s.ok(["gc", "--keep", "1"]);
    let (kept, listed) = (server.ours(), s.ok(["list", "--json"]).json().as_array().unwrap().len());
    assert!(listed < 4 && kept.len() == listed, "{listed} {kept:?}");
    assert!(kept.contains(&copies[3]) && !kept.contains(&copies[0]), "{copies:?} {kept:?}");
    assert_eq!(s.ok(["status", "--json"]).json()["releases"], serde_json::json!([]));
}

#[test]
fn another_history_on_the_same_server_has_copies_of_its_own() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let (one, other) = (project(&server, ""), project(&server, ""));
    let first = one.ok(["snap"]).out().trim().to_owned();
    let second = other.ok(["snap"]).out().trim().to_owned();
    assert_eq!(server.ours().len(), 2);
    one.ok(["forget", "--yes", &first]);
    server.psql("app", "CREATE TABLE t(a int)");
    other.ok(["restore", &second]);
    assert_eq!(server.psql("app", "SELECT count(*) FROM pg_tables WHERE tablename = 't'"), "0");
}

#[test]
fn tables_that_differ_are_named() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql("app", super::steps::SCHEMA);
    let s = project(&server, "");
    s.ok(["snap"]);
    let told = |sql: &str| {
        server.psql("app", sql);
        let changes = s.ok(["diff", "@0", "--json"]).json()["changes"].clone();
        s.ok(["snap"]);
        let text = |change: &serde_json::Value, key: &str| change[key].as_str().unwrap().to_owned();
        let all = changes.as_array().unwrap().iter();
        all.map(|change| format!("{} {}", text(change, "kind"), text(change, "path"))).collect::<Vec<_>>()
    };
    assert_eq!(told("DELETE FROM orders WHERE id = 3"), ["modified public.orders"]);
    assert_eq!(told("ALTER TABLE people ADD COLUMN x int"), ["modified public.people"]);
    assert_eq!(
        told("CREATE TABLE new(a int); DROP VIEW grown"),
        ["deleted public.grown", "added public.new"]
    );
    assert_eq!(told("CREATE INDEX ON people(age)"), ["modified public.people"]);
    assert_eq!(told("ALTER DATABASE app SET work_mem TO 777"), ["modified database"]);
    assert_eq!(told("SELECT setval('people_id_seq', 9000)"), ["modified database"]);
    server.psql("app", "INSERT INTO people(name, age) VALUES ('new', 1)");
    s.ok(["diff", "@0", "-p"]).prints("public.people").prints("500 rows, then 501 rows");
}

#[test]
fn what_the_copies_take_on_the_server_is_said() {
    if !ready() {
        return;
    }
    let server = Server::start();
    server.psql(
        "app",
        "CREATE TABLE big AS SELECT repeat(md5(i::text), 30) AS text FROM generate_series(1, 9000) i",
    );
    let s = project(&server, "");
    s.ok(["snap", "-v"]).says("1 copy takes").says("MB on the server");
    // How much of the store there may be says nothing about them.
    let words = "what 1 snapshot may hold outside the store for `postgres` counts in no size limit";
    s.ok(["status"]).prints(words);
    s.ok(["gc", "--max-size", "1GiB"]).says(words);
    s.ok(["gc"]).never_says("no size limit");
    s.ok(["show", "@0"]).prints(" B in the store, perhaps more outside of it");
    // A second one, and less room for them: that is said without being asked for.
    super::declare(&s, &server, "copies-size = \"20MiB\"");
    super::agree(&s);
    server.psql("app", "DELETE FROM big WHERE text LIKE '0%'");
    let all = "SELECT sum(pg_database_size(oid)) FROM pg_database WHERE datname LIKE 'snapback%'";
    let said = s.ok(["snap"]).says("more than 21.0 MB (`copies-size`)").says("snapback gc --keep N").err();
    let taken: f64 = server.psql("postgres", all).parse().unwrap();
    assert!(said.contains(&format!("2 copies take {:.1} MB on the server", taken / 1e6)), "{said}");
    // Nothing is said where nothing was copied.
    s.ok(["snap"]).never_says("on the server");
}
