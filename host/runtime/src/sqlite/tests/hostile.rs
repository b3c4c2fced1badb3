//! Databases and journals that a stranger made.

use super::*;

#[test]
fn the_library_reads_pages_and_loads_nothing() {
    let connection = rusqlite::Connection::open_in_memory().unwrap();
    let mut options = connection.prepare("PRAGMA compile_options").unwrap();
    let options: Vec<String> =
        options.query_map([], |row| row.get(0)).unwrap().collect::<rusqlite::Result<_>>().unwrap();
    for needed in ["ENABLE_DBPAGE_VTAB", "OMIT_LOAD_EXTENSION", "THREADSAFE=1"] {
        assert!(
            options.iter().any(|option| option == needed),
            "{needed}: see .cargo/config.toml; {options:?}"
        );
    }
}

#[test]
fn a_journal_that_names_another_file_does_not_remove_it() {
    for (name, there) in [("victim", true), ("app.db-mj1A2B3C9D4", true), ("app.db-mj1A2B3C9D4", false)] {
        let world = World::new();
        world.make("PRAGMA cache_size = 5", 3000);
        let good = world.capture();
        let mut app = world.python();
        app.open();
        app.sql("PRAGMA cache_size = 5");
        app.sql("BEGIN IMMEDIATE");
        app.sql("DELETE FROM t WHERE a % 2");
        app.kill();
        let other = world.path(name);
        if there {
            std::fs::write(&other, "precious").unwrap();
        }
        let path = other.to_str().unwrap().as_bytes();
        let mut journal = std::fs::read(world.path("app.db-journal")).unwrap();
        let sum = path.iter().map(|&byte| u32::from(byte)).sum::<u32>();
        journal.extend_from_slice(&262_145u32.to_be_bytes());
        journal.extend_from_slice(path);
        journal.extend_from_slice(&(path.len() as u32).to_be_bytes());
        journal.extend_from_slice(&sum.to_be_bytes());
        journal.extend_from_slice(&[0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7]);
        std::fs::write(world.path("app.db-journal"), &journal).unwrap();
        let before = world.files();
        let captured = world.capture();
        assert_eq!(world.files(), before, "{name}");
        // A commit over several databases that was made is not rolled back.
        let made = !there && name != "victim";
        assert_eq!(world.same_state(good, captured), !made, "{name} {there}");
        world.restore(Some(good), Some(captured)).unwrap();
        assert_eq!(std::fs::read(&other).is_ok(), there, "{name}");
        world.is_sound();
    }
}

#[test]
fn a_schema_that_makes_no_sense_keeps_nobody_from_the_pages() {
    let world = World::new();
    world.make("", 100);
    world.sql(
        "PRAGMA writable_schema = ON
         INSERT INTO sqlite_master VALUES('table', 'bad', 'bad', 2, 'CREATE TABLE nonsense(')
         INSERT INTO sqlite_master VALUES('trigger', 'tr', 't', 0, 'CREATE TRIGGER tr AFTER INSERT ON t BEGIN SELECT evil(); END')",
    );
    let file = std::fs::read(world.path("app.db")).unwrap();
    let bad = world.capture();
    assert_eq!(world.bytes(bad), file);
    // As it might be that a newer version understands what is no sense here.
    std::fs::remove_file(world.path("app.db")).unwrap();
    world.make("", 7);
    let good = world.capture();
    world.undo(Some(bad)).unwrap();
    assert!(world.same_state(bad, world.capture()));
    world.undo(Some(good)).unwrap();
    assert_eq!(world.count(), "[(7,)]");
}

#[test]
fn what_only_the_application_knows_does_not_keep_it_from_coming_back() {
    let world = World::new();
    let mut app = world.python();
    app.open();
    app.say("c.create_collation('odd', lambda a, b: (a > b) - (a < b))");
    app.say("c.create_function('twice', 1, lambda x: x * 2, deterministic=True)");
    app.sql("CREATE TABLE t(a INTEGER PRIMARY KEY, b COLLATE odd UNIQUE, CHECK (twice(a) > 0))");
    app.sql("CREATE INDEX i ON t(twice(a))");
    app.sql("INSERT INTO t VALUES(1, 'x'), (2, 'y')");
    let stored = world.capture();
    app.sql("DELETE FROM t");
    world.undo(Some(stored)).unwrap();
    assert_eq!(app.sql("SELECT count(*), max(b) FROM t"), "[(2, 'y')]");
    assert_eq!(app.sql("PRAGMA integrity_check"), "[('ok',)]");
}

#[test]
fn random_bytes_in_a_header_are_no_trap() {
    let world = World::new();
    world.make("", 200);
    let good = world.capture();
    let file = std::fs::read(world.path("app.db")).unwrap();
    for (at, byte) in
        [(16, 0x02), (18, 2), (19, 2), (20, 200), (28, 0xff), (31, 0), (52, 1), (56, 3), (47, 9), (100, 0)]
    {
        let mut bytes = file.clone();
        bytes[at] = byte;
        std::fs::write(world.path("app.db"), &bytes).unwrap();
        let bad = world.capture();
        world.restore(Some(good), Some(bad)).unwrap_or_else(|e| panic!("byte {at}: {e}"));
        assert_eq!(world.count(), "[(200,)]", "byte {at}");
        world.is_sound();
    }
}
