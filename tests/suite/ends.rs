//! How a run ends for whoever waits for it: as its command would have ended alone.

use crate::pty::python;
use crate::{PROGRAM, sandbox};
use rustix::process::Signal;
use snapback_tests::{Sandbox, have, until, users};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;

#[test]
fn death_by_signal_is_128_and_the_number() {
    let s = sandbox();
    for number in [1, 2, 3, 6, 9, 10, 11, 12, 13, 14, 15, 34, 64] {
        let output = s.snapback(["run", "--", "sh", "-c", &format!("kill -{number} $$; sleep 9")]);
        output.exits(128 + number);
        assert!(output.status.code().is_some(), "snapback itself exits\n{output}");
        assert_eq!(s.ok(["list", "--json"]).json()[0]["exit_code"], 128 + number);
    }
    assert_eq!(s.ok(["list", "--json"]).json()[0]["state"], "ended");
}

#[test]
fn an_interrupt_ends_the_script_that_a_run_stands_in() {
    if !have("python3") {
        return;
    }
    let s = sandbox();
    s.write(
        "loop.sh",
        "for i in 1 2 3; do \"$SNAPBACK\" run -q -- sh -c 'echo at-work; exec sleep 600'; done\necho END\n",
    );
    let script = r#"
t = Terminal(sys.argv[1], "loop.sh")
t.until(b"at-work")
t.type(b"\x03")
status = t.end()
left = t.seen.count(b"at-work") == 1 and b"END" not in t.seen and os.WIFSIGNALED(status)
sys.exit(0 if left else repr((t.seen, status)))
"#;
    for shell in ["bash", "dash", "zsh"].into_iter().filter(|shell| have(shell)) {
        python(&s, script, &[shell]);
    }
    for run in s.ok(["list", "--json"]).json().as_array().unwrap() {
        assert_eq!((&run["state"], &run["exit_code"]), (&"ended".into(), &130.into()), "{run}");
    }
}

#[test]
fn what_cannot_be_started_has_the_codes_of_shells() {
    let s = sandbox();
    s.sh("printf '#!/no/such\\n' > astray; chmod +x astray");
    s.sh("printf 'echo plain; exit 4\\n' > plain; chmod +x plain; : > empty; chmod +x empty");
    // A program, but for another processor; and no program at all.
    let mut program = std::fs::read("/bin/true").unwrap();
    program[18] ^= 0xb7;
    s.write("foreign", &program);
    s.write("bytes", b"\0\x01\x02");
    s.sh("chmod +x foreign bytes");
    for (name, code, words) in [
        ("./astray", 127, "the program that its first line names is missing"),
        ("./foreign", 126, "neither a program for this processor nor a script"),
        ("./bytes", 126, "neither a program for this processor nor a script"),
    ] {
        let shell = s.finish(s.command("dash").args(["-c", name]));
        let said = s.snapback(["run", "--", name]);
        assert_eq!(said.fails(code, &[words]).code(), shell.code(), "{name}");
    }
    s.snapback(["run", "-q", "--", "./plain"]).exits(4).prints("plain");
    s.ok(["run", "--", "./empty"]);
}

/// Whether the command of the run has ended, and snapback is at work on what comes after it.
fn reports(s: &Sandbox) -> bool {
    s.ok(["list", "--json"]).json()[0]["state"] == "ended"
}

#[test]
fn nobody_is_waited_for_who_does_not_read_the_report() {
    let s = sandbox();
    s.sh("mkfifo ../fifo");
    let said = s.snapback(["run", "--report", "../fifo", "--", "touch", "started"]);
    said.fails(125, &["nobody reads the fifo"]);
    assert!(!s.has("started"));
    // Whoever reads it gets it whole.
    let mut fifo = std::fs::File::options().read(true).write(true).open(s.home().join("fifo")).unwrap();
    s.ok(["run", "-q", "--report", "../fifo", "--", "touch", "started"]);
    let mut read = vec![0; 1 << 16];
    let length = fifo.read(&mut read).unwrap();
    let report: serde_json::Value = serde_json::from_slice(&read[..length]).unwrap();
    assert_eq!(report["changes"][0]["path"], "started");
    // One that has stopped reading does not keep it: more is written than a fifo holds.
    s.sh("i=0; while [ $i -lt 2000 ]; do : > many-files-with-long-names-$i; i=$((i+1)); done");
    let mut run = s.start(["run", "--report", "../fifo", "--", "sh", "-c", "rm many-*"]);
    until("the end of the command", || reports(&s));
    run.signal(Signal::TERM);
    run.signal(Signal::HUP);
    // The second signal ends it as such signals do.
    let status = run.wait();
    assert!(matches!(status.signal(), Some(1 | 15)), "{status}");
    drop(fifo);
}

/// Those who may not do what modes forbid.
fn ordinary(test: impl Fn(&Sandbox)) {
    users().into_iter().filter(|user| user.is_ordinary()).for_each(|user| test(&Sandbox::new(PROGRAM, user)));
}

#[test]
fn a_directory_of_path_that_may_not_be_entered_has_no_command_in_it() {
    ordinary(|s| {
        s.sh("mkdir ../closed; chmod 0 ../closed");
        let path = format!("{}:/usr/bin:/bin", s.home().join("closed").display());
        let run = |name: &str| s.finish(s.program().env("PATH", &path).args(["run", "--", name]));
        run("no-such-command").fails(127, &["there is no command no-such-command"]);
        run("true").exits(0);
        run("../closed/command").fails(126, &["permission denied"]);
        s.sh("chmod 700 ../closed");
    });
}

#[test]
fn a_report_that_cannot_be_written_is_refused_before_the_command_starts() {
    ordinary(|s| {
        s.sh("mkdir ../closed ../dir; : > ../closed/own; echo old > ../old; chmod 400 ../old; chmod 555 ../closed");
        for (file, why) in [
            ("-", "standard output is the command's own"),
            ("../dir", "is a directory"),
            ("../old", "could not write the report into"),
            ("../closed/new", "could not write the report into"),
            ("../no/such", "could not write the report into"),
        ] {
            s.snapback(["run", "--report", file, "--", "touch", "ran"]).fails(125, &[why]).says("hint: ");
            assert!(!s.has("ran"), "{file}");
        }
        assert_eq!(s.read("../old"), "old\n");
        // What can be written is, wherever it lies.
        s.ok(["run", "--report", "/dev/null", "--", "true"]);
        s.ok(["run", "--report", "../closed/own", "--", "true"]);
        assert!(s.read("../closed/own").contains("\"exit_code\": 0"));
        s.sh("\"$SNAPBACK\" run -q --report /dev/fd/3 -- true 3> ../opened");
        assert!(s.read("../opened").contains("\"exit_code\": 0") && !s.has("-"));
        s.ok(["run", "--report", "./-", "--", "true"]);
        assert!(s.read("-").contains("\"exit_code\": 0"));
        s.sh("chmod 755 ../closed");
    });
}
