//! The wrapped command is as if snapback were not there.

use crate::{newest, sandbox};
use rustix::process::{Pid, Signal, kill_process};
use snapback_tests::{Running, Sandbox, until};
use std::io::Write;
use std::process::Stdio;
use std::time::Duration;

/// Waits until the command has made `file` of the project.
#[track_caller]
fn wait_for(s: &Sandbox, file: &str) {
    until(file, || s.has(file));
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
    for words in [&["forget", "@0"][..], &["forget", "@0", "--yes"]] {
        s.snapback(words).fails(1, &["is needed by its run, which is going on"]).never_says("--yes");
    }
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
os.environ["PS1"] = "ready> "
t = Terminal(os.environ["SNAPBACK"], "run", "--", "bash", "--norc", "--noprofile", "-i")
t.next(b"ready> ")
t.type(b"sh -c 'echo in-the-job; read x; echo got-$x'\n"); t.next(b"in-the-job\r\n")
t.type(b"\x1a"); t.next(b"Stopped"); t.next(b"ready> ")
# The shell names the job when it goes on.
t.type(b"fg\n"); t.next(b"sh -c 'echo in-the-job")
t.type(b"hello\n"); t.next(b"got-hello"); t.next(b"ready> ")
t.type(b"sh -c 'echo asleep; exec sleep 600'\n"); t.next(b"asleep\r\n")
t.type(b"\x03"); t.next(b"ready> ")
t.type(b"exit 6\n")
code = os.waitstatus_to_exitcode(t.end())
sys.exit(0 if code == 6 else "exit %r" % code)
"#;
    crate::pty::python(&s, script, &[]);
}

/// What `words` print when they run by themselves, and when they run in `run`.
fn both(s: &Sandbox, words: &[&str]) -> [Vec<u8>; 2] {
    let alone = s.finish(s.command(words[0]).args(&words[1..]));
    let inside = s.ok([&["run", "-q", "--"], words].concat());
    [alone.stdout, inside.stdout]
}

#[test]
fn arguments_reach_it_byte_for_byte() {
    use std::os::unix::ffi::OsStrExt;
    let s = sandbox();
    let odd: [&[u8]; 9] = [
        b"",
        b" ",
        b"--",
        b"-y",
        b"a b",
        b"'\"$x`*?\\",
        b"line\nline",
        b"\xff\xfe",
        "\u{1b}[2J\u{202e}".as_bytes(),
    ];
    let mut program = s.program();
    program.args(["run", "-q", "--", "printf", "%s\\0"]).args(odd.map(std::ffi::OsStr::from_bytes));
    let output = s.finish(&mut program);
    output.exits(0);
    assert_eq!(output.stdout, odd.map(|word| [word, b"\0"].concat()).concat());
    s.ok(["list"]).never_says("\u{1b}");
}

#[test]
fn its_environment_has_two_variables_more_and_nothing_else_differs() {
    let s = sandbox();
    let [alone, inside] = both(&s, &["env", "-0"]);
    let variables = |bytes: &[u8]| -> std::collections::BTreeSet<String> {
        let all = bytes.split(|&b| b == 0).filter(|v| !v.is_empty());
        all.map(|v| String::from_utf8_lossy(v).into_owned()).collect()
    };
    let (alone, inside) = (variables(&alone), variables(&inside));
    assert!(alone.is_subset(&inside), "{alone:?} {inside:?}");
    let more: Vec<&String> = inside.difference(&alone).collect();
    let root = format!("SNAPBACK_ROOT={}", s.project().display());
    assert_eq!(more, [&root, &format!("SNAPBACK_RUN_ID={}", newest(&s))]);
}

#[test]
fn its_open_files_limits_directory_and_masks_are_those_it_would_have() {
    let s = sandbox();
    for script in [
        "ls -1 /proc/self/fd | wc -l; umask; ulimit -a; pwd; ps -o pgid=,sid= -p $$ | wc -w",
        "grep -E '^(SigBlk|SigCgt|NoNewPrivs|Seccomp|CapEff)' /proc/self/status; nice",
        // Two that the C library keeps for itself are ignored in what it starts.
        "printf '%x' $((0x$(sed -n 's/^SigIgn:.//p' /proc/self/status) & 0x7fffffff))",
        "exec 3>&1; cat <&0; echo three >&3",
    ] {
        let [alone, inside] = both(&s, &["sh", "-c", script]);
        assert_eq!(String::from_utf8_lossy(&inside), String::from_utf8_lossy(&alone), "{script}");
    }
    // A file that was open stays open.
    let log = s.dir().join("log");
    s.sh(&format!("\"$SNAPBACK\" run -q -- sh -c 'echo to-seven >&7' 7>'{}'", log.display()));
    assert_eq!(std::fs::read_to_string(log).unwrap(), "to-seven\n");
}

#[test]
fn what_the_standard_library_would_change_is_as_it_was_given() {
    let s = sandbox();
    let wrapper = "\"$SNAPBACK\" run -q --";
    // Without two that the C library keeps for itself, and ignores in what it starts.
    let numbers = |text: String| -> Vec<u64> {
        text.lines().map(|mask| u64::from_str_radix(mask, 16).unwrap() & !(0b11 << 31)).collect()
    };
    // A shell would unblock all.
    let look = "sed -n 's/^Sig[BI].*:.//p' /proc/self/status";
    for (set_up, masks) in [
        ("", [0, 0]),
        ("trap '' PIPE;", [0, 0x1000]),
        ("env --ignore-signal=PIPE,CHLD", [0, 0x1_1000]),
        ("env --block-signal=USR1,TERM", [0x4200, 0]),
        ("env --ignore-signal=HUP,PIPE --block-signal=RTMIN+3", [1 << 36, 0x1001]),
    ] {
        for wrapper in ["", wrapper] {
            assert_eq!(numbers(s.sh(&format!("{set_up} {wrapper} {look}"))), masks, "{set_up} {wrapper}");
        }
    }
    let look = "o=; for n in 0 1 2; do [ -e /proc/$$/fd/$n ] && o=${o}+ || o=${o}-; done; echo $o >../seen";
    for (redirected, open) in [
        ("<&-", "-++"),
        (">&-", "+-+"),
        ("<&- >&- 2>&-", "---"),
        // What is /dev/null is not taken for closed.
        ("0<>/dev/null 1<>/dev/null 2>/dev/null", "+++"),
    ] {
        for wrapper in ["", wrapper] {
            s.sh(&format!("{wrapper} sh -c '{look}; exit 7' {redirected} || [ $? = 7 ]"));
            assert_eq!(s.sh("cat ../seen").trim(), open, "{redirected} {wrapper}");
        }
    }
    // It is found, named and judged as ever.
    s.sh("printf 'echo $0 $1' > script; chmod +x script; ln -s /bin/echo ../a=b");
    for (words, said) in [
        ("./script one", "./script one"),
        ("../a=b two", "two"),
        ("no-such-command", "code 127"),
        ("sh -c 'kill -TERM $$'", "code 143"),
    ] {
        let line = format!("(trap '' PIPE; \"$SNAPBACK\" run -q -- {words} || echo code $?) 2>/dev/null");
        assert_eq!(s.sh(&line).trim(), said, "{words}");
    }
}

#[test]
fn pipes_that_are_closed_early_are_its_own_affair() {
    let s = sandbox();
    // The reader goes: the writer dies of it, and the run ends as it would have.
    let out = s.sh("{ \"$SNAPBACK\" run -q -- yes || echo \"code $?\" >&2; } 2>err | head -n 1; cat err");
    assert_eq!(out, "y\ncode 141\n");
    // Whoever reads nothing, and whoever has no streams at all.
    s.sh("yes | \"$SNAPBACK\" run -q -- true");
    s.sh("\"$SNAPBACK\" run -- sh -c 'echo x > made' <&- >&- 2>&-");
    assert_eq!(s.read("made"), "x\n");
    // What it says nobody reads: the command is not disturbed.
    s.sh("{ \"$SNAPBACK\" -v run -- sh -c 'sleep 0.1; echo y > made'; } 2>&1 >/dev/null | true; sleep 0.5");
    assert_eq!(s.ok(["list", "--json"]).json()[0]["exit_code"], 0);
    assert_eq!(s.read("made"), "y\n");
    let many = s.sh("head -c 3000000 /dev/zero | \"$SNAPBACK\" run -q -- cat | wc -c");
    assert_eq!(many.trim(), "3000000");
}

#[test]
fn signals_reach_it_as_often_as_they_are_sent() {
    let s = sandbox();
    let names = [
        ("USR1", Signal::USR1),
        ("USR2", Signal::USR2),
        ("WINCH", Signal::WINCH),
        ("HUP", Signal::HUP),
        ("QUIT", Signal::QUIT),
        ("TERM", Signal::TERM),
    ];
    let traps: String = names.iter().map(|(name, _)| format!("trap 'echo x >> {name}' {name}; ")).collect();
    let script = format!("{traps} touch ready; while [ ! -e end ]; do sleep 0.01; done; exit 4");
    let mut child = s.start(["run", "--", "sh", "-c", &script]);
    wait_for(&s, "ready");
    for n in 1..=20 {
        for (name, signal) in names {
            child.signal(signal);
            until(&format!("{name} number {n}"), || s.has(name) && s.read(name).lines().count() >= n);
        }
    }
    s.write("end", "");
    assert_eq!(child.wait().code(), Some(4));
    for (name, _) in names {
        assert_eq!(s.read(name).lines().count(), 20, "{name}");
    }
}

#[test]
fn what_it_sends_to_its_whole_group_reaches_it_once_each() {
    let s = sandbox();
    // Some it sends itself, and some a process beneath it, which is there until the end.
    let send = |numbers: &str| {
        let until = |file: &str| format!("while [ ! -e {file}$i ]; do sleep 0.01; done");
        let (at, go) = (until("at"), until("go"));
        format!("for i in {numbers}; do kill -USR1 0; {at}; : > sent$i; {go}; done")
    };
    let script = format!(
        "n=0; trap 'n=$((n+1)); : > at$n' USR1; m=0; trap 'm=$((m+1)); : > told$m' USR2
        {}; (trap '' USR1; {}) & while [ ! -e go4 ]; do sleep 0.01; done; exit 4",
        send("1 2"),
        send("3 4"),
    );
    let mut child = s.start(["run", "--", "sh", "-c", &script]);
    for i in 1..=4 {
        wait_for(&s, &format!("sent{i}"));
        // What somebody else sends is passed on, and by then all before it would have been.
        child.signal(Signal::USR2);
        wait_for(&s, &format!("told{i}"));
        s.write(&format!("go{i}"), "");
    }
    assert_eq!(child.wait().code(), Some(4));
    assert!(s.has("at4") && !s.has("at5"), "{}", s.sh("ls"));
}

#[test]
fn what_a_script_in_the_same_group_sends_to_snapback_reaches_it() {
    let s = sandbox();
    let script = r#""$SNAPBACK" run -q -- sh -c 'trap "exit 9" USR1; : > ready; while :; do sleep 0.01; done' &
        while [ ! -e ready ]; do sleep 0.01; done
        kill -USR1 $!; wait $!"#;
    assert_eq!(Running::of(s.command("sh").args(["-c", script])).wait().code(), Some(9));
}

#[test]
fn what_outlives_it_is_noted() {
    let s = sandbox();
    s.write("f", "0");
    let run = s.ok([
        "run",
        "--report",
        "../report",
        "--",
        "sh",
        "-c",
        "sleep 300 > /dev/null 2>&1 & echo $! > pid; sleep 0.3",
    ]);
    let pid: i32 = s.read("pid").trim().parse().unwrap();
    let alive = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).is_ok();
    assert!(alive, "nobody touches it\n{run}");
    run.says(&format!(
        "1 process of the run goes on: `sleep 300` ({pid}); what is changed now is no part of it"
    ));
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(s.home().join("report")).unwrap()).unwrap();
    assert_eq!(report["still_running"], serde_json::json!([{"pid": pid, "command": "sleep 300"}]));
    s.run("sleep 0.05 & wait").never_says("goes on");
}

#[test]
fn a_report_into_what_the_command_writes_into_follows_it() {
    let s = sandbox();
    for (stream, redirected) in [("stdout", ">"), ("stderr", "2>"), ("stdout", ">>")] {
        let to = if stream == "stdout" { "" } else { ">&2" };
        s.sh(&format!(
            "\"$SNAPBACK\" -q run --report /dev/{stream} -- sh -c 'echo hello {to}; touch f' {redirected} ../out"
        ));
        let out = std::fs::read_to_string(s.home().join("out")).unwrap();
        let report = out.strip_prefix("hello\n").unwrap_or_else(|| panic!("{stream}: {out}"));
        let report: serde_json::Value = serde_json::from_str(report).unwrap();
        assert_eq!(report["exit_code"], 0, "{stream}");
        s.sh("rm ../out");
    }
}

#[test]
fn the_report_tells_all_about_the_run() {
    let s = sandbox();
    s.write("f", "0");
    s.sh("mkdir node_modules; touch node_modules/x package.json");
    s.snapback(["run", "--report", "../report", "--", "sh", "-c", "echo 1 > f; touch g; exit 7"]).exits(7);
    let report: serde_json::Value =
        serde_json::from_slice(&std::fs::read(s.home().join("report")).unwrap()).unwrap();
    let id = newest(&s);
    assert_eq!(
        (&report["id"], &report["snapshot"], &report["exit_code"]),
        (&id.clone().into(), &id.into(), &7.into())
    );
    assert_eq!(report["changes"].as_array().unwrap().len(), 2, "{report}");
    assert_eq!(report["not_covered"][0]["path"], "node_modules", "{report}");
    s.snapback(["run", "--report", "no/such/place", "--", "touch", "ran"]).fails(125, &["report"]);
    assert!(!s.has("ran"));
}

#[test]
fn an_undo_on_failure_goes_to_its_own_snapshot_or_says_125() {
    let s = sandbox();
    s.write("f", "0");
    // Steps of the command's own, and of others meanwhile, do not lead it elsewhere.
    let script =
        "echo 1 > f; \"$SNAPBACK\" snap -q; echo 2 > f; \"$SNAPBACK\" run -q -- sh -c 'echo 3 > f'; exit 8";
    s.snapback(["run", "--undo-on-failure", "--", "sh", "-c", script]).exits(8);
    assert_eq!(s.read("f"), "0");
    s.run("echo good > f");
    let stop = "env -u SNAPBACK_RUN_ID \"$SNAPBACK\" undo -q --yes; echo bad > f; kill -TERM $$";
    s.snapback(["run", "--undo-on-failure", "--", "sh", "-c", stop]).exits(143);
    assert_eq!(s.read("f"), "good\n");
    // What cannot be undone is said, whatever the command ended with.
    let spoil = "for pack in .snapback/packs/*; do chmod u+w $pack; : > $pack; done; echo bad > f; exit 3";
    let run = s.snapback(["run", "--undo-on-failure", "--", "sh", "-c", spoil]);
    run.exits(125).says("the run could not be undone");
}
