//! Repositories: where HEAD stood is recorded and said, git itself is left alone, and
//! `git = true` covers it like any other files.

mod back;

use crate::{each_user, sandbox};
use snapback_tests::{Output, Record, Restores, Sandbox, assert_back, have};
use std::fs;

/// What git needs to be the same everywhere, and nobody's.
const GIT: &str = "export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b \
                   GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b; ";

/// Runs a script with git in the project.
#[track_caller]
fn git(s: &Sandbox, script: &str) -> String {
    s.sh(&format!("{GIT}{script}")).trim().to_owned()
}

/// `snapback run` of a script with git.
#[track_caller]
fn run(s: &Sandbox, script: &str) -> Output {
    s.run(&format!("{GIT}{script}"))
}

/// A repository with one commit of `f` and `g`.
fn repository(s: &Sandbox) {
    git(s, "git init -q -b main; echo 0 > f; echo 0 > g; git add .; git commit -q -m one");
}

/// All of `.git`, and all that is not in it.
fn halves(s: &Sandbox) -> (Record, Record) {
    let all = Record::take(&s.project());
    let inside = all.0.iter().filter(|(path, _)| path.starts_with(b".git/"));
    let git = Record(inside.map(|(path, entry)| (path.clone(), entry.clone())).collect());
    (git, all.without(&[".git"]))
}

/// What git says of itself: HEAD, what is staged, what it is in the middle of.
const STATUS: &str = "cat .git/HEAD; git status --porcelain=2 --branch; git diff --cached; git ls-files -v; \
                      cd .git; ls -d *_HEAD BISECT_LOG rebase-* 2>/dev/null | grep -v -e ORIG -e REBASE || true";

/// Does what a report of an undo says to do, word by word.
#[track_caller]
fn follow(s: &Sandbox, report: &serde_json::Value) -> String {
    let told = report["git"][0]["commands"].as_array().expect("something is to be done");
    let told: Vec<&str> = told.iter().map(|command| command.as_str().unwrap()).collect();
    let typed = told.join(" && ");
    let bin = s.program().get_program().to_owned();
    git(s, &format!("snapback() {{ '{}' \"$@\"; }}; {typed}", bin.display()));
    typed
}

/// That the first line says all of `words`.
#[track_caller]
fn first_says(output: &Output, words: &[&str]) {
    let err = output.err();
    let first = err.lines().next().unwrap_or_default();
    for word in words {
        assert!(first.contains(word), "the first line does not say {word:?}\n{output}");
    }
}

#[test]
fn undo_says_first_that_head_moved_and_leaves_git_as_it_is() {
    if !have("git") {
        return;
    }
    each_user(|s| {
        repository(s);
        let one = git(s, "git rev-parse HEAD");
        let whole = git(s, "git rev-parse HEAD; git status --porcelain");
        let before = halves(s);
        run(s, "echo A > f; git commit -q -a -m two").says("HEAD (main at");
        let two = git(s, "git rev-parse HEAD");
        let damaged = halves(s);
        let (one, two) = (&one[..7], &two[..7]);
        let says = ["HEAD moved", one, two, "main", "git reset --soft"];
        first_says(&s.ok(["undo", "-n"]), &says);
        assert_eq!(halves(s).0.0, damaged.0.0, "looking changes nothing in .git");
        let dry = s.ok(["undo", "-n", "--json"]).json();
        let told = &dry["git"][0];
        assert_eq!((&told["state"], &told["before"]["branch"]), (&"moved".into(), &"main".into()));
        assert!(told["before"]["commit"].as_str().unwrap().starts_with(one), "{dry}");
        assert!(told["now"]["commit"].as_str().unwrap().starts_with(two), "{dry}");
        first_says(&s.ok(["undo"]), &says);
        let now = halves(s);
        assert_eq!(now.0.0, damaged.0.0, "an undo writes nothing of git, nor touches it");
        assert_back(&before.1, &damaged.1, &now.1);
        // What it said to do takes HEAD back, and a redo knows where HEAD was.
        follow(s, &dry);
        assert_eq!(git(s, "git rev-parse HEAD; git status --porcelain"), whole, "nothing is staged");
        first_says(&s.ok(["redo"]), &["HEAD moved", one, two, "git reset --soft"]);
        s.ok(["undo"]).never_says("HEAD moved");
    });
}

#[test]
fn head_is_said_when_nothing_else_changed_and_by_every_way_back() {
    if !have("git") {
        return;
    }
    let s = sandbox();
    repository(&s);
    let script = format!("{GIT}git commit -q --allow-empty -m two");
    run(&s, "git commit -q --allow-empty -m two").says("nothing changed").says("HEAD (main at");
    first_says(&s.ok(["restore", "@0", "-n"]), &["HEAD moved"]);
    first_says(&s.ok(["undo"]), &["HEAD moved", "git reset --soft"]);
    s.ok(["redo"]).never_says("HEAD moved");
    let failed = s.snapback(["run", "--undo-on-failure", "--", "sh", "-c", &format!("{script}; exit 3")]);
    failed.exits(3).says("HEAD moved since");
    // One file out of a snapshot has nothing to do with HEAD.
    s.write("f", "1");
    s.ok(["undo", "--path", "f"]).never_says("HEAD moved");
}

#[test]
fn what_is_staged_stays_staged() {
    if !have("git") {
        return;
    }
    each_user(|s| {
        repository(s);
        git(s, "echo staged > f; git add f; echo new > n; git add n; echo unstaged >> f");
        let staged = git(s, "git diff --cached");
        let index = fs::read(s.project().join(".git/index")).unwrap();
        assert!(staged.contains("+staged") && staged.contains("+new"));
        run(s, "echo broken > f; rm n g");
        s.ok(["undo"]).never_says("HEAD");
        assert_eq!(fs::read(s.project().join(".git/index")).unwrap(), index);
        assert_eq!(git(s, "git diff --cached"), staged);
        assert_eq!((s.read("f"), s.read("n")), ("staged\nunstaged\n".into(), "new\n".into()));
    });
}

#[test]
fn a_git_file_comes_back_so_that_git_works_where_it_did() {
    if !have("git") {
        return;
    }
    each_user(|s| {
        repository(s);
        git(s, "git init -q ../lib; git -C ../lib commit -q --allow-empty -m one
                git -c protocol.file.allow=always submodule --quiet add ../lib vendor/lib; git commit -q -m sub
                git worktree add -q -b feature wt 2>/dev/null");
        let at = "for d in vendor/lib wt; do git -C $d rev-parse --show-toplevel --git-dir; git -C $d status --porcelain; done";
        let told = git(s, at);
        assert_eq!(told.lines().count(), 4, "{told}");
        for script in [
            "rm -rf vendor wt",
            "rm vendor/lib/.git wt/.git",
            "rm wt/.git; git init -q wt; echo gitdir: / > vendor/lib/.git",
        ] {
            let before = Record::take(&s.project());
            let run = run(s, script);
            run.never_says("vendor/lib/.git (").never_says("wt/.git (gone");
            let damaged = Record::take(&s.project());
            s.ok(["undo"]);
            assert_eq!(git(s, at), told, "{script}");
            let now = Record::take(&s.project()).without(&[".git"]);
            assert_back(&before.without(&[".git"]), &damaged.without(&[".git"]), &now);
            s.ok(["redo"]);
            assert!(!s.has("wt/.git") || s.has("wt/.git/HEAD"), "{script}");
            s.ok(["undo"]);
            assert_eq!(git(s, at), told, "{script}");
        }
        // At the top of a project as well.
        let at = |words: &[&str]| {
            let output =
                s.finish(s.program().current_dir(s.project().join("wt")).args(["--root", "."]).args(words));
            output.exits(0);
            output
        };
        at(&["run", "--", "sh", "-c", "rm .git f"]).never_says("HEAD");
        at(&["undo"]).never_says("HEAD");
        assert_eq!(
            git(s, "git -C wt rev-parse --show-toplevel; git -C wt status --porcelain"),
            told.lines().nth(2).unwrap()
        );
        let script = format!("{GIT}echo A > f; git commit -q -a -m two");
        at(&["run", "--", "sh", "-ec", &script]).says("HEAD (feature at");
        first_says(&at(&["undo"]), &["HEAD moved", "feature", "git reset --soft"]);
    });
}

#[test]
fn a_repository_that_is_gone_or_new_or_another_is_said_first() {
    if !have("git") {
        return;
    }
    each_user(|s| {
        repository(s);
        let one = git(s, "git rev-parse HEAD");
        run(s, "rm -rf .git; echo A > f").says(".git (gone)");
        first_says(&s.ok(["undo", "-n"]), &[".git is gone", "main", &one[..7], "git = true"]);
        first_says(&s.ok(["undo"]), &[".git is gone"]);
        assert_eq!((s.read("f"), s.has(".git")), ("0\n".into(), false));
        let recorded = s.ok(["cat", "@1", ".git/logs/HEAD"]).out();
        assert!(recorded.contains(&one) && recorded.contains("one"), "{recorded}");
        s.ok(["show", "@1"]).prints("main at").prints("index and objects are not");
        // And the other way.
        run(s, "git init -q -b trunk; echo B > f").says(".git (new)");
        first_says(&s.ok(["undo"]), &[".git is new", "trunk"]);
        assert!(s.has(".git/HEAD"), "what was never captured is not removed");
        git(s, "git add .; git commit -q -m other");
        run(s, "rm -rf .git; git init -q -b main; git commit -q --allow-empty -m x");
        let undo = s.ok(["undo"]);
        first_says(&undo, &[".git is another repository", "trunk", "main"]);
        // What the other had need not be in this one.
        git(s, "git branch side");
        run(
            s,
            "rm -rf .git; git init -q -b main; git commit -q --allow-empty -m y; git commit -q --allow-empty -m z",
        );
        s.ok(["undo"])
            .says("refs that the other repository had: refs/heads/side at")
            .never_says("`git branch");
    });
}

#[test]
fn refs_that_a_run_removed_are_named_with_what_makes_them_again() {
    if !have("git") {
        return;
    }
    let s = sandbox();
    repository(&s);
    git(&s, "git branch side; git tag v1; echo 1 > f; git stash push -q; git config gc.auto 0");
    let stash = git(&s, "git rev-parse stash");
    run(&s, "git branch -q -D side; git tag -d v1; git stash drop -q; echo A > g").says("refs of git");
    let undo = s.ok(["undo", "--json"]);
    first_says(&undo, &["git branch side", "git tag v1", "git stash store"]);
    let lost = undo.json()["git"][0]["lost_refs"].to_string();
    assert!(lost.contains("refs/heads/side") && lost.contains(&stash), "{lost}");
    let line = undo.err().lines().next().unwrap().to_owned();
    let commands: Vec<&str> = line.split('`').skip(1).step_by(2).collect();
    git(&s, &commands.join("; "));
    assert_eq!(git(&s, "git rev-parse stash"), stash);
    git(&s, "git rev-parse -q --verify side; git rev-parse -q --verify v1");
}

#[test]
fn git_true_covers_the_repository_like_other_files() {
    if !have("git") {
        return;
    }
    each_user(|s| {
        repository(s);
        s.write("snapback.toml", "[snapshot]\ngit = true\nignore = [\"logs/\", \"*.pack\"]\n");
        // Names that mean something else elsewhere.
        git(s, "printf 'build/\\ndist/\\n' > .gitignore; git branch build/x; git branch node_modules/y; git branch dist/z
                echo 1 > f; git add .; git commit -q -m two; git pack-refs --all; git branch build/w
                echo staged > g; git add g; echo unstaged > f");
        let status = "git status --porcelain=2 --branch; git log --all --oneline; git reflog; git for-each-ref; git diff; git diff --cached";
        // It refreshes the index, so it comes first.
        let told = git(s, status);
        let before = Record::take(&s.project());
        let mut restores = Restores::default();
        for script in [
            "git commit -q -a -m three; git branch -q -D build/x build/w; git tag v1",
            "git stash -q; git switch -q -c side; echo 5 > f; git commit -q -a -m five; git rebase -q --root -x true; git gc -q --prune=now",
            "rm -rf .git",
        ] {
            run(s, script).never_says("not covered");
            let damaged = Record::take(&s.project());
            let undo = s.ok(["undo"]);
            undo.never_says("HEAD moved").never_says("not covered");
            restores.assert_back(&before, &damaged, &Record::take(&s.project()));
            assert_eq!(git(s, "git fsck --strict"), "", "{script}");
            // On a copy, since it refreshes the index.
            assert_eq!(
                git(s, &format!("cp -a . ../copy; cd ../copy; {status}; rm -r ../copy")),
                told,
                "{script}"
            );
        }
    });
}

#[test]
fn work_trees_and_submodules_stand_where_their_own_head_does() {
    if !have("git") {
        return;
    }
    each_user(|s| {
        // What is captured is one of the two; its repository lies outside of it.
        for make in [
            "git init -q -b main ../main; git -C ../main commit -q --allow-empty -m one
             git -C ../main worktree add -q -b side \"$PWD/tree\"",
            "git init -q -b side ../inner; git -C ../inner commit -q --allow-empty -m one; git init -q ../main
             git -C ../main -c protocol.file.allow=always submodule --quiet add ../inner tree; mv ../main/tree tree
             echo 'gitdir: ../../main/.git/modules/tree' > tree/.git
             git config -f ../main/.git/modules/tree/config --unset core.worktree",
        ] {
            s.sh("rm -rf ../main ../inner tree");
            git(s, &format!("{make}; echo 0 > tree/f"));
            let at = |words: &[&str]| s.finish(s.program().current_dir(s.project().join("tree")).args(["--root", "."]).args(words));
            let outside = Record::take(&s.home().join("main"));
            at(&["run", "--", "true"]).exits(0);
            assert_eq!(Record::take(&s.home().join("main")).0, outside.0, "looking changes nothing");
            let one = git(s, "git -C tree rev-parse HEAD");
            let script = format!("{GIT}echo A > f; git add f; git commit -q -m two");
            at(&["run", "--", "sh", "-ec", &script]).exits(0).says("HEAD (side at");
            let two = git(s, "git -C tree rev-parse HEAD");
            let outside = Record::take(&s.home().join("main"));
            let undo = at(&["undo"]);
            undo.exits(0);
            first_says(&undo, &["HEAD moved", "side", &one[..7], &two[..7], "git reset --soft"]);
            assert_eq!(Record::take(&s.home().join("main")).0, outside.0, "an undo writes nothing of git");
            assert_eq!(s.read("tree/f"), "0\n");
        }
    });
}

#[test]
fn a_repository_above_the_root_is_told_like_one_at_it() {
    if !have("git") {
        return;
    }
    each_user(|s| {
        repository(s);
        s.sh("mkdir sub; echo 0 > sub/f; touch sub/snapback.toml");
        git(s, "git add .; git commit -q -m sub");
        let one = git(s, "git rev-parse HEAD");
        let at = |words: &[&str]| {
            let output = s.finish(s.program().current_dir(s.project().join("sub")).args(words));
            output.exits(0);
            output
        };
        let run = |script: &str| at(&["run", "--", "sh", "-ec", &format!("{GIT}{script}")]);
        at(&["status"]).prints("main at");
        run("echo A > f; git commit -q -a -m two").says("HEAD (main at");
        let undo = at(&["undo", "--json"]);
        first_says(&undo, &["HEAD moved", &one[..7], "git reset --soft"]);
        assert_eq!(s.read("sub/f"), "0\n");
        follow(s, &undo.json());
        assert_eq!(git(s, "git rev-parse HEAD"), one);
        run("rm -rf ../.git; echo B > f").says(".git (gone)");
        first_says(&at(&["undo"]), &[".git is gone", "main", &one[..7]]);
        run("git init -q -b trunk ..; echo C > f").says(".git (new)");
        first_says(&at(&["undo"]), &[".git is new", "trunk"]);
        git(s, "git add sub/f; git commit -q -m other");
        run("git init -q -b inner; echo D > f").says(".git (replaced)");
        first_says(&at(&["undo"]), &[".git is another repository", "trunk", "inner"]);
    });
}

#[test]
fn what_is_called_git_may_be_a_trap() {
    if !have("timeout") {
        return;
    }
    let s = sandbox();
    let quick = |words: &[&str]| {
        let program = s.program().get_program().to_owned();
        let mut timeout = s.command("timeout");
        s.finish(timeout.arg("20").arg(program).args(words)).exits(0);
    };
    for make in [
        "mkfifo .git",
        "mkdir .git; mkfifo .git/HEAD .git/commondir .git/packed-refs",
        "mkdir -p .git/refs; echo ref: refs/heads/x > .git/HEAD; mkfifo .git/refs/heads .git/logs .git/packed-refs",
        "ln -s /dev/zero .git",
        "echo gitdir: /dev/zero > .git",
        "echo gitdir: /proc/self > .git",
        "echo gitdir: .git > .git",
        "ln -s . .git; mkfifo HEAD",
        "head -c 1000000 /dev/zero > .git",
        "mkdir .git; truncate -s 1T .git/HEAD .git/packed-refs; mkdir .git/refs; truncate -s 1T .git/refs/x",
        "mkdir .git; ln -s /dev/zero .git/HEAD; ln -s / .git/refs; ln -s /proc .git/logs",
    ] {
        s.sh(&format!("rm -rf .git HEAD; {make}; echo 0 > f"));
        quick(&["run", "--", "sh", "-c", "echo A > f"]);
        quick(&["undo"]);
        assert_eq!(s.read("f"), "0\n", "{make}");
    }
}
