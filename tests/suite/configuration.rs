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
         [[target]]\nname = \"data\"\nbackend = \"tree\"\npath = \"data\"\n",
    );
    s.write("code/f", "0");
    s.write("data/f", "0");
    s.run("echo A > code/f; echo A > data/f");
    s.ok(["undo"]);
    assert_eq!((s.read("code/f"), s.read("data/f")), ("0".into(), "0".into()));
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
    s.ok(["status"]);
    s.ok(["undo"]);
    assert_eq!(s.read("a"), "1");
    assert!(!s.has("snapback.toml"));
    s.sh("mkfifo snapback.toml");
    s.snapback(["run", "--", "true"]).fails(125, &["is not a regular file"]);
}
