//! A volume that was removed, and one that was not there.

use super::{cover, each_user};

#[test]
fn a_volume_that_was_removed_is_made_again_as_it_was() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", "--label", "team=a b", "--label", "x=", volume]);
        let mount = engine.files(volume).display().to_string();
        engine.sh(&format!(
            "cd {mount}; chown 999 .; chmod 700 .; echo kept > f; ln f g; mkdir d; echo deep > d/f"
        ));
        let look = |engine: &super::Engine| {
            let made = engine.docker(&[
                "volume",
                "inspect",
                "-f",
                "{{.Driver}} {{json .Labels}} {{json .Options}}",
                volume,
            ]);
            made + &engine.sh(&format!("cd {mount}; stat -c '%n %a %u %h' . * */*; cat f d/f"))
        };
        let before = look(engine);
        cover(s, volume, "");
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        let diff = s.ok(["diff"]).out();
        assert!(diff.contains(&format!("D {volume}: d/f")), "{diff}");
        s.ok(["undo", "--yes"]);
        assert_eq!(look(engine), before);
        s.ok(["redo", "--yes"]);
        assert_eq!(engine.docker(&["volume", "ls", "-q", "-f", &format!("name={volume}")]), "");
        s.ok(["undo", "--yes"]);
        assert_eq!(look(engine), before);
        assert_eq!(engine.leftovers(volume), "");
    });
}

#[test]
fn what_somebody_put_into_it_after_the_undo_was_planned_is_left_alone() {
    each_user(|s, engine, volume| {
        engine.docker(&["volume", "create", volume]);
        let mount = engine.files(volume).display().to_string();
        engine.sh(&format!("cd {mount}; echo kept > f"));
        cover(s, volume, "");
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        s.ok(["undo", "--yes"]);
        // Now that it is there again, a redo takes away only what it knows.
        engine.sh(&format!("cd {mount}; echo mine > mine"));
        s.ok(["redo", "--yes"]);
        s.ok(["undo", "--yes"]);
        assert_eq!(engine.sh(&format!("cd {mount}; cat f mine")), "kept\nmine");
    });
}

#[test]
fn a_volume_that_is_another_name_for_files_elsewhere_is_not_made_again_unasked() {
    each_user(|s, engine, volume| {
        let elsewhere = s.dir().join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        let device = format!("device={}", elsewhere.display());
        let make = || {
            let options = ["--opt", "type=none", "--opt", "o=bind", "--opt", &device];
            engine.docker(&[&["volume", "create"], &options[..], &[volume]].concat())
        };
        make();
        std::fs::write(elsewhere.join("f"), "kept").unwrap();
        cover(s, volume, "");
        s.run("true");
        engine.docker(&["volume", "rm", volume]);
        std::fs::remove_file(elsewhere.join("f")).unwrap();
        let undo = s.snapback(["undo", "--yes"]);
        undo.fails(1, &["lay elsewhere on the engine's machine"])
            .says("hint: make it yourself")
            .says("docker volume create");
        assert_eq!(engine.docker(&["volume", "ls", "-q", "-f", &format!("name={volume}")]), "");
        make();
        s.ok(["undo", "--yes"]);
        assert_eq!(std::fs::read_to_string(elsewhere.join("f")).unwrap(), "kept");
    });
}
