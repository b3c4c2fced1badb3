//! Podman, which speaks docker's language at its socket: a real one where it is installed, and the
//! words of its that docker has not.

use super::between::Between;
use super::engine::until;
use super::{Engine, Name, USERS, cover, sandbox, sandbox_at};
use snapback_tests::Sandbox;

/// Waits.
const IDLE: &str = "while true; do /bin/busybox sleep 1; done";
/// Prints all that is in a volume.
const LOOK: &str = "find . -printf '%p %y %m %U %n %l\\n' | sort; cat f d/*";

/// Makes a volume with a label, and a container that uses it, whose name it returns. A new volume
/// gets the owner that its first container has.
fn used(engine: &Engine, volume: &str) -> String {
    engine.docker(&["volume", "create", "--label", "team=a", volume]);
    let name = format!("user-{volume}");
    engine.run(&name, volume, IDLE);
    name
}

/// The last step is undone when nobody uses the volume any more, and once more when the volume is
/// removed: it is made again, with its label and all that `before` has.
fn is_made_again(s: &Sandbox, engine: &Engine, volume: &str, before: &str) {
    until("nothing is left", || engine.leftovers(volume).is_empty());
    engine.docker(&["rm", "-f", &format!("user-{volume}")]);
    s.ok(["undo", "--yes"]);
    s.run("true");
    until("nobody uses it", || engine.try_docker(&["volume", "rm", volume]).is_some());
    s.ok(["undo", "--yes"]);
    assert_eq!(engine.sh(&format!("cd {}\n{LOOK}", engine.files(volume).display())), before);
    let labels = engine.docker(&["volume", "inspect", "-f", "{{json .Labels}}", volume]);
    assert_eq!(labels, r#"{"team":"a"}"#);
    until("nothing is left", || engine.leftovers(volume).is_empty());
    engine.docker(&["volume", "rm", volume]);
}

#[test]
fn volumes_of_podman_come_back_and_their_containers_are_let_go() {
    let Some(engine) = Engine::podman() else { return };
    for user in USERS {
        let (s, volume) = (sandbox(&engine, *user), Name::fresh(&engine));
        let name = used(&engine, &volume);
        let at = |script: &str| engine.sh(&format!("cd {}\n{script}", engine.files(&volume).display()));
        at("chmod 700 .; chown 999 .; echo old > f; ln f g; mkfifo p; mkdir d; echo kept > d/kept");
        let before = at(LOOK);
        cover(&s, &volume, "");
        s.run("true").says(&format!("{name} paused while the volume is captured"));
        assert_eq!(engine.state(&name), "running");
        at("echo new > f; rm -r p d; mkdir d; echo more > d/more; chmod 755 .");
        let after = at(LOOK);
        s.ok(["undo", "--yes"]).says(&format!("{name} stopped while the volume is put back"));
        assert_eq!((at(LOOK), engine.state(&name)), (before.clone(), "running".into()));
        s.ok(["redo", "--yes"]);
        assert_eq!((at(LOOK), engine.state(&name)), (after, "running".into()));
        is_made_again(&s, &engine, &volume, &before);
    }
}

#[test]
fn volumes_of_a_podman_without_roots_rights_come_back() {
    let Some(engine) = Engine::rootless() else { return };
    for user in USERS {
        let (s, volume) = (sandbox(&engine, *user), Name::fresh(&engine));
        let name = used(&engine, &volume);
        let at = |script: &str| engine.sh(&format!("cd {}\n{script}", engine.files(&volume).display()));
        // All of it is its user's, as whatever runs there makes it.
        at("chmod 700 .; echo old > f; ln f g; ln -s f l; mkdir d; echo kept > d/kept");
        at("chown -h --reference=. f l d d/kept");
        let before = at(LOOK);
        // One that has no cgroup of version 2 cannot pause: that is said, and what can be done.
        cover(&s, &volume, "");
        let pauses = engine.try_docker(&["pause", &name]).is_some();
        if pauses {
            engine.docker(&["unpause", &name]);
            s.run("true").says(&format!("{name} paused while the volume is captured"));
        } else {
            let run = s.snapback(["run", "--", "touch", "started"]);
            run.fails(125, &[&format!("could not hold the container {name}")]).says("`hold = \"stop\"`");
            assert!(!s.has("started"));
        }
        assert_eq!((engine.state(&name), at(LOOK)), ("running".into(), before.clone()));
        cover(&s, &volume, "hold = \"stop\"");
        s.run("true").says(&format!("{name} stopped while the volume is captured"));
        assert_eq!(engine.state(&name), "running");
        at("echo new > f; rm -r g d; mkdir d; echo more > d/more; chown -R --reference=. d; chmod 755 .");
        let after = at(LOOK);
        s.ok(["undo", "--yes"]).says(&format!("{name} stopped while the volume is put back"));
        assert_eq!(engine.state(&name), "running");
        assert_eq!(at(LOOK), before);
        s.ok(["redo", "--yes"]);
        assert_eq!(at(LOOK), after);
        is_made_again(&s, &engine, &volume, &before);
    }
}

#[test]
fn what_podman_calls_stopped_for_a_moment_keeps_nobody_held() {
    let Some(engine) = Engine::shared() else { return };
    for user in USERS {
        let volume = Name::fresh(engine);
        // So a podman of version 4.3 calls one that has ended and is not cleaned up after.
        let swaps = ["State", "Status"]
            .map(|key| (format!("\"{key}\":\"running\""), format!("\"{key}\":\"stopped\"")));
        let between = Between::start(engine, &volume, 3, &swaps);
        let s = sandbox_at(&between.socket, *user);
        engine.docker(&["volume", "create", &volume]);
        let (name, file) = (format!("user-{volume}"), engine.files(&volume).join("f"));
        engine.run(&name, &volume, IDLE);
        std::fs::write(&file, "old").unwrap();
        cover(&s, &volume, "");
        s.run("true").says(&format!("{name} paused while the volume is captured"));
        std::fs::write(&file, "new").unwrap();
        s.ok(["undo", "--yes"]);
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        until("being let go", || engine.state(&name) == "running");
        until("nothing is left", || engine.leftovers(&volume).is_empty());
        engine.docker(&["rm", "-f", &name]);
    }
}
