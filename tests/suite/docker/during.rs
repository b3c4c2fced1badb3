//! Volumes in snapshots that are taken by time during a run: only where the target says so, and a
//! snapshot that lacks one says it when it is put back.

use super::{Engine, Name, agree, each_user};
use crate::interval::{go, id, of_kind, start};
use snapback_tests::{Sandbox, until};
use std::time::Duration;

fn write(engine: &Engine, volume: &str, text: &str) {
    engine.sh(&format!("echo {text} > {}/f", engine.files(volume).display()));
}

fn read(engine: &Engine, volume: &str) -> String {
    engine.sh(&format!("cat {}/f", engine.files(volume).display()))
}

/// What the newest snapshot by time has of `volume`, if there is one.
fn newest(s: &Sandbox, volume: &str) -> Option<String> {
    let taken = of_kind(s, "interval");
    Some(s.snapback(["cat", id(taken.first()?), &format!("{volume}:/f")]).out().trim().to_owned())
}

#[test]
fn a_volume_is_taken_only_where_its_target_says_so_and_what_lacks_it_says_it() {
    each_user(|s, engine, said| {
        let silent = &*Name::fresh(engine);
        for volume in [said, silent] {
            engine.docker(&["volume", "create", volume]);
            write(engine, volume, "0");
        }
        let target = |volume: &str, more: &str| {
            format!(
                "[[target]]\nname = \"{volume}\"\nbackend = \"docker-volume\"\nvolume = \"{volume}\"\n{more}"
            )
        };
        s.write("snapback.toml", target(said, "every-interval = true\n") + &target(silent, ""));
        s.write("f", "0");
        agree(s);
        let mut run = start(s, &["echo 1 > f", "echo 2 > f"]);
        // What is not taken is no reason for one.
        write(engine, silent, "1");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(of_kind(s, "interval").len(), 0);
        // What changed in the other alone is one.
        write(engine, said, "1");
        until("a snapshot of the volume", || newest(s, said).is_some_and(|text| text == "1"));
        go(s, 0);
        until("a snapshot of both", || {
            let taken = of_kind(s, "interval");
            taken.first().is_some_and(|snap| s.snapback(["cat", id(snap), "f"]).out() == "1\n")
        });
        let taken = of_kind(s, "interval").remove(0);
        let names: Vec<&str> =
            taken["targets"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["tree", said]);
        go(s, 1);
        assert!(run.wait().success());
        [said, silent].iter().for_each(|volume| write(engine, volume, "2"));
        s.ok(["show", id(&taken)]).prints(silent);
        let restored = s.ok(["restore", id(&taken), "--yes", "--json"]);
        restored.says(&format!("not in {}, and left as it is: {silent}", id(&taken)));
        assert_eq!(restored.json()["skipped"], serde_json::json!([silent]));
        assert_eq!((&*s.read("f"), &*read(engine, said), &*read(engine, silent)), ("1\n", "1", "2"));
        // The restore, and then the run, whose own snapshot has both.
        s.ok(["undo", "--yes"]);
        assert_eq!((&*s.read("f"), &*read(engine, said), &*read(engine, silent)), ("2\n", "2", "2"));
        s.ok(["undo", "--yes"]).never_says("left as it is");
        assert_eq!((&*s.read("f"), &*read(engine, said), &*read(engine, silent)), ("0", "0", "0"));
        assert_eq!(engine.leftovers(said) + &engine.leftovers(silent), "");
    });
}
