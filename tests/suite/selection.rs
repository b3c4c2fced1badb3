//! What is captured by rule and by setting: each rule for what can be made again, each key
//! of `[snapshot]`, the bounds to the last file.

use crate::{each_user, newest, sandbox};
use snapback_tests::{Record, assert_back, have, is_root, skip};
use std::collections::BTreeSet;

/// The rules that the tree's backend is to have, once more: none is lost or widened by mistake.
const RULES: &[&str] = &[
    "node_modules",
    "__pycache__",
    "* holding CACHEDIR.TAG",
    ".venv holding pyvenv.cfg",
    "venv holding pyvenv.cfg",
    "target ignored else beside Cargo.toml pom.xml build.sbt",
    "dist ignored else beside package.json pyproject.toml setup.py",
    "build ignored else beside package.json pyproject.toml setup.py build.gradle build.gradle.kts CMakeLists.txt",
    "out ignored else beside package.json",
    ".cache ignored else beside package.json",
    ".next ignored else beside package.json",
    ".nuxt ignored else beside package.json",
    ".svelte-kit ignored else beside package.json",
    ".parcel-cache ignored else beside package.json",
    ".turbo ignored else beside package.json turbo.json",
    ".gradle ignored else beside build.gradle build.gradle.kts settings.gradle settings.gradle.kts",
    ".pytest_cache ignored else beside pyproject.toml setup.py setup.cfg pytest.ini tox.ini",
    ".mypy_cache ignored else beside pyproject.toml setup.py setup.cfg mypy.ini",
    ".tox ignored else beside tox.ini pyproject.toml",
    ".nox ignored else beside noxfile.py",
    ".zig-cache ignored else beside build.zig",
    "zig-out ignored else beside build.zig",
    "_build ignored else beside mix.exs dune-project",
    ".dart_tool ignored else beside pubspec.yaml",
    "obj ignored else beside *.csproj *.fsproj *.vbproj",
];

#[test]
fn each_rule_leaves_out_what_it_names_with_its_sign_and_nothing_without() {
    let s = sandbox();
    let (mut script, mut want, mut all) = (String::new(), BTreeSet::new(), 0);
    let tag = "printf 'Signature: 8a477f597d28d172789f06886806bc55\\n'";
    // A directory `name` in `place`, after `make` was done there; whether it is left out.
    let mut put = |place: String, name: &str, make: &str, out: bool| {
        script += &format!("mkdir -p {place}/{name}; (cd {place}; touch {name}/x; {make})\n");
        all += 1;
        if out {
            want.insert(format!("{place}/{name}"));
        }
    };
    for (at, rule) in RULES.iter().enumerate() {
        let words: Vec<&str> = rule.split(' ').collect();
        let name = if words[0] == "*" { "any" } else { words[0] };
        let file = |pattern: &str| pattern.replace('*', "some");
        match &words[1..] {
            [] => {
                put(format!("r{at}/here"), name, "true", true);
                put(format!("r{at}/like"), &format!("{name}2"), "true", false);
            }
            ["holding", files @ ..] => {
                for (n, held) in files.iter().enumerate() {
                    let make = if *held == "CACHEDIR.TAG" { tag } else { "echo" };
                    put(format!("r{at}/with{n}"), name, &format!("{make} > {name}/{held}"), true);
                    if words[0] != "*" {
                        put(format!("r{at}/beside{n}"), name, &format!("{make} > {held}"), false);
                    }
                }
                put(format!("r{at}/without"), name, "true", false);
            }
            ["ignored", "else", "beside", files @ ..] => {
                for (n, beside) in files.iter().enumerate() {
                    put(format!("r{at}/with{n}"), name, &format!("touch {}", file(beside)), true);
                    let git =
                        format!("mkdir -p .git; echo ref: refs/heads/x > .git/HEAD; touch {}", file(beside));
                    put(format!("r{at}/tracked{n}"), name, &git, false);
                }
                put(format!("r{at}/without"), name, "true", false);
                let git =
                    format!("mkdir -p .git; echo ref: refs/heads/x > .git/HEAD; echo {name}/ > .gitignore");
                put(format!("r{at}/ignored"), name, &git, true);
            }
            other => panic!("a rule of another form: {other:?}"),
        }
    }
    put("tagless".to_owned(), "any", "echo no signature > any/CACHEDIR.TAG", false);
    s.sh(&script);
    let left_out = |json: &serde_json::Value| -> BTreeSet<String> {
        let items = json.as_array().unwrap().iter().filter(|item| item["reason"] == "regenerable");
        items.map(|item| item["path"].as_str().unwrap().to_owned()).collect()
    };
    let status = s.ok(["status", "--json"]).json();
    assert_eq!(left_out(&status["survey"][0]["excluded"]), want);
    s.ok(["snap"]);
    assert_eq!(left_out(&s.ok(["list", "--json"]).json()[0]["excluded"]), want);
    // Asked for, all of it is captured, and comes back.
    s.write("snapback.toml", "[snapshot]\nskip-regenerable = false\n");
    let before = Record::take(&s.project());
    s.run("rm -r */*/*");
    let damaged = Record::take(&s.project());
    assert!(left_out(&s.ok(["list", "--json"]).json()[0]["excluded"]).is_empty());
    s.ok(["undo"]);
    let now = Record::take(&s.project());
    assert_eq!(now.0.keys().filter(|path| path.ends_with(b"/x")).count(), all);
    let without_git = |record: &Record| {
        let kept = record.0.iter().filter(|(path, _)| !path.windows(4).any(|part| part == b".git"));
        Record(kept.map(|(path, entry)| (path.clone(), entry.clone())).collect())
    };
    assert_back(&without_git(&before), &without_git(&damaged), &without_git(&now));
}

#[test]
fn what_git_ignores_is_what_git_check_ignore_says() {
    if !have("git") {
        return;
    }
    each_user(|s| {
        s.sh("git init -q .; mkdir -p dist/in build out obj target; touch dist/in/f build/f out/f obj/f target/f; mkdir -p \"$XDG_CONFIG_HOME/git\" ../settings");
        // Both are asked with variables `set`.
        let left_out = |set: &str| {
            let status = s.sh(&format!("{set} \"$SNAPBACK\" status --json"));
            let status: serde_json::Value = serde_json::from_str(&status).unwrap();
            let items = status["survey"][0]["excluded"].as_array().unwrap().clone();
            let items = items.iter().filter(|item| item["reason"] == "regenerable");
            items.map(|item| item["path"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let theirs = |set: &str| {
            let told = s.sh(&format!("{set} git check-ignore dist build out obj target || test $? = 1"));
            let mut told: Vec<String> = told.lines().map(str::to_owned).collect();
            told.sort();
            told
        };
        for (script, want) in [
            ("true", &[][..]),
            // The user's excludes file, the repository's, and one that a setting names.
            ("echo dist/ > \"$XDG_CONFIG_HOME/git/ignore\"", &["dist"]),
            ("echo /build > .git/info/exclude", &["build", "dist"]),
            (
                "echo 'out' > ../settings/ignore; git config core.excludesFile ../settings/ignore",
                &["build", "out"],
            ),
            ("printf 'obj/\\n!build\\n' > .gitignore", &["obj", "out"]),
            ("git config --unset core.excludesFile", &["dist", "obj"]),
            (
                "printf '[core]\\n\\texcludesfile = \"~/mine\" # mine\\n' > \"$HOME/.gitconfig\"; echo target > \"$HOME/mine\"",
                &["obj", "target"],
            ),
            // What is tracked is no build output, wherever it lies.
            ("git add -f obj/f", &["target"]),
            ("git rm -q --cached obj/f", &["obj", "target"]),
        ] {
            s.sh(script);
            assert_eq!(
                (left_out(""), theirs("")),
                (theirs(""), want.iter().map(|p| (*p).to_owned()).collect()),
                "{script}"
            );
        }
        // Where the environment may name another excludes file, none counts.
        for set in [
            "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.excludesFile GIT_CONFIG_VALUE_0=",
            "GIT_CONFIG_PARAMETERS=\"'core.excludesfile='\"",
        ] {
            assert_eq!(
                (left_out(set), theirs(set)),
                (vec!["obj".to_owned()], vec!["obj".to_owned()]),
                "{set}"
            );
        }
        s.sh("git add -f obj/f; echo mine > obj/f");
        s.run("echo spoilt > obj/f; rm target/f");
        s.ok(["undo"]);
        assert_eq!((s.read("obj/f"), s.has("target/f")), ("mine\n".into(), false));
    });
}

#[test]
fn ten_thousand_files_are_covered_and_one_more_is_not() {
    let s = sandbox();
    s.sh("mkdir most over; cd most; seq 10000 | xargs touch; cd ../over; seq 10001 | xargs touch; mkdir sub; touch sub/f");
    let excluded = |list: &serde_json::Value| list[0]["excluded"].clone();
    let run = s.run("rm most/1 over/1; rm -r over/sub");
    run.says("over (too many files)").never_says("most (");
    let list = s.ok(["list", "--json"]).json();
    assert_eq!(
        excluded(&list),
        serde_json::json!([{"target": "tree", "path": "over", "reason": "too many files", "files": 10001}])
    );
    s.snapback(["undo"]).exits(3);
    assert_eq!((s.has("most/1"), s.has("over/1"), s.has("over/sub")), (true, false, false));
    // Links, fifos and directories are no files; the bound is a setting.
    s.sh(
        "rm -r most over; mkdir few; cd few; touch 1 2 3; for n in $(seq 9); do ln -s 1 l$n; mkdir d$n; done",
    );
    for (most, covered) in [(3, true), (2, false)] {
        s.write("snapback.toml", format!("[snapshot]\nmax-files-per-dir = {most}\n"));
        s.run("true");
        assert_eq!(
            excluded(&s.ok(["list", "--json"]).json()).as_array().unwrap().is_empty(),
            covered,
            "{most}"
        );
    }
}

#[test]
fn other_file_systems_are_covered_where_that_was_asked_for() {
    if !is_root() {
        return;
    }
    let s = sandbox();
    let sh = |script: &str| s.finish(s.command("sh").args(["-ec", script]));
    s.sh("mkdir mnt; echo 0 > f");
    if !sh("mount -t tmpfs none mnt").status.success() {
        return skip("mounting is not permitted");
    }
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        s.sh("mkdir mnt/d; echo 0 > mnt/g; echo 0 > mnt/d/h; ln mnt/g mnt/d/g; ln -s ../f mnt/l");
        let before = Record::take(&s.project());
        let script =
            "echo A > f; echo A > mnt/g; rm -r mnt/d; mkdir mnt/new; mv mnt/l mnt/new; echo A > mnt/new/f";
        s.write("snapback.toml", "[snapshot]\ncross-mounts = true\n");
        let before_all = Record::take(&s.project());
        s.run(script).never_says("mount");
        let damaged = Record::take(&s.project());
        s.ok(["undo"]);
        let now = Record::take(&s.project());
        assert_back(&before_all, &damaged, &now);
        s.ok(["redo"]);
        assert_back(&damaged, &now, &Record::take(&s.project()));
        s.ok(["undo"]);
        // Else what is on it is left alone, and that is said.
        s.sh("rm snapback.toml");
        s.run(script).says("mnt (mount)");
        s.ok(["undo"]);
        let now = Record::take(&s.project());
        assert_eq!((s.read("f"), s.read("mnt/g"), s.has("mnt/d")), ("0\n".into(), "A\n".into(), false));
        assert_eq!(before.entry("").mode, now.entry("").mode);
    }));
    let _ = sh("umount mnt");
    if let Err(panic) = checked {
        std::panic::resume_unwind(panic);
    }
}

#[test]
fn without_the_tree_only_other_targets_are_captured() {
    if !have("python3") {
        return;
    }
    each_user(|s| {
        let sql = |text: &str| {
            format!(
                "python3 -c \"import sqlite3; c = sqlite3.connect('app.db'); print(c.execute('{text}').fetchall()); c.commit()\""
            )
        };
        s.write("snapback.toml", "[snapshot]\nenabled = false\n");
        s.sh("echo 0 > f");
        s.ok(["status"]).prints("none: nothing is captured");
        s.write(
            "snapback.toml",
            "[snapshot]\nenabled = false\n[[target]]\nbackend = \"sqlite\"\npath = \"app.db\"\n",
        );
        s.sh(&sql("create table t(a)"));
        s.run(&format!("echo A > f; {}", sql("insert into t values (1)")));
        let list = s.ok(["list", "--json"]).json();
        let names: Vec<&str> =
            list[0]["targets"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["sqlite"]);
        s.ok(["undo"]);
        assert_eq!((s.read("f"), s.sh(&sql("select count(*) from t"))), ("A\n".into(), "[(0,)]\n".into()));
    });
}

#[test]
fn files_that_are_databases_are_files_where_that_was_asked_for() {
    if !have("python3") {
        return;
    }
    each_user(|s| {
        s.write("snapback.toml", "[snapshot]\nsqlite = false\n");
        s.sh("python3 -c \"
import sqlite3, os
c = sqlite3.connect('app.db'); c.execute('pragma journal_mode = wal'); c.execute('create table t(a)'); c.commit(); os._exit(0)\"");
        let before = Record::take(&s.project());
        assert!(s.has("app.db-wal"));
        s.run("rm app.db app.db-wal; echo x > app.db");
        let damaged = Record::take(&s.project());
        assert_eq!(s.ok(["list", "--json"]).json()[0]["targets"].as_array().unwrap().len(), 1);
        s.ok(["undo"]);
        assert_back(&before, &damaged, &Record::take(&s.project()));
    });
}

#[test]
fn odd_names_among_what_is_left_out() {
    each_user(|s| {
        let names = "for n in 'new
line' ' lead' '\"q\"' 日本 \"$(printf 'x\\377')\" \"$(printf 'esc\\033[31m')\"; do";
        s.sh(&format!("{names} mkdir -p \"$n/node_modules\"; touch \"$n/package.json\" \"$n/node_modules/f\"; done; echo 0 > f"));
        let status = s.ok(["status"]).out();
        assert!(
            status.contains("\"new\\nline/node_modules\"") && status.contains("\"x\\xff/node_modules\""),
            "{status}"
        );
        let run = s.run(&format!("{names} rm -r \"$n/node_modules\"; done; echo A > f"));
        run.says("6 regenerable").says("not covered, and changed by the run: ");
        for said in [&run.err(), &status, &s.ok(["show", "@0"]).out()] {
            assert!(!said.contains('\u{1b}') && !said.contains('\u{fffd}'), "{said:?}");
        }
        let list = s.ok(["list", "--json"]).json();
        let excluded = list[0]["excluded"].as_array().unwrap();
        let has = |key: &str, value: &str| {
            excluded.iter().any(|item| item[key] == value && item["reason"] == "regenerable")
        };
        for path in [
            "new\nline/node_modules",
            " lead/node_modules",
            "\"q\"/node_modules",
            "日本/node_modules",
            "esc\u{1b}[31m/node_modules",
        ] {
            assert!(has("path", path), "{path:?}: {list}");
        }
        // "x\xff/node_modules"
        assert!(has("path_b64", "eP8vbm9kZV9tb2R1bGVz"), "{list}");
        let undo = s.ok(["undo", "--json"]).json();
        assert_eq!(undo["uncovered"].as_array().unwrap().len(), 6, "{undo}");
        assert_eq!(s.read("f"), "0\n");
    });
}

#[test]
fn a_path_longer_than_the_system_takes_can_be_named() {
    each_user(|s| {
        let name = "d".repeat(200);
        let walk = format!(
            "n={name}; i=0; while [ $i -lt 40 ]; do [ -d $n ] || mkdir $n; cd -P $n; i=$((i+1)); done"
        );
        let bash = |script: &str| s.finish(s.command("bash").args(["-c", &format!("{walk}; {script}")]));
        bash("echo 0 > f; echo 0 > g");
        s.ok(["snap"]);
        let id = newest(s);
        let dir = vec![name.as_str(); 40].join("/");
        let path = format!("{dir}/f");
        assert!(path.len() > 8000);
        s.ok(["cat", &id, &path]).prints("0\n");
        bash("echo A > f; echo A > g");
        assert_eq!(s.ok(["diff", &id, "--path", &path]).out().lines().count(), 1);
        s.ok(["restore", &id, "--path", &path]);
        assert_eq!((bash("cat f").out(), bash("cat g").out()), ("0\n".into(), "A\n".into()));
        s.ok(["undo"]);
        assert_eq!(bash("cat f").out(), "A\n");
        bash("rm f g");
        s.ok(["restore", &id, "--path", &dir]);
        assert_eq!((bash("cat f").out(), bash("cat g").out()), ("0\n".into(), "0\n".into()));
        s.snapback(["cat", &id, &format!("{dir}/none")]).fails(1, &["none"]);
        s.sh("rm -rf d*");
    });
}

#[test]
fn what_is_huge_is_told_by_bytes_and_holes_do_not_count() {
    each_user(|s| {
        // More than 5 GiB by their sizes, and nothing on the disk.
        s.sh("mkdir holes; truncate -s 40G holes/a; truncate -s 6G holes/b; echo 0 > f");
        s.run("echo A > f");
        s.ok(["undo"]);
        s.sh("rm -rf holes .snapback \"$XDG_STATE_HOME\"/*");
        // More than 5 GiB by their names.
        s.sh("mkdir data; head -c 16000000 /dev/urandom > data/f0; for n in $(seq 350); do ln data/f0 data/f$n; done");
        s.ok(["status"]).prints("--allow-huge");
        let run = s.snapback(["run", "--", "touch", "ran"]);
        run.fails(125, &["is huge", "data (351 files"]).says("ignore = [\"/data/\"]").says("--allow-huge");
        assert!(!s.has("ran"));
        s.sh("for n in $(seq 21 350); do rm data/f$n; done");
        s.run("touch ran");
    });
}
