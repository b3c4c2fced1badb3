//! What `diff` says of a database.

use super::*;
use crate::{newest, sandbox};
use serde_json::json;

/// Tables of several kinds, with a few rows in each.
const TABLES: &str = "CREATE TABLE w(k TEXT COLLATE NOCASE, n INT, v, PRIMARY KEY(k, n)) WITHOUT ROWID
    INSERT INTO w VALUES('a', 1, 'one'), ('b', 1, 'two'), ('c', 1, NULL)
    CREATE TABLE g(a INTEGER PRIMARY KEY, b, c GENERATED ALWAYS AS (b * 2), rowid)
    INSERT INTO g(a, b) VALUES(1, 10), (2, 20)
    CREATE TABLE old(x)
    INSERT INTO old VALUES(1)
    CREATE INDEX i ON t(b)";

#[test]
fn tables_are_told_with_rows_that_came_changed_and_went() {
    if !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "app", "wal", 100);
    sql(&s, "app", TABLES);
    s.ok(["snap"]);
    let first = newest(&s);
    sql(
        &s,
        "app",
        "DELETE FROM t WHERE a <= 30
         UPDATE t SET b = 'new ' || a WHERE a = 50
         UPDATE t SET b = 60 WHERE a = 60
         INSERT INTO t(a, b) VALUES(1000, x'00ff'), (1001, 'it''s')
         UPDATE w SET v = 'ONE' WHERE k = 'a'
         DELETE FROM w WHERE k = 'b'
         INSERT INTO w VALUES('d', 1, 1.5)
         UPDATE g SET b = 11 WHERE a = 1
         ALTER TABLE t ADD COLUMN more
         DROP TABLE old
         DROP INDEX i
         CREATE VIEW v AS SELECT * FROM t
         CREATE TABLE fresh(y)",
    );
    let out = s.ok(["diff", &first]).out();
    let want = "M app.db\n  index i: removed\n  table fresh: added\n  table old: removed\n  table t: changed\n  \
                view v: added\n  g: row 1 modified\n  old: row 1 deleted\n  t: rows 2 added, 2 modified, 30 deleted\n  \
                w: rows 1 added, 1 modified, 1 deleted\n";
    assert_eq!(out, want);
    // Between two snapshots it is the same, and the other way round the other way round.
    s.ok(["snap"]);
    let second = newest(&s);
    assert_eq!(s.ok(["diff", &first, &second]).out(), want);
    s.ok(["diff", &second, &first])
        .prints("t: rows 30 added, 2 modified, 2 deleted")
        .prints("table old: added");
    assert_eq!(s.ok(["diff", &second]).out(), "");
    let json = s.ok(["diff", &first, "--json"]).json();
    let change = &json["changes"][0];
    assert_eq!(change["path"], "app.db");
    assert_eq!(change["tables"][2], json!({"name": "t", "added": 2, "modified": 2, "deleted": 30}));
    assert_eq!(change["schema"][1], json!({"kind": "added", "type": "table", "name": "fresh"}));
}

#[test]
fn a_patch_shows_rows_and_not_too_many() {
    if !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "app", "delete", 100);
    sql(&s, "app", TABLES);
    s.ok(["snap"]);
    sql(
        &s,
        "app",
        "UPDATE w SET v = zeroblob(100) WHERE k = 'a'
         UPDATE t SET b = printf('%.500c', 'x') WHERE a = 1
         DELETE FROM t WHERE a > 50",
    );
    let out = s.ok(["diff", "-p", "@0"]).out();
    for line in [
        "@@ t: rows 1 modified, 50 deleted @@",
        "-a=51 b='row 51'",
        "-a=70 b='row 70'",
        "... and 31 more rows",
        "@@ w: row 1 modified @@",
        "-k='a' n=1 v='one'",
        "+k='a' n=1 v=x'000000000000000000000000000000'... (100 bytes)",
    ] {
        assert!(out.lines().any(|other| other == line), "{line}\n{out}");
    }
    assert!(out.lines().count() < 40 && out.lines().all(|line| line.len() < 200), "{out}");
}

#[test]
fn one_that_came_or_went_is_told_by_its_tables() {
    if !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "gone", "delete", 5);
    s.write("plain.db", "text\n");
    s.run(&format!(
        "rm gone.db; echo more >> plain.db; {}",
        migrate("new", "CREATE TABLE t(a); INSERT INTO t VALUES(1)")
    ));
    let out = s.ok(["diff", "-p"]).out();
    for line in [
        "D gone.db",
        "@@ t: rows 5 deleted @@",
        "A new.db",
        "@@ t: row 1 added @@",
        "+a=1",
        "M plain.db",
        "+more",
    ] {
        assert!(out.lines().any(|other| other == line), "{line}\n{out}");
    }
    s.ok(["diff", "--stat"]).prints("gone.db: ");
    // A file by then is shown as what it is.
    s.run("echo text > new.db");
    let out = s.ok(["diff"]).out();
    assert_eq!(out, "M new.db\n");
    s.ok(["undo"]);
    assert_eq!(count(&s, "new"), "[(1,)]");
}

#[test]
fn what_cannot_be_read_as_a_database_is_said() {
    if !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "app", "delete", 500);
    s.ok(["snap"]);
    s.sh("python3 -c \"
b = bytearray(open('app.db', 'rb').read()); b[4096:] = b'\\x07' * (len(b) - 4096); open('app.db', 'wb').write(b)\"");
    s.ok(["diff", "@0"]).prints("M app.db").prints("could not be compared");
    s.ok(["diff", "@0", "--json"]);
    s.ok(["undo"]);
    is_sound(&s, "app");
}

#[test]
fn a_table_of_many_columns_and_one_whose_rows_have_no_name_are_told_like_others() {
    if !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "app", "delete", 1);
    let columns = (0..1900).map(|n| format!("c{n}")).collect::<Vec<_>>().join(", ");
    sql(
        &s,
        "app",
        &format!(
            "CREATE TABLE wide({columns})
             INSERT INTO wide(c0, c1899) VALUES(1, 2), (3, 4)
             CREATE TABLE odd(rowid, oid, _rowid_)
             INSERT INTO odd VALUES(1, 2, 3), (1, 2, 3), (4, 5, 6), (7, 8, 9)"
        ),
    );
    s.ok(["snap"]);
    sql(
        &s,
        "app",
        "UPDATE wide SET c1899 = 5 WHERE c0 = 3
         DELETE FROM odd WHERE oid = 5
         INSERT INTO odd VALUES(1, 2, 3)",
    );
    assert_eq!(
        s.ok(["diff", "@0"]).out(),
        "M app.db\n  odd: rows 1 added, 1 deleted\n  wide: row 1 modified\n"
    );
    s.ok(["diff", "@0", "-p"]).prints("rowid=4 oid=5").prints("c0=3");
}
