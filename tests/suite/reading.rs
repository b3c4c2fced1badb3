//! Looking: what a person sees of a diff, a list, a snapshot, with and without a terminal.

use crate::{newest, sandbox};
use snapback_tests::{Sandbox, Screen, have};

/// A run that added, changed and removed files, in a project of its own.
fn changed(s: &Sandbox) -> String {
    s.write("kept", "0\n");
    s.write("gone", "1\n2\n3\n");
    s.write("text", "a\nb\nc\n");
    s.write("binary", b"a\0b");
    s.write("mode", "x\n");
    s.run("rm gone; printf 'a\\nB\\nc\\nd\\n' > text; printf 'a\\0bcd' > binary; chmod 755 mode; mkdir d; printf 'x\\ny\\n' > d/new");
    newest(s)
}

#[test]
fn a_diff_is_letters_paths_and_how_much() {
    let s = sandbox();
    let id = changed(&s);
    let want = "M binary  3 B -> 5 B\nA d/\nA d/new  +2\nD gone  -3\nM mode\nM text  +2 -1\n";
    assert_eq!(s.ok(["diff"]).out(), want);
    let after = s.ok(["snap", "-m", "after"]).out();
    // Of two snapshots the contents are in the store.
    s.write("text", "something else\n");
    assert_eq!(s.ok(["diff", &id, after.trim()]).out(), want);
    assert_eq!(s.ok(["diff", "--stat", &id, after.trim()]).out(), "tree: 3 modified, 2 added, 1 deleted\n");
    let names = "M binary\nA d/\nA d/new\nD gone\nM mode\nM text\n";
    assert_eq!(s.ok(["diff", "--names", &id, after.trim()]).out(), names);
    s.snapback(["diff", "--exit-code", &id, after.trim()]).exits(1);
}

#[test]
fn a_patch_is_what_other_programs_apply() {
    let s = sandbox();
    let id = changed(&s);
    let patch = s.ok(["diff", "-p"]).out();
    for text in [
        "--- a/text\n+++ b/text\n@@ -1,3 +1,4 @@\n a\n-b\n+B\n c\n+d\n",
        "Binary differs, size 3 B -> 5 B\n",
        "mode 0644 -> 0755\n",
        "--- /dev/null\n+++ b/d/new\n",
    ] {
        assert!(patch.contains(text), "{text}\n{patch}");
    }
    if have("git") {
        // Where the run began, the patch makes of the text what it became.
        s.sh(&format!("mkdir ../before; \"$SNAPBACK\" cat {id} text > ../before/text"));
        s.sh("\"$SNAPBACK\" diff -p --path text | sed 1d > ../before/p; cd ../before; git apply -p1 p");
        assert_eq!(std::fs::read_to_string(s.home().join("before/text")).unwrap(), s.read("text"));
    }
    assert_eq!(s.ok(["cat", &id, "text"]).out(), "a\nb\nc\n");
}

#[test]
fn colour_only_where_it_is_wanted_and_never_alone() {
    let s = sandbox();
    changed(&s);
    assert!(!s.ok(["diff"]).out().contains('\u{1b}'));
    let coloured = s.ok(["diff", "--color", "always"]).out();
    for line in [
        "\u{1b}[32mA\u{1b}[0m d/new  \u{1b}[32m+2\u{1b}[0m",
        "\u{1b}[31mD\u{1b}[0m gone  \u{1b}[31m-3\u{1b}[0m",
    ] {
        assert!(coloured.lines().any(|l| l == line), "{coloured:?}");
    }
    let plain: String = {
        let mut parts = coloured.split('\u{1b}');
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |text, part| text + part.split_once('m').map_or("", |(_, rest)| rest))
    };
    assert_eq!(plain, s.ok(["diff"]).out());
}

#[test]
fn a_list_fits_the_terminal_and_tells_age_changes_and_size() {
    let s = sandbox();
    changed(&s);
    let list = s.ok(["list"]).out();
    let lines: Vec<&str> = list.lines().collect();
    let head: Vec<&str> = lines[0].split_whitespace().collect();
    assert_eq!(head, ["ID", "AGE", "KIND", "ADDED", "CHANGES", "WHAT"]);
    let row: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!((row[2], row[5], row[6]), ("run", "6", "sh"), "{list}");
    if !have("tmux") {
        return;
    }
    let t = Screen::new(&s, 70, 20);
    t.line("PAGER=cat \"$SNAPBACK\" list");
    let is_row = |line: &&str| line.contains("  run ");
    let shown = t.when("the head and a row", |shown| shown.lines().any(|line| is_row(&line)));
    let row = shown.lines().find(is_row).unwrap();
    assert!(row.ends_with('…') && row.chars().count() <= 70, "{shown}");
}

#[test]
fn long_output_goes_through_the_pager_on_a_terminal_only() {
    let s = sandbox();
    s.sh("for f in $(seq 100); do echo 0 > f$f; done");
    s.run("for f in $(seq 100); do echo 1 > f$f; done");
    assert_eq!(s.finish(s.program().env("PAGER", "false").arg("diff")).out().lines().count(), 100);
    if !have("tmux") || !have("less") {
        return;
    }
    let t = Screen::new(&s, 60, 12);
    t.line("\"$SNAPBACK\" diff; echo code-$?");
    t.when("the first screen, and a colon", |shown| {
        shown.trim_end().ends_with(':') && shown.contains("M f1 ")
    });
    t.press(&["G"]);
    t.until("(END)");
    t.press(&["q"]);
    t.until("code-0");
    t.clear();
    // Interrupted, which is for the pager: it goes on.
    t.line("\"$SNAPBACK\" diff; echo code-$?");
    t.when("the first screen", |shown| shown.trim_end().ends_with(':'));
    t.press(&["C-c"]);
    t.press(&["G"]);
    t.until("(END)");
    t.press(&["q"]);
    t.until("code-0");
    t.clear();
    // What fits needs none.
    t.line("\"$SNAPBACK\" diff --path f1; echo code-$?");
    t.until("code-0");
    t.clear();
    t.line("SNAPBACK_PAGER='sed s/^/paged:/ | head -n 3' PAGER=false \"$SNAPBACK\" diff; echo code-$?");
    let shown = t.until("code-0");
    assert_eq!(shown.matches("\npaged:M f").count(), 3, "{shown}");
    t.clear();
    t.line("SNAPBACK_PAGER= \"$SNAPBACK\" diff | tail -n 1; PAGER=no-such-pager \"$SNAPBACK\" diff --stat; echo code-$?");
    t.until("tree: 100 modified");
}

#[test]
fn a_snapshot_is_shown_with_what_it_lacks() {
    let s = sandbox();
    s.sh("mkdir node_modules; touch node_modules/x package.json");
    s.write("f", "0");
    s.ok(["snap", "-m", "a message", "--pin"]);
    let show = s.ok(["show", "@0"]).out();
    for text in ["a message", "pinned", "tree", "not in it:", "node_modules  regenerable"] {
        assert!(show.contains(text), "{text}\n{show}");
    }
}

#[test]
fn a_terminal_that_can_do_nothing_gets_no_colour_and_no_pager() {
    if !have("script") {
        return;
    }
    let s = sandbox();
    changed(&s);
    for (term, all) in [("xterm", true), ("dumb", false)] {
        let mut script = s.command("script");
        script.args(["-qefc", "\"$SNAPBACK\" diff", "/dev/null"]);
        script.env("TERM", term).env("PAGER", "touch ../paged; cat");
        let shown = s.finish(&mut script).exits(0).out();
        assert!(shown.contains("gone"), "{shown}");
        assert_eq!((shown.contains('\u{1b}'), s.has("../paged")), (all, all), "{term}: {shown}");
        s.sh("rm -f ../paged");
    }
}

#[test]
fn a_path_that_is_on_neither_side_is_said() {
    let s = sandbox();
    s.sh("mkdir node_modules; touch node_modules/x package.json");
    let id = changed(&s);
    s.snapback(["diff", "--path", "no/such", "--path", "text"])
        .exits(0)
        .prints("M text")
        .says("nothing was captured at no/such, on either side")
        .never_says("at text");
    s.ok(["diff", "--path", "node_modules"]).says("node_modules is not covered: ");
    // What is there and did not change, and what one side alone has.
    for path in ["kept", "gone", "d/new"] {
        s.ok(["diff", &id, "--path", path]).never_says("snapback: ");
    }
}

#[test]
fn a_list_fits_the_terminal_however_narrow_it_is() {
    let s = sandbox();
    if !have("tmux") || !have("bash") {
        return;
    }
    changed(&s);
    s.run("true");
    let t = Screen::new(&s, 100, 12);
    for columns in [80, 60, 40, 20] {
        t.resize(columns, 12);
        // The program is told of it a moment after the screen.
        t.line(&format!("until stty size | grep -q ' {columns}$'; do sleep 0.05; done; clear"));
        t.when("a prompt alone", |shown| shown.trim_end() == "ready>");
        t.line("\"$SNAPBACK\" list; echo end");
        let shown = t.when("the end", |shown| shown.lines().any(|line| line == "end"));
        let rows = shown.lines().skip_while(|line| !line.starts_with("ID")).take_while(|line| *line != "end");
        let rows: Vec<&str> = rows.collect();
        assert_eq!(rows.len(), 3, "{columns}\n{shown}");
        // The age, the size, the changes and the command stay, and an ID that can be typed.
        let told: Vec<&str> = rows[1].split_whitespace().collect();
        if columns >= 40 {
            assert!(told[1].ends_with('s') && told.contains(&"kB"), "{columns}\n{shown}");
            assert!(told.ends_with(&["0", "sh", "-ec", "true"]), "{columns}\n{shown}");
        }
        s.ok(["show", told[0]]).prints("command   sh -ec true");
    }
}
