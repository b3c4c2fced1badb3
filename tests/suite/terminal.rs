//! `run` on a real terminal: job control, full-screen programs, keys, sizes, windows that
//! are closed. Everything as if snapback were not there.

use crate::sandbox;
use snapback_tests::{Sandbox, Screen, have, until};
use std::time::Duration;

/// A terminal, where there is one to be had.
fn screen(s: &Sandbox) -> Option<Screen<'_>> {
    (have("tmux") && have("bash")).then(|| Screen::new(s, 100, 24))
}

/// Waits until so many runs go on: what is typed while the shell still edits a line is no line for
/// what it starts then.
#[track_caller]
fn begun(s: &Sandbox, runs: usize) {
    until("the run", || {
        let list = s.snapback(["list", "--json"]);
        list.out().matches("\"state\": \"running\"").count() == runs
    });
}

#[test]
fn a_job_is_stopped_and_goes_on_in_the_foreground_and_in_the_background() {
    let s = sandbox();
    let Some(t) = screen(&s) else { return };
    t.line("\"$SNAPBACK\" run -q -- cat; echo code-$?");
    begun(&s, 1);
    t.line("first");
    t.when("an echo", |shown| shown.matches("first").count() == 2);
    t.press(&["C-z"]);
    t.until("Stopped");
    t.line("jobs");
    t.when("one stopped job", |shown| shown.matches("Stopped").count() == 2);
    t.line("fg");
    // What is typed while the shell still edits a line is no line for the job.
    t.when("the job again", |shown| shown.matches("run -q -- cat").count() == 4);
    t.line("second");
    t.when("an echo", |shown| shown.matches("second").count() == 2);
    t.press(&["C-d"]);
    t.clear();
    // In the background it is stopped as soon as it reads the terminal, and waits for fg.
    t.line("\"$SNAPBACK\" run -q -- sh -c 'read x; echo got-$x; exit 5' &");
    until("the job is stopped", || {
        t.line("jobs");
        t.text().contains("Stopped")
    });
    t.line("fg");
    t.when("the job again", |shown| {
        shown.trim_end().lines().last().is_some_and(|line| line.starts_with("\"$SNAPBACK\" run"))
    });
    t.line("third");
    t.until("got-third");
    t.line("echo code-$?");
    t.until("code-5");
    assert_eq!(s.ok(["list", "--json"]).json()[0]["exit_code"], 5);
}

#[test]
fn a_run_inside_a_run_is_one_job() {
    let s = sandbox();
    let Some(t) = screen(&s) else { return };
    t.line("\"$SNAPBACK\" run -q -- \"$SNAPBACK\" run -q -- sh -c 'cat; exit 7'");
    begun(&s, 2);
    t.line("first");
    t.when("an echo", |shown| shown.matches("first").count() == 2);
    for (fg, line) in [(5, "second"), (7, "third")] {
        t.press(&["C-z"]);
        t.when("it is stopped", |shown| shown.matches("Stopped").count() == (fg - 3) / 2);
        // All of it, or the shell would have no prompt and who goes on would read what is typed.
        t.line("jobs -r");
        t.line("fg");
        t.when("the job again", |shown| shown.matches("run -q -- sh").count() >= fg - 2);
        t.line(line);
        t.when("an echo", |shown| shown.matches(line).count() == 2);
    }
    t.press(&["C-d"]);
    t.line("echo code-$?");
    t.until("code-7");
    let list = s.ok(["list", "--json"]).json();
    let runs: Vec<_> = list.as_array().unwrap().iter().filter(|item| item["kind"] == "run").collect();
    assert_eq!(runs.len(), 2, "{list}");
    assert!(runs.iter().all(|run| run["state"] == "ended" && run["exit_code"] == 7), "{list}");
}

#[test]
fn an_editor_works_and_leaves_the_screen_as_it_was() {
    let s = sandbox();
    let Some(t) = screen(&s) else { return };
    if !have("vim") {
        return;
    }
    s.write("f", "old\n");
    t.line("echo before; \"$SNAPBACK\" run -- vim -u NONE -N f; echo code-$?");
    t.until("~");
    t.press(&["O", "new", "Escape"]);
    t.until("new");
    // The editor is told of the new size.
    t.resize(60, 12);
    t.when("twelve lines", |shown| shown.lines().filter(|line| line.starts_with('~')).count() == 9);
    t.resize(100, 24);
    t.press(&["C-z"]);
    t.until("Stopped");
    t.line("fg");
    t.when("the editor again", |shown| shown.contains('~') && !shown.contains("Stopped"));
    t.line(":wq");
    let shown = t.until("snapback: 1 modified; `snapback undo` takes it back");
    assert!(shown.contains("before") && !shown.contains('~'), "the screen is as it was\n{shown}");
    t.line("echo code-$?");
    t.until("code-0");
    assert_eq!(s.read("f"), "new\nold\n");
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "old\n");
}

#[test]
fn keys_reach_the_command_once_each_and_snapback_lives_on() {
    let s = sandbox();
    let Some(t) = screen(&s) else { return };
    let count = |name: &str| format!("trap 'echo {name} >> {name}' {name}; ");
    let traps: String = ["INT", "QUIT", "WINCH"].map(count).concat();
    s.write("command", format!("{traps}touch ready\nwhile [ ! -e end ]; do sleep 0.02; done; exit 9\n"));
    t.line("\"$SNAPBACK\" run -q -- bash command; echo code-$?");
    until("the command", || s.has("ready"));
    for n in 1..=5 {
        t.press(&["C-c"]);
        until("an interrupt", || s.has("INT") && s.read("INT").lines().count() >= n);
        t.press(&["C-\\"]);
        until("a quit", || s.has("QUIT") && s.read("QUIT").lines().count() >= n);
        t.resize(100 + n as u32, 24);
        until("a new size", || s.has("WINCH") && s.read("WINCH").lines().count() >= n);
    }
    std::thread::sleep(Duration::from_millis(200));
    for name in ["INT", "QUIT", "WINCH"] {
        assert_eq!(s.read(name).lines().count(), 5, "{name} came once for each");
    }
    s.write("end", "");
    t.until("code-9");
    assert_eq!(s.ok(["list", "--json"]).json()[0]["state"], "ended");
}

#[test]
fn a_window_that_is_closed_ends_the_command_and_the_run_is_recorded() {
    let s = sandbox();
    let Some(t) = screen(&s) else { return };
    s.write("f", "0");
    t.line("\"$SNAPBACK\" run -- sh -c 'echo 1 > f; touch ready; sleep 600'");
    until("the command", || s.has("ready"));
    t.close();
    until("the end", || s.ok(["list", "--json"]).json()[0]["state"] != "running");
    let list = s.ok(["list", "--json"]).json();
    assert_eq!((&list[0]["state"], &list[0]["exit_code"]), (&"ended".into(), &129.into()), "{list}");
    s.ok(["undo"]);
    assert_eq!((s.read("f"), s.has("ready")), ("0".into(), false));
}

#[test]
fn an_interrupt_while_the_snapshot_is_taken_leaves_nothing_behind() {
    let s = sandbox();
    let Some(t) = screen(&s) else { return };
    s.ok(["snap"]);
    let store = |s: &Sandbox| {
        s.sh("find .snapback ! -path '*/cache/*' ! -name cache ! -name lock -printf '%P %s %T@\\n' | sort")
    };
    let before = store(&s);
    s.sh("for d in $(seq 40); do mkdir d$d; head -c 4000000 /dev/urandom | split -b 8000 -a 3 - d$d/f; done");
    t.line("\"$SNAPBACK\" run -- touch ran; echo code-$?");
    until("what is being written", || s.sh("ls .snapback/tmp").trim() != "");
    t.press(&["C-c"]);
    let shown = t.until("code-125");
    assert!(shown.contains("snapback: stopped before the command was started"), "{shown}");
    assert!(shown.contains("hint: nothing was kept of the snapshot that was being taken"), "{shown}");
    assert!(!s.has("ran"));
    assert_eq!(s.ok(["list", "--json"]).json().as_array().unwrap().len(), 1);
    // A workspace that is empty may have been made and removed.
    let times =
        |text: &str| text.lines().map(|l| l.rsplit_once(' ').unwrap().0.to_owned()).collect::<Vec<_>>();
    assert_eq!(times(&store(&s)), times(&before));
    s.ok(["verify"]);
}

#[test]
fn long_work_shows_how_far_it_has_come_and_short_work_shows_nothing() {
    let s = sandbox();
    let Some(t) = screen(&s) else { return };
    t.line("\"$SNAPBACK\" snap; echo code-$?");
    let shown = t.until("code-0");
    assert!(!shown.contains("reading"), "{shown}");
    t.clear();
    s.sh("for d in $(seq 60); do mkdir d$d; head -c 3000000 /dev/urandom | split -b 1500 -a 4 - d$d/f; done");
    t.line("\"$SNAPBACK\" snap; echo code-$?");
    let shown = t.when("a bar", |shown| shown.contains("reading") && shown.contains("/s"));
    assert!(!shown.contains("code-0"), "{shown}");
    let shown = t.until("code-0");
    assert!(!shown.contains("reading"), "it goes when the work is done\n{shown}");
    // The second time it is known how many there will be, and so how long it takes.
    t.clear();
    s.sh("find . -path './d*' -type f -exec touch {} +; rm -r .snapback/cache");
    t.line("\"$SNAPBACK\" snap -m again; echo code-$?");
    let shown = t.when("a bar with an end", |shown| shown.contains("reading") && shown.contains(" left"));
    assert!(shown.contains("/120,0"), "{shown}");
    t.until("code-0");
    s.sh("touch new");
    s.ok(["snap"]).never_says("reading");
}
