//! snapback.toml: what it may hold, and what is said about what it may not.

use crate::{each_user, sandbox};

#[test]
fn none_is_needed_and_none_is_made() {
    each_user(|s| {
        s.write("f", "0");
        s.run("echo A > f");
        s.ok(["undo"]);
        assert!(!s.has("snapback.toml"));
    });
}

#[test]
fn an_unknown_word_is_answered_with_the_nearest_and_its_line() {
    let s = sandbox();
    for (text, line, right) in [
        ("[snapshot]\nignor = []\n", 2, "ignore"),
        ("\n\n[snapshott]\n", 3, "snapshot"),
        ("[snapshot]\npaths = [\".\"]\nskip-regenerble = true\n", 3, "skip-regenerable"),
        ("[[target]]\nname = \"x\"\nbackend = \"tre\"\n", 3, "tree"),
        ("[[target]]\nname = \"x\"\nbackend = \"tree\"\npth = \".\"\n", 4, "path"),
    ] {
        s.write("snapback.toml", text);
        let run = s.snapback(["run", "--", "touch", "ran"]);
        run.fails(125, &["snapback.toml", &format!("line {line}")]).says(&format!("`{right}`"));
        let snap = s.snapback(["snap"]);
        assert!([1, 2].contains(&snap.code()), "{snap}");
    }
    assert!(!s.has("ran"));
}

#[test]
fn a_wrong_value_is_told_with_what_would_be_right() {
    let s = sandbox();
    for (text, words) in [
        ("[snapshot]\nenabled = 3\n", &["line 2", "enabled"][..]),
        ("[snapshot]\ntimes = \"tomorrow\"\n", &["line 2", "times", "now, stored"]),
        ("[snapshot]\nstrategy = \"magic\"\n", &["line 2", "strategy", "reflink"]),
        ("[snapshot]\ninterval = \"soon\"\n", &["line 2", "soon"]),
        ("[snapshot]\nmax-files-per-dir = -1\n", &["line 2"]),
        ("[snapshot\n", &["line 1"]),
        (
            "[[target]]\nname = \"a\"\nbackend = \"tree\"\n[[target]]\nname = \"a\"\nbackend = \"tree\"\n",
            &["`a`"],
        ),
    ] {
        s.write("snapback.toml", text);
        s.snapback(["run", "--", "true"]).fails(125, words);
    }
}

#[test]
fn a_wrong_setting_of_a_target_is_told_with_its_line_and_what_would_be_right() {
    let s = sandbox();
    for (target, line, words, hint) in [
        (
            "path = \"a.db\"\nbusy-timeout = \"soon\"",
            4,
            "`busy-timeout` is a time such as \"30s\"",
            "duration",
        ),
        ("path = \"a.db\"\nbusy-timeout = 5", 4, "not `5`", "how long to wait"),
        ("verify = \"perhaps\"\npath = \"a.db\"", 3, "`verify` is true or false, not `perhaps`", "bool"),
        ("path = \"\"", 3, "`path` is a name or path on one line", "the database file"),
        ("verify = true", 1, "the setting `path` is missing", "the database file"),
        ("path = 1.5", 3, "`path` must be text", "in quotes"),
        ("path = \"a.db\"\nbusy-timout = \"5s\"", 4, "has no setting `busy-timout`", "`busy-timeout`"),
        (
            "path = \"a.db\"\nevery-interval = 1",
            4,
            "`every-interval` must be true or false",
            "correct that line",
        ),
    ] {
        s.write("snapback.toml", format!("[[target]]\nbackend = \"sqlite\"\n{target}\n"));
        let place = format!("snapback.toml, line {line}: ");
        s.snapback(["run", "--", "touch", "ran"]).fails(125, &[&place, words]).says(hint);
        s.snapback(["snap"]).fails(2, &[&place, words]).says(hint);
        s.snapback(["status"]).exits(2).says(&place).says(words).says(hint);
    }
    assert!(!s.has("ran"));
}

#[test]
fn status_and_backends_show_what_they_can_beside_a_wrong_file() {
    let s = sandbox();
    s.write("f", "0");
    s.run("echo A > f");
    s.write("snapback.toml", "[snapshot]\nignor = []\n");
    let wrong = "snapback: snapback.toml, line 2: there is no key `ignor`\nhint: did you mean `ignore`?";
    let status = s.snapback(["status"]);
    status
        .exits(2)
        .says(wrong)
        .prints("root ")
        .prints("takes back")
        .prints("not known: snapback.toml is wrong");
    assert!(!status.out().contains("ignor`"), "it is said once\n{status}");
    let status = s.snapback(["status", "--json"]);
    assert_eq!((status.code(), &status.json()["snapshots"]), (2, &1.into()), "{status}");
    s.ok(["backends"])
        .says("line 2: there is no key `ignor`")
        .says("did you mean `ignore`?")
        .prints("sqlite");
    // It concerns nobody else.
    s.ok(["list"]).never_says("ignor");
    s.ok(["undo"]);
    assert_eq!(s.read("f"), "0");
}

#[test]
fn where_nothing_is_covered_that_is_said_first_and_never_that_nothing_changed() {
    let s = sandbox();
    s.write("f", "0");
    for (text, skip) in [("[snapshot]\nenabled = false\n", &[][..]), ("", &["--skip", "tree"])] {
        s.write("snapback.toml", text);
        let script = ["--", "sh", "-c", "echo now-it-runs >&2; echo A >> f"];
        let run = s.ok([&["run"], skip, &script].concat());
        let said = run.err();
        let (before, after) = said.split_once("now-it-runs\n").unwrap();
        assert!(before.contains("nothing is covered, so nothing can be undone"), "{run}");
        assert!(after.contains("what changed is not known, and cannot be undone"), "{run}");
        run.never_says("nothing changed");
        s.ok(["undo"]).says("nothing was covered when `sh -c").never_says("nothing changed");
        assert!(s.read("f").ends_with("A\n"));
    }
    s.write("snapback.toml", "[snapshot]\nenabled = false\n");
    for _ in 0..2 {
        s.ok(["snap"]).says("nothing is covered").never_says("nothing changed");
    }
    s.ok(["status"]).prints("none: nothing is captured").prints("nothing is covered");
    s.snapback(["run", "--skip", "tree", "--", "true"]).fails(125, &["no target `tree`"]).says("enabled");
    // Where something is, that alone is spoken of.
    s.write("snapback.toml", "[snapshot]\npaths = [\"sub\"]\n");
    s.write("sub/f", "0");
    s.run("echo A > made").says("nothing changed in what is covered").says("made (new)");
    s.run("true").says("snapback: nothing changed\n");
}

#[test]
fn the_projects_own_store_is_nothing_that_is_not_covered() {
    each_user(|s| {
        s.write("data/f", "0");
        for rule in
            ["paths = [\"data\"]", "ignore = [\".*\"]", "ignore = [\"/.snapback/\"]", "ignore = [\"*\"]"]
        {
            s.write("snapback.toml", format!("[snapshot]\n{rule}\n"));
            s.run("echo A > data/f").never_says(".snapback");
            let (status, shown) = (s.ok(["status"]), s.ok(["show", "@0"]));
            for output in [&status, &shown] {
                let lines = output.out().lines().filter(|line| line.contains(".snapback ")).count();
                assert_eq!(lines, 0, "{rule}\n{output}");
            }
            s.ok(["undo"]).never_says(".snapback");
        }
        // What only has its name is left out as anything else is.
        s.write("sub/.snapback/mine", "0");
        s.write("snapback.toml", "[snapshot]\npaths = [\"data\", \"sub/x\"]\n");
        s.write("sub/x", "0");
        s.run("true").says("sub/.snapback");
    });
}

#[test]
fn what_is_left_out_can_be_chosen() {
    each_user(|s| {
        s.write(
            "snapback.toml",
            "[snapshot]\nignore = [\"*.log\", \"!keep.log\", \"/only/top\"]\ninclude = [\"node_modules/mine\"]\n",
        );
        for path in
            ["a.log", "keep.log", "only/top", "sub/only/top", "node_modules/mine/x", "node_modules/other/x"]
        {
            s.write(path, "0");
        }
        s.run("find . -path ./.snapback -prune -o -type f -print | xargs sed -i s/0/A/; git --version >/dev/null 2>&1 || true");
        s.ok(["undo"]);
        for (path, state) in [
            ("a.log", "A"),
            ("keep.log", "0"),
            ("only/top", "A"),
            ("sub/only/top", "0"),
            ("node_modules/mine/x", "0"),
            ("node_modules/other/x", "A"),
        ] {
            assert_eq!(s.read(path), state, "{path}");
        }
    });
}

#[test]
fn paths_narrow_what_is_covered() {
    let s = sandbox();
    s.write("snapback.toml", "[snapshot]\npaths = [\"src\", \"docs\"]\n");
    for path in ["src/a", "docs/b", "other/c"] {
        s.write(path, "0");
    }
    s.run("echo A > src/a; echo A > docs/b; echo A > other/c");
    s.ok(["undo"]);
    assert_eq!(
        (s.read("src/a"), s.read("docs/b"), s.read("other/c")),
        ("0".into(), "0".into(), "A\n".into())
    );
}

#[test]
fn a_path_that_leads_out_is_refused() {
    let s = sandbox();
    for path in ["..", "../outside", "/etc", "a/../../b"] {
        s.write("snapback.toml", format!("[snapshot]\npaths = [{path:?}]\n"));
        s.snapback(["run", "--", "touch", "ran"]).fails(125, &[path]);
    }
    assert!(!s.has("ran"));
    // A link is covered as a link, whatever it points to.
    s.sh("mkdir ../outside; echo x > ../outside/x; ln -s ../outside link");
    s.write("snapback.toml", "[snapshot]\npaths = [\"link\"]\n");
    s.run("rm -r link; echo A > ../outside/x");
    s.ok(["undo"]);
    assert_eq!((s.read("link/x"), s.project().join("link").is_symlink()), ("A\n".into(), true));
}

#[test]
fn several_trees_are_one_step() {
    let s = sandbox();
    s.write(
        "snapback.toml",
        "[snapshot]\nenabled = false\n[[target]]\nname = \"code\"\nbackend = \"tree\"\npath = \"code\"\n\
         ignore = [\"*.log\"]\n\
         [[target]]\nname = \"data\"\nbackend = \"tree\"\npath = \"data\"\n\
         skip-regenerable = false\npaths = [\"f\", \"x.log\", \"node_modules\"]\n",
    );
    // Each goes by settings of its own.
    let files = ["f", "x.log", "other", "node_modules/x"];
    for path in files {
        s.write(&format!("code/{path}"), "0");
        s.write(&format!("data/{path}"), "0");
    }
    s.run("for f in f x.log other node_modules/x; do echo A > code/$f; echo A > data/$f; done");
    s.ok(["undo"]);
    let state = |target: &str| files.map(|path| s.read(&format!("{target}/{path}")));
    assert_eq!(state("code"), ["0", "A\n", "0", "A\n"]);
    assert_eq!(state("data"), ["0", "0", "A\n", "0"]);
    s.ok(["redo"]);
    s.ok(["undo", "--target", "data"]);
    assert_eq!((s.read("code/f"), s.read("data/f")), ("A\n".into(), "0".into()));
}

#[test]
fn a_target_that_is_named_by_its_full_path_has_the_paths_of_the_project() {
    let s = sandbox();
    let data = s.project().join("data");
    let settings =
        format!("[[target]]\nname = \"data\"\nbackend = \"tree\"\npath = {:?}\n", data.to_str().unwrap());
    s.write("snapback.toml", format!("[snapshot]\nenabled = false\n{settings}"));
    s.write("data/f", "0");
    s.write("data/g", "0");
    s.run("echo A > data/f");
    assert_eq!(s.ok(["cat", "@0", "data/f"]).out(), "0");
    s.ok(["undo", "-n", "--path", "data/g"]);
    s.ok(["undo", "--path", "data/f"]);
    assert_eq!(s.read("data/f"), "0");
    s.snapback(["cat", "@0", "data/h"]).fails(1, &["data/h is not in snapshot"]);
}

#[test]
fn the_readme_shows_a_file_that_is_taken() {
    let readme = include_str!("../../README.md");
    let text =
        readme.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("it has one");
    let s = sandbox();
    s.write("snapback.toml", text);
    s.write("data/f", "0");
    s.write("f", "0");
    s.run("echo A > data/f; echo A > f");
    s.ok(["undo"]);
    assert_eq!((s.read("f"), s.read("data/f")), ("0".into(), "0".into()));
}

#[test]
fn a_pipe_where_the_configuration_was_hangs_nothing() {
    let s = sandbox();
    s.write("a", "1");
    s.run("mkfifo snapback.toml; echo 2 > a");
    s.snapback(["status"]).exits(2).says("is not a regular file").prints("takes back");
    s.ok(["undo"]);
    assert_eq!(s.read("a"), "1");
    assert!(!s.has("snapback.toml"));
    s.sh("mkfifo snapback.toml");
    s.snapback(["run", "--", "true"]).fails(125, &["is not a regular file"]);
}

#[test]
fn a_target_whose_backend_cannot_be_used_can_be_gone_round() {
    let s = sandbox();
    s.sh("mkdir -p \"$XDG_DATA_HOME/snapback/plugins\"; echo x > \"$XDG_DATA_HOME/snapback/plugins/broken.wasm\"");
    s.write("f", "0");
    for (name, says) in [("nonesuch", "there is no backend `nonesuch`"), ("broken", "broken")] {
        s.write("snapback.toml", format!("[[target]]\nbackend = \"{name}\"\nmode = 1\n"));
        s.snapback(["run", "--", "touch", "started"]).fails(125, &[says]);
        s.snapback(["snap"]).fails(2, &[says]);
        for way in [["--skip", name], ["--only", "tree"]] {
            let script = ["--", "sh", "-c", "echo 1 > f"];
            s.ok([&["run"], &way[..], &script].concat()).says(&format!("skipped: {name}"));
            s.ok(["undo"]);
            assert_eq!(s.read("f"), "0");
        }
        assert!(!s.has("started"));
    }
}
