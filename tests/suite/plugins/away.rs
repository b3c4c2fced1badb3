//! A backend that is away, or may not be used any more, keeps nothing of the others' from coming back.

use super::{agree, folder, install, probe, target};
use crate::{each_user, newest};
use snapback_tests::Sandbox;
use std::fs;

/// A run that changed files and the room of the probe; returns the snapshot before it.
fn changed(s: &Sandbox) -> String {
    install(s);
    s.write("snapback.toml", target("room = \"../room\""));
    s.sh("echo 0 > f; echo 0 > g");
    agree(s);
    s.run("echo 1 > f; rm g; echo two > ../room/state");
    newest(s)
}

fn files(s: &Sandbox) -> (String, bool) {
    (s.read("f"), s.has("g"))
}

#[test]
fn what_is_chosen_needs_no_other_backend_than_its_own() {
    each_user(|s| {
        let id = changed(s);
        fs::remove_file(folder(s).join("probe.wasm")).unwrap();
        for declared in [true, false] {
            if !declared {
                s.sh("rm snapback.toml");
            }
            for words in [
                &["undo", "--target", "tree"][..],
                &["undo", "--path", "f", "--path", "g"],
                &["restore", &id, "--target", "tree"],
                &["restore", &id, "--path", "f", "--path", "g"],
                &["review", "--reject", "f", "--reject", "g"],
            ] {
                s.ok(words);
                assert_eq!(files(s), ("0\n".into(), true), "{words:?}");
                s.ok(["undo", "--yes"]);
                assert_eq!(files(s), ("1\n".into(), false), "{words:?}");
            }
            s.ok(["diff"]).prints("M f").prints("D g").says("what changed of `probe` is not known");
        }
        assert_eq!(s.read("../room/state"), "two\n");
    });
}

#[test]
fn all_of_a_step_comes_back_in_part_and_the_rest_once_the_backend_is_there_again() {
    each_user(|s| {
        let mut id = changed(s);
        for (what, away, again) in [
            ("there is no backend `probe`", "rm \"$XDG_DATA_HOME/snapback/plugins/probe.wasm\"", true),
            ("you have not agreed", "\"$SNAPBACK\" trust --revoke", false),
        ] {
            s.sh(away);
            s.ok(["diff"])
                .prints("M f")
                .prints("D g")
                .says("what changed of `probe` is not known")
                .says(what);
            let refused = s.snapback(["undo", "--yes"]);
            refused.fails(1, &[what]).says("`--partial` leaves it as it is").says("`--target NAME`");
            assert_eq!(files(s), ("1\n".into(), false));
            let undone = s.snapback(["undo", "--yes", "--partial"]);
            undone.exits(3).says("not restored: probe").says(what);
            undone.says(&format!("`snapback restore {id} --target probe` tries the rest again"));
            assert_eq!((files(s), s.read("../room/state")), (("0\n".into(), true), "two\n".into()), "{what}");
            if again {
                fs::write(folder(s).join("probe.wasm"), probe()).unwrap();
                s.ok(["restore", &id, "--target", "probe"]);
                assert_eq!(s.read("../room/state"), "one\n");
                s.ok(["restore", &id, "--target", "tree"]);
                s.run("echo 1 > f; rm g; echo two > ../room/state");
                id = newest(s);
            }
        }
    });
}

#[test]
fn each_command_that_puts_something_back_can_leave_out_what_fails() {
    each_user(|s| {
        let id = changed(s);
        let (after, before) = (("1\n".into(), false), ("0\n".into(), true));
        s.ok(["undo"]);
        let end = newest(s);
        let component = folder(s).join("probe.wasm");
        let hidden = s.home().join("hidden.wasm");
        let back = [(&["redo"][..], &after), (&["restore", &id], &before), (&["restore", &end], &after)];
        for (words, now) in back {
            let words: Vec<&str> = words.to_vec();
            fs::rename(&component, &hidden).unwrap();
            s.snapback(&words).fails(1, &["there is no backend `probe`"]).says("`--partial`");
            let done = s.snapback([&words[..], &["--partial"]].concat());
            done.exits(3).says("not restored: probe (could not capture `probe`: there is no backend `probe`");
            assert_eq!(files(s), *now, "{words:?}");
            fs::rename(&hidden, &component).unwrap();
        }
        // Chosen among all that changed.
        s.ok(["restore", &id]);
        s.run("echo 1 > f; rm g; echo two > ../room/state");
        let review = ["review", "--reject", "f", "--reject", "probe", "--partial"];
        s.ok(["trust", "--revoke"]);
        s.ok(review);
        assert_eq!((files(s), s.read("../room/state")), (("0\n".into(), false), "two\n".into()));
    });
}
