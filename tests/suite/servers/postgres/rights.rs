//! An owner who is no superuser, in a database in which others set what the owner may not set.

use super::{PROGRAMS, Server, project, ready};

#[test]
fn settings_of_others_are_left_out_and_named_and_nothing_is_in_the_way() {
    if !ready() {
        return;
    }
    for (setting, words) in [
        ("ALTER ROLE bob IN DATABASE app SET work_mem TO '7MB'", "the setting work_mem for the role bob"),
        ("ALTER DATABASE app SET log_statement TO 'all'", "the setting log_statement"),
    ] {
        let server = Server::start();
        for statement in
            ["CREATE ROLE ann LOGIN CREATEDB", "CREATE ROLE bob LOGIN", "ALTER DATABASE app OWNER TO ann"]
        {
            server.psql("postgres", statement);
        }
        server.psql("app", "SET ROLE ann; CREATE TABLE t AS SELECT 1 AS a");
        // What the owner may set comes back.
        server.psql("postgres", "ALTER DATABASE app SET search_path TO public");
        let s = project(&server, "user = \"ann\"");
        s.run("true").never_says("an undo leaves out");
        server.psql("postgres", setting);
        let drop = format!("psql {} -Xq -d app -c 'DROP TABLE t'; echo 1 > f", server.words());
        s.run(&drop).says("an undo leaves out").says(words);
        s.snapback(["undo", "--yes"]).exits(3).says("without").says(words);
        assert_eq!((server.psql("app", "SELECT a FROM t"), s.read("f")), ("1".into(), "0\n".into()));
        let set = "SELECT setconfig FROM pg_db_role_setting s JOIN pg_database d ON d.oid = setdatabase \
                   WHERE datname = 'app'";
        assert_eq!(server.psql("postgres", set), "{search_path=public}");
        assert!(s.ok(["status", "--json"]).json()["pending"].is_null());
        // Who made it makes it again, and nothing is left out.
        server.psql("postgres", setting);
        s.run("true");
    }
}

#[test]
fn a_database_may_have_any_name_where_it_is_dumped() {
    if !ready() {
        return;
    }
    let server = Server::start();
    let name = "a=b 'c' \\\\d";
    server.psql("postgres", "ALTER DATABASE app RENAME TO \"a=b 'c' \\d\"");
    server.psql("dbname='a=b \\'c\\' \\\\d'", "CREATE TABLE t AS SELECT 1 AS a");
    let s = project(&server, "");
    let more = format!(
        "strategy = \"dump\"\npg-dump = \"{PROGRAMS}/pg_dump\"\npg-restore = \"{PROGRAMS}/pg_restore\""
    );
    let target = super::target(server.port, &more).replace("\"app\"", &format!("\"{name}\""));
    s.write("snapback.toml", target);
    super::agree(&s);
    let psql = |sql: &str| server.psql("dbname='a=b \\'c\\' \\\\d'", sql);
    s.run("true");
    psql("UPDATE t SET a = 2");
    s.ok(["undo", "--yes"]);
    assert_eq!(psql("SELECT a FROM t"), "1");
}

#[test]
fn what_only_a_superuser_could_load_is_said_beforehand() {
    if !ready() {
        return;
    }
    let more = format!(
        "user = \"ann\"\nstrategy = \"dump\"\npg-dump = \"{PROGRAMS}/pg_dump\"\npg-restore = \"{PROGRAMS}/pg_restore\""
    );
    for (made, unmade, words) in [
        ("CREATE EXTENSION pageinspect", "DROP EXTENSION pageinspect", "the extension pageinspect"),
        (
            "CREATE TABLE b(a int); GRANT ALL ON b TO ann; ALTER TABLE b OWNER TO bob",
            "DROP TABLE b",
            "what belongs to bob",
        ),
    ] {
        let server = Server::start();
        for statement in
            ["CREATE ROLE ann LOGIN CREATEDB", "CREATE ROLE bob", "ALTER DATABASE app OWNER TO ann"]
        {
            server.psql("postgres", statement);
        }
        server.psql("app", "SET ROLE ann; CREATE TABLE t AS SELECT 1 AS a");
        let s = project(&server, &more);
        s.run("true").never_says("an undo is refused");
        server.psql("app", made);
        let change = format!("psql {} -Xq -d app -c 'UPDATE t SET a = 2'", server.words());
        s.run(&change).says("an undo is refused as it is").says(words);
        s.snapback(["undo", "--yes"]).exits(1);
        assert_eq!(server.psql("app", "SELECT a FROM t"), "2");
        server.psql("app", unmade);
        s.run("true").never_says("an undo is refused");
    }
}
