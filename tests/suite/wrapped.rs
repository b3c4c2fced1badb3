//! The wrapped command is as if snapback were not there.

use crate::{newest, sandbox};
use rustix::process::{Pid, Signal, kill_process};
use snapback_tests::Sandbox;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Waits until the command has made `file` of the project.
#[track_caller]
fn wait_for(s: &Sandbox, file: &str) {
    let started = Instant::now();
    while !s.has(file) {
        assert!(started.elapsed() < Duration::from_secs(60), "{file} does not appear");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn its_exit_code_is_passed_on() {
    let s = sandbox();
    for code in [0, 1, 2, 3, 42, 125, 126, 127, 128, 255] {
        s.snapback(["run", "--", "sh", "-c", &format!("exit {code}")]).exits(code);
        assert_eq!(s.ok(["list", "--json"]).json()[0]["exit_code"], code);
    }
}

#[test]
fn death_by_signal_is_128_and_the_number() {
    let s = sandbox();
    for number in [1, 2, 3, 6, 9, 10, 12, 13, 14, 15, 34, 64] {
        let output = s.snapback(["run", "--", "sh", "-c", &format!("kill -{number} $$; sleep 9")]);
        output.exits(128 + number);
        assert!(output.status.code().is_some(), "snapback itself exits\n{output}");
    }
    assert_eq!(s.ok(["list", "--json"]).json()[0]["state"], "ended");
}

#[test]
fn a_command_that_is_not_there_or_cannot_be_executed() {
    let s = sandbox();
    s.write("data", "x");
    s.snapback(["run", "--", "no-such-command-here"]).exits(127).says("no-such-command-here");
    s.snapback(["run", "--", "./data"]).exits(126).says("./data");
    s.snapback(["run", "--", "./"]).exits(126);
}

#[test]
fn it_has_standard_streams_environment_and_arguments_of_its_own() {
    let s = sandbox();
    let mut child = s
        .program()
        .args(["run", "--", "sh", "-c", "cat; echo \"$1\" >&2; echo \"$MARK\"", "sh", "--json -q"])
        .env("MARK", "seen")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"through\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "through\nseen\n");
    let talk = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = talk.lines().collect();
    assert!(lines.contains(&"--json -q"), "{talk}");
    assert!(lines.len() <= 3, "one line before the command, one after\n{talk}");
}

#[test]
fn quiet_is_quiet() {
    let s = sandbox();
    s.write("f", "0");
    let run = s.ok(["run", "-q", "--", "sh", "-c", "echo A > f"]);
    assert_eq!((run.out(), run.err()), (String::new(), String::new()));
}

#[test]
fn a_signal_to_snapback_alone_is_passed_on_and_the_end_recorded() {
    let s = sandbox();
    for (name, sent, code) in [("TERM", Signal::TERM, 7), ("HUP", Signal::HUP, 7), ("INT", Signal::INT, 7)] {
        let script = format!("trap 'exit 7' {name}; touch ready; while :; do sleep 0.01; done");
        let mut child = s.start(["run", "--", "sh", "-c", &script]);
        wait_for(&s, "ready");
        child.signal(sent);
        assert_eq!(child.wait().code(), Some(code), "{name}");
        let list = s.ok(["list", "--json"]).json();
        assert_eq!((&list[0]["state"], &list[0]["exit_code"]), (&"ended".into(), &code.into()), "{name}");
        s.sh("rm ready");
    }
}

#[test]
fn two_interrupts_reach_the_command_as_two() {
    let s = sandbox();
    let script = "n=0; trap 'n=$((n+1)); echo $n > count; [ $n -lt 2 ] || exit 5' INT; touch ready
        while :; do sleep 0.01; done";
    let mut child = s.start(["run", "--", "sh", "-c", script]);
    wait_for(&s, "ready");
    child.signal(Signal::INT);
    wait_for(&s, "count");
    std::thread::sleep(Duration::from_millis(50));
    child.signal(Signal::INT);
    assert_eq!(child.wait().code(), Some(5));
    assert_eq!(s.read("count"), "2\n");
}

#[test]
fn snapback_killed_in_mid_run_is_said_and_can_be_undone() {
    let s = sandbox();
    s.write("f", "0");
    let script = "echo A > f; echo $$ > ready; exec sleep 60";
    let mut child = s.start(["run", "--", "sh", "-c", script]);
    wait_for(&s, "ready");
    while s.read("ready").trim().is_empty() {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(s.ok(["list", "--json"]).json()[0]["state"], "running");
    let pid = s.read("ready").trim().parse().unwrap();
    child.signal(Signal::KILL);
    child.wait();
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
    let run = newest(&s);
    assert_eq!(s.ok(["list", "--json"]).json()[0]["state"], "interrupted");
    let status = s.ok(["status"]);
    assert!((status.out() + &status.err()).contains("interrupted"), "{status}");
    s.ok(["undo"]).says(&run);
    assert_eq!(s.read("f"), "0");
}

#[test]
fn undo_during_a_run_wants_a_yes() {
    let s = sandbox();
    s.write("f", "0");
    let script = "echo A > f; touch ready; while [ ! -e ../stop ]; do sleep 0.01; done";
    let mut child = s.start(["run", "--", "sh", "-c", script]);
    wait_for(&s, "ready");
    s.snapback(["undo"]).fails(1, &["run"]).says("--yes");
    assert_eq!(s.read("f"), "A\n");
    s.ok(["undo", "--yes"]);
    assert_eq!(s.read("f"), "0");
    std::fs::write(s.home().join("stop"), "").unwrap();
    assert_eq!(child.wait().code(), Some(0));
}

#[test]
fn job_control_works_as_in_a_shell() {
    if !snapback_tests::have("python3") {
        return;
    }
    // A terminal of its own: an interactive shell inside `run` owns it, Ctrl-Z stops
    // the job and fg continues it.
    let s = sandbox();
    let script = r#"
import os, pty, sys, time, select
pid, fd = pty.fork()
if pid == 0:
    os.environ["PS1"] = "ready> "
    os.execvp(os.environ["SNAPBACK"], ["snapback", "run", "--", "bash", "--norc", "--noprofile", "-i"])
seen = b""
def until(text, at_most=30):
    global seen
    end = time.time() + at_most
    while text not in seen:
        if time.time() > end:
            sys.exit("never saw %r in %r" % (text, seen))
        if select.select([fd], [], [], 0.1)[0]:
            try: seen += os.read(fd, 4096)
            except OSError: sys.exit("ended early: %r" % seen)
    seen = seen.split(text, 1)[1]
def say(text): os.write(fd, text)
until(b"ready> ")
say(b"sh -c 'echo in-the-job; read x; echo got-$x'\n"); until(b"in-the-job\r\n")
say(b"\x1a"); until(b"Stopped"); until(b"ready> ")
say(b"fg\n"); until(b"\n"); time.sleep(0.2)
say(b"hello\n"); until(b"got-hello"); until(b"ready> ")
say(b"sleep 50\n"); time.sleep(0.3); say(b"\x03"); until(b"ready> ")
say(b"exit 6\n")
while True:
    try:
        if not os.read(fd, 4096): break
    except OSError: break
_, status = os.waitpid(pid, 0)
sys.exit(0 if os.waitstatus_to_exitcode(status) == 6 else "exit %r" % status)
"#;
    s.finish(s.command("python3").args(["-c", script])).exits(0);
}
