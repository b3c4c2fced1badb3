//! What a run leaves behind in a repository, and the commands that are named for it: followed
//! word by word, with git itself, they leave all as it was before the run.

use super::{STATUS, first_says, follow, git, halves, repository, run};
use crate::sandbox;
use snapback_tests::have;

/// Begins a merge that is not committed, with two commits before it.
const MERGING: &str = "git branch -q side; echo A > f; git commit -q -a -m A; git switch -q side; echo B > g;
    git commit -q -a -m B; git switch -q main; git merge -q --no-commit side";

#[test]
fn each_way_back_that_is_named_goes_back() {
    if !have("git") {
        return;
    }
    let reset = "git symbolic-ref HEAD refs/heads/main";
    let staged = "echo S > f; git add f; echo W > f; echo N > n; git add n";
    for (setup, script, commands) in [
        ("", "echo A > f; git commit -q -a -m two", "git read-tree --reset"),
        ("", "git switch -q -c side; echo A > f; git commit -q -a -m two", reset),
        ("", "git switch -q -c side", "git switch main"),
        ("", "git branch -q -m main other; echo A > f; git commit -q -a -m two", reset),
        ("", "git switch -q --detach; echo A > f; git commit -q -a -m two", reset),
        (
            "git switch -q --detach",
            "git switch -q main; echo A > f; git commit -q -a -m two",
            "git update-ref",
        ),
        ("git switch -q --detach", "echo A > f; git commit -q -a -m two", "git reset --soft"),
        (
            "git switch -q --orphan new; echo 1 > f",
            "git add f; git commit -q -m first",
            "git update-ref -d HEAD",
        ),
        ("git pack-refs --all", "git switch -q -c side; git branch -q -D main", reset),
        ("git switch -q -c 'odd$(id>trap)x'", "git switch -q main", "git switch 'odd$(id>trap)x'"),
        // Something was staged then: it is committed, or lost with a commit.
        (staged, "git commit -q -m two", "git reset --soft"),
        (staged, "git commit -q -a -m two", "git read-tree --empty"),
        (
            "git switch -q --detach; git rm -q --cached g; git mv f d",
            "git add .; git commit -q -m two",
            "snapback cat",
        ),
        // What is staged alone.
        (staged, "git reset -q --hard", "git read-tree --empty"),
        (staged, "git add .", "git read-tree --empty"),
        ("", "echo A > f; echo N > n; git add .", "git read-tree --reset"),
        (
            "printf '#!/bin/sh\nexit 1' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit
          echo S > f; ! git commit -q -a -m no; git add f; ! git commit -q -m no",
            "git reset -q --hard",
            "git read-tree --reset",
        ),
        // What is marked besides: not in the work tree, hidden, meant to be added.
        (
            "git mv f d; mkdir h; git mv d h; git commit -q -m h; git sparse-checkout set --no-cone /g /n; echo N > n; git add -N n",
            "echo A > g; git commit -q -m two g",
            "--skip-worktree --stdin",
        ),
        (
            "git update-index --skip-worktree f; echo mine > f; echo S > n; git add n",
            "git update-index --no-skip-worktree f; git commit -q -a -m two",
            "--skip-worktree --stdin",
        ),
        (
            "git update-index --assume-unchanged g; echo S > n; git add n",
            "git rm -q --cached g n",
            "--assume-unchanged",
        ),
        // In the middle of a merge that goes on.
        (MERGING, "git branch -m other", "git update-ref refs/heads/main"),
        (MERGING, "git update-ref refs/heads/main main~1", "git update-ref refs/heads/main"),
        ("git update-index --split-index", "echo A > f; git commit -q -a -m two", "git reset "),
    ] {
        let s = sandbox();
        repository(&s);
        git(&s, setup);
        // It misses the empty tree that it wrote into an index itself.
        let fsck = "git fsck --strict --no-dangling 2>&1 || true";
        let before = (git(&s, STATUS), git(&s, fsck));
        run(&s, script);
        let told = s.ok(["undo", "--json"]).json();
        let files = halves(&s).1;
        let typed = follow(&s, &told);
        assert!(typed.contains(commands), "{script}: {typed}");
        assert_eq!(git(&s, STATUS), before.0, "{script}: {typed}");
        assert_eq!(halves(&s).1.0, files.0, "{script}: the files stay as they are");
        assert!(!s.has("trap"));
        assert_eq!(git(&s, fsck), before.1, "{script}: {typed}");
        let again = s.ok(["restore", told["restored_to"].as_str().unwrap(), "-n", "--json"]).json();
        for git in again["git"].as_array().unwrap() {
            assert_eq!(git["commands"], serde_json::json!([]), "{script}: there is nothing more to do");
        }
    }
}

#[test]
fn what_git_is_in_the_middle_of_is_said_and_ended_as_it_says() {
    if !have("git") {
        return;
    }
    let one = "git branch -q side; echo A > f; git commit -q -a -m A; git switch -q side; echo B > f; git commit -q -a -m B";
    for (script, word, command) in [
        ("! git merge -q main", "merge", "git merge --quit"),
        ("! git cherry-pick main", "cherry-pick", "git cherry-pick --quit"),
        ("! git revert main", "revert", "git revert --quit"),
        ("! git rebase -q main", "rebase", "git rebase --quit"),
        ("! git rebase -q --apply main", "rebase", "git rebase --quit"),
        ("git format-patch -q -1 main --stdout > p; ! git am -q p", "git am", "git am --quit"),
        ("git bisect start -q HEAD HEAD~2; git bisect bad", "bisect", "git bisect reset HEAD"),
        ("git commit -q --allow-empty -m C; ! git merge -q main", "merge", "git merge --quit"),
        ("git switch -q -c other; ! git merge -q main", "merge", "git symbolic-ref HEAD"),
    ] {
        let s = sandbox();
        repository(&s);
        git(&s, &format!("{one}; echo C > g; git commit -q -a -m C; echo mine > g"));
        let before = git(&s, STATUS);
        run(&s, &format!("git stash -q; {script} 2>/dev/null")).says(&format!("{word} (begun)"));
        let undo = s.ok(["undo", "--json"]);
        first_says(&undo, &[&format!("a {word} was begun since"), command]);
        let told = undo.json();
        assert_eq!(told["git"][0]["begun"], serde_json::json!([word]));
        let files = halves(&s).1;
        let typed = follow(&s, &told);
        assert_eq!(git(&s, STATUS), before, "{script}: {typed}");
        assert_eq!(halves(&s).1.0, files.0, "{script}: the files stay as they are");
        // A commit made now has what is in the files, and is no merge.
        git(&s, "git add -A; git commit -q -m mine; git rev-parse HEAD^; ! git rev-parse -q --verify HEAD^2");
    }
}

#[test]
fn what_git_was_in_the_middle_of_and_is_not_is_said() {
    if !have("git") {
        return;
    }
    let one = "git branch -q side; echo A > f; git commit -q -a -m A; git switch -q side; echo B > f; git commit -q -a -m B";
    for (setup, script, word, back) in [
        ("merge -q main", "git add f; git commit -q -m merged", "merge", true),
        ("merge -q main", "git merge --abort", "merge", true),
        ("cherry-pick main", "git cherry-pick --abort", "cherry-pick", true),
        ("revert main", "git revert --abort", "revert", true),
        ("rebase -q main", "git rebase --abort", "rebase", false),
    ] {
        let s = sandbox();
        repository(&s);
        git(&s, &format!("{one}; ! git {setup} 2>/dev/null"));
        let before = git(&s, STATUS);
        run(&s, script).says(&format!("{word} (ended)"));
        let undo = s.ok(["undo", "--json"]);
        first_says(&undo, &[&format!("a {word} was going on, and is not now")]);
        assert_eq!(undo.json()["git"][0]["ended"], serde_json::json!([word]));
        let typed = follow(&s, &undo.json());
        if back {
            assert_eq!(git(&s, STATUS), before, "{script}: {typed}");
        }
    }
}

#[test]
fn what_was_staged_and_is_lost_is_said_at_the_end_of_the_run() {
    if !have("git") {
        return;
    }
    let s = sandbox();
    repository(&s);
    run(&s, "echo A > f; git add f").never_says("staged");
    first_says(&s.ok(["undo"]), &["what is staged is not as it was then", "git read-tree --reset"]);
    git(&s, "echo S > f; git add f; echo W > f");
    run(&s, "git reset -q --hard").says("not covered, and changed by the run: what is staged");
    assert!(s.ok(["cat", "@0", ".git/staged/entries"]).out().contains("\tg\0"));
    let undo = s.ok(["undo", "--json"]);
    first_says(&undo, &["what is staged is not as it was then", "snapback cat", "git update-index"]);
    assert_eq!(undo.json()["git"][0]["restaged"], true);
    assert_eq!(s.read("f"), "W\n");
    // What git writes into its index by itself is no news.
    run(&s, "touch f g; git status >/dev/null; git update-index --refresh >/dev/null || true")
        .never_says("staged");
    s.ok(["undo"]).never_says("staged");
}

#[test]
fn branches_and_tags_that_a_run_moved_are_named_with_where_they_were() {
    if !have("git") {
        return;
    }
    let s = sandbox();
    repository(&s);
    git(
        &s,
        "git commit -q --allow-empty -m two; git branch old; git branch 'o;d'; git branch kept; git tag v1",
    );
    let refs = git(&s, "git show-ref");
    run(&s, "git branch -q -f old HEAD~1; git branch -q -f 'o;d' HEAD~1; git tag -f v1 HEAD~1 >/dev/null")
        .says("refs of git");
    let undo = s.ok(["undo", "--json"]);
    first_says(
        &undo,
        &["refs of git moved since", "git branch -f old", "git branch -f 'o;d'", "git tag -f v1"],
    );
    undo.never_says("kept");
    let moved = undo.json()["git"][0]["moved_refs"].as_array().unwrap().len();
    assert_eq!((moved, undo.json()["git"][0]["state"].as_str()), (3, Some("changed")));
    let line = undo.err().lines().next().unwrap().to_owned();
    git(&s, &line.split('`').skip(1).step_by(2).collect::<Vec<_>>().join("; "));
    assert_eq!(git(&s, "git show-ref"), refs);
    // HEAD's own branch, and another that HEAD came to: each is named once.
    run(&s, "git switch -q kept; git commit -q --allow-empty -m x").says("HEAD (main at").says("refs of git");
    let undo = s.ok(["undo", "--json"]);
    first_says(&undo, &["HEAD moved", "git symbolic-ref HEAD refs/heads/main"]);
    undo.says("git branch -f kept").never_says("git branch -f main");
}
