//! What is written between the capture and the restore is never lost.

use super::*;
use snapback_core::error::Kind;

#[test]
fn what_changed_since_the_capture_is_left() {
    for mode in ["DELETE", "WAL"] {
        let world = World::new();
        world.make(&format!("PRAGMA journal_mode = {mode}"), 50);
        let stored = world.capture();
        world.sql("DELETE FROM t WHERE a > 10");
        let current = world.capture();
        world.sql("INSERT INTO t(b) VALUES('late')");
        for goal in [Some(stored), None] {
            let said = world.restore(goal, Some(current)).unwrap_err();
            assert_eq!(said.kind(), Kind::Changed, "{said}");
            assert_eq!(world.count(), "[(11,)]");
            assert_eq!(world.sql("PRAGMA journal_mode"), format!("[('{}',)]", mode.to_lowercase()));
        }
    }
    let world = World::new();
    world.make("PRAGMA page_size = 1024", 50);
    let stored = world.capture();
    std::fs::write(world.path("app.db"), "other").unwrap();
    let current = world.capture();
    std::fs::write(world.path("app.db"), "newer").unwrap();
    for goal in [Some(stored), None] {
        assert_eq!(world.restore(goal, Some(current)).unwrap_err().kind(), Kind::Changed);
        assert_eq!(std::fs::read(world.path("app.db")).unwrap(), b"newer");
    }
    assert_eq!(world.restore(Some(stored), None).unwrap_err().kind(), Kind::Changed);
}

#[test]
fn a_steady_writer_is_undone_under_one_lock_and_loses_nothing() {
    for mode in ["DELETE", "WAL"] {
        let world = World { timeout: "20s", ..World::new() };
        world.make(&format!("PRAGMA journal_mode = {mode}"), 1000);
        let stored = world.capture();
        let mut app = world.python();
        app.open();
        app.sql("PRAGMA synchronous = OFF");
        app.begin("[c.execute('INSERT INTO t(b) VALUES(1)') for _ in range(10**9)]");
        std::thread::sleep(std::time::Duration::from_millis(100));
        // As the session does it when what was captured is no longer there.
        let hold = Arc::new(Hold::default());
        let current = world.try_capture_with(Some(hold.clone())).unwrap();
        let call = world.call(Some(hold.clone()));
        world.database().restore(&call, Some(&stored), current.as_ref()).unwrap();
        drop((call, hold));
        std::thread::sleep(std::time::Duration::from_millis(100));
        app.kill();
        world.is_sound();
        let copy = World::new();
        std::fs::write(copy.path("app.db"), world.bytes(current.unwrap())).unwrap();
        let (max, count) = (copy.sql("SELECT max(a) FROM t"), copy.count());
        assert_eq!(max, count, "all rows up to the last one");
        let rows: String = world.sql("SELECT count(*), max(a) FROM t");
        let numbers: Vec<u32> =
            rows.split(|c: char| !c.is_ascii_digit()).filter_map(|n| n.parse().ok()).collect();
        assert!(numbers[0] > 1000 && numbers[0] == numbers[1], "it went on after that: {rows}");
    }
}

#[test]
fn what_is_held_cannot_be_written_and_is_let_go() {
    let world = World::new();
    world.make("", 50);
    let mut app = world.python();
    app.say("c = sqlite3.connect('app.db', isolation_level=None, timeout=0)");
    let hold = Arc::new(Hold::default());
    world.try_capture_with(Some(hold.clone())).unwrap();
    assert!(app.sql("DELETE FROM t").contains("locked"));
    assert_eq!(app.count(), "[(50,)]", "readers go on");
    drop(hold);
    assert_eq!(app.sql("DELETE FROM t"), "[]");
}
