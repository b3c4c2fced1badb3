//! Several commands in one project at the same time: they come one after the other, say
//! for what they wait, and nothing is lost, whoever is killed in between.

use crate::sandbox;
use rustix::fs::{FlockOperation, flock};
use rustix::process::Signal;
use snapback_tests::{Chance, Output, Record, Running, Sandbox, assert_back};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

/// The store's lock, as a command holds it.
pub fn hold(s: &Sandbox) -> File {
    let file = File::options().write(true).open(s.project().join(".snapback/lock")).unwrap();
    flock(&file, FlockOperation::LockExclusive).unwrap();
    file
}

/// Starts `words`; returns when it has said that it waits.
fn waits(s: &Sandbox, words: &[&str]) -> std::process::Child {
    let mut child = s.program().args(words).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    let mut said = String::new();
    let mut err = BufReader::new(child.stderr.take().unwrap());
    while !said.contains("waiting for it") {
        assert!(err.read_line(&mut said).unwrap() > 0, "{words:?} did not wait: {said}");
    }
    assert!(said.contains("another snapback command is at work in this project"), "{said}");
    // What else it says is not read, and must not stop it.
    std::thread::spawn(move || std::io::copy(&mut err, &mut std::io::sink()));
    child
}

/// How many steps can be undone: all of them are.
fn undo_all(s: &Sandbox) -> usize {
    (0..)
        .find(|_| {
            let undo = s.snapback(["undo"]);
            if undo.code() != 0 {
                undo.fails(1, &["nothing to undo"]);
            }
            undo.code() != 0
        })
        .unwrap()
}

fn manual(s: &Sandbox) -> usize {
    let list = s.ok(["list", "--json"]).json();
    list.as_array().unwrap().iter().filter(|snap| snap["kind"] == "manual").count()
}

#[test]
fn eight_snapshots_at_once_of_which_one_is_killed() {
    let mut chance = Chance::new("eight at once", 8);
    for _ in 0..4 {
        let s = sandbox();
        s.sh("for f in $(seq 200); do head -c 3000 /dev/urandom > f$f; done");
        let before = Record::take(&s.project());
        let mut children: Vec<_> = (0..8).map(|n| s.start(["snap", "-m", &n.to_string()])).collect();
        std::thread::sleep(chance.moment(Duration::from_millis(300)));
        children[chance.below(8) as usize].signal(Signal::KILL);
        let good = children.iter_mut().map(Running::wait).filter(ExitStatus::success).count();
        assert!(good >= 7, "{good} are good, SNAPBACK_SEED={}", chance.seed());
        s.ok(["verify"]);
        let listed = manual(&s);
        assert!(listed >= good, "{listed} of {good}");
        assert_eq!(undo_all(&s), listed, "each of them is one step");
        assert_back(&before, &before, &Record::take(&s.project()));
    }
}

#[test]
fn two_undos_at_once_take_back_two_steps() {
    let s = sandbox();
    s.sh("for f in $(seq 100); do echo 0 > f$f; done");
    let mut records = vec![Record::take(&s.project())];
    for run in ["A", "B", "C"] {
        s.run(&format!("for f in $(seq 100); do echo {run} > f$f; done"));
        records.push(Record::take(&s.project()));
    }
    for (verb, want) in [("undo", 1), ("redo", 3), ("undo", 1)] {
        let mut both = [s.start([verb]), s.start([verb])];
        assert!(both.iter_mut().all(|child| child.wait().success()), "{verb}");
        assert!(records[want].is_like(&Record::take(&s.project())), "two times {verb}");
    }
    let mut both = [s.start(["undo"]), s.start(["undo"])];
    let good = both.iter_mut().map(Running::wait).filter(ExitStatus::success).count();
    assert_eq!(good, 1, "there was one step left");
    assert!(records[0].is_like(&Record::take(&s.project())));
    s.ok(["verify"]);
}

#[test]
fn who_waits_says_so_and_looking_does_not_wait() {
    let s = sandbox();
    s.write("f", "0");
    s.run("echo A > f");
    s.run("echo B > f");
    for words in [&["snap", "-m", "x"][..], &["gc"], &["run", "--", "true"], &["undo"], &["redo"]] {
        let held = hold(&s);
        let mut child = waits(&s, words);
        s.ok(["list"]);
        s.ok(["status"]);
        s.ok(["diff"]);
        assert!(child.try_wait().unwrap().is_none(), "{words:?} has not waited");
        drop(held);
        assert!(child.wait().unwrap().success(), "{words:?}");
    }
    s.ok(["verify"]);
}

#[test]
fn a_lock_file_that_was_removed_or_replaced_is_noticed() {
    let s = sandbox();
    s.write("f", "0");
    s.run("rm -f .snapback/lock; echo A > f");
    s.run("rm -f .snapback/lock; mkdir .snapback/lock.d; echo B > f");
    s.ok(["undo"]);
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "0");
    for replaced in [false, true] {
        let held = hold(&s);
        let mut child = waits(&s, &["snap", "-m", "x"]);
        let lock = s.project().join(".snapback/lock");
        fs::remove_file(&lock).unwrap();
        if replaced {
            fs::write(&lock, "").unwrap();
        }
        // The file that is held means nothing any more: nobody else waits for it.
        s.ok(["snap", "-m", "y"]);
        assert!(child.try_wait().unwrap().is_none());
        drop(held);
        assert!(child.wait().unwrap().success());
    }
    s.ok(["verify"]);
}

#[test]
fn a_run_that_goes_on_keeps_what_it_needs() {
    let s = sandbox();
    s.write("f", "0");
    s.write("d/g", "0");
    let before = Record::take(&s.project());
    let script = "echo A > f; rm -r d; \"$SNAPBACK\" gc 2> ../gc; \"$SNAPBACK\" forget @0 2> ../forget
        touch ../begun; while [ ! -e ../end ]; do sleep 0.01; done; echo B > f";
    let mut run = s.start(["run", "--", "sh", "-c", script]);
    while !s.home().join("begun").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    for name in ["gc", "forget"] {
        let said = fs::read_to_string(s.home().join(name)).unwrap();
        assert!(said.contains("refused inside a run"), "{name}: {said}");
    }
    let id = crate::newest(&s);
    for n in 0..3 {
        s.write("other", n.to_string());
        s.ok(["snap"]);
        s.ok(["gc", "--keep", "0"]);
    }
    s.snapback(["forget", "--yes", &id]).fails(1, &["going on"]);
    s.write("other", "edited");
    s.snapback(["undo"]).fails(1, &["a run is going on"]);
    fs::write(s.home().join("end"), "").unwrap();
    assert!(run.wait().success());
    s.ok(["verify"]);
    s.ok(["restore", &id]);
    assert!(before.is_like(&Record::take(&s.project())));
}

#[test]
fn an_undo_while_a_run_goes_on_is_asked_for_and_the_run_then_names_another_way_back() {
    let s = sandbox();
    s.write("f", "v1");
    s.run("echo v2 > f");
    let script = "touch ../begun; while [ ! -e ../end ]; do sleep 0.01; done; echo agent > f";
    let begin = || {
        s.sh("rm -f ../begun ../end");
        let run = s.program().args(["run", "--", "sh", "-c", script]).stderr(Stdio::piped()).spawn().unwrap();
        snapback_tests::until("its command", || s.home().join("begun").exists());
        run
    };
    let end = |run: std::process::Child| {
        fs::write(s.home().join("end"), "").unwrap();
        let output = run.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    // It has changed nothing so far, and will.
    let run = begin();
    s.snapback(["undo"]).fails(1, &["a run is going on"]).says("hint: ");
    let said = end(run);
    assert!(said.contains("`snapback undo` takes it back"), "{said}");
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "v2\n");
    // Its step is taken back before it ends: the next undo would be of the one before.
    let run = begin();
    let id = crate::newest(&s);
    s.ok(["undo", "--yes"]);
    let said = end(run);
    assert!(said.contains(&format!("`snapback restore {id}` takes it back")), "{said}");
    s.ok(["restore", &id]);
    assert_eq!(s.read("f"), "v2\n");
}

#[test]
fn snapshots_that_a_run_takes_at_once_all_belong_to_it() {
    let s = sandbox();
    s.write("f", "0");
    s.run(
        "for n in 1 2 3 4 5 6; do (echo $n > f$n; \"$SNAPBACK\" snap -m $n > id$n 2>err$n) & done; wait
         for n in 1 2 3 4 5 6; do test -s id$n; done",
    );
    let list = s.ok(["list", "--json"]).json();
    let list = list.as_array().unwrap();
    let run = list.iter().find(|snap| snap["kind"] == "run").unwrap();
    let inner: Vec<_> = list.iter().filter(|snap| snap["kind"] == "manual").collect();
    assert_eq!(inner.len(), 6);
    assert!(inner.iter().all(|snap| snap["run"] == run["id"]), "{list:?}");
    s.ok(["undo"]);
    assert!(!s.has("f1") && !s.has("id6"));
    s.ok(["verify"]);
}

#[test]
fn whatever_is_asked_for_at_once_the_history_stays_consistent() {
    let s = sandbox();
    s.sh("for f in $(seq 40); do echo 0 > f$f; done");
    let chance = Chance::new("at once", 77);
    let told: Vec<Output> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread: u64| {
                let (s, mut chance) = (&s, chance.clone());
                scope.spawn(move || {
                    chance.skip(thread);
                    (0..12)
                        .map(|n| match chance.below(8) {
                            0 => s.snapback(["snap", "-m", "x"]),
                            1 => s.snapback(["undo", "--yes"]),
                            2 => s.snapback(["redo", "--yes"]),
                            3 => s.snapback(["gc", "--keep", "5"]),
                            4 => s.snapback(["list"]),
                            5 => s.snapback(["diff", "--stat"]),
                            _ => s.snapback(["run", "--", "sh", "-c", &format!("echo {thread}.{n} > f{n}")]),
                        })
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    for output in &told {
        let nothing = ["nothing to", "no snapshots"].iter().any(|words| output.err().contains(words));
        // A snapshot may be dropped while it is compared, and a file change while it is put back.
        let gone = output.line.contains("diff") || output.code() == 3;
        assert!(output.code() == 0 || nothing || gone, "{output}");
    }
    s.ok(["verify"]);
    let status = s.ok(["status", "--json"]).json();
    assert!(status["pending"].is_null() && status["running"].as_array().unwrap().is_empty(), "{status}");
    let steps = undo_all(&s);
    let redone = (0..).find(|_| s.snapback(["redo"]).code() != 0).unwrap();
    assert!(redone >= steps, "{steps} undone, {redone} redone");
}

#[test]
fn verify_calls_nothing_damaged_that_others_store_and_drop_meanwhile() {
    let s = sandbox();
    s.write("f", "0");
    s.ok(["snap"]);
    std::thread::scope(|scope| {
        let s = &s;
        let busy: Vec<_> = (0..2)
            .map(|thread| {
                scope.spawn(move || {
                    for n in 0..25 {
                        s.write(&format!("f{thread}"), format!("{thread} {n}"));
                        s.ok(["snap"]);
                        if thread == 0 && n % 5 == 4 {
                            s.ok(["gc", "--keep", "3"]);
                        }
                    }
                })
            })
            .collect();
        while busy.iter().any(|thread| !thread.is_finished()) {
            s.ok(["verify"]).prints("all is whole");
        }
    });
}

#[test]
fn snapshots_undos_and_gc_around_a_run_lose_nothing() {
    let s = sandbox();
    s.sh("for f in $(seq 60); do echo 0 > f$f; done");
    s.run("for f in $(seq 60); do echo A > f$f; done");
    s.run("for f in $(seq 60); do echo B > f$f; done");
    let script = "for n in 1 2 3; do (echo run $n > r$n; \"$SNAPBACK\" snap -m r$n 2>> ../err) & done; wait
        touch ../begun; while [ ! -e ../end ]; do sleep 0.01; done; echo C > last";
    let mut run = s.start(["run", "--", "sh", "-c", script]);
    while !s.home().join("begun").exists() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let mine = |n: usize| (format!("u{n}"), format!("of {n}\n"));
    let told: Vec<Output> = std::thread::scope(|scope| {
        let mut threads = Vec::new();
        for n in 0..11 {
            let s = &s;
            threads.push(scope.spawn(move || match n {
                8 | 9 => s.snapback(["undo", "--yes"]),
                10 => s.snapback(["gc"]),
                _ => {
                    let (path, text) = mine(n);
                    s.write(&path, text);
                    s.snapback(["snap", "-m", &path])
                }
            }));
        }
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    for output in &told {
        // What was written between an undo's own snapshot and its end is left alone, and said.
        let may_be = if output.line.contains("undo") { &[0, 3][..] } else { &[0] };
        assert!(may_be.contains(&output.code()), "{output}");
    }
    fs::write(s.home().join("end"), "").unwrap();
    assert!(run.wait().success());
    s.ok(["verify"]);
    let list = s.ok(["list", "--json"]).json();
    let ids: Vec<&str> = list.as_array().unwrap().iter().map(|snap| snap["id"].as_str().unwrap()).collect();
    for output in told.iter().filter(|output| output.line.contains(" snap ")) {
        assert!(ids.contains(&output.out().trim_end()), "it is not listed: {output}");
    }
    let inside = list.as_array().unwrap().iter().filter(|snap| {
        snap["kind"] == "manual" && snap["message"].as_str().is_some_and(|message| message.starts_with('r'))
    });
    assert_eq!(inside.count(), 3, "{list}");
    let written = (0..8).map(mine).chain((1..4).map(|n| (format!("r{n}"), format!("run {n}\n"))));
    for (path, text) in written {
        let is_here = fs::read_to_string(s.project().join(&path)).is_ok_and(|now| now == text);
        let is_kept = || ids.iter().any(|id| s.snapback(["cat", id, &path]).out() == text);
        assert!(is_here || is_kept(), "{path} is lost");
    }
    let steps = undo_all(&s);
    assert!(steps >= 3, "{steps}");
}
