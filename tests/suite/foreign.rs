//! Stores that were not made here: from an archive, of another user. And histories whose
//! project is gone.

use crate::{PROGRAM, each_user, sandbox};
use snapback_tests::{Output, Sandbox, User, is_root};
use std::fs;
use std::path::Path;

/// Packs the project of one user, with its store, and unpacks it as that of another.
fn sent(from: &Sandbox, to: &Sandbox) {
    from.write("f", "0");
    from.run("echo A > f; mkdir d; echo 1 > d/g");
    from.run("echo B > f");
    from.sh("tar cf ../project.tar .");
    fs::copy(from.home().join("project.tar"), to.home().join("project.tar")).unwrap();
    to.sh("tar xf ../project.tar");
}

/// A sandbox with a project that came in an archive.
fn unpacked(user: User) -> Sandbox {
    let (from, to) = (Sandbox::new(PROGRAM, user), Sandbox::new(PROGRAM, user));
    sent(&from, &to);
    to
}

/// What must never change unless the store is trusted.
fn state_of(store: &Path) -> String {
    let mut find = std::process::Command::new("sh");
    find.current_dir(store).args(["-c", "find . -printf '%p %y %m %T@ %s\\n' | sort"]);
    String::from_utf8(find.output().unwrap().stdout).unwrap()
}

fn refuses(output: &Output, code: i32) {
    output.fails(code, &["foreign"]).says("trust --store");
}

#[test]
fn a_store_from_an_archive_is_only_read_until_it_is_trusted() {
    for user in snapback_tests::users() {
        let s = unpacked(user);
        let store = s.project().join(".snapback");
        let before = state_of(&store);
        for words in [&["list"][..], &["show", "@0"], &["cat", "@0", "f"], &["diff", "@1", "@0"], &["status"]]
        {
            s.ok(words).says("is foreign");
        }
        assert_eq!(s.ok(["cat", "@1", "f"]).out(), "0");
        s.ok(["diff", "@1", "@0"]).prints("M f").prints("A d/g");
        assert_eq!(s.ok(["list", "--json"]).json().as_array().unwrap().len(), 2);
        assert_eq!(s.ok(["status", "--json"]).json()["store"]["foreign"], true);
        s.ok(["verify"]).says("is foreign");
        s.snapback(["diff"]).fails(1, &["foreign"]);
        refuses(&s.snapback(["run", "--", "touch", "ran"]), 125);
        let forget = ["forget", "@0", "--yes"];
        let writing: [&[&str]; 8] = [
            &["snap"],
            &["undo"],
            &["undo", "-n"],
            &["undo", "--resume"],
            &["redo"],
            &["restore", "@0"],
            &["gc"],
            &forget,
        ];
        for words in writing {
            refuses(&s.snapback(words), 1);
        }
        assert!(!s.has("ran") && s.read("f") == "B\n");
        assert_eq!(state_of(&store), before, "nothing was written");
        s.snapback(["trust", "--store"]).fails(1, &["nobody can be asked"]).says("2 snapshots");
        assert_eq!(state_of(&store), before);
        s.ok(["trust", "--store", "--yes"]).says("is trusted");
        s.ok(["list"]).never_says("foreign");
        s.ok(["undo"]);
        assert_eq!(s.read("f"), "A\n");
        s.run("rm -rf \"$PWD\"");
        s.finish(s.program().current_dir(s.home()).args(["-C", "project", "undo"])).exits(0);
        assert_eq!(s.read("d/g"), "1\n");
        let list = s.ok(["trust", "--list", "--json"]).json();
        assert_eq!(list["stores"].as_array().unwrap().len(), 1);
        assert_eq!(list["stores"][0]["root"], s.project().to_str().unwrap());
        assert_eq!(list["consents"].as_array().unwrap().len(), 0);
        s.ok(["trust", "--store"]).says("your own");
    }
}

#[test]
fn trusting_gives_an_identity_that_the_sender_does_not_know() {
    let (from, to) = (sandbox(), sandbox());
    sent(&from, &to);
    to.ok(["trust", "--store", "--yes"]);
    let id = |s: &Sandbox| s.read(".snapback/id");
    assert_ne!(id(&from), id(&to));
    // What comes again under the old identity is as foreign as it was.
    to.sh("rm -rf .snapback; tar xf ../project.tar");
    let undo = to.ok(["undo"]);
    undo.says("is there again from").says("another history stood in its place");
    assert_eq!(to.read("f"), "A\n");
    // Who takes the other one takes a foreign one.
    let err = undo.err();
    let command = err.split('`').find(|part| part.starts_with("mv ")).expect("the way to the other one");
    to.sh(command);
    to.snapback(["undo"]).fails(1, &["foreign"]).says("own history is kept in");
    to.sh("rm -rf .snapback; mv .snapback.own .snapback");
    to.ok(["redo"]);
    assert_eq!(to.read("f"), "B\n");
}

#[test]
fn a_store_of_another_user_is_foreign() {
    if !is_root() {
        return;
    }
    let s = Sandbox::new(PROGRAM, User::Nobody);
    s.write("f", "0");
    s.run("echo A > f");
    let mine = Sandbox::new(PROGRAM, User::Me);
    let run = |words: &[&str]| {
        let project = s.project();
        mine.finish(mine.program().args(["--root", project.to_str().unwrap()]).args(words))
    };
    run(&["list"]).exits(0).says("belongs to another user (65534)");
    let status = run(&["status"]);
    status.exits(0).prints("only read; it stays theirs").says("chown");
    assert!(!status.out().contains("trust --store"), "{status}");
    run(&["undo"]).fails(1, &["another user"]);
    assert_eq!(s.read("f"), "A\n");
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "0");
    // To write there would lock its owner out.
    run(&["trust", "--store", "--yes"]).fails(1, &["another user"]).says("chown");
    s.ok(["redo"]);
    let store = s.project().join(".snapback");
    mine.sh(&format!("chown -R 0:0 {store:?}"));
    run(&["undo"]).exits(0).never_says("foreign");
    assert_eq!(s.read("f"), "0");
}

#[test]
fn what_the_help_says_of_a_foreign_store_is_so() {
    let s = unpacked(User::Me);
    let help = s.ok(["trust", "--help"]);
    help.prints("`list`, `show`, `cat`, `verify`, `status` and `diff ID ID` work");
    for words in [
        &["list"][..],
        &["show", "@0"],
        &["cat", "@0", "f"],
        &["verify"],
        &["status"],
        &["diff", "@1", "@0"],
        &["trust", "--list"],
    ] {
        s.ok(words);
    }
}

#[test]
fn that_a_store_was_trusted_can_be_taken_back() {
    for user in snapback_tests::users() {
        let s = unpacked(user);
        s.ok(["trust", "--revoke"]).says("0 consents taken back").never_says("again");
        s.ok(["trust", "--store", "--yes"]);
        s.run("echo C > f");
        // A project that was moved has not lost it.
        s.sh("mv ../project ../moved");
        let moved =
            |words: &[&str]| s.finish(s.program().current_dir(s.home()).args(["-C", "moved"]).args(words));
        moved(&["snap"]).exits(0);
        moved(&["trust", "--revoke"]).exits(0).says("foreign again").says("trust --store");
        let list = moved(&["trust", "--list", "--json"]).json();
        assert_eq!(list["stores"], serde_json::json!([]), "{list}");
        for words in [&["undo"][..], &["snap"], &["gc"]] {
            refuses(&moved(words), 1);
        }
        moved(&["cat", "@0", "f"]).exits(0).says("is foreign");
        moved(&["trust", "--revoke"]).exits(0).never_says("again");
        // Nothing of it is lost.
        moved(&["trust", "--store", "--yes"]).exits(0).says("4 snapshots");
        moved(&["undo"]).exits(0).says("takes back `sh -ec 'echo C > f'`");
        moved(&["undo"]).exits(0);
        assert_eq!(fs::read_to_string(s.home().join("moved/f")).unwrap(), "B\n");
        moved(&["verify"]).exits(0);
    }
    // One that was made here is the user's own, whatever was agreed to.
    let s = sandbox();
    s.run("echo A > f");
    s.ok(["trust", "--revoke"]).never_says("foreign");
    s.ok(["undo"]);
}

#[test]
fn trust_is_refused_inside_a_run_and_for_what_snapback_does_not_make() {
    let s = unpacked(User::Me);
    let inside = s.finish(s.program().env("SNAPBACK_RUN_ID", "x").args(["trust", "--store", "--yes"]));
    inside.fails(1, &["inside a run"]);
    let trust = |spoil: &str, mend: &str, words: &[&str]| {
        s.sh(spoil);
        s.snapback(["trust", "--store", "--yes"]).fails(1, words);
        s.sh(mend);
    };
    trust("ln -s /etc .snapback/cache/x", "rm .snapback/cache/x", &["symbolic link"]);
    trust("mkfifo .snapback/x", "rm .snapback/x", &["neither a file nor a directory"]);
    trust("echo x > .snapback/journal", "rm .snapback/journal", &["unfinished"]);
    trust(
        "p=$(ls -S .snapback/packs/* | head -1); cp -p $p ../pack; chmod u+w $p; printf xxxx | dd of=$p bs=1 seek=40 conv=notrunc 2>/dev/null",
        "cp -pf ../pack $(ls -S .snapback/packs/* | head -1)",
        &["damaged"],
    );
    s.ok(["trust", "--store", "--yes"]);
    s.ok(["undo"]);
}

#[test]
fn an_unfinished_store_with_a_strangers_snapshots_is_not_finished() {
    let s = unpacked(User::Me);
    s.sh("rm .snapback/format .snapback/id .snapback/birth .snapback/timeline; rm -rf .snapback/index .snapback/cache .snapback/running .snapback/uncollected");
    s.snapback(["run", "--", "touch", "ran"]).fails(125, &["not a whole store", "`format` is missing"]);
    s.snapback(["undo"]).fails(1, &[]);
    assert!(!s.has("ran") && !s.has(".snapback/format"));
}

#[test]
fn this_users_own_stores_are_never_foreign() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        // The run removes all that is known of the project outside of it.
        s.run("rm -rf \"$XDG_STATE_HOME\"/snapback; echo B > f");
        s.ok(["undo"]).never_says("foreign");
        s.sh("rm -rf \"$XDG_STATE_HOME\"/snapback; mv ../project ../moved; mkdir ../project");
        let moved =
            |words: &[&str]| s.finish(s.program().current_dir(s.home()).arg("-C").arg("moved").args(words));
        moved(&["redo"]).exits(0).never_says("foreign");
        assert_eq!(fs::read_to_string(s.home().join("moved/f")).unwrap(), "B\n");
        // Copied on this machine, be the original there or not.
        s.sh("cp -a ../moved ../copy; rm -rf ../moved");
        let copy =
            |words: &[&str]| s.finish(s.program().current_dir(s.home()).arg("-C").arg("copy").args(words));
        copy(&["undo"]).exits(0).never_says("foreign");
        // An identity, or the mark of birth, that is lost.
        for lost in ["id", "birth", "timeline"] {
            fs::remove_file(s.home().join("copy/.snapback").join(lost)).unwrap();
            copy(&["snap", "-m", lost]).exits(0).never_says("foreign");
        }
        copy(&["verify"]).exits(0);
    });
}

#[test]
fn without_a_state_directory_a_store_is_known_by_its_birth() {
    each_user(|s| {
        let run = |dir: &str, words: &[&str]| {
            let mut program = s.program();
            program.env("XDG_STATE_HOME", "/dev/null/nowhere").current_dir(s.home()).arg("-C").arg(dir);
            s.finish(program.args(words))
        };
        s.write("f", "0");
        run("project", &["run", "--", "sh", "-c", "echo A > f"]).exits(0);
        s.sh("cp -a . ../copy; mv ../project ../moved; mkdir ../project");
        run("moved", &["undo"]).exits(0);
        // Nothing tells a copy from one that was sent.
        run("copy", &["undo"]).fails(1, &["foreign"]);
        run("copy", &["trust", "--store", "--yes"]).exits(0);
        run("copy", &["undo"]).exits(0);
    });
}

#[test]
fn orphans_are_listed_and_go_thirty_days_after_their_last_use() {
    each_user(|s| {
        let home = |words: &[&str]| s.finish(s.program().current_dir(s.home()).args(words));
        for name in ["a", "b", "c", "d"] {
            s.sh(&format!("mkdir ../{name}; head -c 1000 /dev/urandom > ../{name}/f"));
            home(&["-C", name, "snap"]).exits(0);
        }
        let projects = || {
            let list = home(&["list", "--all", "--json"]).json();
            let item = |item: &serde_json::Value| {
                let root = item["root"].as_str().unwrap().rsplit('/').next().unwrap().to_owned();
                (root, item["project"].as_str().unwrap().to_owned())
            };
            list.as_array().unwrap().iter().map(item).collect::<Vec<_>>()
        };
        let is = |expected: [(&str, &str); 4]| {
            assert_eq!(projects(), expected.map(|(root, project)| (root.to_owned(), project.to_owned())));
        };
        is([("a", "there"), ("b", "there"), ("c", "there"), ("d", "there")]);
        s.sh("rm -rf ../a ../b ../c");
        // What c lay on is not mounted.
        s.sh("cd \"$XDG_STATE_HOME\"/snapback/roots
             sed -i 's|\"at\":\"[^\"]*\"|\"at\":\"/not/mounted\"|' $(grep -l /c\\\" *)
             touch -d '31 days ago' $(grep -l '/[bcd]\\\"' *)");
        is([("a", "gone"), ("b", "gone"), ("c", "unknown"), ("d", "there")]);
        home(&["list", "--all"]).exits(0).prints("unknown").prints("SNAPSHOTS");
        let dry = home(&["gc", "--all", "-n"]);
        dry.exits(0)
            .says("would drop 1 history")
            .says("/b")
            .says("1 history of removed projects, used in")
            .says("file system");
        is([("a", "gone"), ("b", "gone"), ("c", "unknown"), ("d", "there")]);
        let stores = || fs::read_dir(s.state().join("snapback")).unwrap().count();
        let before = stores();
        let collected = home(&["gc", "--all", "--json"]);
        collected.exits(0);
        assert_eq!(collected.json()["histories"].as_array().unwrap().len(), 1);
        assert_eq!(projects().len(), 3);
        assert_eq!(stores() + 1, before);
        // The others can be gone back to.
        for name in ["a", "c"] {
            home(&["-C", name, "restore", "@0"]).exits(0);
            assert!(s.home().join(name).join("f").exists());
        }
        home(&["-C", "b", "list"]).exits(1);
    });
}

#[test]
fn orphans_go_by_themselves_once_a_day() {
    let s = sandbox();
    s.sh("mkdir ../a; echo 0 > ../a/f; echo 0 > f");
    s.finish(s.program().args(["-C", "../a", "snap"])).exits(0);
    s.sh("rm -rf ../a; touch -d '31 days ago' \"$XDG_STATE_HOME\"/snapback/roots/*");
    let count = || s.ok(["list", "--all", "--json"]).json().as_array().unwrap().len();
    s.ok(["snap"]);
    assert_eq!(count(), 2, "they were looked for today");
    let looked =
        |ago: &str| s.sh(&format!("touch -d '{ago}' \"$XDG_STATE_HOME\"/snapback/looked-for-orphans"));
    looked("25 hours ago");
    s.ok(["snap", "-m", "again"]);
    assert_eq!(count(), 2, "it was not so old when they were looked for last: the clock may be wrong");
    s.sh("touch -d '33 days ago' \"$XDG_STATE_HOME\"/snapback/roots/*");
    looked("25 hours ago");
    s.ok(["snap", "-m", "and again"]);
    assert_eq!(count(), 1);
    s.ok(["undo"]);
}

#[test]
fn forget_reaches_the_history_of_a_removed_project() {
    let s = sandbox();
    s.sh("head -c 400 /dev/urandom | base64 -w0 > secret");
    s.ok(["snap"]);
    let id = s.ok(["list", "--json"]).json()[0]["id"].as_str().unwrap().to_owned();
    s.sh("rm secret; echo kept > f");
    s.run("rm -rf \"$PWD\"");
    let root = s.project();
    let home =
        |words: &[&str]| s.finish(s.program().current_dir(s.home()).arg("--root").arg(&root).args(words));
    home(&["cat", &id, "secret"]).exits(0);
    home(&["forget", "--yes", &id]).exits(0);
    home(&["gc"]).exits(0);
    home(&["cat", &id, "secret"]).fails(1, &[]);
    assert!(!root.exists(), "nothing is made where the project was");
    home(&["undo"]).exits(0);
    assert_eq!(s.read("f"), "kept\n");
    assert!(!s.has("secret"));
}
