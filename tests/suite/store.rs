//! The store: where it lies, who sees it, what several commands at once do to it.

use crate::{each_user, newest, sandbox};
use snapback_tests::{Record, assert_back};
use std::fs;
use std::os::unix::fs::MetadataExt;

#[test]
fn it_is_private_sealed_and_passed_over_by_git() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        let store = s.project().join(".snapback");
        assert_eq!(fs::metadata(&store).unwrap().mode() & 0o7777, 0o700);
        assert_eq!(s.read(".snapback/.gitignore"), "*\n");
        assert!(s.read(".snapback/CACHEDIR.TAG").starts_with("Signature: 8a477f597d28d172789f06886806bc55"));
        let sealed = s.sh("find .snapback/packs .snapback/snapshots -type f -printf '%m %p\\n'");
        assert!(sealed.lines().count() >= 2);
        for line in sealed.lines() {
            assert!(line.starts_with("400 "), "{line}");
        }
        if snapback_tests::have("git") {
            assert_eq!(s.sh("git init -q . && git status --porcelain --ignored=no"), "?? f\n");
        }
    });
}

#[test]
fn a_store_in_the_tree_is_never_part_of_a_snapshot_nor_touched() {
    each_user(|s| {
        s.sh("mkdir inner; echo 0 > inner/f; echo 0 > f");
        s.ok(["--root", "inner", "snap"]);
        let inner = Record::take(&s.project().join("inner/.snapback"));
        s.ok(["--root", ".", "run", "--", "sh", "-c", "echo A > inner/f; echo A > f"]);
        s.ok(["--root", ".", "undo"]);
        assert_eq!(s.read("inner/f"), "0\n");
        let now = Record::take(&s.project().join("inner/.snapback"));
        assert_back(&inner, &inner, &now);
        let list = s.ok(["--root", ".", "list", "--json"]).json().to_string();
        assert!(list.contains("inner/.snapback"), "it is said that it was left out: {list}");
    });
}

#[test]
fn equal_content_is_stored_once() {
    each_user(|s| {
        s.sh("head -c 1000000 /dev/urandom > a");
        s.ok(["snap"]);
        let first = s.ok(["list", "--json"]).json()[0]["bytes_added"].as_u64().unwrap();
        assert!(first >= 1_000_000, "{first}");
        s.sh("cp a b; mkdir d; cp a d/c");
        s.ok(["snap"]);
        let second = s.ok(["list", "--json"]).json()[0]["bytes_added"].as_u64().unwrap();
        assert!(second < 50_000, "{second}");
    });
}

#[test]
fn gc_gives_back_what_nothing_needs_and_keeps_what_undo_needs() {
    each_user(|s| {
        let size = || s.sh("du -sb .snapback | cut -f1").trim().parse::<u64>().unwrap();
        s.write("f", "0");
        for _ in 0..4 {
            s.run("head -c 2000000 /dev/urandom > big");
        }
        s.sh("rm big");
        s.ok(["snap"]);
        let before = size();
        assert!(before > 6_000_000);
        s.ok(["gc", "--keep", "1"]);
        assert!(size() + 3_000_000 < before, "{} of {before}", size());
        s.ok(["verify"]);
        s.ok(["undo"]);
        s.ok(["redo"]);
    });
}

#[test]
fn forget_removes_a_secret() {
    each_user(|s| {
        s.write("keep", "kept");
        s.ok(["snap"]);
        // What compression would not hide.
        s.sh("head -c 400 /dev/urandom | base64 -w0 > secret");
        s.ok(["snap"]);
        let with = newest(s);
        s.sh("rm secret");
        s.ok(["snap"]);
        s.ok(["cat", &with, "secret"]);
        s.ok(["forget", &with]);
        s.snapback(["cat", &with, "secret"]).fails(1, &[]);
        for snap in s.ok(["list", "--json"]).json().as_array().unwrap() {
            s.snapback(["cat", snap["id"].as_str().unwrap(), "secret"]).fails(1, &[]);
        }
        s.ok(["verify"]);
        assert_eq!(s.ok(["cat", "@0", "keep"]).out(), "kept");
    });
}

#[test]
fn forget_without_a_terminal_leaves_what_the_next_step_needs_unless_told() {
    let s = sandbox();
    s.write("f", "0");
    s.run("echo A > f");
    let first = newest(&s);
    s.run("echo B > f");
    let second = newest(&s);
    s.snapback(["forget", &second]).fails(1, &["the next undo or redo needs"]).says("--yes");
    s.ok(["forget", &first]);
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "A\n");
    for needed in [&second, &newest(&s)] {
        s.snapback(["forget", needed]).fails(1, &["the next undo or redo needs"]);
    }
    s.ok(["redo"]);
    s.ok(["forget", "--yes", &second]);
    s.snapback(["undo"]).fails(1, &["nothing to undo"]);
}

#[test]
fn verify_reads_all_and_names_what_is_damaged() {
    each_user(|s| {
        s.sh("head -c 300000 /dev/urandom > f");
        s.ok(["snap"]);
        let id = newest(s);
        s.ok(["verify"]);
        s.sh("p=$(ls -S .snapback/packs/* | head -1); chmod u+w $p
              printf x | dd of=$p bs=1 seek=$(($(stat -c %s $p) / 2)) conv=notrunc 2>/dev/null");
        let verify = s.snapback(["verify"]);
        verify.exits(1);
        assert!((verify.out() + &verify.err()).contains(&id), "the snapshot concerned is named\n{verify}");
    });
}

#[test]
fn the_run_removes_the_history_or_the_whole_project() {
    each_user(|s| {
        let project = s.project();
        let removals = [
            "rm -rf .snapback; echo A > f",
            "rm -rf \"$PWD\"",
            "rm -rf \"$PWD\"; mkdir \"$PWD\"; echo A > \"$PWD/f\"",
        ];
        for remove in removals {
            s.sh("echo 0 > f; mkdir -p d; echo 1 > d/g");
            let before = Record::take(&project);
            let run = s.run(remove);
            let from = s.home();
            let undo = |words: &[&str]| s.finish(s.program().current_dir(&from).args(words));
            let done = undo(&["-C", "project", "undo"]);
            done.exits(0);
            assert!((run.err() + &done.err()).contains("history was missing"), "it is said\n{run}\n{done}");
            let now = Record::take(&project);
            assert_back(&before, &Record::default(), &now);
            assert!(s.has(".snapback/format"), "the history is in its place again");
            s.ok(["verify"]);
            s.ok(["list"]);
        }
    });
}

#[test]
fn looking_goes_on_where_nothing_can_be_written() {
    if !snapback_tests::is_root() || !snapback_tests::have("python3") {
        return;
    }
    let s = sandbox();
    let sh = |script: &str| s.finish(s.command("sh").args(["-ec", script]));
    if !sh("mkdir m; mount -t tmpfs none m").status.success() {
        return snapback_tests::skip("mounting is not permitted");
    }
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let sql = |text: &str| {
            format!(
                "python3 -c \"import sqlite3; c = sqlite3.connect('a.db'); c.execute('{text}'); c.commit()\""
            )
        };
        let at = |words: &[&str]| s.finish(s.program().current_dir(s.project().join("m/p")).args(words));
        s.sh(&format!("mkdir m/p; cd m/p; touch snapback.toml; echo 0 > f; {}", sql("create table t(a)")));
        at(&["run", "--", "sh", "-ec", &format!("echo A > f; {}", sql("insert into t values (1)"))]).exits(0);
        s.sh("mount -o remount,ro m");
        let before = Record::take(&s.project().join("m"));
        for words in [&["diff"][..], &["diff", "@0"], &["diff", "--stat"]] {
            at(words).exits(0).prints("f").prints("a.db");
        }
        at(&["diff", "-p"]).exits(0).prints("-0").prints("+A");
        at(&["diff", "--exit-code"]).exits(1);
        assert_eq!(at(&["diff", "--json"]).json()["changes"].as_array().map(Vec::len), Some(2));
        at(&["list"]).exits(0);
        at(&["status"]).exits(0).prints("takes back");
        at(&["show", "@0"]).exits(0);
        at(&["cat", "@0", "f"]).exits(0).prints("0\n");
        at(&["verify"]).exits(0);
        for words in [&["snap"][..], &["undo"], &["gc"]] {
            at(words).fails(1, &["the file system is read-only"]);
        }
        at(&["run", "--", "touch", "ran"]).fails(125, &["the file system is read-only"]);
        assert_back(&before, &before, &Record::take(&s.project().join("m")));
        s.sh("mount -o remount,rw m");
        at(&["undo"]).exits(0);
        assert_eq!(s.read("m/p/f"), "0\n");
    }));
    let _ = sh("umount m");
    if let Err(panic) = checked {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn whatever_the_mask_of_modes_is_it_can_be_used_again() {
    each_user(|s| {
        for mask in ["000", "077", "111", "177", "277", "377", "777"] {
            s.sh("rm -rf .snapback made; mkdir -p d; echo 0 > f; echo 0 > d/g; chmod 640 f; chmod 750 d; chmod 604 d/g");
            let before = Record::take(&s.project());
            let with = |words: &str| {
                let script = format!("umask {mask}; \"$SNAPBACK\" {words}");
                let done = s.finish(s.command("sh").args(["-c", &script]));
                done.exits(0);
                done
            };
            // The command has it as it was given.
            let run =
                with("run -- sh -c 'umask >&2; umask 022; rm -r d; echo A > f; mkdir made; touch made/h'");
            assert!(run.err().lines().any(|line| line == format!("0{mask}")), "{run}");
            let spoilt = Record::take(&s.project());
            with("undo");
            assert_back(&before, &spoilt, &Record::take(&s.project()));
            with("redo");
            with("gc");
            with("undo -q");
            with("snap");
            with("verify");
            s.ok(["verify"]);
            assert_eq!(s.sh("find .snapback \"$XDG_STATE_HOME\" ! -perm -400"), "", "{mask}");
            assert_eq!(s.sh("find .snapback -perm /077"), "", "{mask}");
        }
    });
}

#[test]
fn git_clean_does_not_take_the_history() {
    if !snapback_tests::have("git") {
        return;
    }
    each_user(|s| {
        s.sh("git init -q .; echo 0 > f; echo .env > .gitignore; echo key > .env");
        s.run("git clean -qfdx; ls -A > ../left");
        s.ok(["undo"]);
        assert_eq!((s.read("f"), s.read(".env")), ("0\n".into(), "key\n".into()));
    });
}

#[test]
fn one_that_its_owner_made_read_only_is_read_and_stays_as_it_is() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        let id = newest(s);
        s.sh("chmod -R a-w .snapback");
        // Who looks may remember what was seen, where nothing keeps that from being written.
        let modes = || s.sh("find .snapback -path .snapback/cache -prune -o -printf '%P %m\\n' | sort");
        let before = modes();
        s.ok(["list"]).prints(&id);
        s.ok(["status"]);
        s.ok(["diff"]).prints("M f");
        s.ok(["diff", "-p"]).prints("+A");
        s.ok(["cat", &id, "f"]).prints("0");
        s.ok(["verify"]);
        for words in [&["snap"][..], &["undo"], &["gc"], &["forget", "--yes", &id]] {
            s.snapback(words).fails(1, &["is read-only"]).says("chmod -R u+w");
        }
        s.snapback(["run", "--", "touch", "ran"]).fails(125, &["is read-only"]);
        assert_eq!((modes(), s.has("ran")), (before, false));
        s.sh("chmod -R u+w .snapback");
        s.ok(["undo"]);
        assert_eq!(s.read("f"), "0");
        // Who takes it from the whole project does not mean the store.
        s.run("echo B > f; chmod -R a-w .");
        s.ok(["undo"]);
        assert_eq!(s.read("f"), "0");
    });
}
