//! A history that nothing is kept of outside the project, or that its owner cannot use: that
//! is said once, and what became of it.

use crate::{PROGRAM, each_user, sandbox};
use snapback_tests::{Output, Sandbox, User, is_root};
use std::fs;
use std::os::unix::fs::MetadataExt;

/// Runs the program as where HOME and all that follows from it can be no directory.
fn homeless(s: &Sandbox, words: &[&str]) -> Output {
    let mut program = s.program();
    for variable in ["HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME"] {
        program.env(variable, "/dev/null/none");
    }
    s.finish(program.args(words))
}

#[test]
fn where_nothing_is_kept_outside_that_is_said_once() {
    each_user(|s| {
        let word = "alone, and goes with it";
        s.write("f", "0");
        homeless(s, &["run", "--", "sh", "-c", "echo A > f"]).exits(0).says(word).says("/dev/null/none");
        homeless(s, &["run", "--", "sh", "-c", "echo B > f"]).exits(0).never_says(word);
        homeless(s, &["undo"]).exits(0).never_says(word);
        s.sh("rm -rf .snapback");
        homeless(s, &["snap"]).exits(0).says(word);
        s.sh("rm -rf .snapback");
        s.ok(["snap"]).never_says(word);
    });
}

#[test]
fn a_command_that_removes_the_only_history_is_said_to_have_done_so() {
    each_user(|s| {
        let word = "the command removed the history";
        for (ways, code) in [(&["run"][..], 7), (&["run", "--undo-on-failure"], 125)] {
            s.write("f", "0");
            let ways: Vec<&str> = ways.iter().copied().chain(["--", "sh", "-c"]).collect();
            let run = |script| homeless(s, &[&ways[..], &[script]].concat());
            run("rm -rf .snapback f; exit 7").exits(code).says(word).says("nothing can be undone");
            assert!(!s.has(".snapback"), "no empty one is made for it");
        }
        homeless(s, &["run", "--", "sh", "-c", "rm -rf \"$PWD\""]).exits(0).says(word).says("is gone");
    });
    // What is kept elsewhere is no loss, nor is a project that was moved away with its history.
    let s = sandbox();
    s.write("f", "0");
    s.run("rm -rf .snapback f").never_says("removed the history").says("1 deleted");
    s.ok(["undo"]);
    let moved = homeless(&s, &["run", "--", "sh", "-c", "rm f; mv \"$PWD\" ../elsewhere"]);
    moved.exits(0).never_says("removed the history").says("1 deleted");
}

#[test]
fn a_history_that_is_no_longer_kept_outside_says_so_with_the_first_such_snapshot() {
    let word = "alone, and goes with it";
    let Some(user) = snapback_tests::users().into_iter().find(|user| user.is_ordinary()) else { return };
    let s = Sandbox::new(PROGRAM, user);
    s.write("f", "0");
    s.run("echo A > f").never_says(word);
    s.sh("chmod a-w \"$XDG_STATE_HOME\"/snapback/*/packs");
    s.run("echo B > f").says(word);
    s.run("echo C > f").never_says(word);
    s.run("rm -rf .snapback f").says("the command removed the history").never_says("is there again");
}

#[test]
fn components_are_compiled_once_also_where_the_cache_cannot_be_written() {
    each_user(|s| {
        s.write("f", "0");
        let kept = || -> Vec<(std::path::PathBuf, u64, i64)> {
            let spare =
                fs::read_dir(s.dir().join("tmp")).unwrap().next().expect("it is made").unwrap().path();
            assert_eq!(fs::metadata(&spare).unwrap().mode() & 0o7777, 0o700);
            let files = fs::read_dir(spare).unwrap().map(|file| file.unwrap());
            let of = |file: fs::DirEntry| {
                (file.path(), file.metadata().unwrap().ino(), file.metadata().unwrap().mtime_nsec())
            };
            let mut files: Vec<_> = files.map(of).collect();
            files.sort();
            files
        };
        homeless(s, &["snap"]).exits(0);
        let first = kept();
        assert!(
            first.iter().any(|(path, ..)| path.extension().is_some_and(|end| end == "cwasm")),
            "{first:?}"
        );
        s.write("f", "1");
        homeless(s, &["snap"]).exits(0);
        assert_eq!(first, kept(), "nothing was compiled again");
    });
}

#[test]
fn a_store_in_the_project_of_another_user_is_made_with_a_word_and_refused_with_the_way() {
    if !is_root() {
        return;
    }
    let (owner, root) = (Sandbox::new(PROGRAM, User::Nobody), Sandbox::new(PROGRAM, User::Me));
    owner.write("f", "0");
    let as_root = |words: &[&str]| root.finish(root.program().current_dir(owner.project()).args(words));
    let give = format!("sudo chown -R 65534 {}", owner.project().join(".snapback").display());
    as_root(&["snap"]).exits(0).says("belongs to another user (65534)").says(&give);
    as_root(&["run", "--", "true"]).exits(0).never_says("another user");
    for (words, code) in [(&["run", "--", "true"][..], 125), (&["status"], 1), (&["undo"], 1)] {
        owner.snapback(words).fails(code, &["belongs to another user (0)"]).says(&give);
    }
    let done = std::process::Command::new("sh").args(["-c", &give.replace("sudo ", "")]).status();
    assert!(done.is_ok_and(|done| done.success()));
    owner.run("echo A > f");
    owner.ok(["undo"]);
    assert_eq!(owner.read("f"), "0");
    // In a project of one's own there is nothing to say.
    let s = sandbox();
    s.ok(["snap"]).never_says("another user");
}
