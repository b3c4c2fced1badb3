//! What an engine does not do for us, or not at once: start a container of our own, remove one,
//! pause one of the user's.

use super::between::Between;
use super::engine::IMAGE;
use super::{Engine, Name, USERS, cover, sandbox, sandbox_at};
use snapback_tests::User;

/// Waits.
const IDLE: &str = "while true; do /bin/busybox sleep 1; done";
/// A runtime that does all but to pause a container, as one without root's rights where
/// processes cannot be frozen. It lies where the engine looks for runtimes by their names.
const FRAIL: &str = r#"#!/bin/sh
for word; do
    [ "$word" != pause ] || { echo "cannot pause: there is no cgroup that can be frozen" >&2; exit 1; }
done
exec runc "$@"
"#;

#[test]
fn a_container_of_our_own_that_cannot_be_started_is_said_with_what_helps() {
    let Some(engine) = Engine::alone() else { return };
    let (s, volume) = (&sandbox(&engine, User::Nobody), &*Name::fresh(&engine));
    engine.docker(&["volume", "create", volume]);
    let file = engine.files(volume).join("f");
    std::fs::write(&file, "old").unwrap();
    let name = format!("user-{volume}");
    engine.run(&name, volume, IDLE);
    cover(s, volume, "");
    s.run("true");
    // Another image by the name of ours: nothing that is to be started is in it.
    let image = engine.docker(&["images", "--format", "{{.Repository}}:{{.Tag}}", "snapback/helper"]);
    engine.docker(&["tag", IMAGE, &image]);
    std::fs::write(&file, "new").unwrap();
    let words = [&*format!("start snapback's own container with the volume `{volume}`"), "the engine says"];
    let hint = format!("`docker image rm --force {image}` has its image made anew");
    s.snapback(["run", "--", "touch", "started"]).fails(125, &words).says(&hint);
    s.snapback(["undo", "--yes"]).fails(1, &words).says(&hint);
    assert!(!s.has("started"));
    assert_eq!(
        (std::fs::read_to_string(&file).unwrap(), engine.state(&name)),
        ("new".into(), "running".into())
    );
    assert_eq!(engine.leftovers(volume), "");
    s.ok(["run", "--skip", volume, "--", "true"]);
    s.ok(["undo", "--yes"]);
    // What is said helps.
    engine.docker(&["image", "rm", "--force", &image]);
    s.ok(["undo", "--yes"]);
    assert_eq!(
        (std::fs::read_to_string(&file).unwrap(), engine.state(&name)),
        ("old".into(), "running".into())
    );
    assert_eq!(engine.leftovers(volume), "");
}

#[test]
fn what_the_engine_does_not_remove_at_once_is_removed_all_the_same() {
    let Some(engine) = Engine::shared() else { return };
    for user in USERS {
        let volume = &*Name::fresh(engine);
        // So that the first removal is refused, with an answer as podman has it for what passes.
        let swaps = [("&link=false".to_owned(), "&link=true&".to_owned())];
        let between = Between::start(engine, volume, 1, &swaps);
        let s = sandbox_at(&between.socket, *user);
        engine.docker(&["volume", "create", volume]);
        let name = format!("user-{volume}");
        engine.run(&name, volume, IDLE);
        cover(&s, volume, "");
        s.run("true").never_says("could not remove");
        assert_eq!((engine.leftovers(volume), engine.state(&name)), (String::new(), "running".into()));
        engine.docker(&["rm", "-f", &name]);
    }
}

#[test]
fn a_rootless_engine_that_cannot_pause_is_known_and_what_works_is_said() {
    let Some(engine) = Engine::frail(FRAIL) else { return };
    // So one without root's rights tells that it is such.
    let swaps = ["default", "builtin"].map(|profile| {
        (format!("\"name=seccomp,profile={profile}\""), "\"name=rootless\",\"name=xxxxxxx\"".to_owned())
    });
    let rootless = Between::start(&engine, "rootless", u32::MAX, &swaps);
    for user in USERS {
        let (s, other) = (sandbox_at(&rootless.socket, *user), sandbox(&engine, *user));
        let volume = &*Name::fresh(&engine);
        engine.docker(&["volume", "create", volume]);
        let (name, file) = (format!("user-{volume}"), engine.files(volume).join("f"));
        engine.run(&name, volume, IDLE);
        std::fs::write(&file, "old").unwrap();
        let refuses = |s: &snapback_tests::Sandbox| {
            cover(s, volume, "");
            let run = s.snapback(["run", "--", "touch", "started"]);
            run.fails(
                125,
                &[&format!("could not hold the container {name}"), "no cgroup that can be frozen"],
            );
            assert!(!s.has("started"));
            assert_eq!((engine.state(&name), engine.leftovers(volume)), ("running".into(), String::new()));
            run
        };
        let hint = "a rootless engine pauses containers only with version 2 of cgroups";
        refuses(&other).never_says("rootless");
        refuses(&s).says(hint).says("`hold = \"stop\"`");
        cover(&s, volume, "hold = \"stop\"");
        s.run("true").says(&format!("{name} stopped while the volume is captured"));
        std::fs::write(&file, "new").unwrap();
        s.ok(["undo", "--yes"]);
        assert_eq!(
            (std::fs::read_to_string(&file).unwrap(), engine.state(&name)),
            ("old".into(), "running".into())
        );
        assert_eq!(engine.leftovers(volume), "");
    }
    sandbox(&engine, User::Me)
        .ok(["backends", "show", "docker-volume"])
        .prints("a rootless engine pauses containers only with version 2 of cgroups");
}
