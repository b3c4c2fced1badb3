//! A database of a gigabyte, where SNAPBACK_GIGABYTE is set: what is written and what the
//! store grows by depends on what changed.

use super::*;
use crate::sandbox;

#[test]
fn a_gigabyte_is_undone_under_an_open_connection() {
    if std::env::var_os("SNAPBACK_GIGABYTE").is_none() || !ready() {
        return;
    }
    let s = sandbox();
    make(&s, "app", "wal", 1);
    let mut app = Python::start(&s);
    app.open("app");
    app.sql("PRAGMA synchronous = OFF");
    for _ in 0..100 {
        app.sql(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000) \
             INSERT INTO t(b) SELECT randomblob(10700) FROM n",
        );
    }
    app.sql("PRAGMA wal_checkpoint(TRUNCATE)");
    assert!(std::fs::metadata(s.project().join("app.db")).unwrap().len() > 1 << 30);
    s.ok(["snap"]);
    // A hundred rows, far from each other: as many blocks, and those above them.
    s.run(&migrate("app", "UPDATE t SET b = randomblob(10700) WHERE a % 1000 = 7"));
    s.ok(["undo"]);
    assert_eq!(app.count(), "[(100001,)]");
    let saved = s.ok(["list", "--json"]).json()[0]["bytes_added"].as_u64().unwrap();
    assert!(saved < (100 * 2 + 20) * 65_536, "{saved}");
    app.kill();
    is_sound(&s, "app");
}
