//! A volume that is half put back: nobody runs on it until whoever goes on is done.

use super::engine::until;
use super::held::{has_ended, records, slow, watchers};
use super::{Engine, Name, cover, each_user, sandbox};
use rustix::process::Signal;
use snapback_tests::{Running, Sandbox, User};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

/// An undo in the middle of putting the volume back, if it has not ended by then.
fn in_the_middle(s: &Sandbox, engine: &Engine, volume: &str) -> Running {
    let said = std::fs::File::create(s.dir().join("said")).unwrap();
    let mut undo = s.program();
    let undo = Running::heard(undo.args(["undo", "--yes"]).stdout(Stdio::null()).stderr(said));
    let pid = undo.pid();
    until("the middle", || records(engine, volume, "snapback-half") == 1 || has_ended(pid));
    undo
}

/// Kills an undo in the middle of putting the volume back.
pub(super) fn cut_short(s: &Sandbox, engine: &Engine, volume: &str) {
    loop {
        let mut undo = in_the_middle(s, engine, volume);
        let pid = undo.pid();
        let watchers = watchers(pid);
        undo.signal(Signal::KILL);
        undo.wait();
        for watcher in watchers {
            until("the watcher's end", || has_ended(watcher));
        }
        if records(engine, volume, "snapback-half") == 1 {
            return;
        }
        // It was done already.
        s.ok(["redo", "--yes"]);
    }
}

#[test]
fn what_is_half_put_back_is_not_run_on_until_it_is_whole() {
    each_user(|s, engine, volume| {
        let name = slow(s, engine, volume, "");
        let mount = engine.files(volume).display().to_string();
        let sums = || engine.sh(&format!("cd {mount}; cat f* | sha256sum"));
        let before = sums();
        s.run("true");
        engine.sh(&format!("cd {mount}; for f in f*; do echo changed > $f; done"));
        cut_short(s, engine, volume);
        assert_eq!(engine.state(&name), "exited");
        s.ok(["status"]).prints(&format!("{name} stays stopped: the volume {volume} is half put back"));
        assert_eq!(s.ok(["status", "--json"]).json()["held"][0]["containers"], name);
        // What only looks changes nothing of that, and another project is told.
        s.snapback(["diff"]);
        assert_eq!(engine.state(&name), "exited");
        let other = sandbox(engine, s.user());
        cover(&other, volume, "");
        other
            .snapback(["snap"])
            .fails(1, &["is half put back", s.project().to_str().unwrap()])
            .says("undo --resume");
        assert_eq!(engine.state(&name), "exited");
        s.ok(["snap"]).says(&format!("{name} stayed stopped while the volume was half put back"));
        assert_eq!(engine.state(&name), "running");
        assert_eq!(sums(), before);
        assert_eq!(engine.leftovers(volume), "");
        assert_eq!(s.ok(["status", "--json"]).json()["held"], serde_json::json!([]));
        // Whoever gives the step up has them started as well.
        engine.sh(&format!("cd {mount}; for f in f*; do echo changed > $f; done"));
        cut_short(s, engine, volume);
        s.ok(["undo", "--abandon", volume]);
        s.ok(["snap"]);
        assert_eq!(engine.state(&name), "running");
        assert_eq!(engine.leftovers(volume), "");
    });
}

#[test]
fn an_engine_that_starts_again_starts_nobody_on_what_is_half_put_back() {
    let Some(engine) = Engine::alone() else { return };
    let (s, volume) = (&sandbox(&engine, User::Me), &*Name::fresh(&engine));
    let name = slow(s, &engine, volume, "");
    engine.docker(&["update", "--restart", "always", &name]);
    let restarts = || engine.docker(&["inspect", "-f", "{{.HostConfig.RestartPolicy.Name}}", &name]);
    let mount = engine.files(volume).display().to_string();
    let sums = || engine.sh(&format!("cd {mount}; cat f* | sha256sum"));
    let before = sums();
    s.run("true");
    engine.sh(&format!("cd {mount}; for f in f*; do echo changed > $f; done"));
    cut_short(s, &engine, volume);
    engine.restart();
    assert_eq!(engine.state(&name), "exited");
    s.ok(["status"]).prints(&format!("{name} stays stopped: the volume {volume} is half put back"));
    // Somebody starts it all the same: that is said as it is.
    engine.docker(&["start", &name]);
    s.ok(["status"]).prints(&format!("{name} was started, and should not run now"));
    assert_eq!(s.ok(["status", "--json"]).json()["held"][0]["running"], name);
    s.ok(["undo", "--resume"]);
    assert_eq!(sums(), before);
    assert_eq!((engine.state(&name), restarts()), ("running".into(), "always".into()));
    assert_eq!(engine.leftovers(volume), "");
    // Neither does it lose that when all goes well.
    s.run("true");
    engine.sh(&format!("cd {mount}; echo changed > f0"));
    s.ok(["undo", "--yes"]);
    assert_eq!((engine.state(&name), restarts()), ("running".into(), "always".into()));
}

#[test]
fn an_undo_that_is_stopped_puts_all_back_and_lets_go() {
    each_user(|s, engine, volume| {
        let name = slow(s, engine, volume, "");
        let mount = engine.files(volume).display().to_string();
        let sums = || engine.sh(&format!("cd {mount}; cat f* | sha256sum"));
        s.write("file", "old\n");
        let before = sums();
        s.run("echo new > file");
        engine.sh(&format!("cd {mount}; for f in f*; do echo changed > $f; done"));
        let changed = sums();
        loop {
            let mut undo = in_the_middle(s, engine, volume);
            undo.signal(Signal::INT);
            let ended = undo.wait();
            if !ended.success() {
                // A shell that waits for it sees that it was stopped.
                assert_eq!(ended.signal(), Some(Signal::INT.as_raw()));
                break;
            }
            // It was done already.
            s.ok(["redo", "--yes"]);
        }
        let said = std::fs::read_to_string(s.dir().join("said")).unwrap();
        assert!(said.contains("stopping: what was done is put back first"), "{said}");
        assert!(said.contains("all is as it was before") && said.contains("hint: "), "{said}");
        assert_eq!((sums(), s.read("file")), (changed, "new\n".into()));
        assert_eq!(engine.state(&name), "running");
        assert_eq!(engine.leftovers(volume), "");
        s.ok(["status"]).never_says("unfinished");
        s.ok(["undo", "--yes"]);
        assert_eq!((sums(), s.read("file")), (before, "old\n".into()));
    });
}
