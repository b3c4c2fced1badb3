//! What a run did to things that are not covered: seen from outside, and said when the
//! run ends, at the undo, and in JSON.

use crate::{each_user, sandbox};
use serde_json::Value;
use snapback_tests::{Record, assert_back, have, is_root};
use std::os::unix::fs::MetadataExt;

/// What `uncovered` of a report names: path and what became of it.
fn told(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let items = report["uncovered"].as_array().unwrap().iter();
    items.map(|item| (text(&item["path"]), text(&item["change"]))).collect()
}

fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
    list.iter().map(|(path, change)| ((*path).to_owned(), (*change).to_owned())).collect()
}

#[test]
fn what_is_left_out_and_gone_changed_or_new_is_said() {
    each_user(|s| {
        s.sh(
            "mkdir -p node_modules/x a/node_modules same/node_modules sub/__pycache__ skip big
              touch package.json node_modules/x/1 skip/1; seq 30 | sed 's:^:big/:' | xargs touch; echo 0 > f",
        );
        s.write("snapback.toml", "[snapshot]\nignore = [\"/skip\"]\nmax-files-per-dir = 20\n");
        let script =
            "rm -rf node_modules; touch a/node_modules/new skip/2; mkdir -p b/node_modules; rm -r sub
                      mv big old; mv old big; touch big/31; echo A > f";
        let report = s.dir().join("tmp/report");
        let words = ["run", "--report", report.to_str().unwrap(), "--", "sh", "-ec", script];
        let want = [
            ("a/node_modules", "changed"),
            ("b/node_modules", "new"),
            ("big", "changed"),
            ("node_modules", "gone"),
            ("skip", "changed"),
            ("sub/__pycache__", "gone"),
        ];
        s.ok(words).says("not covered, and changed by the run: a/node_modules (changed), ").says("1 more");
        let report: Value = serde_json::from_slice(&std::fs::read(report).unwrap()).unwrap();
        assert_eq!(told(&report), pairs(&want));
        assert_eq!(told(&s.snapback(["undo", "-n", "--json"]).json()), pairs(&want));
        assert_eq!(told(&s.snapback(["undo", "-n", "--path", "sub", "--json"]).json()), pairs(&want[5..]));
        // What is over the guard is a hole, which has an exit code.
        let undo = s.snapback(["undo", "--json"]);
        undo.exits(3).says("not covered, and changed since: ").says("a/node_modules (changed)");
        assert_eq!(told(&undo.json()), pairs(&want));
        assert_eq!(s.read("f"), "0\n");
        assert!(
            s.has("b/node_modules") && s.has("big/31") && !s.has("node_modules"),
            "all of it is left alone"
        );
        // All as in the snapshot but for these, and they are named also then.
        s.sh("echo A > f");
        s.snapback(["restore", "@1"]).says("node_modules (gone)");
    });
}

#[test]
fn what_takes_the_place_of_something_left_out_is_said() {
    each_user(|s| {
        s.write("snapback.toml", "[snapshot]\nmax-files-per-dir = 20\nignore = [\"ig/\"]\n");
        s.sh("mkdir -p node_modules/x big ig .venv cache; seq 30 | sed 's:^:big/:' | xargs touch; touch package.json .venv/pyvenv.cfg
              echo 'Signature: 8a477f597d28d172789f06886806bc55' > cache/CACHEDIR.TAG
              echo 0 > hole; chmod 000 hole");
        let run = s.snapback([
            "run",
            "--report",
            s.dir().join("tmp/report").to_str().unwrap(),
            "--",
            "sh",
            "-ec",
            "rm -rf node_modules big ig .venv cache; rm -f hole; echo 1 > node_modules; ln -s / big; echo 3 > ig
             mkdir .venv cache; touch .venv/new cache/new; mkdir hole; touch hole/new",
        ]);
        let mut want: Vec<&str> = vec![".venv", "big", "cache", "hole", "ig", "node_modules"];
        // Nothing is a hole to root.
        want.retain(|path| *path != "hole" || s.user().is_ordinary());
        let want: Vec<(&str, &str)> = want.into_iter().map(|path| (path, "changed")).collect();
        run.exits(0).says("not covered, and changed by the run: .venv (changed), big (changed), ");
        let report: Value =
            serde_json::from_slice(&std::fs::read(s.dir().join("tmp/report")).unwrap()).unwrap();
        assert_eq!(told(&report), pairs(&want));
        let undo = s.snapback(["undo", "--json"]);
        undo.exits(3).says("not covered, and changed since: .venv (changed), big (changed), ");
        assert_eq!(told(&undo.json()), pairs(&want));
        assert!(s.has(".venv/new") && s.has("cache/new") && s.read("ig") == "3\n", "{undo}");
    });
}

#[test]
fn names_of_a_file_outside_of_what_is_covered_are_said() {
    each_user(|s| {
        s.sh(
            "mkdir node_modules; touch package.json; echo 0 > ../outside; ln ../outside a; echo 0 > b; ln b c
              echo 0 > d; ln d e; ln d node_modules/d",
        );
        s.run("for name in a b d; do echo A > $name; done");
        for words in [&["undo", "-n"][..], &["undo"]] {
            let undo = s.snapback(words);
            undo.exits(3).says("a (it has other names outside").says("d (it has other names outside");
            undo.never_says("b (it has").never_says("c (it has").never_says("e (it has");
        }
        assert_eq!(["a", "b", "c", "d", "e"].map(|name| s.read(name)), ["0\n"; 5]);
        assert_eq!((s.read("../outside"), s.read("node_modules/d")), ("A\n".into(), "A\n".into()));
        // The names that are covered are one inode again, and no other.
        let ino = |name: &str| std::fs::metadata(s.project().join(name)).unwrap().ino();
        let is_link = |a: &str, b: &str| ino(a) == ino(b);
        assert!(is_link("b", "c") && is_link("d", "e") && !is_link("d", "node_modules/d"));
        s.run("chmod 600 b; echo B > b").exits(0);
        s.ok(["undo"]);
    });
}

#[test]
fn what_stays_as_it_is_is_not_said() {
    each_user(|s| {
        s.sh("mkdir -p node_modules/x .git/refs; echo 0 > f; echo 'ref: refs/heads/main' > .git/HEAD; touch .git/index");
        // Deep inside is not looked at, git's own index is no news, and so is our store.
        let run = s.run(
            "touch node_modules/x/deep; echo 1 > .git/index.lock; mv .git/index.lock .git/index; echo A > f",
        );
        run.never_says("not covered");
        s.ok(["undo"]).never_says("not covered");
        s.run("rm -rf .snapback; echo B > f").never_says("not covered");
        s.ok(["undo"]).never_says("not covered");
    });
}

#[test]
fn repositories_inside_that_lose_their_git_are_named() {
    if !have("git") {
        return;
    }
    each_user(|s| {
        s.sh("export GIT_CONFIG_GLOBAL=/dev/null; git init -q .; git init -q nested; echo 0 > nested/f; git init -q gone
              mkdir sub; echo 'gitdir: ../elsewhere' > sub/.git; echo 0 > sub/f; echo 0 > f");
        let run = s.run("rm -rf nested/.git gone; echo 'gitdir: /' > sub/.git; echo A > nested/f; git clone -q . cloned; echo x > cloned/f");
        run.says("gone/.git (gone), nested/.git (gone)").says("cloned/.git (new)").never_says("sub/.git");
        let undo = s.snapback(["undo", "--json"]);
        let want = [("cloned/.git", "new"), ("gone/.git", "gone"), ("nested/.git", "gone")];
        assert_eq!(told(&undo.json()), pairs(&want));
        // A file of that name is covered.
        assert_eq!((s.read("nested/f"), s.read("sub/.git")), ("0\n".into(), "gitdir: ../elsewhere\n".into()));
        assert!(s.has("cloned/.git/HEAD") && !s.has("cloned/f"), "{undo}");
    });
}

#[test]
fn what_a_run_left_that_cannot_be_read_is_told_as_not_restored() {
    let s = snapback_tests::Sandbox::new(crate::PROGRAM, snapback_tests::User::Nobody);
    if !is_root() {
        return snapback_tests::skip("needs another user");
    }
    s.sh("echo 0 > f");
    let mut run = s.start([
        "run",
        "--",
        "sh",
        "-c",
        "echo A > f; touch ../go; while [ ! -e new ]; do sleep 0.05; done",
    ]);
    snapback_tests::until("the run is there", || s.dir().join("home/go").exists());
    let aside = s.project().join("../aside");
    std::fs::write(&aside, "another's").unwrap();
    std::fs::set_permissions(&aside, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    std::fs::rename(&aside, s.project().join("new")).unwrap();
    assert!(run.wait().success());
    let undo = s.snapback(["undo", "--json"]);
    undo.exits(3).says("new");
    assert_eq!(undo.json()["not_restored"][0]["path"], "new");
    assert_eq!((s.read("f"), s.has("new")), ("0\n".into(), true));
    // What a rule left out is told with 0.
    s.sh("mkdir c; printf 'Signature: 8a477f597d28d172789f06886806bc55' > c/CACHEDIR.TAG");
    s.run("touch c/x");
    std::fs::remove_file(s.project().join("new")).unwrap();
    s.run("echo B > f; touch c/y");
    s.ok(["undo"]);
}

#[test]
fn a_mount_that_a_run_made_is_named() {
    let s = sandbox();
    s.sh("mkdir mnt full; echo 0 > full/f; echo 0 > f");
    let mount = |at: &str| format!("mount -t tmpfs none {at}");
    if !is_root()
        || !s
            .finish(s.command("sh").args(["-c", &format!("{} && umount mnt", mount("mnt"))]))
            .status
            .success()
    {
        return snapback_tests::skip("mounting is not permitted");
    }
    let run =
        s.snapback(["run", "--", "sh", "-c", &format!("{}; {}; echo A > f", mount("mnt"), mount("full"))]);
    let undo = s.snapback(["undo", "--json"]);
    s.sh("umount mnt full");
    run.exits(0).says("mnt (no longer covered)").says("full (no longer covered)");
    // What lies beneath it can be neither seen nor put back.
    undo.exits(3).says("full").says("mount");
    assert_eq!((s.read("f"), s.read("full/f")), ("0\n".into(), "0\n".into()));
}

#[test]
fn the_selection_of_the_snapshot_decides_not_todays() {
    each_user(|s| {
        s.sh("mkdir -p .git dist; echo ref > .git/HEAD; echo 'x' > .gitignore; echo 0 > dist/f; echo 0 > a.log; echo 0 > f");
        s.write("snapback.toml", "[snapshot]\nignore = [\"/none\"]\n");
        let before = Record::take(&s.project());
        s.run("echo 'dist/' > .gitignore; printf '[snapshot]\\nignore = [\"*.log\", \"f\"]\\npaths = [\"dist\"]\\n' > snapback.toml
               rm -r dist a.log f; mkdir dist; echo A > dist/new; echo new > b.log");
        let damaged = Record::take(&s.project());
        s.ok(["undo"]);
        assert_back(&before, &damaged, &Record::take(&s.project()));
        s.ok(["redo"]);
        assert_eq!((s.read("dist/new"), s.read("b.log"), s.has("f")), ("A\n".into(), "new\n".into(), false));
    });
}

#[test]
fn an_environment_that_a_run_made_and_ignores_blocks_nothing() {
    each_user(|s| {
        s.sh("mkdir .git; echo ref > .git/HEAD; echo 0 > f");
        s.run("mkdir -p .venv/bin; ln -s /usr/bin/env .venv/bin/python; ln -s .venv/bin/python python; ln -s /nowhere gone
               echo home > .venv/pyvenv.cfg; echo '.venv/' > .gitignore; echo A > f")
            .says(".venv (new)");
        s.ok(["undo"]).says(".venv (new)");
        assert_eq!((s.read("f"), s.has("python"), s.has(".gitignore")), ("0\n".into(), false, false));
        assert!(s.has(".venv/bin/python"), "what was never captured stays");
        s.ok(["redo"]);
        assert_eq!((s.read("f"), s.read(".gitignore")), ("A\n".into(), ".venv/\n".into()));
        for (link, to) in [("python", ".venv/bin/python"), ("gone", "/nowhere")] {
            assert_eq!(std::fs::read_link(s.project().join(link)).unwrap().to_str(), Some(to));
        }
    });
}

#[test]
fn what_was_left_out_is_in_the_record_with_reason_and_count() {
    each_user(|s| {
        s.sh("mkdir -p a/node_modules b/node_modules .git big; seq 30 | sed 's:^:big/:' | xargs touch; touch 1.log 2.log");
        s.write("snapback.toml", "[snapshot]\nignore = [\"*.log\"]\nmax-files-per-dir = 20\n");
        s.run("true")
            .says("not covered: big (too many files)")
            .says("left out: 2 regenerable (a/node_modules, b/node_modules), .git (git)")
            .says("ignored: 2 files");
        let id = crate::newest(s);
        let meta = s.project().join(".snapback/snapshots").join(&id).join("meta.json");
        let meta: Value = serde_json::from_slice(&std::fs::read(meta).unwrap()).unwrap();
        let left = meta["data"]["targets"][0]["left_out"].as_array().unwrap();
        let of = |reason: &str| {
            let item = left
                .iter()
                .find(|item| item["reason"] == reason)
                .unwrap_or_else(|| panic!("{reason}: {meta}"));
            (item["count"].as_u64(), item["files"].as_u64(), item["paths"].as_array().unwrap().len())
        };
        assert_eq!(of("regenerable"), (Some(2), None, 2));
        assert_eq!(of("git"), (Some(1), None, 1));
        assert_eq!(of("too many files"), (Some(1), Some(30), 1));
        assert_eq!(of("ignored"), (Some(0), Some(2), 0));
        s.ok(["show", &id]).prints("a/node_modules  regenerable").prints("2 files  ignored by `*.log`");
    });
}

#[test]
fn what_was_left_out_is_somewhere_after_any_number_of_undos() {
    for second in ["mv d1 d2", "rm -r d1", "mv d1 d2; mkdir -p more/deep; mv d2 more/deep/d3"] {
        for name in ["data", "node_modules"] {
            each_user(|s| {
                s.write("snapback.toml", "[snapshot]\nignore = [\"/data\"]\n");
                s.sh(&format!("mkdir {name}; echo precious > {name}/f; echo 0 > g"));
                s.run(&format!("mv {name} d1; echo 1 > g"));
                s.run(&format!("{second}; echo 2 > g"));
                s.ok(["undo"]);
                let undo = s.snapback(["undo"]);
                undo.exits(3).says(&format!("it was left out as {name}")).says("was moved here since");
                assert_eq!(s.read("g"), "0\n");
                assert_eq!(s.read("d1/f"), "precious\n", "{second}");
                let err = undo.err();
                let command = err.split("mend it: ").chain(err.split('`'));
                let command =
                    command.filter_map(|part| part.strip_prefix("mv ")).next().expect("what brings it back");
                s.sh(&format!("mv {}", command.split([')', '`']).next().unwrap()));
                assert_eq!(s.read(&format!("{name}/f")), "precious\n");
                s.ok(["redo"]);
                s.ok(["redo"]);
                assert_eq!(s.read("g"), "2\n");
            });
        }
    }
}

#[test]
fn what_becomes_of_the_repository_of_a_submodule_is_noticed() {
    if !have("git") {
        return;
    }
    let s = sandbox();
    let git = "git -c user.name=a -c user.email=a@b -c protocol.file.allow=always";
    s.sh(&format!(
        "mkdir ../inner; cd ../inner; git init -q; echo l > l; git add .; {git} commit -qm l
         cd ../project; git init -q; {git} submodule --quiet add ../inner lib; {git} commit -qm 1"
    ));
    let changed = "lib/.git/HEAD (changed)";
    for (deed, told) in [
        ("cd lib; git status -s", None),
        ("echo 2 > lib/l; git -C lib status -s; git status -s", None),
        (&*format!("cd lib; echo 3 > l; {git} commit -qam l2"), Some(changed)),
        ("git -C lib checkout -q -b other", Some(changed)),
        ("git -C lib branch more", Some(changed)),
        ("rm -rf .git/modules", Some("lib/.git/HEAD (gone)")),
    ] {
        let run = s.run(deed);
        let undo = s.snapback(["undo"]);
        match told {
            Some(told) => {
                run.says(told);
                undo.says(told);
            }
            None => {
                run.never_says("lib/.git/HEAD (changed");
                undo.never_says("lib/.git/HEAD (changed");
            }
        }
    }
}
