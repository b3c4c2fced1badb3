//! Containers that cannot simply be held: with whom the files end, who end by themselves, who do
//! not start again; and volumes that became something else.

use super::engine::until;
use super::{cover, each_user};
use crate::newest;

/// Waits, and ends when it is told to.
const IDLE: &str = "trap 'exit 0' TERM; while true; do /bin/busybox sleep 0.1; done";
/// Ends at once when what it finds is bad.
const PICKY: &str =
    "read x < /v/conf; [ \"$x\" = ok ] || exit 1; while true; do /bin/busybox sleep 0.1; done";
/// Tells what there is.
const LOOK: &str = "cd /v; for f in *; do echo $f; /bin/busybox cat $f; done";

#[test]
fn what_lies_in_memory_outlives_that_its_containers_are_stopped() {
    each_user(|s, engine, volume| {
        let options = ["--opt", "type=tmpfs", "--opt", "device=tmpfs", "--opt", "o=size=20m"];
        engine.docker(&[&["volume", "create"], &options[..], &[volume]].concat());
        let name = format!("memory-{volume}");
        engine.run(&name, volume, IDLE);
        let at = |script: &str| engine.docker(&["exec", &name, "/bin/busybox", "sh", "-c", script]);
        at("echo old > /v/a; echo keep > /v/b");
        cover(s, volume, "");
        s.run("true");
        at("echo new > /v/a; echo precious > /v/c");
        s.ok(["undo", "--yes"]).says(&format!("{name} stopped while the volume is put back"));
        assert_eq!(at(LOOK), "a\nold\nb\nkeep");
        s.ok(["redo", "--yes"]);
        assert_eq!(at(LOOK), "a\nnew\nb\nkeep\nc\nprecious");
        assert_eq!(engine.leftovers(volume), "");
        // With nobody there is nothing to put it back into.
        engine.docker(&["stop", &name]);
        s.snapback(["undo", "--yes"]).exits(3).says("its files lie in memory, and no container runs with it");
        engine.docker(&["rm", &name]);
        engine.docker(&["volume", "rm", volume]);
    });
}

#[test]
fn one_that_starts_again_and_again_is_stopped_for_it() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let conf = engine.files(volume).join("conf");
        std::fs::write(&conf, "ok\n").unwrap();
        let (name, mount) = (format!("picky-{volume}"), format!("{volume}:/v"));
        let words = ["run", "-d", "--restart", "always", "--network", "none", "--name", &name, "-v", &mount];
        engine.docker(&[&words[..], &[super::engine::IMAGE, "/bin/busybox", "sh", "-c", PICKY]].concat());
        cover(s, volume, "");
        s.run("true");
        let first = newest(s);
        std::fs::write(&conf, "bad\n").unwrap();
        engine.docker(&["restart", "-t", "0", &name]);
        let count = || engine.docker(&["inspect", "-f", "{{.RestartCount}}", &name]).parse::<u32>();
        until("a few starts", || count().is_ok_and(|count| count > 4));
        s.run("true");
        s.ok(["restore", "--yes", &first]);
        assert_eq!(std::fs::read_to_string(&conf).unwrap(), "ok\n");
        until("its start", || engine.state(&name) == "running");
        let policy = engine.docker(&["inspect", "-f", "{{.HostConfig.RestartPolicy.Name}}", &name]);
        assert_eq!(policy, "always");
        // Put back into what it does not bear, it starts again and again as before.
        s.ok(["undo", "--yes"]);
        let restarting = || engine.docker(&["inspect", "-f", "{{.State.Restarting}}", &name]);
        until("its next start", || restarting() == "true" && count().is_ok_and(|count| count > 0));
        assert_eq!(engine.leftovers(volume), "");
        engine.docker(&["rm", "-f", &name]);
    });
}

#[test]
fn one_that_does_not_start_again_is_named_at_once() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let file = engine.files(volume).join("f");
        std::fs::write(&file, "old").unwrap();
        let beside = s.dir().join("beside");
        std::fs::create_dir(&beside).unwrap();
        let (name, mount) = (format!("bound-{volume}"), format!("{volume}:/v"));
        let bind = format!("type=bind,source={},target=/b", beside.display());
        let words = ["run", "-d", "--network", "none", "--name", &name, "-v", &mount, "--mount", &bind];
        engine.docker(&[&words[..], &[super::engine::IMAGE, "/bin/busybox", "sh", "-c", IDLE]].concat());
        cover(s, volume, "");
        s.run("true");
        std::fs::write(&file, "new").unwrap();
        std::fs::remove_dir(&beside).unwrap();
        let undo = s.snapback(["undo", "--yes", "--json"]);
        undo.exits(3).says(&format!("could not let go of the container {name}"));
        let left = undo.json()["not_restored"].clone();
        assert_eq!((&left[0]["target"], &left[0]["path"]), (&volume.into(), &"".into()), "{left}");
        assert!(left[0]["reason"].as_str().unwrap().contains(&name), "{left}");
        // All else is, and is called so.
        assert_eq!(undo.json()["changes"][0]["path"], "f");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        // With what it needs, it is the user's to start.
        s.ok(["snap"]);
        std::fs::create_dir(&beside).unwrap();
        engine.docker(&["start", &name]);
        engine.docker(&["rm", "-f", &name]);
    });
}

#[test]
fn a_volume_that_became_another_name_for_a_directory_is_asked_about_again() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        std::fs::write(engine.files(volume).join("f"), "old").unwrap();
        cover(s, volume, "");
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        let victim = s.dir().join("victim");
        std::fs::create_dir(&victim).unwrap();
        std::fs::write(victim.join("mine"), "precious").unwrap();
        let device = format!("device={}", victim.display());
        let options = ["--opt", "type=none", "--opt", "o=bind", "--opt", &device];
        engine.docker(&[&["volume", "create"], &options[..], &[volume]].concat());
        let words = ["is another name for", victim.to_str().unwrap()];
        s.snapback(["undo", "--yes"]).fails(1, &["you have not agreed"]).says(words[0]).says(words[1]);
        s.snapback(["run", "--", "touch", "started"]).fails(125, &words);
        // Agreed to, it is still not the one that was captured.
        super::agree(s);
        s.snapback(["undo", "--yes"]).fails(1, &words).says("lies-in = ");
        s.snapback(["run", "--", "touch", "started"]).fails(125, &words);
        assert!(!s.has("started"));
        assert_eq!(std::fs::read_to_string(victim.join("mine")).unwrap(), "precious");
        assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 1);
        // With a word about it, it is one like others.
        let more = format!("lies-in = \"{}\"", victim.display());
        super::declare(s, volume, &more);
        s.snapback(["run", "--", "true"]).fails(125, &["reads and writes", victim.to_str().unwrap()]);
        super::agree(s);
        s.run("true");
        std::fs::remove_file(victim.join("mine")).unwrap();
        s.ok(["undo", "--yes"]);
        assert_eq!(std::fs::read_to_string(victim.join("mine")).unwrap(), "precious");
    });
}
