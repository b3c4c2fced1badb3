//! The review of a volume: what changed in it are entries like those of the project, meant by the
//! name of its target or by their own.

use super::{Engine, cover, each_user};
use snapback_tests::{Sandbox, Screen, have};

/// A run of a project with `volume`, and what changed since in both.
fn changed(s: &Sandbox, engine: &Engine, volume: &str) {
    engine.docker(&["volume", "create", volume]);
    let files = engine.files(volume);
    let at = |script: &str| engine.sh(&format!("cd {}; {script}", files.display()));
    at("mkdir d; for f in d/a d/b c; do echo 0 > $f; done");
    cover(s, volume, "");
    s.write("top", "0\n");
    s.run("echo 1 > top");
    at("echo 1 > d/a; rm d/b; echo 1 > c; echo 1 > new");
}

/// What is there now, of the volume and of the project.
fn state(s: &Sandbox, engine: &Engine, volume: &str) -> String {
    let script = "for f in d/a d/b c new; do [ -e $f ] && cat $f || echo -; done";
    let there = engine.sh(&format!("cd {}; {script}", engine.files(volume).display()));
    format!("{} {}", there.replace('\n', " "), s.read("top").trim())
}

#[test]
fn what_globs_mean_of_it_goes_back_in_one_step() {
    each_user(|s, engine, volume| {
        changed(s, engine, volume);
        let inside = |path: &str| format!("{volume}:/{path}");
        for (words, want) in [
            (["--reject", volume].to_vec(), "0 0 0 - 1"),
            (["--reject", &inside("d")].to_vec(), "0 0 1 1 1"),
            (["--reject", &inside("new"), "--reject", "top"].to_vec(), "1 - 1 - 0"),
            (["--reject", volume, "--accept", &inside("c")].to_vec(), "0 0 1 - 1"),
            (["--reject", "*", "--accept", volume].to_vec(), "1 - 1 1 0"),
        ] {
            s.ok([&["review"], &words[..]].concat()).says("put back, ");
            assert_eq!(state(s, engine, volume), want, "{words:?}");
            s.ok(["undo"]);
            assert_eq!(state(s, engine, volume), "1 - 1 1 1", "{words:?}: it was one step");
        }
        s.snapback(["review", "--reject", &inside("no-such")]).fails(1, &["--reject"]);
    });
}

#[test]
fn on_a_full_screen_it_is_decided_about_as_a_whole() {
    each_user(|s, engine, volume| {
        if !have("tmux") || !have("bash") {
            return;
        }
        changed(s, engine, volume);
        let t = Screen::new(s, 110, 24);
        t.line("\"$SNAPBACK\" review; echo code-$?");
        let shown = t.until("q quit");
        for text in ["0 keep, 0 put back, 5 open", "M top", "M a", "D b", "M c", "A new"] {
            assert!(shown.contains(text), "{text}\n{shown}");
        }
        // The line of the target, which has no letter of a change before it.
        let line = |shown: &str| {
            let is_it = |line: &&str| line.split('│').next().unwrap_or_default().trim() == volume;
            shown.lines().skip(1).position(|line| is_it(&line))
        };
        let down = line(&shown).unwrap_or_else(|| panic!("no line of {volume}\n{shown}"));
        (0..down).for_each(|_| t.press(&["j"]));
        t.press(&["r"]);
        t.until("0 keep, 4 put back, 1 open");
        // One in it is kept all the same; what differs in it stands beside it.
        t.press(&["j", "j"]);
        t.until("+++ b/");
        t.press(&["a"]);
        t.until("1 keep, 3 put back, 1 open");
        t.press(&["Enter"]);
        t.until("Done?");
        t.press(&["Enter"]);
        t.until("code-0");
        assert_eq!(state(s, engine, volume), "0 0 1 - 1");
        s.ok(["undo"]);
        assert_eq!(state(s, engine, volume), "1 - 1 1 1");
    });
}
