//! Containers that use a volume: held while it is captured or put back, and let go whatever
//! happens.

use super::between::Between;
use super::engine::until;
use super::{Engine, Name, cover, each_user, sandbox, sandbox_at};
use crate::newest;
use rustix::process::{Pid, Signal, kill_process};
use snapback_tests::{Sandbox, User};
use std::time::Duration;

/// Counts on from what it finds when it is started, and says what that was: what it
/// remembers it writes again.
const COUNTER: &str = r"
    n=$(/bin/busybox cat /v/one 2>/dev/null || echo 0); echo $n > /v/start
    while true; do n=$((n + 1)); echo $n > /v/new; /bin/busybox mv /v/new /v/one; done";
/// Waits.
const IDLE: &str = "while true; do /bin/busybox sleep 1; done";

#[test]
fn a_writer_is_paused_for_the_snapshot_and_stopped_for_the_restore() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let name = format!("writer-{volume}");
        engine.run(&name, volume, COUNTER);
        cover(s, volume, "");
        let one = || engine.sh(&format!("cat {}/one || true", engine.files(volume).display())).parse::<u64>();
        until("the first turns", || one().is_ok_and(|n| n > 20));
        s.run("true").says(&format!("{name} paused while the volume is captured"));
        assert_eq!(engine.state(&name), "running");
        let stored: u64 = s.ok(["cat", "@0", &format!("{volume}:/one")]).out().trim().parse().unwrap();
        until("more turns", || one().is_ok_and(|n| n > stored + 50));
        let late = one().unwrap();
        let undo = s.ok(["undo", "--yes"]);
        undo.says(&format!("{name} will be stopped while the volume is put back"))
            .says(&format!("{name} stopped while the volume is put back"));
        assert_eq!(engine.state(&name), "running");
        // It was started on what came back.
        let start = || engine.sh(&format!("cat {}/start || true", engine.files(volume).display()));
        until("a start from what was stored", || start() == stored.to_string());
        let events = engine.events(&name);
        let words: Vec<&str> = events.iter().map(String::as_str).collect();
        let at = |word: &str| {
            words.iter().rposition(|event| *event == word).unwrap_or_else(|| panic!("{words:?}"))
        };
        assert!(
            at("pause") < at("unpause") && at("unpause") < at("stop") && at("stop") < at("start"),
            "{words:?}"
        );
        // What it wrote until it was stopped is what a redo brings back.
        engine.docker(&["kill", &name]);
        s.ok(["redo", "--yes"]);
        assert!(one().unwrap() >= late);
        assert_eq!(engine.leftovers(volume), "");
    });
}

#[test]
fn how_they_are_held_is_the_users_choice() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let name = format!("idle-{volume}");
        engine.run(&name, volume, IDLE);
        let events = |word: &str| engine.events(&name).iter().filter(|event| *event == word).count();
        cover(s, volume, "hold = \"none\"");
        engine.sh(&format!("echo 1 > {}/f", engine.files(volume).display()));
        s.run("true");
        engine.sh(&format!("echo 2 > {}/f", engine.files(volume).display()));
        s.ok(["undo", "--yes"]);
        assert_eq!((events("pause"), events("stop"), events("start")), (0, 0, 1));
        cover(s, volume, "hold = \"stop\"");
        s.run("true");
        assert_eq!((events("pause"), events("stop"), events("start")), (0, 1, 2));
        cover(s, volume, "hold = \"pause\"");
        engine.sh(&format!("echo 3 > {}/f", engine.files(volume).display()));
        s.run("true");
        engine.sh(&format!("echo 4 > {}/f", engine.files(volume).display()));
        s.ok(["undo", "--yes"]);
        assert_eq!((events("stop"), events("start")), (1, 2));
        assert_eq!(events("pause"), events("unpause"));
        assert_eq!(engine.sh(&format!("cat {}/f", engine.files(volume).display())), "3");
        cover(s, volume, "hold = \"hug\"");
        s.snapback(["run", "--", "true"]).fails(125, &["`hold` is one of pause, stop, none"]);
    });
}

#[test]
fn one_that_would_be_lost_is_not_stopped_and_one_that_somebody_paused_stays_so() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let (name, mount) = (format!("fleeting-{volume}"), format!("{volume}:/v"));
        let words = ["run", "--rm", "-d", "--network", "none", "--name", &name, "-v", &mount];
        engine.docker(&[&words[..], &[super::engine::IMAGE, "/bin/busybox", "sh", "-c", IDLE]].concat());
        cover(s, volume, "");
        let file = engine.files(volume).join("f");
        std::fs::write(&file, "1").unwrap();
        s.run("true");
        let first = newest(s);
        std::fs::write(&file, "2").unwrap();
        s.snapback(["undo", "--yes"]).fails(1, &["was started with --rm"]).says("hint: end it yourself");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "2");
        engine.docker(&["pause", &name]);
        s.run("true");
        assert_eq!(engine.state(&name), "paused");
        engine.docker(&["kill", &name]);
        until("its end", || engine.docker(&["ps", "-aq", "-f", &format!("name={name}")]).is_empty());
        s.ok(["restore", "--yes", &first]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1");
        assert_eq!(engine.leftovers(volume), "");
    });
}

/// A volume whose first capture takes a while, used by a container.
pub(super) fn slow(s: &Sandbox, engine: &Engine, volume: &str, more: &str) -> String {
    engine.docker(&["volume", "create", volume]);
    let mount = engine.files(volume).display().to_string();
    engine.sh(&format!(
        "cd {mount}; i=0; while [ $i -lt 40 ]; do head -c 20000000 /dev/urandom > f$i; i=$((i + 1)); done"
    ));
    let name = format!("held-{volume}");
    engine.run(&name, volume, IDLE);
    cover(s, volume, more);
    name
}

/// The processes that watch over `pid`: children of it that were started as that.
pub(super) fn watchers(pid: Pid) -> Vec<Pid> {
    let mut found = Vec::new();
    for process in std::fs::read_dir("/proc").unwrap().flatten() {
        let read = |name: &str| std::fs::read(process.path().join(name)).unwrap_or_default();
        let stat = String::from_utf8_lossy(&read("stat")).into_owned();
        let parent =
            stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse::<i32>().ok());
        let words = read("cmdline");
        if parent == Some(pid.as_raw_nonzero().get()) && String::from_utf8_lossy(&words).contains("--let-go")
        {
            let pid = process.file_name().to_str().and_then(|name| name.parse().ok());
            found.extend(pid.and_then(Pid::from_raw));
        }
    }
    found
}

#[test]
fn a_killed_snapback_lets_go_at_once() {
    each_user(|s, engine, volume| {
        for (hold, held) in [("pause", "pause"), ("stop", "die")] {
            let volume = format!("{volume}-{hold}");
            let name = slow(s, engine, &volume, &format!("hold = \"{hold}\""));
            let hold = engine.expect(&name, held);
            let mut snap = s.start(["snap"]);
            hold.comes();
            snap.signal(Signal::KILL);
            snap.wait();
            until("being let go", || engine.state(&name) == "running");
            until("the record's end", || engine.leftovers(&volume).is_empty());
            std::fs::remove_dir_all(s.project().join(".snapback")).unwrap();
        }
    });
}

#[test]
fn when_the_watcher_is_killed_as_well_the_next_command_lets_go() {
    // On the engine that others use, theirs would be the next command.
    let Some(engine) = &Engine::alone() else { return };
    for user in super::USERS {
        let (s, volume) = (&sandbox(engine, *user), &*Name::fresh(engine));
        let name = slow(s, engine, volume, "");
        let hold = engine.expect(&name, "pause");
        let mut snap = s.start(["snap"]);
        hold.comes();
        let pid = snap.pid();
        let watchers = watchers(pid);
        assert_eq!(watchers.len(), 1);
        // Neither may see the other's end.
        snap.signal(Signal::STOP);
        kill_process(watchers[0], Signal::KILL).unwrap();
        snap.signal(Signal::KILL);
        snap.wait();
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(engine.state(&name), "paused");
        s.ok(["snap"]).says("let go of 1 containers that a killed snapback had held");
        assert_eq!(engine.state(&name), "running");
        assert_eq!(engine.leftovers(volume), "");
    }
}

#[test]
fn a_capture_that_is_stopped_lets_go() {
    each_user(|s, engine, volume| {
        let name = slow(s, engine, volume, "");
        let hold = engine.expect(&name, "pause");
        let mut snap = s.start(["run", "--", "touch", "started"]);
        hold.comes();
        snap.signal(Signal::INT);
        assert!(!snap.wait().success());
        assert_eq!(engine.state(&name), "running");
        assert!(!s.project().join("started").exists());
        assert_eq!(engine.leftovers(volume), "");
    });
}

#[test]
fn what_was_stopped_is_started_when_the_engine_was_ended_meanwhile() {
    let Some(engine) = Engine::alone() else { return };
    let s = sandbox(&engine, User::Me);
    let volume = Name::fresh(&engine);
    let name = slow(&s, &engine, &volume, "hold = \"stop\"");
    let hold = engine.expect(&name, "die");
    let mut snap = s.start(["snap"]);
    hold.comes();
    snap.signal(Signal::STOP);
    engine.restart();
    assert_eq!(engine.state(&name), "exited");
    snap.signal(Signal::KILL);
    snap.wait();
    until("being let go", || engine.state(&name) == "running");
    until("the record's end", || engine.leftovers(&volume).is_empty());
}

/// Covers the volume by the component that gives up in the middle when it is told to.
fn holder(s: &Sandbox, volume: &str, gives_up: &str) {
    s.sh("mkdir -p \"$XDG_DATA_HOME/snapback/plugins\"");
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/components/holder/holder.wasm");
    std::fs::copy(path, s.dir().join("data/snapback/plugins/holder.wasm"))
        .expect("the component for tests is checked in");
    s.write(
        "snapback.toml",
        format!(
            "[[target]]\nname = \"{volume}\"\nbackend = \"holder\"\nvolume = \"{volume}\"\ngives-up = \"{gives_up}\"\n"
        ),
    );
    super::agree(s);
}

#[test]
fn a_component_that_gives_up_in_the_middle_lets_go() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let name = format!("held-{volume}");
        engine.run(&name, volume, IDLE);
        let count = |word: &str| engine.events(&name).iter().filter(|event| *event == word).count();
        holder(s, volume, "snapshot");
        let run = s.snapback(["run", "--", "touch", "started"]);
        run.fails(125, &["told to give up during snapshot"]);
        assert!(!s.project().join("started").exists());
        assert_eq!((count("pause"), count("unpause")), (1, 1));
        holder(s, volume, "restore");
        let file = engine.files(volume).join("f");
        std::fs::write(&file, "old").unwrap();
        s.run("true");
        std::fs::write(&file, "new").unwrap();
        s.snapback(["undo", "--yes"]).fails(1, &["told to give up during restore"]);
        assert!(count("stop") > 0);
        assert_eq!(engine.state(&name), "running");
        assert_eq!(engine.leftovers(volume), "");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "new");
    });
}

/// The records of what is held because of a volume.
pub(super) fn records(engine: &Engine, volume: &str, name: &str) -> usize {
    let (volume, name) = (format!("label=dev.snapback.volume={volume}"), format!("name={name}"));
    let filters =
        ["ps", "-aq", "--filter", "label=dev.snapback.holds", "--filter", &volume, "--filter", &name];
    engine.docker(&filters).lines().count()
}

/// Whether a process that was started here has ended.
pub(super) fn has_ended(pid: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']))
}

#[test]
fn two_that_hold_one_container_do_not_let_go_of_it_under_each_other() {
    each_user(|s, engine, volume| {
        let name = slow(s, engine, volume, "");
        let other = sandbox(engine, s.user());
        cover(&other, volume, "");
        let hold = engine.expect(&name, "pause");
        let mut first = s.start(["snap"]);
        hold.comes();
        first.signal(Signal::STOP);
        // The second one begins, and is stopped in the middle.
        let mut second = loop {
            let second = other.start(["snap"]);
            until("two records", || records(engine, volume, "") == 2 || has_ended(second.pid()));
            if !has_ended(second.pid()) {
                second.signal(Signal::STOP);
                if records(engine, volume, "") == 2 {
                    break second;
                }
                second.signal(Signal::CONT);
            }
            std::fs::remove_dir_all(other.project().join(".snapback")).unwrap();
        };
        first.signal(Signal::CONT);
        assert!(first.wait().success());
        assert_eq!(engine.state(&name), "paused", "the second one reads still");
        second.signal(Signal::CONT);
        assert!(second.wait().success());
        assert_eq!(engine.state(&name), "running");
        assert_eq!(engine.leftovers(volume), "");
    });
}

#[test]
fn one_that_ends_as_it_is_about_to_be_paused_keeps_nobody_waiting() {
    each_user(|s, engine, volume| {
        let name = slow(s, engine, volume, "hold = \"stop\"");
        let stop = engine.expect(&name, "stop");
        let mut first = s.start(["snap"]);
        stop.comes();
        first.signal(Signal::STOP);
        // While a container ends, the engine calls it running, and cannot pause it.
        let lie = ("\"Running\":false".to_owned(), "\"Running\":true ".to_owned());
        let between = Between::start(engine, volume, 4, &[lie]);
        let other = sandbox_at(&between.socket, s.user());
        cover(&other, volume, "hold = \"pause\"");
        other.ok(["snap"]);
        assert_eq!(engine.state(&name), "exited", "the first one reads still");
        first.signal(Signal::CONT);
        assert!(first.wait().success());
        assert_eq!(engine.state(&name), "running");
        assert_eq!(engine.leftovers(volume), "");
    });
}
