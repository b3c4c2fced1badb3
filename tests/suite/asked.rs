//! What is asked on a terminal, and that nothing is asked without one.

use crate::{each_user, sandbox};
use snapback_tests::{Output, Sandbox, Screen, User, have};
use std::io::Write;
use std::process::Stdio;

/// Runs the program on a terminal of its own; `answers` is what is typed there. Returns what
/// the terminal showed, and how the program ended.
fn on_terminal(s: &Sandbox, words: &str, answers: &str) -> Output {
    let mut command = s.command("script");
    command.args(["-qefc", &format!("\"$SNAPBACK\" {words}"), "/dev/null"]).env("TERM", "dumb");
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut keys = child.stdin.take().unwrap();
    keys.write_all(answers.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(keys);
    // All of it is talk here.
    let line = format!("{words} < {answers:?}");
    Output { line, status: output.status, stdout: Vec::new(), stderr: output.stdout }
}

#[test]
fn an_undo_asks_only_where_edits_after_the_run_are_concerned() {
    if !have("script") {
        return;
    }
    each_user(|s| {
        s.sh("echo 0 > f; echo 0 > mine");
        s.run("echo A > f");
        // Nothing was edited since: nothing is asked.
        on_terminal(s, "undo", "").exits(0).says("undone").never_says("[y/");
        assert_eq!(s.read("f"), "0\n");
        on_terminal(s, "redo", "").exits(0).never_says("[y/");
        // Something was, and the answer counts.
        s.write("mine", "by hand\n");
        for answer in ["n\n", "\n", "whatever\n", "\u{4}"] {
            let undo = on_terminal(s, "undo", answer);
            undo.says("mine");
            assert_ne!(undo.code(), 0, "{undo}");
            assert_eq!((s.read("f"), s.read("mine")), ("A\n".into(), "by hand\n".into()), "{undo}");
        }
        on_terminal(s, "undo --path f", "").exits(0).never_says("[y/");
        assert_eq!((s.read("f"), s.read("mine")), ("0\n".into(), "by hand\n".into()));
        s.ok(["undo"]);
        on_terminal(s, "undo", "y\n").exits(0).says("mine").says("undone");
        assert_eq!((s.read("f"), s.read("mine")), ("0\n".into(), "0\n".into()));
        on_terminal(s, "redo", "").exits(0);
        assert_eq!(s.read("mine"), "by hand\n");
        on_terminal(s, "undo --yes", "").exits(0).never_says("[y/");
        assert_eq!(s.read("mine"), "0\n");
    });
}

#[test]
fn a_huge_first_snapshot_is_asked_for_on_a_terminal() {
    if !have("script") {
        return;
    }
    each_user(|s| {
        s.sh("mkdir data; head -c 16000000 /dev/zero > data/f0; for n in $(seq 350); do ln data/f0 data/f$n; done");
        for answer in ["n\n", "\n"] {
            let run = on_terminal(s, "run -- touch ran", answer);
            run.exits(125).says("huge").says("data");
            assert!(!s.has("ran"), "{run}");
        }
        on_terminal(s, "run -- touch ran", "y\n").exits(0).says("huge");
        assert!(s.has("ran"));
        // It is the first that is asked for.
        on_terminal(s, "run -- touch again", "").exits(0).never_says("huge");
        assert!(s.has("again"));
    });
}

#[test]
fn a_place_that_is_seldom_meant_is_asked_for_with_what_it_holds() {
    each_user(|s| {
        s.sh("mkdir -p ../big ../small; echo 0 | tee ../big/a ../big/b ../big/c > ../small/d");
        let at_home = |words: &[&str]| s.finish(s.program().current_dir(s.home()).args(words));
        for (words, code) in [(&["snap"][..], 1), (&["run", "--", "touch", "ran"], 125)] {
            at_home(words)
                .fails(code, &["is your home directory, not a project: ", "most of what was counted is in "])
                .says("big (3 files, ")
                .says("hint: change into a project; or leave out what need not come back")
                .says("--allow-huge");
        }
        assert!(!s.home().join("ran").exists() && !s.home().join(".snapback").exists());
        at_home(&["snap", "--allow-huge"]).exits(0);
        // It is the first that is asked for.
        at_home(&["snap"]).exits(0);
        // Whoever may write there is not the one to try this.
        if s.user() == User::Nobody {
            let all = s.finish(s.program().current_dir("/").arg("snap"));
            all.fails(1, &["/ is the whole system, not a project: ", " files, "]);
        }
    });
}

#[test]
fn nobody_waits_for_an_answer_and_what_changes_meanwhile_is_asked_again() {
    if !have("tmux") || !have("bash") {
        return;
    }
    let s = sandbox();
    s.sh("echo 0 > f; echo 0 > mine");
    s.run("echo A > f");
    s.write("mine", "by hand\n");
    let t = Screen::new(&s, 100, 24);
    t.line("\"$SNAPBACK\" undo");
    t.until("[y/N]");
    // The lock is free: this would wait as long as the question stands.
    s.ok(["verify"]);
    s.ok(["gc"]);
    s.write("later", "by hand, too\n");
    t.line("y");
    t.until("another since you were asked");
    t.until("later");
    t.line("n");
    t.until("nothing was done");
    assert_eq!((s.read("f"), s.has("later")), ("A\n".into(), true));
    t.line("clear; \"$SNAPBACK\" undo; echo ended $?");
    t.until("[y/N]");
    t.line("y");
    t.until("ended 0");
    assert_eq!((s.read("f"), s.read("mine"), s.has("later")), ("0\n".into(), "0\n".into(), false));
    s.ok(["redo"]);
    assert_eq!((s.read("mine"), s.read("later")), ("by hand\n".into(), "by hand, too\n".into()));
}

#[test]
fn an_interrupt_ends_a_question_at_once_and_nothing_is_agreed_to() {
    if !have("tmux") || !have("bash") {
        return;
    }
    let s = sandbox();
    s.sh("mkdir ../outside; echo 0 > ../outside/f");
    s.write("snapback.toml", "[[target]]\nname = \"out\"\nbackend = \"tree\"\npath = \"../outside\"\n");
    let t = Screen::new(&s, 100, 24);
    for words in ["run -- touch ran", "snap", "trust"] {
        for typed in ["", "y"] {
            t.line(&format!("\"$SNAPBACK\" {words}"));
            t.until("[y/N]");
            if !typed.is_empty() {
                t.write(typed);
            }
            t.press(&["C-c"]);
            t.when("a prompt again", |shown| shown.matches("ready>").count() == 2);
            t.line("echo code-$?");
            t.until("code-130");
            assert!(!s.has("ran"));
            s.ok(["trust", "--list"]).says("nothing was trusted");
            t.clear();
        }
    }
}
