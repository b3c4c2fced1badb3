//! What a snapshot does not hold is said: at the run, in `show`, and at the undo.

use crate::{each_user, newest};
use snapback_tests::{Record, Running, assert_back};

#[test]
fn what_is_excluded_does_not_count_for_the_guard() {
    each_user(|s| {
        s.sh("mkdir -p node_modules/many src; cd node_modules/many; seq 12000 | xargs touch");
        s.sh("for f in $(seq 20); do echo 0 > src/$f; done; echo 0 > package.json");
        s.run("echo A > src/1; rm -r node_modules; rm src/20").never_says("too many");
        s.ok(["undo"]);
        assert_eq!(
            (s.read("src/1"), s.read("src/20"), s.has("node_modules")),
            ("0\n".into(), "0\n".into(), false)
        );
    });
}

#[test]
fn what_can_be_made_again_is_left_alone_and_listed() {
    each_user(|s| {
        s.write("f", "0");
        s.sh("mkdir -p a/node_modules b/__pycache__ c/.venv d/cache target src/target
              touch a/node_modules/x b/__pycache__/x c/.venv/pyvenv.cfg c/.venv/x d/cache/x target/x src/target/x Cargo.toml
              printf 'Signature: 8a477f597d28d172789f06886806bc55\\n' > d/cache/CACHEDIR.TAG");
        s.run("find . -name x -delete; echo A > f");
        s.ok(["undo"]);
        assert_eq!(s.read("f"), "0");
        assert!(s.has("src/target/x"), "a directory is not build output by its name alone");
        for path in ["a/node_modules/x", "b/__pycache__/x", "c/.venv/x", "d/cache/x", "target/x"] {
            assert!(!s.has(path), "{path} was never captured");
        }
        let show = s.ok(["show", &newest(s), "--json"]).json().to_string();
        for path in ["a/node_modules", "b/__pycache__", "c/.venv", "d/cache", "\"target\""] {
            assert!(show.contains(path), "{path} is listed: {show}");
        }
    });
}

#[test]
fn what_cannot_be_read_is_a_hole_that_is_shown_and_left_alone() {
    each_user(|s| {
        if !s.user().is_ordinary() {
            return;
        }
        s.write("f", "0");
        s.sh("mkdir closed; echo x > closed/x; echo x > file; chmod 000 closed file");
        let run = s.run("echo A > f");
        run.says("closed").says("file");
        let before = Record::take(&s.project());
        s.ok(["show", "@0"]).prints("closed  unreadable").prints("file  unreadable");
        let dry = s.snapback(["undo", "-n", "--json"]);
        let undo = s.snapback(["undo", "--json"]);
        for told in [&dry, &undo] {
            told.exits(3).says("closed (").says("file (").says("unreadable");
            let refused = told.json()["not_restored"].as_array().unwrap().clone();
            for path in ["closed", "file"] {
                let item = refused.iter().find(|item| item["path"] == path);
                let reason = item.unwrap_or_else(|| panic!("{path}: {told}"))["reason"].as_str().unwrap();
                assert!(reason.contains("unreadable"), "{told}");
            }
        }
        assert_eq!(s.read("f"), "0");
        let after = Record::take(&s.project());
        assert_eq!(before.entry("file"), after.entry("file"));
        assert_eq!(before.entry("closed/x"), after.entry("closed/x"));
        let list = s.snapback(["list", "--json"]).json();
        let run = list.as_array().unwrap().iter().find(|snap| snap["kind"] == "run").unwrap();
        for path in ["closed", "file"] {
            let excluded = run["excluded"].as_array().unwrap();
            assert!(
                excluded.iter().any(|e| e["path"] == path && e["reason"] == "unreadable"),
                "{path}: {run}"
            );
        }
    });
}

#[test]
fn a_home_is_refused_with_the_reason_and_the_way_to_insist() {
    each_user(|s| {
        let home = s.home();
        std::fs::write(home.join("note"), "x").unwrap();
        let run = |words: &[&str]| s.finish(s.program().current_dir(&home).args(words));
        run(&["run", "--", "touch", "ran"]).fails(125, &["home"]).says("--allow-huge");
        // By whatever way HOME leads there.
        s.sh("ln -sfn ../home ../link-home");
        for way in [home.join("../home"), home.join("link-home")] {
            let way =
                s.finish(s.program().current_dir(&home).env("HOME", way).args(["run", "--", "touch", "ran"]));
            way.fails(125, &["home"]);
        }
        s.sh("rm ../link-home");
        assert!(!home.join("ran").exists() && !home.join(".snapback").exists());
        run(&["run", "--allow-huge", "--", "touch", "ran"]).exits(0);
        assert!(home.join("ran").exists());
    });
}

#[test]
fn the_top_of_the_file_system_is_refused() {
    each_user(|s| {
        let run = s.finish(s.program().current_dir("/").args(["run", "--", "true"]));
        run.fails(125, &["/ is the whole system, not a project"]).says("--allow-huge");
        for words in [&["status"][..], &["snap"]] {
            let said = s.finish(s.program().current_dir("/").args(words));
            assert!((said.out() + &said.err()).contains("the whole system"), "{said}");
        }
        assert!(!std::path::Path::new("/.snapback").exists());
    });
}

#[test]
fn repositories_inside_are_plain_files_and_their_git_is_untouched() {
    if !snapback_tests::have("git") {
        return;
    }
    each_user(|s| {
        s.sh("export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
              git init -q .; git init -q nested; echo 0 > nested/f; git -C nested add f; git -C nested commit -q -m x
              git init -q empty; echo 0 > empty/f
              mkdir sub; echo 'gitdir: ../elsewhere' > sub/.git; echo 0 > sub/f
              git -C nested worktree add -q ../tree 2>/dev/null");
        let before = Record::take(&s.project());
        s.run("echo A > nested/f; echo A > empty/f; echo A > sub/f; echo A > tree/f");
        let damaged = Record::take(&s.project());
        s.ok(["undo"]);
        let now = Record::take(&s.project());
        assert_back(&before, &damaged, &now);
        for (path, entry) in &damaged.0 {
            if path.windows(4).any(|w| w == b".git") {
                assert_eq!(now.0.get(path), Some(entry), "{}", path.escape_ascii());
            }
        }
    });
}

#[test]
fn gits_ignore_rules_alone_exclude_nothing() {
    each_user(|s| {
        s.sh("mkdir .git uploads; echo ref > .git/HEAD; printf '.env\\n*.sqlite\\nuploads/\\n' > .gitignore
              echo KEY=0 > .env; echo no database > a.sqlite; echo 0 > uploads/photo");
        let before = Record::take(&s.project());
        s.run("rm -r .env a.sqlite uploads");
        let damaged = Record::take(&s.project());
        s.ok(["undo"]);
        assert_back(&before, &damaged, &Record::take(&s.project()));
    });
}

#[test]
fn a_file_that_grows_while_it_is_read_is_whole_or_marked() {
    each_user(|s| {
        s.sh("head -c 30000000 /dev/zero | tr '\\0' '0' > log");
        let writer = "i=0; while [ ! -e ../stop ]; do i=$((i+1)); printf '%09d\\n' $i >> log; done";
        let mut child = Running::of(s.command("sh").args(["-c", writer]));
        let snap = s.snapback(["snap"]);
        std::fs::write(s.home().join("stop"), "").unwrap();
        child.wait();
        assert!([0, 3].contains(&snap.code()), "{snap}");
        let list = s.ok(["list", "--json"]).json();
        let marked = list[0]["excluded"].as_array().unwrap().iter().any(|e| e["path"] == "log");
        if !marked {
            // A prefix of what was appended: lines in order, none missing.
            let stored = s.ok(["cat", "@0", "log"]).stdout;
            assert!(stored.len() >= 30_000_000);
            let lines = String::from_utf8(stored[30_000_000..].to_vec()).unwrap();
            for (n, line) in lines.split_inclusive('\n').enumerate() {
                assert!(format!("{:09}\n", n + 1).starts_with(line), "line {n} is {line:?}");
            }
        }
    });
}

#[test]
fn a_database_is_covered_without_any_configuration() {
    if !snapback_tests::have("python3") {
        return;
    }
    each_user(|s| {
        let sql = |text: &str| {
            format!(
                "python3 -c \"import sqlite3; c = sqlite3.connect('app.db'); print(c.execute('{text}').fetchall()); c.commit()\""
            )
        };
        s.sh(&sql("create table t(a)"));
        s.sh(&sql("insert into t values (1)"));
        s.run(&format!("{}; {}", sql("delete from t"), sql("drop table t")));
        s.ok(["undo"]);
        assert_eq!(s.sh(&sql("select a from t")), "[(1,)]\n");
    });
}

#[test]
fn all_writers_are_seen() {
    each_user(|s| {
        s.write("f", "0");
        s.run("(sleep 0.1; echo late > late) & echo A > f; bash -c 'echo A > g'; wait");
        s.ok(["undo"]);
        assert_eq!((s.read("f"), s.has("g"), s.has("late")), ("0".into(), false, false));
    });
}
