//! Another project, or its history alone, in the place of this one: an undo here takes back a
//! step of this one, and never one of the other.

use crate::{PROGRAM, each_user, sandbox};
use snapback_tests::{Output, Sandbox, User, is_root, skip};
use std::fs;
use std::path::Path;

/// A project called `other` beside that of `s`, which has a run of its own.
fn beside(s: &Sandbox) {
    s.sh("mkdir ../other; echo 0 > ../other/f; echo x > ../other/only");
    at(s, "other", &["run", "--", "sh", "-c", "echo theirs > f; touch more"]).exits(0);
}

fn at(s: &Sandbox, dir: &str, words: &[&str]) -> Output {
    s.finish(s.program().current_dir(s.home()).args(["-C", dir]).args(words))
}

fn id(dir: &Path) -> String {
    fs::read_to_string(dir.join(".snapback/id")).unwrap().trim_end().to_owned()
}

/// The stores that were moved aside in the project.
fn aside(s: &Sandbox) -> Vec<String> {
    let names = fs::read_dir(s.project()).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name.starts_with(".snapback."));
    names.sort();
    names
}

/// What puts `other` in the place of the project, or its history in that of the project's.
const WAYS: [&str; 6] = [
    "cd ..; rm -rf project; cp -a other project",
    "cd ..; rm -rf project; mv other project",
    "cd ..; mv project was; cp -a other project",
    "rm -rf .snapback; cp -a ../other/.snapback .; echo changed > f",
    "find . -mindepth 1 -delete; cp -a ../other/. .",
    "cp -af ../other/. .",
];

#[test]
fn a_run_that_puts_another_project_in_its_own_ones_place_is_what_undo_takes_back() {
    for way in WAYS {
        each_user(|s| {
            s.write("f", "0");
            s.run("echo precious > f");
            beside(s);
            let own = id(&s.project());
            let run = s.run(way);
            run.says("is there again from").says("another history stood in its place").says("takes it back");
            assert_eq!(id(&s.project()), own, "{way}");
            let names = aside(s);
            assert_eq!(names.len(), 1, "{way}: {names:?}");
            assert!(run.err().contains(&names[0]), "{run}");
            let undo = at(s, "project", &["undo"]);
            undo.exits(0).says("before `sh");
            assert_eq!(s.read("f"), "precious\n", "{way}");
            assert!(!s.has("only") && !s.has("more"), "{way}");
            at(s, "project", &["undo"]).exits(0);
            assert_eq!(s.read("f"), "0", "{way}");
            at(s, "project", &["verify"]).exits(0);
            // Nothing of the other one is lost.
            let command = run.err();
            let command = command.split('`').find(|part| part.starts_with("mv ")).expect("the way to it");
            s.sh(command);
            at(s, "project", &["restore", "@0"]).exits(0).never_says("is there again");
            // What was copied into the own one has its snapshots, too.
            let is_merged = way.starts_with("cp -af");
            assert!(is_merged || s.read("f") == "0\n", "{way}");
            at(s, "project", &["verify"]).exits(0);
        });
    }
}

#[test]
fn what_was_replaced_while_nobody_looked_is_found_by_every_command() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo precious > f");
        beside(s);
        let own = id(&s.project());
        s.sh("rm -rf .snapback f; cp -a ../other/. .");
        // Reading alone moves nothing.
        let list = s.ok(["list", "--json"]);
        list.says("is read from");
        assert_eq!(list.json().as_array().unwrap().len(), 1);
        s.ok(["diff"]).prints("M f");
        s.ok(["undo", "-n"]);
        assert!(aside(s).is_empty() && id(&s.project()) != own);
        s.ok(["undo"]).says("is there again from").says("before `sh -ec 'echo precious > f'`");
        assert_eq!((s.read("f"), id(&s.project())), ("0".into(), own));
        assert!(!s.has("only"));
        // The other project is what it was.
        at(s, "other", &["undo"]).exits(0).never_says("history");
        at(s, "other", &["verify"]).exits(0);
    });
}

#[test]
fn a_project_that_was_moved_here_has_its_own_history() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo precious > f");
        beside(s);
        let (own, other) = (id(&s.project()), id(&s.home().join("other")));
        s.sh("cd ..; mv project was; mv other project");
        let undo = at(s, "project", &["undo"]);
        undo.exits(0).says("another history stands here now").says(&own);
        assert_eq!((s.read("f"), id(&s.project())), ("0\n".into(), other));
        at(s, "was", &["undo"]).exits(0).never_says("another history");
        assert_eq!(fs::read_to_string(s.home().join("was/f")).unwrap(), "0");
        at(s, "project", &["redo"]).exits(0).never_says("another history");
        assert!(aside(s).is_empty());
    });
}

#[test]
fn an_older_backup_of_the_project_itself_is_no_other_one() {
    let s = sandbox();
    s.write("f", "0");
    s.run("echo A > f");
    s.sh("cp -a . ../backup");
    s.run("echo B > f");
    s.run("find . -mindepth 1 -delete; cp -a ../backup/. .");
    assert!(aside(&s).is_empty());
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "B\n");
}

#[test]
fn the_store_of_another_user_in_its_place_does_not_keep_undo_back() {
    if !is_root() {
        return skip("only root can be another user");
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    let root = Sandbox::new(PROGRAM, User::Me);
    s.write("f", "0");
    let project = s.project();
    let project = project.to_str().unwrap();
    // As a command that calls sudo.
    let mut run = s.start(["run", "--", "sh", "-c", "echo 1 > f; while [ ! -e go ]; do sleep 0.02; done"]);
    while s.read("f") == "0" {
        std::thread::yield_now();
    }
    root.sh(&format!("rm -rf {project}/.snapback"));
    root.finish(root.program().args(["--root", project, "snap"])).exits(0);
    s.write("go", "");
    assert!(run.wait().success());
    assert_eq!(aside(&s), [".snapback.other"]);
    let undo = s.snapback(["undo"]);
    assert_eq!(s.read("f"), "0", "{undo}");
    assert!(!s.has("go") && s.has(".snapback.other"));
    s.ok(["verify"]);
}
