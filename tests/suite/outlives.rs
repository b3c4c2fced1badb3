//! The history outlives the project's folder: removed, moved, copied, replaced.

use crate::{PROGRAM, each_user, sandbox};
use snapback_tests::{Output, Record, Sandbox, User, assert_back, skip};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Runs the program from the user's home, as from a folder that nobody removes.
fn at_home(s: &Sandbox, words: &[&str]) -> Output {
    s.finish(s.program().current_dir(s.home()).args(words))
}

/// The identity of the store in `dir`.
fn id(dir: &Path) -> String {
    fs::read_to_string(dir.join(".snapback/id")).unwrap().trim_end().to_owned()
}

/// How many snapshots `list` finds for `project` of the home.
fn count(s: &Sandbox, project: &str) -> usize {
    let list = at_home(s, &["-C", project, "list", "--json"]);
    list.exits(0);
    list.json().as_array().unwrap().len()
}

#[test]
fn a_removed_project_stays_removed_until_undo_brings_it_back() {
    each_user(|s| {
        s.sh("echo 0 > f; mkdir -p d; echo 1 > d/g; chmod 751 .");
        let before = Record::take(&s.project());
        s.run("rm -rf \"$PWD\"").says("3 deleted").says("is gone");
        assert!(!s.project().exists(), "a command that removes the project means it");
        let list = at_home(s, &["-C", "project", "list", "--json"]);
        list.exits(0).says("read from");
        assert_eq!(list.json()[0]["state"], "ended", "its end is known");
        at_home(s, &["-C", "project", "diff"]).exits(0).prints("D d/g");
        at_home(s, &["-C", "project", "undo", "-n"]).exits(0).says("3 to bring back");
        at_home(s, &["-C", "project", "snap"]).fails(1, &["is gone"]);
        assert!(!s.project().exists(), "nothing but an undo makes it again");
        let undo = at_home(s, &["-C", "project", "undo"]);
        undo.exits(0).says("is there again from").never_says("changed after");
        assert_eq!(fs::metadata(s.project()).unwrap().mode() & 0o7777, 0o751);
        assert_back(&before, &Record::default(), &Record::take(&s.project()));
        s.ok(["verify"]);
        s.ok(["redo"]);
        assert!(!s.has("f") && !s.has("d") && s.has(".snapback/format"));
    });
}

#[test]
fn a_failing_command_that_removes_the_project_is_undone_when_that_was_asked_for() {
    let s = sandbox();
    s.write("f", "0");
    let run = ["run", "--undo-on-failure", "--", "sh", "-c", "rm -rf \"$PWD\"; exit 7"];
    s.snapback(run).exits(7);
    assert_eq!(s.read("f"), "0");
}

#[test]
fn what_held_the_project_is_not_made_again() {
    let s = sandbox();
    s.sh("mkdir -p ../outer/inner; echo 0 > ../outer/inner/f");
    let inner = ["--root", "outer/inner"];
    at_home(&s, &[&inner[..], &["run", "--", "rm", "-rf", "outer"]].concat()).exits(0);
    let undo = [&inner[..], &["undo"]].concat();
    at_home(&s, &undo).fails(1, &["is gone", "what held it"]).says("mkdir -p");
    assert!(!s.home().join("outer").exists());
    fs::create_dir(s.home().join("outer")).unwrap();
    at_home(&s, &undo).exits(0);
    assert_eq!(fs::read_to_string(s.home().join("outer/inner/f")).unwrap(), "0\n");
}

#[test]
fn the_directory_of_a_target_is_made_again() {
    each_user(|s| {
        s.write(
            "snapback.toml",
            "[snapshot]\nenabled = false\n[[target]]\nname = \"data\"\nbackend = \"tree\"\npath = \"a/data\"\n",
        );
        s.sh("mkdir -p a/data/d; echo 0 > a/data/f; echo 1 > a/data/d/g; chmod 750 a/data");
        let before = Record::take(&s.project().join("a/data"));
        for removal in ["rm -rf a/data", "rm -rf a"] {
            s.run(removal).says("3 deleted");
            s.ok(["undo", "-n"]);
            assert!(!s.has("a/data"), "a dry run makes nothing");
            s.ok(["undo"]);
            assert_back(&before, &Record::default(), &Record::take(&s.project().join("a/data")));
            s.ok(["redo"]);
            assert!(!s.has("a/data/f"));
            s.ok(["undo"]);
        }
        // Something else in its place is nothing that an undo may remove.
        s.run("rm -rf a/data; echo mine > a/data");
        let undo = s.snapback(["undo"]);
        undo.fails(1, &["nothing was touched"]).says("stands in the place of its directory");
        assert_eq!(s.read("a/data"), "mine\n");
        let err = undo.err();
        s.sh(err.split("mend it: ").nth(1).unwrap().split(')').next().unwrap());
        s.ok(["undo"]);
        assert_eq!(s.read("a/data.other"), "mine\n");
        assert_eq!(s.read("a/data/d/g"), "1\n");
    });
}

#[test]
fn a_target_that_cannot_be_made_again_is_told_before_anything_is_touched() {
    each_user(|s| {
        if !s.user().is_ordinary() {
            return;
        }
        s.write(
            "snapback.toml",
            "[snapshot]\nignore = [\"a\"]\n[[target]]\nname = \"data\"\nbackend = \"tree\"\npath = \"a/data\"\n",
        );
        s.sh("mkdir -p a/data; echo 0 > a/data/f; echo 0 > f");
        s.run("rm -rf a/data; chmod 555 a; echo A > f");
        s.snapback(["undo"]).fails(1, &["nothing was touched"]).says("cannot be written");
        assert_eq!(s.read("f"), "A\n");
        s.sh("chmod 755 a");
        s.ok(["undo"]);
        assert_eq!((s.read("f"), s.read("a/data/f")), ("0\n".into(), "0\n".into()));
    });
}

#[test]
fn a_moved_project_takes_its_history_along() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        let store = id(&s.project());
        s.run("mv \"$PWD\" ../moved; echo B > ../moved/f").says("moved");
        assert!(!s.project().exists(), "nothing is made where it was");
        let moved = s.home().join("moved");
        assert_eq!(id(&moved), store);
        at_home(s, &["-C", "moved", "undo"]).exits(0);
        assert_eq!(fs::read_to_string(moved.join("f")).unwrap(), "A\n");
        // Moved while snapback was not looking, and without its store.
        fs::rename(&moved, s.home().join("again")).unwrap();
        at_home(s, &["-C", "again", "undo"]).exits(0);
        assert_eq!(fs::read_to_string(s.home().join("again/f")).unwrap(), "0");
        fs::remove_dir_all(s.home().join("again/.snapback")).unwrap();
        at_home(s, &["-C", "again", "redo"]).exits(0).says("is there again from");
        assert_eq!(fs::read_to_string(s.home().join("again/f")).unwrap(), "A\n");
        at_home(s, &["-C", "project", "list"]).exits(1);
    });
}

#[test]
fn a_project_that_was_moved_within_another_is_still_its_own() {
    each_user(|s| {
        s.sh("mkdir -p trip; echo 0 > trip/photo; echo 0 > a");
        s.ok(["--root", "trip", "run", "--", "sh", "-c", "echo A > trip/photo"]);
        s.run("echo A > a");
        for (from, to) in [("trip", "trip2"), ("trip2", "deep/er")] {
            s.sh(&format!("mkdir -p deep; mv {from} {to}"));
            s.ok(["-C", to, "undo"]);
            assert_eq!((s.read(&format!("{to}/photo")), s.read("a")), ("0\n".into(), "A\n".into()));
            s.ok(["-C", to, "redo"]);
        }
        // Above them all there is nothing, and it is said where there is something.
        s.snapback(["-C", "..", "--root", "..", "undo"])
            .fails(1, &["there are no snapshots"])
            .says("project");
    });
}

#[test]
fn a_current_directory_that_is_gone_and_that_nobody_names_is_no_project() {
    let s = sandbox();
    s.sh("mkdir sub; echo 0 > f");
    let gone = "cd sub; rmdir ../sub; unset PWD; exec env -u PWD \"$0\" \"$@\"";
    for words in [&["status"][..], &["run", "--", "true"], &["undo"]] {
        let output = s.finish(s.command("sh").args(["-c", gone, PROGRAM]).args(words));
        assert_ne!(output.code(), 0, "{output}");
        output.says("the current directory is gone").says("--root DIR").never_says("whole system");
        s.sh("mkdir sub");
    }
}

#[test]
fn two_copies_do_not_harm_each_other() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        s.run("cp -a \"$PWD\" ../copy; cp -al \"$PWD\" ../linked; echo B > f");
        let dirs = ["project", "copy", "linked"];
        let at = |dir: &str, words: &[&str]| at_home(s, &[&["-C", dir], words].concat());
        let read = |dir: &str| fs::read_to_string(s.home().join(dir).join("f")).unwrap();
        for dir in dirs {
            at(dir, &["snap", "-m", dir]).exits(0);
        }
        let ids: std::collections::BTreeSet<String> = dirs.map(|dir| id(&s.home().join(dir))).into();
        assert_eq!(ids.len(), 3, "each has an identity of its own");
        // What one does is nothing to the others.
        let counts = || dirs.map(|dir| count(s, dir));
        let before = counts();
        at("copy", &["run", "--", "sh", "-c", "head -c 100000 /dev/urandom > big"]).exits(0);
        let newest = at("copy", &["list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
        at("copy", &["forget", "--yes", &newest]).exits(0);
        at("copy", &["gc", "--keep", "1"]).exits(0);
        assert_eq!((counts()[0], counts()[2]), (before[0], before[2]));
        for dir in dirs {
            at(dir, &["verify"]).exits(0);
            fs::remove_dir_all(s.home().join(dir).join(".snapback")).unwrap();
        }
        // The first is told that the other has a name of its file, and keeps it.
        for (dir, code) in [("project", 3), ("linked", 0)] {
            at(dir, &["undo"]).exits(0).says("is there again from");
            let undo = at(dir, &["undo"]);
            undo.exits(code);
            assert_eq!(undo.err().contains("f (it has other names outside"), code == 3, "{undo}");
            at(dir, &["verify"]).exits(0);
        }
        assert_eq!((read("project"), read("linked")), ("A\n".into(), "A\n".into()));
        at("copy", &["verify"]).exits(0);
    });
}

#[test]
fn another_project_in_the_place_of_a_removed_one_is_told_of_its_history() {
    let s = sandbox();
    s.write("f", "0");
    s.run("rm -rf \"$PWD\"");
    fs::create_dir(s.project()).unwrap();
    s.write("other", "x");
    let snap = s.ok(["snap"]);
    snap.says("is there again from").says("starts anew");
    let err = snap.err();
    let command = err.split('`').find(|part| part.starts_with("rm -r ")).expect("the way to start anew");
    s.sh(command);
    s.ok(["snap"]).never_says("starts anew");
    assert_eq!(count(&s, "project"), 1);
    s.snapback(["undo"]).exits(0).never_says("bring back");
    assert!(!s.has("f"));
}

#[test]
fn nothing_is_made_behind_a_link_that_took_the_projects_place() {
    let s = sandbox();
    s.write("f", "0");
    s.sh("mkdir ../victim; echo mine > ../victim/f");
    s.run("rm -rf \"$PWD\"; ln -s victim \"$PWD\"");
    let victim = Record::take(&s.home().join("victim"));
    assert_eq!(victim.0.len(), 2, "no store was made in it");
    fs::remove_file(s.project()).unwrap();
    at_home(&s, &["-C", "project", "undo"]).exits(0);
    assert_eq!(s.read("f"), "0");
    assert_eq!(fs::read_to_string(s.home().join("victim/f")).unwrap(), "mine\n");
}

/// A directory on another file system than `dir`, for this test alone.
fn elsewhere(dir: &Path) -> Option<PathBuf> {
    let device = fs::metadata(dir).unwrap().dev();
    let other = ["/var/tmp", "/tmp", "/dev/shm"]
        .map(PathBuf::from)
        .into_iter()
        .find(|other| fs::metadata(other).is_ok_and(|meta| meta.dev() != device))?;
    Some(other.join(format!("snapback-elsewhere.{}", std::process::id())))
}

#[test]
fn where_links_do_not_reach_it_is_copied() {
    let s = sandbox();
    let Some(state) = elsewhere(&s.project()) else { return skip("all lies on one file system") };
    let run = |words: &[&str]| {
        s.finish(
            s.program()
                .current_dir(s.home())
                .env("XDG_STATE_HOME", &state)
                .args(["-C", "project"])
                .args(words),
        )
    };
    s.sh("head -c 300000 /dev/urandom > f");
    let before = Record::take(&s.project());
    run(&["run", "--", "sh", "-c", "echo A > f"]).exits(0);
    run(&["status"]).exits(0).prints("outlives the folder");
    run(&["run", "--", "sh", "-c", "rm -rf \"$PWD\""]).exits(0);
    run(&["undo"]).exits(0);
    run(&["undo"]).exits(0);
    assert_back(&before, &Record::default(), &Record::take(&s.project()));
    run(&["verify"]).exits(0);
    fs::remove_dir_all(&state).unwrap();
}

#[test]
fn without_a_place_for_it_the_history_goes_with_the_folder_and_all_else_works() {
    each_user(|s| {
        let homeless = |words: &[&str]| {
            let mut program = s.program();
            program.env("XDG_STATE_HOME", "/dev/null/nowhere").args(words);
            s.finish(&mut program)
        };
        s.write("f", "0");
        homeless(&["run", "--", "sh", "-c", "echo A > f"]).exits(0);
        homeless(&["run", "--", "sh", "-c", "echo B > f"]).exits(0);
        homeless(&["undo"]).exits(0);
        homeless(&["undo"]).exits(0);
        homeless(&["redo"]).exits(0);
        assert_eq!(s.read("f"), "A\n");
        homeless(&["status"]).exits(0).prints("goes with the folder");
        assert_eq!(homeless(&["status", "--json"]).json()["store"]["outlives_folder"], false);
        homeless(&["gc"]).exits(0);
        homeless(&["run", "--", "rm", "-rf", ".snapback"]).exits(0);
        homeless(&["list"]).exits(0);
    });
}

#[test]
fn a_second_copy_in_the_project_itself_outlives_nothing_and_that_is_said() {
    each_user(|s| {
        let inside = |words: &[&str]| {
            let mut program = s.program();
            program.env("XDG_STATE_HOME", s.project().join("state")).args(words);
            s.finish(&mut program)
        };
        inside(&["run", "--", "sh", "-c", "echo A > f"]).exits(0).says("lies in the project itself");
        inside(&["status"]).exits(0).prints("goes with the folder");
        assert_eq!(inside(&["status", "--json"]).json()["store"]["outlives_folder"], false);
    });
}

#[test]
fn without_a_home_all_works() {
    if !snapback_tests::is_root() {
        return skip("only root can become somebody without a home");
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    let homeless = |words: &[&str]| {
        let mut program = s.program();
        // Whom the list of users gives a home is not without one.
        program.env_remove("HOME").env("XDG_STATE_HOME", "relative").args(words);
        s.finish(&mut program)
    };
    s.write("f", "0");
    homeless(&["run", "--", "sh", "-c", "echo A > f"]).exits(0);
    homeless(&["undo"]).exits(0);
    assert_eq!(s.read("f"), "0");
    assert!(!s.has("relative"), "a relative directory counts as none");
}

/// All that lies in `dir`, caches aside: names, sizes, times.
fn listed(s: &Sandbox, dir: &Path) -> String {
    let caches = "-name cache -prune -o -name tmp -prune";
    s.sh(&format!("find {} {caches} -o -printf '%P %s %T@ %C@ %i\n' | sort", dir.display()))
}

#[test]
fn what_is_only_looked_at_changes_nothing() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        s.run("echo B > f");
        s.ok(["undo"]);
        let looks: [&[&str]; 8] = [
            &["undo", "-n"],
            &["undo", "-n", "--step"],
            &["redo", "-n"],
            &["restore", "-n", "@0"],
            &["review", "-n", "--reject", "*"],
            &["gc", "-n", "--keep", "1"],
            &["list"],
            &["status"],
        ];
        let project = listed(s, &s.project());
        let state = listed(s, &s.state());
        for look in looks {
            s.ok(look);
            assert_eq!((&listed(s, &s.project()), &listed(s, &s.state())), (&project, &state), "{look:?}");
        }
        s.sh("rm -rf .snapback");
        for look in looks {
            s.ok(look).says("has lost its history, which is read from");
            assert!(!s.has(".snapback"), "{look:?}");
            // What was lost has other links now, and those alone.
            assert_eq!(s.sh("find . -mindepth 1"), "./f\n", "{look:?}");
        }
        s.ok(["undo"]).says("is there again from");
        assert_eq!(s.read("f"), "0");
    });
}

#[test]
fn what_another_home_has_forgotten_does_not_come_back() {
    each_user(|s| {
        let other = s.dir().join("run/other");
        let elsewhere = |words: &[&str]| {
            let output = s.finish(s.program().env("XDG_STATE_HOME", &other).args(words));
            output.exits(0);
            output
        };
        s.write("f", "secret");
        s.run("echo A > f");
        let secret = crate::newest(s);
        s.run("echo B > f");
        elsewhere(&["snap", "-m", "mine"]);
        elsewhere(&["forget", "--yes", &secret]);
        let ids = |list: Output| {
            let ids = list.json().as_array().unwrap().clone();
            ids.iter().map(|snap| snap["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let right = ids(elsewhere(&["list", "--json"]));
        assert!(right.len() == 2 && !right.contains(&secret));
        let list = s.ok(["list", "--json"]);
        list.never_says("read from");
        assert_eq!(ids(list), right, "the project's own history is right");
        s.run("echo C > f").never_says("is there again");
        s.sh("rm -rf .snapback");
        let brought = s.ok(["snap", "-m", "again"]);
        brought.says("is there again from");
        assert!(!ids(s.ok(["list", "--json"])).contains(&secret));
        for state in [s.state(), other.clone()] {
            let found = s.sh(&format!("find {} -name '{secret}*'", state.display()));
            assert_eq!(found, "", "it is nowhere");
        }
        s.ok(["verify"]);
        // What the other one collected is no loss either.
        elsewhere(&["gc", "--keep", "1"]);
        s.ok(["list"]).never_says("read from");
        s.ok(["verify"]);
    });
}
