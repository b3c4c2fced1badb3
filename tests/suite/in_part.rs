//! What comes back though something of it does not, and what cannot come back yet: the one is
//! counted as restored, the other stays to be undone.

use crate::{PROGRAM, each_user, sandbox};
use snapback_tests::{Sandbox, User, is_root, skip};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

/// A sandbox of an ordinary user, in whose project root changes something.
fn of_nobody() -> Option<Sandbox> {
    if !is_root() {
        skip("only root can give files away");
        return None;
    }
    Some(Sandbox::new(PROGRAM, User::Nobody))
}

#[test]
fn a_file_whose_group_cannot_be_given_back_is_back() {
    let Some(s) = of_nobody() else { return };
    s.sh("echo 0 > b");
    chown(s.project().join("b"), None, Some(0)).unwrap();
    s.run("echo A > b");
    let undo = s.snapback(["undo"]);
    undo.exits(3).says("undone, 1 path").says("not restored in full: b (its owner");
    assert_eq!(s.read("b"), "0\n");
    assert_eq!(s.snapback(["undo", "--json"]).code(), 1, "it is undone, and not to be undone again");
}

#[test]
fn a_directory_of_somebody_else_keeps_its_time_without_a_word() {
    let Some(s) = of_nobody() else { return };
    s.sh("mkdir d; echo 0 > d/f; echo 0 > d/g");
    let d = s.project().join("d");
    chown(&d, Some(0), Some(0)).unwrap();
    std::fs::set_permissions(&d, PermissionsExt::from_mode(0o777)).unwrap();
    s.run("rm d/f; echo A > d/g");
    s.ok(["undo"]).never_says("not restored");
    assert_eq!((s.read("d/f"), s.read("d/g")), ("0\n".into(), "0\n".into()));
    s.ok(["redo"]).never_says("not restored");
    assert!(!s.has("d/f"));
}

#[test]
fn a_file_with_another_name_outside_is_back() {
    each_user(|s| {
        s.sh("mkdir node_modules; echo 0 > a; ln a node_modules/x");
        s.run("echo A > a");
        s.snapback(["undo"])
            .exits(3)
            .says("undone, 1 path")
            .says("not restored in full: a (it has other names");
        assert_eq!((s.read("a"), s.read("node_modules/x")), ("0\n".into(), "A\n".into()));
    });
}

#[test]
fn what_something_is_in_the_way_of_stays_to_be_undone() {
    each_user(|s| {
        s.sh("mkdir node_modules d; echo precious > node_modules/f; echo a > d/a");
        s.run("rm -r d; mv node_modules d");
        let undo = s.snapback(["undo"]);
        undo.fails(1, &["nothing was put back"]).says("d:").says("--partial");
        assert!(s.has("d/f") && !s.has("d/a"));
        s.sh("mv d node_modules");
        s.ok(["undo"]);
        assert_eq!((s.read("d/a"), s.read("node_modules/f")), ("a\n".into(), "precious\n".into()));
        s.ok(["redo"]);
        s.ok(["undo"]);
        // Who wants to go on without it can.
        s.run("rm -r d; mv node_modules d");
        s.snapback(["undo", "--partial"]).exits(3).says("tries the rest again");
        s.sh("mv d node_modules");
        let line = s.ok(["list", "--json"]).json();
        let id = line.as_array().unwrap().iter().find(|l| l["kind"] == "run").unwrap()["id"].clone();
        s.ok(["restore", id.as_str().unwrap()]);
        assert_eq!(s.read("d/a"), "a\n");
    });
}

#[test]
fn what_is_not_covered_is_told_from_what_is_not_there() {
    each_user(|s| {
        s.sh("echo 0 > f; echo 0 > once");
        s.run("mkdir node_modules; echo x > node_modules/f; echo A > f");
        let not_covered = s.snapback(["undo", "--path", "node_modules/f"]);
        not_covered.fails(1, &["node_modules/f is not covered, and stays as it is: regenerable"]);
        s.run("rm once");
        s.run("echo B > f");
        // The hint is the way.
        let missing = s.snapback(["undo", "--path", "once"]);
        missing.fails(1, &["there is no once, neither now"]);
        let hint = missing.err().split('`').nth(1).unwrap().to_owned();
        s.ok(hint.split(' ').skip(1));
        assert_eq!(s.read("once"), "0\n");
        assert_eq!(s.snapback(["undo", "--path", "never"]).fails(1, &["there is no never"]).code(), 1);
    });
}

#[test]
fn the_settings_that_go_back_as_well_are_named() {
    let s = sandbox();
    s.sh("echo 0 > f");
    s.run("echo A > f; echo '[snapshot]' > snapback.toml");
    s.ok(["undo"]).says("snapback.toml is one of them");
    s.ok(["redo"]).says("redo of `sh -ec").says("snapback.toml is one of them");
    let inode = s.project().join("f").metadata().unwrap().ino();
    s.run("true");
    s.ok(["undo", "-n"]).says("left nothing to undo");
    assert_eq!(s.project().join("f").metadata().unwrap().ino(), inode);
}
