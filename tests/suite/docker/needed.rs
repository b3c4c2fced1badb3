//! Containers are held only where that is needed, and as the target says today.

use super::engine::IMAGE;
use super::{Engine, agree, cover, each_user};
use snapback_tests::Sandbox;

/// Waits, and ends when it is told to.
const IDLE: &str = "trap 'exit 0' TERM; while true; do /bin/busybox sleep 0.1; done";

/// Starts a container with these volumes at /v0, /v1 and so on.
fn start(engine: &Engine, name: &str, more: &[&str], volumes: &[&str]) {
    let mounts: Vec<String> = volumes.iter().enumerate().map(|(at, v)| format!("{v}:/v{at}")).collect();
    let mut words = vec!["run", "-d", "--network", "none", "--name", name];
    words.extend(more);
    mounts.iter().for_each(|mount| words.extend(["-v", mount]));
    words.extend([IMAGE, "/bin/busybox", "sh", "-c", IDLE]);
    engine.docker(&words);
}

fn count(engine: &Engine, name: &str, word: &str) -> usize {
    engine.events(name).iter().filter(|event| *event == word).count()
}

/// Covers two volumes, each held as it is said.
fn cover_both(s: &Sandbox, volumes: [&str; 2], holds: [&str; 2]) {
    let hold = |hold: &str| if hold.is_empty() { String::new() } else { format!("hold = \"{hold}\"\n") };
    let target = |at: usize| {
        let (volume, hold) = (volumes[at], hold(holds[at]));
        format!("[[target]]\nname = \"t{at}\"\nbackend = \"docker-volume\"\nvolume = \"{volume}\"\n{hold}")
    };
    s.write("snapback.toml", target(0) + &target(1));
    agree(s);
}

#[test]
fn what_is_as_it_was_is_not_put_back_and_holds_nobody() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        // One that could not even be stopped.
        let names = [format!("kept-{volume}"), format!("fleeting-{volume}")];
        start(engine, &names[0], &[], &[volume]);
        start(engine, &names[1], &["--rm"], &[volume]);
        cover(s, volume, "");
        s.write("f", "1\n");
        s.run("echo 2 > f");
        let undo = s.ok(["undo", "--yes"]);
        assert!(!undo.err().contains("will be stopped"), "{undo}");
        assert_eq!(s.read("f"), "1\n");
        s.ok(["redo", "--yes"]);
        assert_eq!(s.read("f"), "2\n");
        for name in &names {
            assert_eq!(engine.state(name), "running");
            assert_eq!((count(engine, name, "stop"), count(engine, name, "start")), (0, 1));
        }
        assert_eq!(engine.leftovers(volume), "");
        engine.docker(&["rm", "-f", &names[0], &names[1]]);
    });
}

#[test]
fn an_undo_holds_them_as_the_target_says_today() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let name = format!("fleeting-{volume}");
        start(engine, &name, &["--rm"], &[volume]);
        cover(s, volume, "");
        let file = engine.files(volume).join("f");
        std::fs::write(&file, "1").unwrap();
        s.run("true");
        std::fs::write(&file, "2").unwrap();
        s.snapback(["undo", "--yes"]).fails(1, &["was started with --rm"]).says("hold = \"pause\"");
        cover(s, volume, "hold = \"pause\"");
        s.ok(["undo", "--yes"]).says("paused while the volume is put back");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "1");
        assert_eq!(engine.state(&name), "running");
        assert_eq!(engine.leftovers(volume), "");
        engine.docker(&["rm", "-f", &name]);
    });
}

#[test]
fn one_container_is_held_in_several_ways_by_one_step() {
    each_user(|s, engine, volume| {
        for (at, holds) in
            [["pause", ""], ["", "pause"], ["pause", "stop"], ["stop", "pause"], ["none", "stop"]]
                .into_iter()
                .enumerate()
        {
            let volumes = [format!("{volume}-{at}-a"), format!("{volume}-{at}-b")];
            let volumes = [&*volumes[0], &*volumes[1]];
            let files = volumes.map(|volume| {
                engine.docker(&["volume", "create", volume]);
                let file = engine.files(volume).join("f");
                std::fs::write(&file, "1").unwrap();
                file
            });
            let name = format!("both-{volume}-{at}");
            start(engine, &name, &[], &volumes);
            cover_both(s, volumes, holds);
            s.run("true");
            files.iter().for_each(|file| std::fs::write(file, "2").unwrap());
            s.ok(["undo", "--yes"]);
            for (file, volume) in files.iter().zip(volumes) {
                assert_eq!(std::fs::read_to_string(file).unwrap(), "1", "{holds:?}");
                assert_eq!(engine.leftovers(volume), "", "{holds:?}");
            }
            assert_eq!(engine.state(&name), "running", "{holds:?}");
            engine.docker(&["rm", "-f", &name]);
        }
    });
}

#[test]
fn one_that_goes_when_it_is_stopped_is_not_stopped_for_another_target() {
    each_user(|s, engine, volume| {
        let volumes = [format!("{volume}-a"), format!("{volume}-b")];
        let volumes = [&*volumes[0], &*volumes[1]];
        let files = volumes.map(|volume| {
            engine.docker(&["volume", "create", volume]);
            engine.files(volume).join("f")
        });
        files.iter().for_each(|file| std::fs::write(file, "1").unwrap());
        let name = format!("fleeting-{volume}");
        start(engine, &name, &["--rm"], &volumes);
        cover_both(s, volumes, ["pause", ""]);
        s.run("true");
        files.iter().for_each(|file| std::fs::write(file, "2").unwrap());
        s.snapback(["undo", "--yes"]).fails(1, &["was started with --rm"]);
        assert_eq!(engine.state(&name), "running");
        files.iter().for_each(|file| assert_eq!(std::fs::read_to_string(file).unwrap(), "2"));
        assert_eq!(volumes.map(|volume| engine.leftovers(volume)), ["", ""]);
        engine.docker(&["rm", "-f", &name]);
    });
}
