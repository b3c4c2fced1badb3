//! The examples in the help: each is a command line that does what stands beside it.

use crate::sandbox;
use snapback_tests::Sandbox;
use std::os::unix::fs::symlink;

/// Those that cannot do it here, and what they say.
const OTHERWISE: [(&str, i32, &str); 4] = [
    ("snapback undo -i", 2, "a review needs a terminal"),
    ("snapback review", 2, "a review needs a terminal"),
    ("snapback undo --resume", 1, "no step was cut short"),
    ("snapback trust --revoke --target db", 1, "nothing was agreed to here for the target `db`"),
];

/// The command lines among the examples of all commands, without what stands beside them.
fn examples() -> Vec<String> {
    let s = sandbox();
    let help = s.ok(["--help"]).out();
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names =
        commands.take_while(|line| !line.is_empty()).filter_map(|line| line.split_whitespace().next());
    let mut examples = Vec::new();
    for name in names.filter(|name| *name != "help") {
        let help = s.ok([name, "--help"]).out();
        let lines = help.lines().filter_map(|line| line.strip_prefix("  snapback "));
        let lines = lines.map(|line| format!("snapback {}", line.split("  ").next().unwrap_or(line)));
        examples.extend(lines);
    }
    examples
}

/// A project with three runs behind it, and all that the examples name.
fn project() -> Sandbox {
    let s = sandbox();
    s.sh(
        "mkdir -p ../bin ../.zfunc ../.local/share/bash-completion/completions ../.config/fish/completions \
          src/generated; echo 'echo done > made' > migrate.sh; chmod +x migrate.sh; \
          for f in make npx claude; do cp migrate.sh ../bin/$f; done; \
          for f in src/main.rs src/db src/generated/a notes.txt; do echo 0 > $f; done",
    );
    symlink(s.program().get_program(), s.home().join("bin/snapback")).unwrap();
    std::fs::copy(
        format!("{}/../../plugins/redis/redis.wasm", env!("CARGO_MANIFEST_DIR")),
        s.project().join("x.wasm"),
    )
    .unwrap();
    for n in 1..=3 {
        s.run(&format!("for f in src/main.rs src/db src/generated/a notes.txt; do echo {n} > $f; done"));
    }
    s
}

#[test]
fn each_example_of_the_help_works() {
    let examples = examples();
    assert!(examples.len() > 45, "{examples:#?}");
    for example in examples {
        let s = project();
        if example.contains("redo") {
            s.ok(["undo"]);
        }
        // The IDs in them are others.
        let list = s.ok(["list", "--json"]).json();
        let oldest = list.as_array().unwrap().last().unwrap()["id"].as_str().unwrap().to_owned();
        let line = example.replace("7f3a", &oldest[16..]).replace("20260102", &oldest);
        let mut shell = s.command("sh");
        let path = format!("{}:{}", s.home().join("bin").display(), std::env::var("PATH").unwrap());
        shell.env("PATH", path).env("HOME", s.home()).env("EDITOR", "cat").args(["-c", &line]);
        let said = s.finish(&mut shell);
        match OTHERWISE.iter().find(|(other, ..)| *other == example) {
            Some((_, code, words)) => drop(said.exits(*code).says(words)),
            None => drop(said.exits(0)),
        }
    }
}
