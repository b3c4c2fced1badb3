//! Snapshots while a command runs, by time: only of what changed, of what may be taken
//! then, and never in the command's way.

use crate::{newest, sandbox};
use rustix::process::Signal;
use serde_json::Value;
use snapback_tests::{Chance, Output, Record, Running, Sandbox, assert_back, have, until};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

/// All snapshots of `kind`, newest first.
pub fn of_kind(s: &Sandbox, kind: &str) -> Vec<Value> {
    let list = s.ok(["list", "--json"]).json();
    list.as_array().unwrap().iter().filter(|snap| snap["kind"] == kind).cloned().collect()
}

pub fn id(snapshot: &Value) -> &str {
    snapshot["id"].as_str().unwrap()
}

/// A command that does one part of `parts` for each file `../go<n>` that appears, and then
/// makes `../did<n>`.
fn in_parts(parts: &[&str]) -> String {
    let part = |(n, part): (usize, &&str)| {
        format!("while [ ! -e ../go{n} ]; do sleep 0.01; done; {part}; touch ../did{n}; ")
    };
    parts.iter().enumerate().map(part).collect()
}

/// Lets the command do its part `n`.
pub fn go(s: &Sandbox, n: usize) {
    fs::write(s.home().join(format!("go{n}")), "").unwrap();
    until(&format!("part {n}"), || s.home().join(format!("did{n}")).exists());
}

/// Starts `parts` with a snapshot after each 20 ms.
pub fn start(s: &Sandbox, parts: &[&str]) -> Running {
    let run = s.start(["run", "--every", "20ms", "--", "sh", "-c", &in_parts(parts)]);
    until("the run", || s.project().join(".snapback").exists() && !of_kind(s, "run").is_empty());
    run
}

#[test]
fn each_change_on_the_way_is_one_snapshot_of_the_run() {
    let s = sandbox();
    s.write("f", "0");
    let mut run = start(&s, &["echo 1 > f", "echo 2 > f", "echo 3 > f"]);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(of_kind(&s, "interval").len(), 0, "nothing has changed yet");
    for n in 0..2 {
        go(&s, n);
        until("a snapshot", || of_kind(&s, "interval").len() == n + 1);
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(of_kind(&s, "interval").len(), n + 1, "one for one change");
    }
    go(&s, 2);
    assert!(run.wait().success());
    let (taken, run) = (of_kind(&s, "interval"), of_kind(&s, "run"));
    assert!(taken.iter().all(|snap| snap["run"] == run[0]["id"] && snap["state"] == "complete"), "{taken:?}");
    let [second, first] = &taken[taken.len() - 2..] else { panic!("{taken:?}") };
    assert_eq!(
        (s.ok(["cat", id(first), "f"]).out(), s.ok(["cat", id(second), "f"]).out()),
        ("1\n".into(), "2\n".into())
    );
    s.ok(["list", id(&run[0])]).prints(id(first)).prints("interval");
    // The third may have been taken as well, before the end.
    while s.read("f") != "2\n" {
        s.ok(["undo", "--step"]);
    }
    s.ok(["undo", "--step"]);
    assert_eq!(s.read("f"), "1\n");
    s.ok(["undo", "--step"]);
    assert_eq!(s.read("f"), "0");
    s.ok(["restore", id(second)]);
    assert_eq!(s.read("f"), "2\n");
    while s.ok(["status", "--json"]).json()["undo"]["kind"] != "run" {
        s.ok(["undo"]);
    }
    assert_eq!(s.read("f"), "3\n");
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "0");
    s.ok(["verify"]);
}

#[test]
fn the_end_tells_how_many_there_are_and_the_command_is_never_talked_over() {
    let s = sandbox();
    s.write("f", "0");
    let wait = "while [ \"$(ls .snapback/snapshots | wc -l)\" -lt 2 ]; do sleep 0.01; done";
    let script = format!("echo 1 > f; {wait}; echo of the command >&2");
    let run = s.ok(["run", "--every", "20ms", "--", "sh", "-c", &script]);
    let err = run.err();
    let lines: Vec<&str> = err.lines().collect();
    let [first, own, last] = &lines[..] else { panic!("{run}") };
    assert!(first.starts_with("snapback: snapshot ") && *own == "of the command", "{run}");
    let end = "snapback: 1 modified; `snapback undo` takes it back; 1 snapshot on the way, for `snapback undo --step`";
    assert_eq!(*last, end);
}

#[test]
fn the_project_may_ask_for_it_and_the_command_line_has_the_last_word() {
    let s = sandbox();
    s.write("f", "0");
    s.write("snapback.toml", "[snapshot]\ninterval = \"20ms\"\n");
    let wait = "b=$(ls .snapback/snapshots | wc -l); echo 1 > f; n=0
        while [ $n -lt 100 ] && [ \"$(ls .snapback/snapshots | wc -l)\" -le $b ]; do n=$((n+1)); sleep 0.05; done";
    s.run(wait);
    assert_eq!(of_kind(&s, "interval").len(), 1);
    s.ok(["run", "--every", "0s", "--", "sh", "-c", "echo 2 > f; sleep 0.3"]).never_says("on the way");
    s.snapback(["run", "--every", "soon", "--", "true"]).exits(2).says("`soon` is not a duration");
    // What the command writes there is not asked: it may be no configuration at all.
    s.run(&format!("echo nonsense > snapback.toml; {wait}")).says("on the way");
}

#[test]
fn they_have_bounds_of_their_own_and_go_with_their_run() {
    let s = sandbox();
    fs::create_dir_all(s.config().parent().unwrap()).unwrap();
    fs::write(s.config(), "[retention]\nkeep = 3\ninterval-keep = 2\n").unwrap();
    s.write("f", "0");
    s.ok(["snap", "-m", "one"]);
    s.ok(["snap", "-m", "two"]);
    let mut run = start(&s, &["echo 0 > f", "echo 1 > f", "echo 2 > f", "echo 3 > f", "echo 4 > f"]);
    let mut seen = Vec::new();
    for n in 1..5 {
        go(&s, n - 1);
        until("a snapshot", || {
            let taken = of_kind(&s, "interval");
            // The oldest goes just after the newest is there.
            assert!(taken.len() <= 3, "{taken:?}");
            taken.first().is_some_and(|snap| !seen.contains(snap))
        });
        seen.push(of_kind(&s, "interval").remove(0));
    }
    go(&s, 4);
    assert!(run.wait().success());
    let first = of_kind(&s, "run").remove(0);
    assert_eq!(of_kind(&s, "manual").len(), 2, "those by hand are not pushed out");
    assert_eq!(of_kind(&s, "interval").len(), 2);
    for n in 0..3 {
        s.run(&format!("echo {n} > g"));
    }
    let runs = of_kind(&s, "run");
    assert!(runs.len() == 3 && !runs.contains(&first), "{runs:?}");
    assert!(of_kind(&s, "interval").is_empty(), "they belong to a run that is gone");
    s.ok(["gc"]);
    s.ok(["verify"]);
}

#[test]
fn they_outlive_the_damage_of_their_runs_record() {
    let s = sandbox();
    s.write("f", "0");
    let mut run = start(&s, &["echo 1 > f", "true"]);
    go(&s, 0);
    until("a snapshot", || !of_kind(&s, "interval").is_empty());
    go(&s, 1);
    assert!(run.wait().success());
    let of_run = of_kind(&s, "run").remove(0);
    s.run("echo 2 > g");
    let taken = of_kind(&s, "interval");
    let record = s.project().join(".snapback/snapshots").join(id(&of_run)).join("meta.json");
    fs::set_permissions(&record, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&record, "{").unwrap();
    s.snapback(["gc"]);
    let list = s.snapback(["list", "--json"]).json();
    let left: Vec<&Value> =
        list.as_array().unwrap().iter().filter(|snap| snap["kind"] == "interval").collect();
    assert_eq!(left, taken.iter().collect::<Vec<_>>());
    assert_eq!(s.snapback(["cat", id(&taken[0]), "f"]).out(), "1\n");
}

#[test]
fn databases_are_taken_only_where_the_target_says_so_and_what_lacks_them_says_it() {
    if !have("python3") {
        return;
    }
    let s = sandbox();
    let sql = |name: &str, statement: &str| {
        format!(
            "python3 -c \"import sqlite3; c = sqlite3.connect('{name}.db'); c.execute('{statement}'); c.commit()\""
        )
    };
    for name in ["said", "silent", "found"] {
        s.sh(&sql(name, "create table t (a)"));
    }
    s.write("f", "0");
    let target = |name: &str, more: &str| {
        format!("[[target]]\nname = \"{name}\"\nbackend = \"sqlite\"\npath = \"{name}.db\"\n{more}")
    };
    s.write("snapback.toml", target("said", "every-interval = true\n") + &target("silent", ""));
    let before = Record::take(&s.project());
    let write = ["said", "silent", "found"].map(|name| sql(name, "insert into t values (1)")).join("; ");
    let mut run = start(&s, &[&format!("echo 1 > f; {write}"), "echo 2 > f"]);
    go(&s, 0);
    // Until one of them has all that was written.
    let written = fs::read(s.project().join("said.db")).unwrap();
    until("a snapshot", || {
        let newest = of_kind(&s, "interval").into_iter().next();
        newest.is_some_and(|snap| s.snapback(["cat", id(&snap), "said.db"]).stdout == written)
    });
    let taken = of_kind(&s, "interval").remove(0);
    let names: Vec<&str> =
        taken["targets"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["tree", "said"]);
    go(&s, 1);
    assert!(run.wait().success());
    s.sh(&["said", "silent", "found"].map(|name| sql(name, "insert into t values (2)")).join("; "));
    s.ok(["show", id(&taken)]).prints("found.db, silent");
    let restored = s.ok(["restore", id(&taken), "--json"]);
    restored.says(&format!("not in {}, and left as it is: found.db, silent", id(&taken)));
    assert_eq!(restored.json()["skipped"], serde_json::json!(["found.db", "silent"]));
    let rows = |name: &str| {
        s.sh(&format!("python3 -c \"import sqlite3; print(sqlite3.connect('{name}.db').execute('select count(*) from t').fetchone()[0])\""))
    };
    assert_eq!(
        (s.read("f"), rows("said"), rows("silent"), rows("found")),
        ("1\n".into(), "1\n".into(), "2\n".into(), "2\n".into())
    );
    s.ok(["undo"]);
    s.ok(["undo"]).never_says("left as it is");
    let now = Record::take(&s.project());
    assert_back(
        &before.without(&["said.db", "silent.db", "found.db"]),
        &Record::default(),
        &now.without(&["said.db", "silent.db", "found.db"]),
    );
    assert_eq!((rows("said"), rows("silent"), rows("found")), ("0\n".into(), "0\n".into(), "0\n".into()));
    s.ok(["verify"]);
}

#[test]
fn where_no_target_may_be_taken_it_is_said_at_once() {
    let s = sandbox();
    s.sh("mkdir data; echo 0 > data/f");
    s.write(
        "snapback.toml",
        "[snapshot]\nenabled = false\n[[target]]\nname = \"data\"\nbackend = \"tree\"\npath = \"data\"\n",
    );
    s.ok(["run", "--every", "20ms", "--", "sh", "-c", "echo 1 > data/f; sleep 0.2"])
        .says("every-interval = true")
        .never_says("on the way");
}

#[test]
fn the_command_does_not_wait_while_somebody_else_has_the_store() {
    let s = sandbox();
    s.write("f", "0");
    let mut run = start(&s, &["echo 1 > f", "echo 2 > f", "echo 3 > f", "true"]);
    let held = crate::together::hold(&s);
    for n in 0..2 {
        go(&s, n);
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(of_kind(&s, "interval").is_empty(), "nobody else writes meanwhile");
    drop(held);
    go(&s, 2);
    until("a snapshot", || !of_kind(&s, "interval").is_empty());
    go(&s, 3);
    assert!(run.wait().success());
    s.ok(["verify"]);
}

#[test]
fn with_snapshots_undos_and_kills_at_the_same_time_nothing_is_lost() {
    let s = sandbox();
    s.sh("for f in $(seq 60); do echo 0 > f$f; done");
    s.run("for f in $(seq 60); do echo A > f$f; done");
    let before = Record::take(&s.project());
    let script = "n=0; while [ ! -e ../end ]; do n=$((n+1)); echo $n > r$((n % 20)); sleep 0.002; done";
    let mut run = s.start(["run", "--every", "1ms", "--", "sh", "-c", script]);
    until("a snapshot", || s.has(".snapback") && !of_kind(&s, "interval").is_empty());
    let own = of_kind(&s, "run").remove(0);
    let mut chance = Chance::new("beside intervals", 31);
    let told: Vec<Output> = std::thread::scope(|scope| {
        let manual = scope.spawn(|| {
            let snap = |n: usize| {
                s.write(&format!("mine{n}"), format!("of {n}\n"));
                s.snapback(["snap", "-m", &n.to_string()])
            };
            (0..12).map(snap).collect::<Vec<_>>()
        });
        let undo =
            scope.spawn(|| (0..4).map(|_| s.snapback(["undo", "--yes", "--path", "f1"])).collect::<Vec<_>>());
        for _ in 0..8 {
            let mut killed = s.start(["snap", "-m", "killed"]);
            std::thread::sleep(chance.moment(Duration::from_millis(60)));
            let _ = rustix::process::kill_process(killed.pid(), Signal::KILL);
            killed.wait();
        }
        [manual.join().unwrap(), undo.join().unwrap()].concat()
    });
    for output in &told {
        assert!([0, 3].contains(&output.code()), "{output}");
    }
    fs::write(s.home().join("end"), "").unwrap();
    assert!(run.wait().success());
    s.ok(["verify"]);
    assert!(s.ok(["status", "--json"]).json()["pending"].is_null());
    let ids: Vec<String> =
        s.ok(["list", "--json"]).json().as_array().unwrap().iter().map(|snap| id(snap).to_owned()).collect();
    for output in told.iter().filter(|output| output.line.contains(" snap ")) {
        assert!(ids.contains(&output.out().trim_end().to_owned()), "it is not listed: {output}");
    }
    s.ok(["restore", id(&own)]);
    assert!(before.is_like(&Record::take(&s.project())));
}

#[test]
fn snapback_killed_while_it_takes_them_leaves_a_run_that_can_be_undone() {
    let mut chance = Chance::new("killed at an interval", 5);
    for _ in 0..6 {
        let s = sandbox();
        s.sh("for f in $(seq 40); do head -c 3000 /dev/urandom > f$f; done");
        let before = Record::take(&s.project());
        let script =
            "n=0; while :; do n=$((n+1)); head -c 9000 /dev/urandom > r$((n % 20)); sleep 0.002; done";
        let mut run = s.start(["run", "--every", "1ms", "--", "sh", "-c", script]);
        until("a snapshot", || s.has(".snapback") && !of_kind(&s, "interval").is_empty());
        std::thread::sleep(chance.moment(Duration::from_millis(150)));
        run.signal(Signal::KILL);
        run.wait();
        drop(run);
        s.ok(["verify"]);
        assert_eq!(of_kind(&s, "run")[0]["state"], "interrupted");
        let last = of_kind(&s, "interval").remove(0);
        s.ok(["restore", id(&last)]);
        s.ok(["restore", id(&of_kind(&s, "run")[0])]);
        assert!(before.is_like(&Record::take(&s.project())));
    }
}

#[test]
fn those_inside_a_run_inside_a_run_are_gone_back_through_as_well() {
    let s = sandbox();
    s.write("f", "0");
    let wait = "while [ \"$(ls .snapback/snapshots | wc -l)\" -lt 3 ]; do sleep 0.01; done";
    s.run(&format!("\"$SNAPBACK\" run --every 20ms -- sh -c 'echo 1 > f; {wait}; echo 2 > f'"));
    assert_eq!(of_kind(&s, "run").len(), 2);
    let taken = of_kind(&s, "interval");
    assert_eq!(taken.last().unwrap()["run"].as_str().unwrap(), id(&of_kind(&s, "run")[0]));
    while s.read("f") != "1\n" {
        s.ok(["undo", "--step"]);
    }
    s.ok(["undo", "--step"]);
    assert_eq!(s.read("f"), "0");
    assert_ne!(newest(&s), id(taken.last().unwrap()));
}
