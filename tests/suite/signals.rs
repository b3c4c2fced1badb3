//! Signals reach the command as they would without snapback: those before it is there, those
//! to it alone, to snapback alone and to all of the group, and those that stop and wake it.

use crate::pty::python;
use crate::sandbox;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use snapback_tests::{Running, Sandbox, have, until};
use std::fs;
use std::time::Duration;

/// A script that counts `name` into the file `count`, tells of USR2, and goes on until the file `end` is there.
fn counting(name: &str) -> String {
    format!(
        "n=0; trap 'n=$((n+1)); echo $n > count' {name}; trap ': > told' USR2; echo $$ > pid
        : > ready; while [ ! -e end ]; do sleep 0.01; done; exit 4"
    )
}

/// The number that the command wrote into the file `pid`.
fn pid(s: &Sandbox) -> Pid {
    until("its number", || s.has("pid") && s.read("pid").ends_with('\n'));
    Pid::from_raw(s.read("pid").trim().parse().unwrap()).unwrap()
}

/// The letter for what the process `pid` does, as ps has it.
fn state(pid: Pid) -> char {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap();
    stat.rsplit_once(") ").unwrap().1.chars().next().unwrap()
}

/// How many watch for what is sent to the group of `run`.
fn watchers(s: &Sandbox, run: &Running) -> usize {
    let group = run.pid().as_raw_nonzero();
    s.sh(&format!("ps -eo pgid=,comm= | sed -n 's/^ *{group} //p'")).matches("signal-witness").count()
}

#[test]
fn what_is_sent_to_the_whole_group_reaches_it_once() {
    for words in [&["run", "-q", "--"][..], &["run", "-q", "--", "SNAPBACK", "run", "-q", "--"]] {
        for (name, signal) in [("TERM", Signal::TERM), ("INT", Signal::INT), ("HUP", Signal::HUP)] {
            let s = sandbox();
            let script = counting(name);
            let own = std::env::var("SNAPBACK_BIN").unwrap_or_else(|_| crate::PROGRAM.to_owned());
            let runs = words.iter().filter(|word| **word == "run").count();
            let words = words.iter().map(|word| if *word == "SNAPBACK" { &*own } else { *word });
            let mut run = s.start(words.chain(["sh", "-c", &script]));
            until("the command", || s.has("ready"));
            until("who watches the group", || watchers(&s, &run) == runs);
            for n in 1..=3 {
                kill_process_group(run.pid(), signal).unwrap();
                until("the signal", || s.has("count") && s.read("count") == format!("{n}\n"));
                // What was passed on before this would have come before it.
                run.signal(Signal::USR2);
                until("the next one", || s.has("told"));
                assert_eq!(s.read("count"), format!("{n}\n"), "{name}");
                fs::remove_file(s.project().join("told")).unwrap();
            }
            // To snapback alone, it is for the command.
            run.signal(signal);
            until("the signal to snapback alone", || s.read("count") == "4\n");
            s.write("end", "");
            assert_eq!(run.wait().code(), Some(4));
        }
    }
}

#[test]
fn all_signals_are_passed_on_those_without_a_name_as_well() {
    let s = sandbox();
    for number in [1, 2, 3, 10, 12, 14, 15, 16, 23, 24, 25, 26, 27, 28, 29, 30, 35, 64] {
        let script = format!("trap 'exit 9' {number}; : > ready; while :; do sleep 0.01; done");
        let mut run = s.start(["run", "-q", "--", "sh", "-c", &script]);
        until("the command", || s.has("ready"));
        let snapback = run.pid().as_raw_nonzero();
        s.sh(&format!("rm ready; kill -{number} {snapback}"));
        assert_eq!(run.wait().code(), Some(9), "{number}");
        assert_eq!(s.ok(["list", "--json"]).json()[0]["exit_code"], 9, "{number}");
    }
}

#[test]
fn a_command_that_is_stopped_and_woken_in_a_script_goes_on() {
    let s = sandbox();
    s.write(
        "script",
        format!("\"$SNAPBACK\" run -q -- sh -c '{}'\n", counting("USR1").replace('\'', "'\\''")),
    );
    let mut script = Running::of(s.command("sh").arg("script"));
    let command = pid(&s);
    for signal in [Signal::STOP, Signal::TSTP] {
        kill_process(command, signal).unwrap();
        until("it is stopped", || state(command) == 'T');
        // Who waits for it sees that.
        std::thread::sleep(Duration::from_millis(300));
        kill_process(command, Signal::CONT).unwrap();
    }
    s.write("end", "");
    assert_eq!(script.wait().code(), Some(4));
}

#[test]
fn what_stops_snapback_alone_stops_the_command_and_what_wakes_it_wakes_both() {
    let s = sandbox();
    let mut run = s.start(["run", "-q", "--", "sh", "-c", &counting("USR1")]);
    let command = pid(&s);
    run.signal(Signal::TSTP);
    until("the command is stopped", || state(command) == 'T');
    std::thread::sleep(Duration::from_millis(300));
    run.signal(Signal::CONT);
    until("the command goes on", || state(command) != 'T');
    s.write("end", "");
    assert_eq!(run.wait().code(), Some(4));
}

#[test]
fn nobody_is_left_of_a_run_who_only_watched_for_signals() {
    let s = sandbox();
    for kill in [false, true] {
        let mut run = s.start(["run", "-q", "--", "sh", "-c", &counting("USR1")]);
        let command = pid(&s);
        until("it is there", || watchers(&s, &run) == 1);
        if kill {
            run.signal(Signal::KILL);
            until("it has gone as well", || watchers(&s, &run) == 0);
            kill_process(command, Signal::KILL).unwrap();
        } else {
            s.write("end", "");
            run.wait();
            assert_eq!(watchers(&s, &run), 0);
        }
        s.sh("rm -f end pid ready");
    }
}

#[test]
fn an_interrupt_before_the_command_is_started_keeps_it_from_being_started() {
    if !have("python3") {
        return;
    }
    let s = sandbox();
    s.write("f", "0");
    s.ok(["snap"]);
    let kept = || s.sh("cd .snapback; find packs snapshots $(ls -d running 2> /dev/null) -mindepth 1 | sort");
    let before = kept();
    s.write("f", "1");
    // The snapshot is taken, and the line about it waits: standard error is a full pipe. Another
    // process of the group tells when the interrupt has come.
    let script = r#"
import fcntl, signal
r, w = os.pipe()
fcntl.fcntl(w, fcntl.F_SETFL, os.O_NONBLOCK)
try:
    while True: os.write(w, b"x" * 4096)
except BlockingIOError: pass
fcntl.fcntl(w, fcntl.F_SETFL, 0)
def beside():
    if os.fork() == 0:
        signal.signal(signal.SIGINT, lambda *_: (open("../came", "w").close(), os._exit(0)))
        open("../there", "w").close()
        while True: signal.pause()
    os.dup2(w, 2)
t = Terminal(os.environ["SNAPBACK"], "run", "--", "touch", "ran", before=beside)
def until(is_so):
    while not is_so(): time.sleep(0.01)
until(lambda: os.path.exists("../there") and os.path.isdir(".snapback/running") and os.listdir(".snapback/running"))
t.type(b"\x03")
until(lambda: os.path.exists("../came"))
os.close(w)
said = b""
while not said.endswith(b"being taken\n"):
    some = os.read(r, 65536)
    if not some: break
    said += some
_, status = os.waitpid(t.pid, 0)
ok = os.waitstatus_to_exitcode(status) == 125 and b"stopped before the command was started" in said
sys.exit(0 if ok else repr((status, said[-300:])))
"#;
    python(&s, script, &[]);
    assert!(!s.has("ran"));
    assert_eq!(s.ok(["list", "--json"]).json().as_array().unwrap().len(), 1);
    assert_eq!(kept(), before, "nothing is left behind");
    s.ok(["verify"]);
}

#[test]
fn an_interrupt_at_whatever_moment_is_never_lost() {
    if !have("python3") {
        return;
    }
    let s = sandbox();
    s.write("f", "0");
    s.ok(["snap"]);
    // Whoever lost it would wait for ever.
    let script = r#"
for n in range(60):
    t = Terminal("sh", "-c", 'echo ready; exec "$SNAPBACK" run -- sh -c "echo at-work; exec sleep 600"')
    t.until(b"ready")
    time.sleep(n * 0.001)
    t.type(b"\x03")
    code = os.waitstatus_to_exitcode(t.end())
    if code not in (125, -2) or code == 125 and b"at-work" in t.seen:
        sys.exit(repr((n, code, t.seen)))
"#;
    python(&s, script, &[]);
    for run in s.ok(["list", "--json"]).json().as_array().unwrap() {
        assert!(run["kind"] != "run" || run["exit_code"] == 130, "{run}");
    }
}
