//! Nothing is deleted or overwritten that was not captured first.

use crate::{each_user, newest};
use rustix::process::Signal;
use snapback_tests::{Record, Running, User, assert_back, assert_same, have};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

#[test]
fn a_directory_over_the_guard_is_left_alone_and_named() {
    each_user(|s| {
        s.write("f", "0");
        s.sh("mkdir output; cd output; seq 10001 | xargs touch");
        let run = s.run("echo A > f; echo new > output/1; rm output/2; touch output/made");
        run.says("output");
        let undo = s.snapback(["undo"]);
        undo.exits(3).says("output");
        assert_eq!(s.read("f"), "0");
        assert_eq!(
            (s.read("output/1"), s.has("output/2"), s.has("output/made")),
            ("new\n".into(), false, true)
        );
        let list = s.ok(["list", "--json"]).json();
        let excluded = list.as_array().unwrap().last().unwrap()["excluded"].as_array().unwrap().clone();
        let output = excluded.iter().find(|e| e["path"] == "output").expect("it is in the JSON");
        assert_eq!((&output["reason"], &output["files"]), (&"too many files".into(), &10001.into()));
    });
}

#[test]
fn what_the_snapshot_skipped_is_kept_and_reported() {
    each_user(|s| {
        if !s.user().is_ordinary() {
            return;
        }
        s.write("f", "0");
        s.write("secret", "0");
        s.sh("chmod 000 secret");
        s.snapback(["run", "--", "sh", "-ec", "chmod 600 secret; echo more >> secret; echo A > f"])
            .exits(0)
            .says("secret");
        let undo = s.snapback(["undo", "--json"]);
        undo.exits(3);
        let refused = undo.json()["not_restored"].as_array().unwrap().clone();
        assert!(refused.iter().any(|r| r["path"] == "secret"), "{undo}");
        assert_eq!((s.read("secret"), s.read("f")), ("0more\n".into(), "0".into()));
    });
}

#[test]
fn a_single_file_that_was_ignored_and_then_moved_is_left_where_it_is() {
    each_user(|s| {
        s.write("snapback.toml", "[snapshot]\nignore = [\"*.log\"]\n");
        s.sh("mkdir d; for f in a b c e; do echo $f > $f.log; done; echo 0 > over; echo 0 > f; ln f f.log; ln -s f l.log");
        let ino = |path: &str| fs::symlink_metadata(s.project().join(path)).unwrap().ino();
        let before = ["a.log", "b.log", "c.log"].map(ino);
        s.run("mv a.log a; mv b.log over; mkdir new; mv c.log new/c; cp -p e.log e; ln e.log e2; rm f.log; mv l.log l; echo A > f; echo A > d/g");
        let dry = s.snapback(["undo", "-n", "--json"]);
        let undo = s.snapback(["undo", "--json"]);
        for told in [&dry, &undo] {
            told.exits(3);
            let refused = told.json()["not_restored"].as_array().unwrap().clone();
            let paths: Vec<&str> = refused.iter().map(|item| item["path"].as_str().unwrap()).collect();
            assert!(["a", "l", "new/c", "over"].iter().all(|path| paths.contains(path)), "{told}");
            assert!(!paths.contains(&"e") && !paths.contains(&"e2") && !paths.contains(&"f"), "{told}");
            told.says("a (it was left out as ignored, and was moved here since)");
        }
        assert_eq!(["a", "over", "new/c"].map(ino), before, "{undo}");
        assert_eq!(
            (s.read("a"), s.read("over"), s.read("new/c")),
            ("a\n".into(), "b\n".into(), "c\n".into())
        );
        // What the run made goes, and what it did to what is covered is taken back.
        assert_eq!((s.has("e"), s.has("e2"), s.has("d/g"), s.read("f")), (false, false, false, "0\n".into()));
        s.sh("mv over b.log");
        s.ok(["restore", "@1", "--path", "over"]);
        assert_eq!(s.read("over"), "0\n");
    });
}

#[test]
fn what_was_left_out_and_then_moved_is_left_where_it_is() {
    // How something is left out, what it is, and where a run moves it.
    for (setting, what, made, script, at) in [
        ("ignore = [\"/data\"]", "data", "mkdir data; echo mine > data/f", "mv data data.old", "data.old"),
        ("", ".git", "mkdir -p .git/refs; echo mine > .git/HEAD", "mv .git .git2", ".git2"),
        // Over a directory, in which all is another, and over a file.
        (
            "ignore = [\"/data\"]",
            "data",
            "mkdir -p data dir/f; echo mine > data/f",
            "rm -r dir; mv data dir",
            "dir",
        ),
        (
            "ignore = [\"/data\"]",
            "data",
            "mkdir data; echo mine > data/f; touch at",
            "rm at; mv data at",
            "at",
        ),
        // Into a directory that is to go.
        (
            "max-files-per-dir = 2",
            "big",
            "mkdir big; touch big/1 big/2 big/3",
            "mkdir new; mv big new/b; rm new/b/1",
            "new/b",
        ),
    ] {
        each_user(|s| {
            s.write("snapback.toml", format!("[snapshot]\n{setting}\n"));
            s.sh(&format!("{made}; echo 0 > f"));
            s.run(&format!("{script}; echo A > f; mkdir made; echo A > made/f"))
                .says(&format!("{what} (gone)"));
            let moved = Record::take(&s.project().join(at));
            let dry = s.snapback(["undo", "-n", "--json"]);
            let undo = s.snapback(["undo", "--json"]);
            for told in [&dry, &undo] {
                told.exits(3).says(&format!("{at} (it was left out as {what} ("));
                let json = told.json();
                let paths = |key: &str| -> Vec<String> {
                    let list = json[key].as_array().unwrap().iter();
                    list.map(|item| item["path"].as_str().unwrap().to_owned()).collect()
                };
                assert!(paths("not_restored").contains(&at.to_owned()), "{told}");
                let within = |path: &String| path == at || path.starts_with(&format!("{at}/"));
                assert!(!paths("changes").iter().any(within), "{told}");
            }
            let mend = format!("mv {} {}", s.project().join(at).display(), s.project().join(what).display());
            undo.says(&mend);
            assert_same(&moved, &Record::take(&s.project().join(at)));
            assert_eq!((s.read("f"), s.has("made")), ("0\n".into(), false), "{undo}");
            s.sh(&mend);
            assert!(s.has(what) && !s.has(at));
        });
    }
}

#[test]
fn what_only_has_the_inode_of_something_that_is_gone_is_removed() {
    each_user(|s| {
        s.write("snapback.toml", "[snapshot]\nignore = [\"/data\"]\n");
        s.sh("mkdir data; echo 0 > f; ln f link");
        // File systems give the number of what is gone to what comes next.
        s.run("rmdir data; for n in $(seq 50); do mkdir made$n; done; echo A > f");
        s.ok(["undo"]).says("data (gone)");
        assert_eq!((s.read("f"), s.has("made1"), s.has("made50")), ("0\n".into(), false, false));
    });
}

#[test]
fn the_selection_frozen_in_the_snapshot_decides() {
    each_user(|s| {
        s.write("snapback.toml", "[snapshot]\nignore = [\"*.log\"]\n");
        s.write(".gitignore", "*.tmp\n");
        s.write("a.log", "0");
        s.write("a.tmp", "0");
        s.write("f", "0");
        s.run(
            "printf '[snapshot]\\nignore = [\"*\"]\\n' > snapback.toml; echo '*' > .gitignore
             echo A > f; echo A > a.log; rm a.tmp",
        );
        s.ok(["undo"]);
        assert_eq!((s.read("f"), s.read("a.tmp")), ("0".into(), "0".into()));
        assert_eq!(s.read("a.log"), "A\n", "it was left out then, so it is left alone now");
        assert_eq!(s.read("snapback.toml"), "[snapshot]\nignore = [\"*.log\"]\n");
    });
}

#[test]
fn a_broken_configuration_left_by_the_run_does_not_block_undo() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f; echo 'nonsense [' > snapback.toml");
        s.ok(["undo"]);
        assert_eq!((s.read("f"), s.has("snapback.toml")), ("0".into(), false));
    });
}

#[test]
fn an_environment_with_links_out_of_the_tree_blocks_nothing() {
    each_user(|s| {
        s.write("f", "0");
        let made = "mkdir -p .venv/bin && echo home=/usr > .venv/pyvenv.cfg
            ln -s /usr/bin/python3 .venv/bin/python && ln -s /nowhere/at/all .venv/bin/dangling
            printf '.venv\\n' > .gitignore; ln -s /etc/hostname out; echo A > f";
        s.run(made);
        s.ok(["undo"]);
        assert_eq!((s.read("f"), s.has("out")), ("0".into(), false));
        s.ok(["redo"]);
        assert_eq!(s.read("f"), "A\n");
        assert_eq!(
            fs::read_link(s.project().join("out")).unwrap(),
            fs::canonicalize("/etc").unwrap().join("hostname")
        );
        assert!(s.has(".venv/bin/python"));
    });
}

#[test]
fn an_absolute_link_comes_back_verbatim() {
    each_user(|s| {
        s.sh("mkdir -p tool/bin; ln -s /usr/bin/python3 tool/bin/python; ln -s /none dangling; ln -s . loop");
        let before = Record::take(&s.project());
        s.run("rm -r tool; ln -sfn /other dangling; rm loop; echo x > loop");
        let damaged = Record::take(&s.project());
        s.ok(["undo"]);
        assert_back(&before, &damaged, &Record::take(&s.project()));
    });
}

#[test]
fn edits_made_by_hand_after_the_run_are_said_saved_and_brought_back() {
    each_user(|s| {
        s.write("f", "0");
        s.write("mine", "0");
        s.run("echo A > f");
        s.write("mine", "by hand");
        s.write("made", "by hand");
        let undo = s.ok(["undo"]);
        undo.says("mine").says("made");
        assert_eq!((s.read("f"), s.read("mine"), s.has("made")), ("0".into(), "0".into(), false));
        s.ok(["redo"]);
        assert_eq!(
            (s.read("f"), s.read("mine"), s.read("made")),
            ("A\n".into(), "by hand".into(), "by hand".into())
        );
    });
}

#[test]
fn an_incomplete_snapshot_is_never_offered() {
    each_user(|s| {
        s.sh("for d in $(seq 40); do mkdir $d; for f in $(seq 50); do head -c 20000 /dev/urandom > $d/$f; done; done");
        let mut killed = 0;
        for milliseconds in [5, 10, 20, 40] {
            let mut child = s.start(["snap"]);
            std::thread::sleep(Duration::from_millis(milliseconds));
            child.signal(Signal::KILL);
            killed += usize::from(!child.wait().success());
            let list = s.ok(["list", "--json"]).json();
            for snap in list.as_array().unwrap() {
                let id = snap["id"].as_str().unwrap();
                s.ok(["show", id]);
                s.ok(["diff", "--exit-code", id]);
            }
        }
        assert!(killed > 0, "at least one was killed in mid snapshot");
        s.ok(["snap"]);
        s.ok(["verify"]);
        s.sh("rm -r 1 2 3");
        s.ok(["undo"]);
        assert!(s.has("1/1") && s.has("3/50"));
    });
}

#[test]
fn a_damaged_object_is_found_before_anything_is_touched() {
    each_user(|s| {
        s.sh("for f in $(seq 30); do head -c 3000 /dev/urandom > f$f; done");
        s.run("for f in $(seq 30); do echo A > f$f; done; touch added");
        // In every pack a stretch in the middle is overwritten.
        s.sh("for p in .snapback/packs/*; do chmod u+w $p
              dd if=/dev/zero of=$p bs=1 seek=$(($(stat -c %s $p) / 2)) count=64 conv=notrunc 2>/dev/null; done");
        let before = Record::take(&s.project());
        let undo = s.snapback(["undo"]);
        assert_ne!(undo.code(), 0, "{undo}");
        undo.fails(1, &["damaged"]);
        assert_back(&before, &before, &Record::take(&s.project()));
        let verify = s.snapback(["verify"]);
        assert_ne!(verify.code(), 0, "{verify}");
    });
}

#[test]
fn one_file_that_cannot_be_written_leaves_all_as_before_the_undo() {
    each_user(|s| {
        s.sh("for f in $(seq 50); do echo 0 > f$f; done");
        s.run("for f in $(seq 50); do echo A > f$f; done; rm f1");
        let chattr = |flag: &str| {
            let done = std::process::Command::new("chattr").arg(flag).arg(s.project().join("f30")).output();
            done.is_ok_and(|done| done.status.success())
        };
        if !chattr("+i") {
            snapback_tests::skip("chattr +i is not possible here");
            return;
        }
        let before = Record::take(&s.project());
        let undo = s.snapback(["undo"]);
        let after = Record::take(&s.project());
        assert!(chattr("-i"));
        undo.fails(1, &["nothing was touched"]).says("f30: ").says("chattr -i");
        assert_back(&before, &before, &after);
        s.ok(["undo"]);
        assert_eq!((s.read("f1"), s.read("f30")), ("0\n".into(), "0\n".into()));
    });
}

#[test]
fn a_directory_that_may_not_be_written_leaves_all_as_before_the_undo() {
    if !snapback_tests::is_root() {
        return; // Somebody else's directory is needed.
    }
    let s = crate::Sandbox::new(crate::PROGRAM, User::Nobody);
    s.sh("mkdir a z; echo 0 > a/f; echo 0 > z/f");
    s.run("echo A > a/f; echo A > z/f");
    let dir = s.project().join("z");
    std::os::unix::fs::chown(&dir, Some(0), Some(0)).unwrap();
    std::os::unix::fs::chown(dir.join("f"), Some(0), Some(0)).unwrap();
    let before = Record::take(&s.project());
    let undo = s.snapback(["undo"]);
    undo.fails(1, &["nothing was touched"]).says("z/f: ").says("chown");
    assert_back(&before, &before, &Record::take(&s.project()));
}

#[test]
fn a_writer_that_goes_on_during_undo_loses_nothing() {
    each_user(|s| {
        s.sh("mkdir w; for f in $(seq 200); do echo 0 > w/f$f; done");
        s.run("for f in $(seq 200); do echo A > w/f$f; done");
        // Each line that the writer has finished must be in the file or in the pre-undo snapshot.
        let writer = "i=0; while [ ! -e ../stop ]; do i=$((i+1)); echo $i >> w/log; echo $i > ../last; done";
        let mut child = Running::of(s.command("sh").args(["-c", writer]));
        let started = Instant::now();
        while !s.home().join("last").exists() && started.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
        }
        let undo = s.snapback(["undo", "--yes"]);
        fs::write(s.home().join("stop"), "").unwrap();
        child.wait();
        assert!([0, 1, 3].contains(&undo.code()), "{undo}");
        let last: usize = fs::read_to_string(s.home().join("last")).unwrap().trim().parse().unwrap();
        let there = fs::read_to_string(s.project().join("w/log")).unwrap_or_default();
        let saved = s.snapback(["cat", &newest(s), "w/log"]).out();
        let have: std::collections::BTreeSet<usize> =
            there.lines().chain(saved.lines()).filter_map(|l| l.parse().ok()).collect();
        let lost: Vec<usize> = (1..=last).filter(|n| !have.contains(n)).collect();
        assert!(lost.is_empty(), "{} of {last} lines lost, from {:?}\n{undo}", lost.len(), lost.first());
    });
}

#[test]
fn what_a_mode_carries_comes_back_with_what_was_taken_from_the_owner() {
    if !have("setfacl") || !have("setfattr") {
        return;
    }
    each_user(|s| {
        for command in [
            "echo A > d/f; chmod 000 d",
            "echo A > d/f; chmod 500 d .",
            "rm d/f; chmod a-w d; chmod 000 e",
            "echo A > e/f; chmod 000 e/f e d",
            "echo A > e/f; chmod 600 e",
            "setfattr -n user.b -v 2 e; chmod 000 e d; rm -f top",
            "chmod u+w f; setfattr -x user.a f; setfattr -n user.c -v 3 f; chmod u-w f",
        ] {
            s.sh("mkdir d e; echo 0 | tee d/f e/f > f; echo 1 > top; setfattr -n user.a -v 1 f; chmod 444 f
                  setfacl -m u:1234:rwx d; setfacl -m u:1234:rx .; setfattr -n user.b -v 1 e
                  chgrp $(id -g) e e/f; chmod 2750 e; chmod 2640 e/f");
            let before = Record::take(&s.project());
            s.run(command).says("snapback undo");
            let spoilt = Record::take(&s.project());
            s.ok(["undo"]);
            assert_back(&before, &spoilt, &Record::take(&s.project()));
            s.ok(["redo"]);
            s.ok(["undo"]);
            assert_back(&before, &spoilt, &Record::take(&s.project()));
            s.sh("chmod -R u+rwX .; rm -rf d e f top; setfacl -b .");
        }
    });
}

#[test]
fn permissions_that_the_run_took_from_their_owner_come_back() {
    each_user(|s| {
        for command in [
            "chmod 000 f d/e/g; chmod 000 d/e d",
            "chmod 000 f && echo new > n && chmod 000 n && rm -rf d",
            "chmod -R a-rwx f d || true",
            "chmod -R 644 . || true",
            "chmod -R 000 . || true",
            "chmod -R 777 . || true",
            "chmod -R a-w . || true",
            "chmod -R 555 . || true",
            "find . -exec chmod 400 {} + || true",
            "rm f; find .snapback -type f -exec chmod 000 {} +",
            "echo A > d/e/g; chmod 644 d/e d",
            "echo A > d/e/g; echo A > d/e/n; chmod 000 d/e d",
            "echo A > d/e/g; rm f; chmod 600 d .",
            "echo A > d/e/g; chmod 644 d/e d .",
            "rm d/e/g; chmod 400 d/e",
            "rm d/e/g; echo A > f; chmod 400 d/e d",
            "rm -r d/e; chmod 200 d; chmod 500 .",
        ] {
            s.write("f", "0");
            s.sh("mkdir -p d/e; echo 0 > d/e/g; ln d/e/g d/h; mkdir -p d/empty; chmod 750 .");
            let before = Record::take(&s.project());
            s.run(command).says("snapback undo");
            let spoilt = Record::take(&s.project());
            s.ok(["undo", "-n"]);
            s.ok(["undo"]);
            assert_back(&before, &spoilt, &Record::take(&s.project()));
            let store = s.project().join(".snapback");
            assert_eq!(fs::metadata(store).unwrap().mode() & 0o777, 0o700, "{command}");
            s.ok(["redo"]);
            s.ok(["undo"]);
            assert_back(&before, &spoilt, &Record::take(&s.project()));
            s.ok(["verify"]);
            s.sh("rm -rf f d n");
        }
    });
}
