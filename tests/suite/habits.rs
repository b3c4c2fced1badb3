//! What makes snapback fit into a user's habits: completion, manual, help, a first
//! snapback.toml, spelling.

use crate::{newest, sandbox};
use snapback_tests::{Sandbox, Screen, have};

/// What the shell gets to see for `words`, of which the last is being typed.
fn complete(s: &Sandbox, words: &[&str]) -> Vec<String> {
    let mut program = s.program();
    program.env("SNAPBACK_COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_TYPE", "9");
    program.env("_CLAP_COMPLETE_INDEX", words.len().to_string()).args(["--", "snapback"]).args(words);
    let output = s.finish(&mut program);
    output.exits(0);
    assert_eq!(output.err(), "", "nothing is said");
    output.out().lines().map(str::to_owned).collect()
}

#[test]
fn ids_paths_targets_and_backends_are_completed() {
    let s = sandbox();
    s.sh("mkdir -p src/deep; touch src/main.rs src/deep/x 'src/with space' top");
    s.write("snapback.toml", "[[target]]\nname = \"data\"\nbackend = \"tree\"\npath = \"src\"\n");
    s.run("rm -r src");
    let id = newest(&s);
    for verb in ["show", "cat", "restore", "forget", "diff"] {
        assert!(complete(&s, &[verb, ""]).contains(&id), "{verb}");
    }
    assert_eq!(complete(&s, &["show", &id[..12]]).join(" "), id);
    // Of the snapshot, not of what is there now.
    assert_eq!(complete(&s, &["cat", &id, "s"]), ["snapback.toml", "src/"]);
    let inside = complete(&s, &["cat", &id, "src/"]);
    for path in ["src/deep/", "src/main.rs"] {
        assert!(inside.contains(&path.to_owned()), "{inside:?}");
    }
    assert_eq!(complete(&s, &["cat", "@0", "src/de"]), ["src/deep/"]);
    assert_eq!(complete(&s, &["undo", "--target", ""]), ["data", "tree"]);
    assert_eq!(complete(&s, &["run", "--skip", "d"]), ["data"]);
    let backends = complete(&s, &["backends", "show", ""]);
    assert!(["sqlite", "tree"].iter().all(|name| backends.contains(&(*name).to_owned())), "{backends:?}");
    assert!(complete(&s, &["un"]).contains(&"undo".to_owned()));
    assert!(complete(&s, &["undo", "--st"]).contains(&"--step".to_owned()));
    // Nowhere near a project it completes to nothing.
    let mut program = s.program();
    program.current_dir("/").env("SNAPBACK_COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", "2");
    let output = s.finish(program.args(["--", "snapback", "show", ""]));
    let offered = output.exits(0).out();
    assert!(offered.lines().all(|line| line.starts_with('-')) && output.err().is_empty(), "{output}");
    assert!(!complete(&s, &["show", ""]).is_empty());
    // The variable of other programs' scripts means nothing here.
    s.finish(s.program().env("COMPLETE", "bash").arg("list")).exits(0).prints(&id);
}

#[test]
fn the_scripts_make_shells_complete() {
    for shell in ["bash", "zsh", "fish"] {
        let s = sandbox();
        s.write("fresh", "0");
        s.ok(["snap"]);
        let id = newest(&s);
        s.ok(["completions", shell]).prints("SNAPBACK_COMPLETE");
        if !have("tmux") || !have(shell) {
            continue;
        }
        // Each begins with its script, and with a prompt that is seen when that was read.
        let (file, text, start) = match shell {
            "bash" => (
                "../rc",
                "PS1='in-bash> '; source <(snapback completions bash)",
                "exec bash --noprofile --rcfile ../rc -i",
            ),
            "zsh" => (
                "../.zshrc",
                "PS1='in-zsh> '; autoload -Uz compinit; compinit -u -D; source <(snapback completions zsh)",
                "ZDOTDIR=$PWD/.. exec zsh --no-global-rcs -i",
            ),
            _ => (
                "../rc",
                "function fish_prompt; printf 'in-fish> '; end; snapback completions fish | source",
                "exec fish --no-config -C 'source ../rc'",
            ),
        };
        s.write(file, format!("{text}\n"));
        s.sh("mkdir ../bin; ln -s \"$SNAPBACK\" ../bin/snapback");
        let t = Screen::new(&s, 100, 20);
        t.line(&format!("export PATH=$PWD/../bin:$PATH; {start}"));
        t.until(&format!("in-{shell}>"));
        t.write("snapback show 2");
        t.press(&["Tab"]);
        t.until(&format!("snapback show {id}"));
        t.press(&["Enter"]);
        t.until("(manual)");
        // Behind `--` the command completes itself: its name, and its files.
        s.write("made/since-then", "");
        t.write("snapback run -q -- mkfif");
        t.press(&["Tab"]);
        t.until("-- mkfifo");
        t.press(&["C-u"]);
        t.write("snapback run -q -- cat made/sin");
        t.press(&["Tab"]);
        t.until("cat made/since-then");
        t.press(&["C-u"]);
        // What bash takes for the end of a word is none.
        t.write("snapback diff @0 --path fre");
        t.press(&["Tab"]);
        t.until("--path fresh");
        t.press(&["C-u"]);
    }
    sandbox().snapback(["completions", "tcsh"]).exits(2).says("bash");
}

#[test]
fn names_with_signs_of_the_shell_are_completed_to_one_word() {
    let s = sandbox();
    if !have("tmux") || !have("bash") {
        return;
    }
    s.write("dir with space/in it", "inside\n");
    s.write("x;touch PWNED", "semicolon\n");
    s.write("y$(touch PWNED)", "dollar\n");
    s.write("it's", "quote\n");
    s.ok(["snap"]);
    s.sh("mkdir ../bin; ln -s \"$SNAPBACK\" ../bin/snapback");
    s.write("../rc", "PS1='in-bash> '; source <(snapback completions bash)\n");
    let t = Screen::new(&s, 100, 20);
    t.line("export PATH=$PWD/../bin:$PATH; exec bash --noprofile --rcfile ../rc -i");
    t.until("in-bash>");
    for (typed, tabs, line, printed) in [
        ("snapback cat @0 d", 2, r"@0 dir\ with\ space/in\ it", "inside"),
        ("snapback cat @0 'dir w", 2, r"@0 dir\ with\ space/in\ it", "inside"),
        ("snapback cat @0 \"dir w", 2, r"@0 dir\ with\ space/in\ it", "inside"),
        (r"snapback cat @0 dir\ w", 2, r"@0 dir\ with\ space/in\ it", "inside"),
        ("snapback cat @0 x", 1, r"@0 x\;touch\ PWNED", "semicolon"),
        ("snapback cat @0 y", 1, r"@0 y\$\(touch\ PWNED\)", "dollar"),
        ("snapback cat @0 it", 1, r"@0 it\'s", "quote"),
    ] {
        t.write(typed);
        (0..tabs).for_each(|_| t.press(&["Tab"]));
        t.until(line);
        t.press(&["Enter"]);
        t.when(printed, |shown| shown.lines().any(|line| line == printed));
        t.press(&["C-l"]);
        t.when("a prompt alone", |shown| shown.trim_end() == "in-bash>");
    }
    assert!(!s.has("PWNED"), "nothing was executed");
}

#[test]
fn the_manual_is_made_of_the_same_words_as_the_help() {
    let s = sandbox();
    s.sh("mkdir ../man pages");
    s.ok(["man", "pages"]);
    assert!(s.has("pages/snapback.1"));
    s.ok(["man", "../man"]);
    let pages = s.sh("ls ../man");
    for page in ["snapback.1", "snapback-run.1", "snapback-undo.1", "snapback-diff.1"] {
        assert!(pages.lines().any(|l| l == page), "{pages}");
    }
    s.ok(["man"]).prints(".TH");
    s.ok(["man", "../new/home/share/man1"]);
    assert_eq!(s.sh("ls ../new/home/share/man1"), pages, "directories are made for it");
    s.sh("touch file");
    s.snapback(["man", "file"]).fails(2, &["file", "directory"]);
    if have("man") {
        let text = s.sh("MANWIDTH=100 man -l ../man/snapback-run.1 | col -b");
        for words in [
            "--undo-on-failure",
            "snapback run -m 'before the codemod' -- npx codemod src",
            "Snapshot only this target",
            "[--only <NAME>]...",
        ] {
            assert!(text.contains(words), "{words}\n{text}");
        }
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    let s = sandbox();
    let help = s.ok(["--help"]).out();
    let commands =
        help.lines().skip_while(|line| *line != "Commands:").skip(1).take_while(|line| !line.is_empty());
    let names: Vec<&str> =
        commands.filter_map(|line| line.split_whitespace().next()).filter(|n| *n != "help").collect();
    assert!(names.len() > 15, "{names:?}");
    for name in names {
        let help = s.ok([name, "--help"]).out();
        assert!(help.contains("Example") && help.contains(&format!("  snapback {name}")), "{help}");
    }
}

#[test]
fn a_misspelt_command_flag_or_name_is_answered_with_the_right_one() {
    let s = sandbox();
    s.write("f", "0");
    s.run("echo 1 > f");
    for (words, code, right) in [
        (&["lst"][..], 2, "'list'"),
        (&["undo", "--stpe"], 2, "'--step'"),
        (&["undo", "--target", "tre"], 1, "`tree`"),
        (&["backends", "show", "tre"], 1, "`tree`"),
        (&["run", "--skip", "tre", "--", "true"], 125, "tree"),
    ] {
        s.snapback(words).exits(code).says(right);
    }
}

#[test]
fn habits_of_git_and_of_shells_are_answered_with_the_way_here() {
    let s = sandbox();
    s.sh("mkdir -p src/in; echo 1 > src/a; echo 1 > README.md");
    s.run("rm README.md; echo 2 > src/a");
    for (words, code, right) in [
        (&["log"][..], 2, "snapback list"),
        (&["undo", "src/a"], 2, "snapback undo --path src/a"),
        (&["undo", "@0"], 2, "snapback restore @0"),
        (&["undo", "2"], 2, "snapback restore 2"),
        (&["redo", "20260102-030405-7f3a"], 2, "snapback restore 20260102-030405-7f3a"),
        (&["run", "--", "cd", "src"], 127, "snapback run -- sh -c 'LINE'"),
        (&["run", "--", "A=1", "env"], 127, "snapback run -- sh -c 'LINE'"),
        (&["restore", "README.md"], 1, "snapback restore @0 --path README.md"),
        (&["restore", "--path", "src/a"], 2, "@0 is the newest"),
        (&["diff", "src"], 1, "snapback diff --path src"),
        (&["show"], 2, "@0 is the newest"),
        (&["run", "cd src && ls"], 127, "snapback run -- sh -c 'cd src && ls'"),
        (&["backends", "add", "/nonexistent"], 1, "NAME.wasm"),
        (&["-C", "src/in", "cat", "@0", "src/a"], 1, "-C"),
    ] {
        let said = s.snapback(words);
        said.exits(code);
        let hint = said.err();
        let hint = hint.lines().find_map(|line| line.strip_prefix("hint: "));
        assert!(hint.is_some_and(|hint| hint.contains(right)), "{words:?}: {said}");
    }
    s.snapback(["undo", "--json", "src/a"]).exits(2).says("--path src/a").says("\"kind\":\"invalid\"");
    s.snapback(["restore", "--json"]).exits(2).says("were not provided: <ID>");
}

#[test]
fn long_commands_are_cut_where_a_sentence_names_them() {
    let s = sandbox();
    let long = "echo line >> f # some comment\n".repeat(60);
    s.snapback(["run", "--", "sh", "-c", &long]).exits(0);
    let whole = s.ok(["show", "@0"]).out();
    assert_eq!(whole.matches("some comment").count(), 60, "{whole}");
    for said in [s.ok(["status"]).out(), s.ok(["undo"]).err(), s.ok(["status"]).out()] {
        assert!(said.contains("echo line") && said.matches("some comment").count() == 1, "{said}");
    }
}

#[test]
fn what_stays_beyond_a_wanted_size_is_said_with_the_reason() {
    let s = sandbox();
    s.write("f", "0");
    s.run("echo 1 > f");
    for words in [&["gc", "--max-size", "1B"][..], &["gc", "--max-size", "1B", "-n"]] {
        s.ok(words).says("more than 1 B").says("never dropped");
    }
    s.ok(["gc", "--max-size", "1GiB"]).never_says("never dropped");
    s.ok(["gc"]).never_says("never dropped");
}

#[test]
fn paths_that_are_not_there_are_named_once_in_a_run() {
    let s = sandbox();
    s.write("snapback.toml", "[snapshot]\npaths = [\"f\", \"nosuch\"]\n");
    s.write("f", "0");
    let said = s.run("echo 1 > f").err();
    assert_eq!(said.matches("nosuch is among `paths`").count(), 1, "{said}");
}

#[test]
fn a_first_snapback_toml_says_what_was_found_and_changes_nothing() {
    let s = sandbox();
    s.sh("mkdir node_modules data; touch node_modules/x package.json; echo 0 > f");
    if have("python3") {
        s.sh("python3 -c \"import sqlite3; c = sqlite3.connect('data/app.db'); c.execute('create table t (a)'); c.commit()\"");
    }
    let targets = s.ok(["status", "--json"]).json()["targets"].clone();
    s.ok(["init"]).says("wrote").says("snapback.toml");
    let text = s.read("snapback.toml");
    for line in ["[snapshot]", "#   node_modules  regenerable: node_modules, 1 file", "#interval = \"0s\""] {
        assert!(text.lines().any(|l| l.starts_with(line)), "{line}\n{text}");
    }
    if have("python3") {
        assert!(text.contains("#path = \"data/app.db\""), "{text}");
    }
    assert_eq!(s.ok(["status", "--json"]).json()["targets"], targets);
    s.write("snapback.toml", "[snapshot]\ngit = true\n");
    s.snapback(["init"]).fails(2, &["snapback.toml", "already"]);
    assert_eq!(s.read("snapback.toml"), "[snapshot]\ngit = true\n");
}
