//! `status` before anything happens: what a snapshot would hold, what it would leave out,
//! what of git it would not cover, and whether it would be taken unasked.

use crate::{each_user, sandbox};
use serde_json::Value;
use snapback_tests::{Record, assert_same, have};

/// The values of all rows called `name`.
fn rows(text: &str, name: &str) -> Vec<String> {
    let rows = text.lines().filter_map(|line| line.strip_prefix(name)).filter(|rest| rest.starts_with(' '));
    rows.map(|rest| rest.trim().to_owned()).collect()
}

#[test]
fn what_would_be_left_out_is_shown_before_anything_happens() {
    each_user(|s| {
        s.sh("mkdir -p node_modules/a a/target .git/refs uploads/in big src
              touch package.json a/Cargo.toml node_modules/a/1 node_modules/2 a/target/3 1.log 2.log src/main src/x.sqlite
              touch uploads/in/4 uploads/5 .env; seq 30 | sed 's:^:big/:' | xargs touch
              echo 'ref: refs/heads/main' > .git/HEAD; printf '.env\\nuploads/\\n*.sqlite\\ntarget\\n' > .gitignore");
        s.write("snapback.toml", "[snapshot]\nignore = [\"*.log\"]\nmax-files-per-dir = 20\n");
        let before = Record::take(&s.project());
        let status = s.ok(["status"]).out();
        assert_same(&before, &Record::take(&s.project()));
        assert!(!s.has(".snapback"), "looking makes no store");
        assert!(rows(&status, "covers")[0].starts_with("9 files, "), "{status}");
        let want = [
            ".git  git, 1 file",
            "a/target  regenerable: ignored by git, 1 file",
            "big  too many files: more than 20, 30 files; `include = [\"big\"]` in snapback.toml covers that directory",
            "node_modules  regenerable: node_modules, 2 files",
            "2 files  ignored by `*.log`",
        ];
        assert_eq!(rows(&status, "left out"), want, "{status}");
        let precious = "ignored by git, and covered: .env, uploads/ (2 files), src/x.sqlite";
        assert_eq!(rows(&status, "precious"), [precious], "{status}");
        let git = &rows(&status, "git")[0];
        assert!(git.contains("HEAD, refs and reflogs are recorded, index and objects are not"), "{git}");
        let json = s.ok(["status", "--json"]).json();
        let tree = &json["survey"][0];
        assert_eq!((&tree["target"], &tree["files"]), (&"tree".into(), &9.into()), "{json}");
        let of = |list: &str, path: &str| -> Value {
            let found = tree[list].as_array().unwrap().iter().find(|item| item["path"] == path);
            found.unwrap_or_else(|| panic!("{path}: {json}")).clone()
        };
        assert_eq!(of("excluded", "node_modules")["files"], 2);
        assert_eq!(of("excluded", "big")["reason"], "too many files");
        assert_eq!(of("precious", "uploads")["files"], 2);
        assert_eq!(tree["git"]["branch"], "main");
        // What it says is what a run does.
        s.run("true")
            .says("9 files")
            .says("big (too many files)")
            .says("2 regenerable (a/target, node_modules)");
        assert_eq!(rows(&s.ok(["status"]).out(), "left out"), want);
    });
}

#[test]
fn databases_are_listed_before_anything_happens() {
    if !have("python3") {
        return;
    }
    each_user(|s| {
        s.sh("mkdir data ign; python3 -c \"
import sqlite3, os
for n in ['mine.db', 'data/app', 'ign/x.db', 'log.db']:
    c = sqlite3.connect(n); c.execute('pragma journal_mode = wal' if n == 'log.db' else 'select 1')
    c.execute('create table t(a)'); c.commit(); n == 'log.db' and os._exit(0)
\"; ls log.db-wal; echo 0 > f; printf 'x%.0s' $(seq 512) > page; printf 'SQLite format 3' > short");
        s.write("snapback.toml", "[snapshot]\nignore = [\"/ign/\"]\n[[target]]\nname = \"mine\"\nbackend = \"sqlite\"\npath = \"mine.db\"\n");
        let status = s.ok(["status"]).out();
        assert_eq!(
            rows(&status, "databases"),
            ["data/app, log.db (found: each is a target of its own)"],
            "{status}"
        );
        assert_eq!(rows(&status, "targets"), ["tree, mine (sqlite)"]);
        let json = s.ok(["status", "--json"]).json();
        assert_eq!(
            json["survey"][0]["databases"],
            serde_json::json!([{"path": "data/app"}, {"path": "log.db"}])
        );
        // What it says is what a run does.
        let files = rows(&status, "covers")[0].split(',').next().unwrap().to_owned();
        s.run("true").says(&files);
        let list = s.ok(["list", "--json"]).json();
        let names: Vec<&str> =
            list[0]["targets"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["tree", "mine", "data/app", "log.db"]);
        s.write("snapback.toml", "[snapshot]\nsqlite = false\n");
        assert!(rows(&s.ok(["status"]).out(), "databases").is_empty());
    });
}

#[test]
fn what_cannot_be_captured_is_shown_as_a_run_says_it() {
    each_user(|s| {
        s.sh(
            "echo 0 > f; echo 0 > secret; echo 0 > under; echo 0 > over; mkdir closed listed; touch listed/a
              mkdir listed/b node_modules; touch package.json; chmod 000 secret closed; chmod 400 listed",
        );
        let mount = |words: &str| s.finish(s.command("sh").args(["-c", words])).status.success();
        let mounted = !s.user().is_ordinary() && mount("mount --bind over under");
        let told = |list: &Value| -> Vec<(String, String)> {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let items = list.as_array().unwrap().iter().filter(|item| item["path"].is_string());
            let items = items.map(|item| (text(&item["path"]), text(&item["reason"])));
            items.filter(|(path, _)| path != ".snapback").collect()
        };
        let before = s.ok(["status", "--json"]).json();
        let run = s.run("true");
        let list = s.ok(["list", "--json"]).json();
        let after = s.ok(["status", "--json"]).json();
        if mounted {
            assert!(mount("umount under"));
        }
        let want: &[&str] = match (s.user().is_ordinary(), mounted) {
            (true, _) => &["closed", "listed", "node_modules", "secret"],
            (_, true) => &["node_modules", "under"],
            _ => &["node_modules"],
        };
        let said = told(&before["survey"][0]["excluded"]);
        assert_eq!(said.iter().map(|(path, _)| path.as_str()).collect::<Vec<_>>(), want, "{before}");
        assert_eq!(said, told(&list[0]["excluded"]), "{run}");
        assert_eq!(said, told(&after["survey"][0]["excluded"]));
    });
}

#[test]
fn a_repository_that_is_covered_is_not_said_to_lack_anything() {
    let s = sandbox();
    s.sh("mkdir -p .git/refs; echo 'ref: refs/heads/main' > .git/HEAD; echo 0 > f");
    s.write("snapback.toml", "[snapshot]\ngit = true\n");
    let status = s.ok(["status"]).out();
    assert_eq!((rows(&status, "git").len(), rows(&status, "left out").len()), (0, 0), "{status}");
}

#[test]
fn what_cannot_be_told_is_said_in_its_place() {
    each_user(|s| {
        // A home is not read for a question.
        let at_home = s.finish(s.program().current_dir(s.home()).arg("status"));
        at_home.exits(0).prints("not known: ").prints("your home directory");
        s.write("snapback.toml", "[snapshot]\nnonsense = 1\n");
        s.snapback(["status"]).exits(2).prints("not known: ").says("nonsense");
        s.write("snapback.toml", "[snapshot]\nmax-files-per-dir = 1\n");
        s.sh("touch 1 2 3");
        s.ok(["status"])
            .prints("not known: ")
            .prints("directly holds")
            .prints("leave some out with `ignore`");
        let json = s.ok(["status", "--json"]).json();
        assert!(
            json["survey"].is_null() && json["survey_problem"].as_str().unwrap().contains("directly holds")
        );
    });
}

#[test]
fn a_huge_first_snapshot_is_asked_for_with_sizes_and_the_line_that_leaves_it_out() {
    let s = sandbox();
    s.sh("mkdir data; cd data; mkdir 0; cd 0; seq 9900 | xargs touch; cd ..; for n in $(seq 50); do cp -al 0 $n; done; echo 0 > ../f");
    s.ok(["status"]).prints("more than 50").prints("--allow-huge");
    let run = s.snapback(["run", "--", "touch", "ran"]);
    run.fails(125, &["is huge", "data (50"]).says("ignore = [\"/data/\"]").says("--allow-huge");
    assert!(!s.has("ran"));
    s.write("snapback.toml", "[snapshot]\nignore = [\"/data/\"]\n");
    s.run("echo A > f");
    // It is the first that is asked for.
    s.write("snapback.toml", "");
    s.ok(["status"]).prints("more than 50");
    assert!(!s.ok(["status"]).out().contains("--allow-huge"));
}
