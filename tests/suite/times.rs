//! Times: what did not change keeps them, what was written is newer than any build.

use crate::each_user;
use snapback_tests::{Record, have};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

#[test]
fn only_what_differs_is_touched() {
    each_user(|s| {
        s.sh("mkdir d; for f in $(seq 500); do echo $f > d/f$f; done; touch -d 2001-01-01 d/* d");
        let before = Record::take(&s.project());
        s.run("echo A > d/f77");
        s.ok(["undo"]);
        let after = Record::take(&s.project());
        for (path, entry) in &before.0 {
            if path != b"d/f77" && !path.is_empty() {
                assert_eq!(after.0.get(path), Some(entry), "{}", path.escape_ascii());
            }
        }
        let age = SystemTime::now()
            .duration_since(fs::metadata(s.project().join("d/f77")).unwrap().modified().unwrap());
        assert!(age.is_ok_and(|age| age < Duration::from_secs(60)), "what was written has the present time");
    });
}

#[test]
fn stored_times_are_exact_when_that_was_asked_for() {
    each_user(|s| {
        s.write("snapback.toml", "[snapshot]\ntimes = \"stored\"\n");
        s.sh("mkdir d; echo 0 > d/f; touch -d '2001-02-03 04:05:06.789' d/f; touch -d 2002-01-01 d");
        let before = Record::take(&s.project());
        s.run("echo A > d/f; rm -r d/f; mkdir d/g");
        s.ok(["undo"]);
        let after = Record::take(&s.project());
        for path in ["d", "d/f"] {
            assert_eq!(before.entry(path).mtime, after.entry(path).mtime, "{path}");
        }
    });
}

#[test]
fn a_touch_alone_is_taken_back_where_stored_times_were_asked_for() {
    each_user(|s| {
        s.write("snapback.toml", "[snapshot]\ntimes = \"stored\"\n");
        s.sh("mkdir d; echo 1 > d/f; echo 2 > d/g; touch -d 2001-01-01 d/f d/g d");
        let mtime = |path: &str| fs::metadata(s.project().join(path)).unwrap().mtime();
        let (old, new) = (978_307_200, 1_262_304_000);
        s.run("touch -d 2010-01-01 d/f").says("1 modified");
        assert_eq!(s.snapback(["diff", "--exit-code", "--names"]).out(), "M d/f\n");
        for _ in 0..2 {
            s.ok(["undo"]).says("M d/f").says("1 path");
            assert_eq!((mtime("d/f"), mtime("d/g")), (old, old));
            s.ok(["redo"]).says("M d/f");
            assert_eq!((mtime("d/f"), mtime("d/g")), (new, old));
        }
        // A snapshot of other times is another one; one of the same is not.
        s.ok(["snap"]).says("nothing changed");
        s.sh("touch -d 2001-01-01 d/f");
        s.ok(["snap"]).never_says("nothing changed");
        // The time of a directory goes with what is in it.
        s.run("touch -d 2010-01-01 d").says("nothing changed");
        s.run("touch d/new; touch -d 2010-01-01 d").says("1 added");
        s.ok(["undo"]);
        assert_eq!(mtime("d"), new, "as it was before that run");
        s.ok(["verify"]);
    });
}

#[test]
fn a_build_sees_what_was_restored() {
    if !have("make") {
        return;
    }
    each_user(|s| {
        s.write("Makefile", "target/out: src\n\tmkdir -p target\n\tcp src target/out\n");
        s.write(".gitignore", "target\n");
        s.sh("mkdir .git; echo ref > .git/HEAD");
        s.write("src", "old\n");
        s.write("snapback.toml", "[snapshot]\nignore = [\"target\"]\n");
        s.sh("make -s; touch -d 2001-01-01 src");
        s.run("echo new > src; sleep 0.02; make -s; grep -q new target/out");
        s.ok(["undo"]);
        assert_eq!(s.read("target/out"), "new\n", "build output is not covered");
        s.sh("make -s");
        assert_eq!(s.read("target/out"), "old\n");
    });
}

#[test]
fn a_build_sees_a_name_that_is_a_link_to_an_untouched_file_again() {
    if !have("make") {
        return;
    }
    each_user(|s| {
        s.write(
            "Makefile",
            "target/out: src\n\tmkdir -p target\n\tcp src target/out\nclean:\n\trm -f target/out\n",
        );
        s.write("snapback.toml", "[snapshot]\nignore = [\"target\"]\n");
        // Another file stands at the name, nothing does, and a link to another one.
        for change in [
            "echo new > src.tmp; mv src.tmp src",
            "rm src; make -s clean; echo new > src",
            "touch new; ln -f new src",
        ] {
            s.sh("rm -rf target src other third new; echo old > src; echo new > new; ln src other; ln src third
                  touch -d 2001-01-01 src new; make -s");
            s.run(&format!("{change}; sleep 0.02; make -s; grep -q new target/out"));
            s.ok(["undo"]);
            let ino = |path: &str| fs::metadata(s.project().join(path)).unwrap().ino();
            assert_eq!((s.read("src"), s.read("target/out")), ("old\n".into(), "new\n".into()));
            assert_eq!((ino("src"), ino("src")), (ino("other"), ino("third")), "{change}");
            s.sh("make -s");
            assert_eq!(s.read("target/out"), "old\n", "{change}");
        }
        // A name that only stood apart has the bytes that a build saw: no time is set.
        s.sh("rm -f other third; echo old > src; ln src other; touch -d 2001-01-01 src");
        s.run("cp -p src t; mv t src");
        s.ok(["undo"]);
        assert_eq!(fs::metadata(s.project().join("src")).unwrap().mtime(), 978_307_200);
        s.write("snapback.toml", "[snapshot]\ntimes = \"stored\"\n");
        s.run("rm src; echo new > src");
        s.ok(["undo"]);
        assert_eq!(fs::metadata(s.project().join("src")).unwrap().mtime(), 978_307_200);
    });
}

#[test]
fn cargo_sees_what_was_restored() {
    if !have("cargo") {
        return;
    }
    each_user(|s| {
        s.write("Cargo.toml", "[package]\nname = \"x\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        s.write("src/main.rs", "fn main() { println!(\"old\"); }\n");
        let home = std::env::var_os("HOME").unwrap_or_default();
        let of = |name: &str, dir: &str| {
            std::env::var_os(name).unwrap_or_else(|| std::path::Path::new(&home).join(dir).into_os_string())
        };
        let build = "cargo run --quiet --offline";
        let program = |script: &str, run: bool| {
            let mut command = if run { s.program() } else { s.command("sh") };
            if run {
                command.args(["run", "--", "sh"]);
            }
            command
                .env("CARGO_HOME", of("CARGO_HOME", ".cargo"))
                .env("RUSTUP_HOME", of("RUSTUP_HOME", ".rustup"));
            let done = s.finish(command.args(["-ec", script]));
            done.exits(0);
            done.out()
        };
        assert_eq!(program(build, false), "old\n");
        s.sh("touch -d 2001-01-01 src/main.rs");
        assert_eq!(program(build, false), "old\n");
        let changed = program(&format!("sed -i s/old/new/ src/main.rs; sleep 0.02; {build}"), true);
        assert_eq!(changed, "new\n");
        s.ok(["undo"]);
        assert!(s.has("target/debug/x"), "build output is not covered");
        assert_eq!(program(build, false), "old\n");
    });
}

#[test]
fn a_change_that_hides_behind_size_and_time_is_seen() {
    each_user(|s| {
        s.sh("echo 1111 > f; touch -d 2001-01-01 f; touch -r f stamp; sleep 0.05");
        s.ok(["snap"]);
        s.run("echo 2222 > f; touch -r stamp f");
        s.ok(["undo"]);
        assert_eq!(s.read("f"), "1111\n");
        s.ok(["redo"]);
        assert_eq!(s.read("f"), "2222\n");
    });
}

#[test]
fn a_write_in_the_tick_of_the_snapshot_is_seen() {
    each_user(|s| {
        for round in 0..10 {
            s.run(&format!(
                "printf '%04d' {round} > f; \"$SNAPBACK\" snap -q >/dev/null; printf '%04d' {} > f",
                round + 5000
            ));
            s.ok(["undo", "--step"]);
            assert_eq!(s.read("f"), format!("{round:04}"));
        }
    });
}

#[test]
fn a_touch_is_no_change_but_directories_keep_their_times() {
    each_user(|s| {
        s.sh("mkdir -p d/e; echo 0 > d/f; touch -d 2001-01-01 d/f d/e d .");
        s.run("touch d/f d/e d .");
        s.snapback(["diff", "--exit-code"]).exits(0);
        s.run("echo A > d/new; rm -r d/e");
        s.ok(["undo"]);
        let dir = |path: &str| fs::metadata(s.project().join(path)).unwrap().mtime();
        s.sh("touch -d 2001-01-01 d/f d/e d .");
        s.ok(["snap"]);
        s.run("touch top; mkdir d/sub; rm -r d/e");
        s.ok(["undo"]);
        assert_eq!((dir("d"), dir("d/e"), dir(".")), (978_307_200, 978_307_200, 978_307_200));
    });
}

#[test]
fn what_is_put_back_is_what_is_there_with_its_times() {
    each_user(|s| {
        s.sh("mkdir d; echo 1 > d/f; echo 1 > d/g");
        let first = s.ok(["snap"]).out();
        s.sh("echo 2 > d/f; touch -d 2001-01-01 d d/g");
        s.ok(["snap"]);
        // The same state, at other times: it is stored already.
        s.sh("touch -d 2002-02-02 d d/g");
        let before = Record::take(&s.project());
        let said = s.ok(["restore", first.trim(), "--path", "d/f"]).err();
        assert!(said.contains("already"), "{said}");
        let after = Record::take(&s.project());
        assert_eq!(s.read("d/f"), "1\n");
        for path in ["d", "d/g"] {
            assert_eq!(before.entry(path).mtime, after.entry(path).mtime, "{path}");
        }
    });
}
