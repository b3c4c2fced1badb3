//! One step over a tree, a database and a volume: all of it goes back, or none.

use super::{Engine, Name, agree, each_user, sandbox};
use crate::servers::{component, redis};
use snapback_tests::{Record, Running, Sandbox, User};

/// All three, changed by one run.
fn begin(s: &Sandbox, engine: &Engine, volume: &str) {
    engine.docker(&["volume", "create", volume]);
    engine.run(&format!("user-{volume}"), volume, "while true; do /bin/busybox sleep 1; done");
    s.write(
        "snapback.toml",
        format!(
            "[[target]]\nname = \"data\"\nbackend = \"docker-volume\"\nvolume = \"{volume}\"\n
             [[target]]\nname = \"app\"\nbackend = \"sqlite\"\npath = \"app.db\"\nbusy-timeout = \"1s\"\n"
        ),
    );
    agree(s);
    engine.sh(&format!("cd {}; echo old > f; echo gone > g", engine.files(volume).display()));
    s.write("file", "old\n");
    sql(s, "CREATE TABLE t(a); INSERT INTO t VALUES ('old')");
    s.run("echo new > file; echo more > added");
    engine.sh(&format!("cd {}; echo new > f; rm g; echo h > h", engine.files(volume).display()));
    sql(s, "UPDATE t SET a = 'new'");
}

fn sql(s: &Sandbox, statements: &str) -> String {
    let script = "import sqlite3, sys\nc = sqlite3.connect('app.db')\nc.executescript(sys.argv[1])\nprint([r[0] for r in c.execute('SELECT a FROM t')])";
    let output = s.finish(s.command("python3").args(["-c", script, statements]));
    output.exits(0);
    output.out().trim().to_owned()
}

/// Everything: the tree, the rows, the volume.
fn state(s: &Sandbox, engine: &Engine, volume: &str) -> String {
    let tree = s.sh("cat file; ls; echo");
    let files = engine.sh(&format!("cd {}; cat f; ls", engine.files(volume).display()));
    format!("{tree}{}{files}", sql(s, ""))
}

#[test]
fn one_undo_takes_back_all_three() {
    each_user(|s, engine, volume| {
        begin(s, engine, volume);
        let new = state(s, engine, volume);
        s.ok(["undo", "--yes"]);
        let old = state(s, engine, volume);
        assert_eq!(old, "old\napp.db\nfile\nsnapback.toml\n\n['old']old\nf\ng");
        s.ok(["redo", "--yes"]);
        assert_eq!(state(s, engine, volume), new);
        assert_eq!(engine.state(&format!("user-{volume}")), "running");
    });
}

#[test]
fn a_failure_in_any_of_them_leaves_all_as_they_were() {
    each_user(|s, engine, volume| {
        begin(s, engine, volume);
        let new = state(s, engine, volume);
        let mount = engine.files(volume);
        let before = Record::take(&mount);
        // What keeps it from being put back is gone before anything is asserted.
        let check = |what: &str, undo: &snapback_tests::Output, says: &str| {
            undo.exits(1);
            undo.says(says).says("hint: ");
            assert_eq!(state(s, engine, volume), new, "{what}: {undo}");
            let names = |record: &Record| record.0.keys().cloned().collect::<Vec<_>>();
            assert_eq!(names(&Record::take(&mount)), names(&before), "{what}");
            assert_eq!(engine.state(&format!("user-{volume}")), "running", "{what}");
            assert_eq!(engine.leftovers(volume), "", "{what}");
            s.ok(["status"]).exits(0);
        };
        for (what, file, says) in
            [("the volume", mount.join("f"), "data"), ("the tree", s.project().join("file"), "file")]
        {
            engine.sh(&format!("chattr +i {}", file.display()));
            let undo = s.snapback(["undo", "--yes"]);
            engine.sh(&format!("chattr -i {}", file.display()));
            check(what, &undo, says);
        }
        // The database comes last: the others have been put back, and go back.
        let script = "import sqlite3, time
c = sqlite3.connect('app.db', isolation_level=None)
c.execute('BEGIN IMMEDIATE')
open('locked', 'w')
time.sleep(1000)";
        let holder = Running::of(s.command("python3").args(["-c", script]));
        super::engine::until("the lock", || s.project().join("locked").exists());
        std::fs::remove_file(s.project().join("locked")).unwrap();
        let undo = s.snapback(["undo", "--yes"]);
        drop(holder);
        check("the database", &undo, "app");
        s.ok(["undo", "--yes"]);
        assert!(state(s, engine, volume).starts_with("old\n"));
    });
}

#[test]
fn one_undo_takes_back_a_volume_and_a_server_or_neither() {
    let Some(engine) = Engine::shared() else { return };
    if !redis::ready() {
        return;
    }
    let (s, volume) = (&sandbox(engine, User::Me), &*Name::fresh(engine));
    let server = redis::Server::start(&[]);
    s.ok(["backends", "add", &component("redis")]);
    engine.docker(&["volume", "create", volume]);
    let name = format!("user-{volume}");
    engine.run(&name, volume, "while true; do /bin/busybox sleep 1; done");
    let target = format!("[[target]]\nname = \"data\"\nbackend = \"docker-volume\"\nvolume = \"{volume}\"\n");
    s.write("snapback.toml", target + &redis::target(server.port, ""));
    agree(s);
    let file = engine.files(volume).join("f");
    let look = || (server.record(), std::fs::read_to_string(&file).unwrap(), s.read("tree"));
    let change = |word: &str| {
        server.cli(&format!("SET key {word}\nSET {word} more"));
        std::fs::write(&file, word).unwrap();
        s.write("tree", word);
    };
    change("old");
    let old = look();
    s.run("true");
    change("new");
    let new = look();
    s.ok(["undo", "--yes"]);
    assert_eq!(look(), old);
    s.ok(["redo", "--yes"]);
    assert_eq!(look(), new);
    // What keeps one of them keeps all, whichever comes first.
    engine.sh(&format!("chattr +i {}", file.display()));
    let undo = s.snapback(["undo", "--yes"]);
    engine.sh(&format!("chattr -i {}", file.display()));
    undo.fails(1, &["data"]);
    assert_eq!(look(), new);
    server.cli("CONFIG SET maxmemory 1\nCONFIG SET maxmemory-policy noeviction");
    let undo = s.snapback(["undo", "--yes"]);
    server.cli("CONFIG SET maxmemory 0");
    undo.exits(1).says("could not put `redis` back");
    assert_eq!(look(), new);
    assert_eq!((engine.state(&name), engine.leftovers(volume)), ("running".into(), String::new()));
    s.ok(["undo", "--yes"]);
    assert_eq!(look(), old);
    engine.docker(&["rm", "-f", &name]);
}
