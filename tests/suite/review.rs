//! The review: for each change, keep it or put it back; on a full screen and by globs.

use crate::{newest, sandbox};
use serde_json::Value;
use snapback_tests::{Record, Sandbox, Screen, assert_back, have};

/// A run that changed things of every kind.
fn changed(s: &Sandbox) -> [Record; 2] {
    s.sh("mkdir -p src/deep docs; echo 0 > src/a.rs; echo 0 > src/deep/b.rs; echo 0 > docs/x.txt; echo 0 > top");
    let before = Record::take(&s.project());
    s.run(
        "echo 1 > src/a.rs; echo 1 > src/deep/b.rs; rm -r docs; echo 1 > top; mkdir new; echo 1 > new/n.rs",
    );
    [before, Record::take(&s.project())]
}

fn state(s: &Sandbox) -> [String; 5] {
    ["src/a.rs", "src/deep/b.rs", "docs/x.txt", "top", "new/n.rs"]
        .map(|path| if s.has(path) { s.read(path).trim().to_owned() } else { "-".to_owned() })
}

/// How many steps an undo could take back.
fn undo(s: &Sandbox) -> Value {
    s.ok(["status", "--json"]).json()["undo"]["kind"].clone()
}

#[test]
fn globs_put_back_what_they_mean_in_one_step_that_undo_takes_back() {
    let s = sandbox();
    let [_, after] = changed(&s);
    for (words, want) in [
        (&["--reject", "*.rs"][..], ["0", "0", "-", "1", "-"]),
        (&["--reject", "src/"], ["0", "0", "-", "1", "1"]),
        (&["--reject", "/docs"], ["1", "1", "0", "1", "1"]),
        (&["--reject", "*", "--accept", "src/"], ["1", "1", "0", "0", "-"]),
        (&["--reject", "src/a.rs", "--reject", "top"], ["0", "1", "-", "0", "1"]),
        (&["--reject", "*", "--accept", "a.rs", "--accept", "new/n.rs"], ["1", "0", "0", "0", "1"]),
    ] {
        let review = s.ok([&["review"], words].concat());
        review.says("put back, ").says("`snapback undo` brings it back");
        assert_eq!(state(&s), want, "{words:?}");
        assert_eq!(undo(&s), "pre-restore");
        s.ok(["undo"]);
        assert_back(&after, &Record::default(), &Record::take(&s.project()));
        assert_eq!(undo(&s), "run", "one review is one step");
    }
}

#[test]
fn a_second_review_is_of_what_is_left_of_the_same_step() {
    let s = sandbox();
    let [before, _] = changed(&s);
    s.ok(["review", "--reject", "top"]);
    s.ok(["review", "--reject", "a.rs"]);
    assert_eq!(state(&s), ["0", "1", "-", "0", "1"]);
    s.ok(["review", "--reject", "*"]);
    assert!(before.is_like(&Record::take(&s.project())));
    // Each was a step.
    s.ok(["undo"]);
    assert_eq!(state(&s), ["0", "1", "-", "0", "1"]);
}

#[test]
fn what_is_named_by_neither_stays_and_nothing_is_no_step() {
    let s = sandbox();
    let [_, after] = changed(&s);
    s.ok(["review", "--accept", "*"]).says("all stays as it is (7 changes)");
    s.snapback(["review", "--reject", "no-such-thing"]).fails(1, &["--reject"]);
    s.snapback(["review"]).fails(2, &["terminal"]).says("--reject");
    s.snapback(["undo", "-i"]).fails(2, &["terminal"]);
    s.ok(["review", "--reject", "top", "-n"])
        .says("1 change put back, 6 as they are now")
        .never_says("nothing that changed");
    // One that means nothing may be another name that was meant.
    s.ok(["review", "--reject", "top", "--reject", "tpo", "--accept", "scr/", "--accept", "src/", "-n"])
        .says("nothing that changed is meant by `--reject tpo`")
        .says("nothing that changed is meant by `--accept scr/`")
        .never_says("--reject top")
        .never_says("--accept src/");
    assert_back(&after, &after, &Record::take(&s.project()));
    assert_eq!(undo(&s), "run");
    let review = s.ok(["review", "--reject", "top", "--json"]);
    let changes = review.json()["changes"].clone();
    assert_eq!(changes, serde_json::json!([{"target": "tree", "kind": "modified", "path": "top"}]));
    s.ok(["undo"]);
    // Against any snapshot that is named.
    s.ok(["snap", "-m", "now"]);
    s.write("top", "2");
    s.ok(["review", &newest(&s), "--reject", "top"]);
    assert_eq!(s.read("top"), "1\n");
}

#[test]
fn databases_and_other_targets_are_entries_too() {
    if !have("python3") {
        return;
    }
    let s = sandbox();
    let sql = |statement: &str| {
        format!(
            "python3 -c \"import sqlite3; c = sqlite3.connect('app.db'); c.execute('{statement}'); c.commit()\""
        )
    };
    s.sh(&sql("create table t (a)"));
    s.sh("mkdir data; echo 0 > data/f; echo 0 > data/g; echo 0 > top");
    s.write(
        "snapback.toml",
        "[snapshot]\nignore = [\"data\"]\n[[target]]\nname = \"data\"\nbackend = \"tree\"\npath = \"data\"\n",
    );
    s.run(&format!("{}; echo 1 > data/f; echo 1 > data/g; echo 1 > top", sql("insert into t values (1)")));
    let rows = || {
        s.sh("python3 -c \"import sqlite3; print(sqlite3.connect('app.db').execute('select count(*) from t').fetchone()[0])\"")
    };
    s.ok(["review", "--reject", "app.db", "--reject", "data/f"]);
    assert_eq!(
        (rows().as_str(), s.read("data/f").as_str(), s.read("data/g").as_str()),
        ("0\n", "0\n", "1\n")
    );
    assert_eq!(s.read("top"), "1\n");
    s.ok(["undo"]);
    assert_eq!((rows().as_str(), s.read("data/f").as_str()), ("1\n", "1\n"));
    // A path of the project narrows every command to the target that it lies in.
    s.ok(["undo", "--path", "data/f"]);
    assert_eq!(
        (s.read("data/f"), s.read("data/g"), s.read("top")),
        ("0\n".into(), "1\n".into(), "1\n".into())
    );
    s.snapback(["undo", "--path", "data/no-such"]).fails(1, &["data/no-such"]);
    s.ok(["undo"]);
    s.ok(["undo", "--path", "data"]);
    assert_eq!(
        (s.read("data/f"), s.read("data/g"), s.read("top")),
        ("0\n".into(), "0\n".into(), "1\n".into())
    );
    s.ok(["verify"]);
}

#[test]
fn on_a_full_screen_each_change_is_decided_about() {
    let s = sandbox();
    if !have("tmux") || !have("bash") {
        return;
    }
    let [_, after] = changed(&s);
    let t = Screen::new(&s, 110, 24);
    t.line("echo shown before; \"$SNAPBACK\" review; echo code-$?");
    let shown = t.until("q quit");
    for text in [
        "review: since ",
        "0 keep, 0 put back, 7 open",
        "tree",
        "D docs/",
        "M top",
        "src/",
        "M a.rs",
        "src/deep/",
        "A n.rs",
    ] {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    assert!(!shown.contains("shown before"), "it has a screen of its own\n{shown}");
    // Down to the first change: what differs stands beside it.
    t.press(&["G"]);
    let shown = t.until("+1");
    assert!(shown.contains("-0") && shown.contains("+++ b/top"), "{shown}");
    t.press(&["r"]);
    t.until("1 put back");
    t.press(&["g"]);
    t.when("the target", |shown| !shown.contains("+++ b/top"));
    // A directory with all in it: the line of `docs/`.
    t.press(&["j", "r"]);
    t.until("3 put back, 4 open");
    t.resize(90, 16);
    t.when("the smaller screen", |shown| {
        shown.lines().nth(15).is_some_and(|line| line.starts_with("a keep"))
    });
    t.press(&["Enter"]);
    let shown = t.until("Done?");
    for text in
        ["3 changes put back, 4 changes as they are now", "bring back docs", "change back top", "in one step"]
    {
        assert!(shown.contains(text), "{text}\n{shown}");
    }
    t.press(&["Escape"]);
    t.when("the list again", |shown| !shown.contains("Done?"));
    t.press(&["Enter"]);
    t.until("Done?");
    t.press(&["Enter"]);
    let shown = t.until("code-0");
    assert!(shown.contains("shown before") && !shown.contains("q quit"), "the screen is as it was\n{shown}");
    assert!(shown.contains("3 changes put back, 4 as they are now"), "{shown}");
    assert_eq!(state(&s), ["1", "1", "0", "0", "1"]);
    s.ok(["undo"]);
    assert_back(&after, &Record::default(), &Record::take(&s.project()));
}

#[test]
fn leaving_it_changes_nothing_and_the_terminal_is_as_it_was() {
    let s = sandbox();
    if !have("tmux") || !have("bash") {
        return;
    }
    let [_, after] = changed(&s);
    let id = newest(&s);
    let t = Screen::new(&s, 110, 24);
    for (command, keys) in [
        ("\"$SNAPBACK\" undo -i", &["R", "q"][..]),
        (&format!("\"$SNAPBACK\" restore {id} -i"), &["R", "C-c"]),
        ("\"$SNAPBACK\" review", &["R", "Enter", "q"]),
    ] {
        t.line(&format!("{command}; echo code-$?"));
        t.until("q quit");
        t.press(keys);
        let shown = t.until("code-0");
        assert!(shown.contains("left before the end: nothing was changed"), "{shown}");
        t.clear();
        // What is typed is shown again, line by line.
        t.line("stty -a | grep -c -w echo");
        t.when("the terminal as it was", |shown| shown.lines().any(|line| line == "1"));
        t.clear();
    }
    // Stopped and woken in the middle of it.
    t.line("\"$SNAPBACK\" review; echo code-$?");
    t.until("q quit");
    t.press(&["C-z"]);
    t.until("Stopped");
    t.line("fg");
    t.until("q quit");
    t.press(&["q"]);
    t.until("left before the end");
    assert_back(&after, &after, &Record::take(&s.project()));
    assert_eq!(undo(&s), "run");
}

#[test]
fn keys_that_mean_nothing_here_decide_nothing_however_they_come() {
    let s = sandbox();
    if !have("tmux") || !have("bash") {
        return;
    }
    changed(&s);
    let t = Screen::new(&s, 80, 24);
    t.line("\"$SNAPBACK\" review; echo code-$?");
    // On the size that terminals have, the way out is to be seen.
    let shown = t.until("q quit");
    assert!(shown.contains("0 keep, 0 put back, 7 open"), "{shown}");
    t.press(&["F1", "F2", "F3", "F4", "F5", "F12", "S-F3", "M-r", "M-A", "C-Up", "IC"]);
    // A key that is held while something is being drawn comes in one piece, and is cut somewhere.
    let held: Vec<&str> = ["1b", "5b", "41"].repeat(300);
    t.press(&[&["-H"], &held[..]].concat());
    t.press(&["-H", "1b", "5b", "5b", "41"]);
    t.press(&["End", "r"]);
    t.until("0 keep, 1 put back, 6 open");
    t.press(&["Enter"]);
    let shown = t.until("Done?");
    for words in ["change back top", "`snapback undo` takes back", "goes on looking"] {
        assert!(shown.contains(words), "{words}\n{shown}");
    }
    t.press(&["Enter"]);
    t.until("code-0");
    assert_eq!(state(&s), ["1", "1", "-", "0", "1"]);
}

#[test]
fn what_changes_while_it_is_open_is_shown_before_it_is_put_back() {
    let s = sandbox();
    if !have("tmux") || !have("bash") {
        return;
    }
    changed(&s);
    let t = Screen::new(&s, 110, 24);
    t.line("\"$SNAPBACK\" review; echo code-$?");
    t.until("q quit");
    t.press(&["R", "Enter"]);
    t.until("Done?");
    s.write("top", "edited meanwhile\n");
    s.write("new/made-later", "");
    t.press(&["Enter"]);
    let shown = t.until("something changed meanwhile");
    assert!(shown.contains("0 keep, 6 put back, 2 open") && shown.contains("A made-later"), "{shown}");
    assert_eq!(state(&s), ["1", "1", "-", "edited meanwhile", "1"], "nothing was put back");
    // What is known now can be decided about; what was left open stays.
    t.press(&["Enter"]);
    t.until("Done?");
    t.press(&["Enter"]);
    t.until("code-0");
    assert_eq!(state(&s), ["0", "0", "0", "edited meanwhile", "-"]);
    assert!(s.has("new/made-later"));
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let s = sandbox();
    if !have("tmux") || !have("bash") {
        return;
    }
    let [_, after] = changed(&s);
    let t = Screen::new(&s, 80, 24);
    for name in ["INT", "QUIT", "TERM", "HUP"] {
        t.line("\"$SNAPBACK\" review; echo code-$?");
        t.until("q quit");
        // The one of this project: beside this test others go through theirs.
        s.sh(&format!(
            "for review in $(ps -eo pid=,args= | sed -n \"s|^ *\\([0-9]*\\) $SNAPBACK review\\$|\\1|p\"); do \
             if [ \"$(readlink /proc/$review/cwd)\" = \"$(pwd -P)\" ]; then kill -{name} $review; fi; done"
        ));
        let shown = t.until("code-0");
        assert!(
            shown.contains("left before the end: nothing was changed") && !shown.contains("q quit"),
            "{shown}"
        );
        t.clear();
    }
    assert_back(&after, &after, &Record::take(&s.project()));
}
