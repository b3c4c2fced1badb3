//! Something else in the place of a directory that is a target of its own: nothing is read or
//! written through it, and an undo brings the directory back as if a tree alone had it.

use crate::{each_user, newest, sandbox};
use snapback_tests::{Record, Restores, Sandbox};
use std::fs;
use std::os::unix::fs::PermissionsExt;

const DATA: &str = "[[target]]\nname = \"data\"\nbackend = \"tree\"\npath = \"data\"\n";

/// A project with a target `data`, and what may be a victim, in it and beside it.
fn prepare(s: &Sandbox, toml: &str) {
    s.write("snapback.toml", toml);
    s.sh("mkdir -p data/s lib ../out; echo 1 > data/x; echo 2 > data/s/y; echo 1 > top; chmod 750 data
          echo lib > lib/l; echo out > ../out/o");
}

const REPLACED: [&str; 6] = [
    "echo file > data",
    "mkfifo data",
    "ln -s nowhere data",
    "ln -s lib data",
    "ln -s ../out data",
    "ln -s data data",
];

#[test]
fn what_took_its_place_goes_where_a_tree_has_it() {
    for with in REPLACED {
        each_user(|s| {
            prepare(s, DATA);
            let before = Record::take(&s.project());
            let mut chain = Restores::default();
            let (out, lib) = (s.home().join("out"), s.project().join("lib"));
            let victims = || (Record::take(&out), Record::take(&lib));
            let untouched = victims();
            s.run(&format!("echo 2 > top; rm -r data; {with}")).says("deleted").says("takes it back");
            let after = Record::take(&s.project());
            s.ok(["undo", "-n"]);
            s.ok(["undo"]).never_says("trust");
            chain.assert_back(&before, &after, &Record::take(&s.project()));
            s.ok(["redo"]).never_says("trust");
            chain.assert_back(&after, &before, &Record::take(&s.project()));
            s.ok(["undo"]);
            chain.assert_back(&before, &after, &Record::take(&s.project()));
            let now = victims();
            assert_eq!((now.0.0, now.1.0), (untouched.0.0, untouched.1.0), "{with}");
        });
    }
}

#[test]
fn what_nobody_captured_stays_and_nothing_is_written_through_it() {
    for with in REPLACED {
        each_user(|s| {
            prepare(s, &format!("[snapshot]\nenabled = false\n{DATA}"));
            let untouched = Record::take(&s.project().join("lib"));
            s.run(&format!("rm -r data; {with}")).says("deleted");
            let start = newest(s);
            let link = fs::symlink_metadata(s.project().join("data")).unwrap();
            let undo = s.snapback(["undo"]);
            undo.fails(1, &["nothing was touched"]).says("stands in the place of its directory");
            s.snapback(["undo", "--partial"]).exits(3);
            let now = fs::symlink_metadata(s.project().join("data")).unwrap();
            assert_eq!(now.file_type(), link.file_type(), "{with}");
            assert_eq!(Record::take(&s.project().join("lib")).0, untouched.0, "{with}");
            assert_eq!(fs::read_dir(s.home().join("out")).unwrap().count(), 1, "{with}");
            let err = undo.err();
            s.sh(err.split("mend it: ").nth(1).unwrap().split(')').next().unwrap());
            s.ok(["restore", &start]);
            assert_eq!((s.read("data/x"), s.read("data/s/y")), ("1\n".into(), "2\n".into()));
            assert!(s.has("data.other"));
        });
    }
}

#[test]
fn a_link_that_was_there_is_what_leads_to_the_directory() {
    each_user(|s| {
        prepare(s, &format!("[snapshot]\nenabled = false\n{DATA}"));
        s.sh("mv data real; ln -s real data");
        s.run("echo 2 > data/x");
        s.ok(["undo"]);
        assert_eq!(s.read("real/x"), "1\n");
        // Not where it leads elsewhere now.
        s.run("echo 3 > data/x; ln -sfn lib data");
        s.snapback(["undo"]).fails(1, &["nothing was touched"]);
        assert!(!s.has("lib/x"));
        s.sh("ln -sfn real data");
        s.ok(["undo"]);
        assert_eq!(s.read("real/x"), "1\n");
    });
}

#[test]
fn its_owner_gets_into_a_directory_that_was_closed() {
    each_user(|s| {
        prepare(s, DATA);
        for toml in [DATA.to_owned(), format!("[snapshot]\nenabled = false\n{DATA}")] {
            s.write("snapback.toml", &toml);
            s.run("echo 2 > data/x; chmod 000 data").says("takes it back");
            s.ok(["undo", "-n"]);
            s.ok(["undo"]);
            assert_eq!(s.read("data/x"), "1\n");
            assert_eq!(fs::metadata(s.project().join("data")).unwrap().permissions().mode() & 0o777, 0o750);
        }
    });
}

#[test]
fn the_other_targets_come_back_with_it() {
    let s = sandbox();
    prepare(&s, DATA);
    let run =
        ["run", "--undo-on-failure", "--", "sh", "-c", "echo 2 > top; rm -r data; ln -s lib data; exit 4"];
    s.snapback(run).exits(4);
    assert_eq!((s.read("top"), s.read("data/x")), ("1\n".into(), "1\n".into()));
    assert!(!s.has("lib/x") && s.has("lib/l"));
}
