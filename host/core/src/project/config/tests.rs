//! What snapback.toml may say, and what is refused in it.

use super::*;

fn message(text: &str) -> String {
    let error = Config::parse(text).unwrap_err();
    format!("{error} | {}", error.hint_text().unwrap_or(""))
}

#[test]
fn nothing_needs_to_be_said() {
    assert_eq!(Config::parse("").unwrap(), Config::default());
    assert_eq!(Config::default().targets[0].target.backend, "tree");
}

#[test]
fn all_documented_keys_are_taken() {
    let config = Config::parse(
        r#"
        [snapshot]
        enabled = true
        paths = ["src", "docs"]
        ignore = ["*.log"]
        include = []
        skip-regenerable = false
        max-files-per-dir = 20000
        cross-mounts = true
        git = true
        sqlite = false
        strategy = "copy"
        times = "stored"
        interval = "30s"
        [plugins]
        dir = "tools/plugins"
        [[target]]
        backend = "sqlite"
        path = "app.db"
        busy-timeout = "5s"
        every-interval = true
        [[target]]
        name = "off"
        backend = "sqlite"
        enabled = false
        "#,
    )
    .unwrap();
    assert_eq!(config.interval, Duration::from_secs(30));
    assert_eq!(config.plugins, Some("tools/plugins".into()));
    assert_eq!(config.targets.len(), 2);
    let tree = &config.targets[0].target.settings;
    assert_eq!(tree["paths"], "src\ndocs");
    assert_eq!(tree["max-files-per-dir"], "20000");
    let said =
        ["skip-regenerable", "cross-mounts", "git", "sqlite", "strategy", "times", "ignore", "include"];
    let values = ["false", "true", "true", "false", "copy", "stored", "*.log", ""];
    assert_eq!(said.map(|key| tree[key].as_str()), values);
    assert_eq!(tree.len(), TREE_KEYS.len(), "each is handed on");
    let database = &config.targets[1];
    assert_eq!(database.target.name, "sqlite");
    assert_eq!(database.target.settings["busy-timeout"], "5s");
    assert!(database.every_interval && config.targets[0].every_interval);
    let quiet = Config::parse("[[target]]\nbackend = \"sqlite\"").unwrap();
    assert_eq!(quiet.targets.iter().map(|target| target.every_interval).collect::<Vec<_>>(), [true, false]);
}

#[test]
fn an_unknown_key_names_the_nearest_and_the_line() {
    assert_eq!(
        message("[snapshot]\n\nignroe = []\n"),
        "snapback.toml, line 3: there is no key `ignroe` | did you mean `ignore`?"
    );
    assert_eq!(
        message("[snapshots]\n"),
        "snapback.toml, line 1: there is no key `snapshots` | did you mean `snapshot`?"
    );
    assert!(message("[retention]\nkeep = 1\n").contains("known here: snapshot, target, plugins"));
}

#[test]
fn wrong_values_name_what_is_wanted() {
    for (text, wanted) in [
        ("[snapshot]\ngit = \"yes\"", "line 2: `git` must be true or false"),
        ("[snapshot]\nignore = \"x\"", "line 2: `ignore` must be a list of texts"),
        ("[snapshot]\nmax-files-per-dir = -1", "line 2: `max-files-per-dir` must be a whole number"),
        ("[snapshot]\nmax-files-per-dir = 0x10", "line 2: `max-files-per-dir` must be a whole number"),
        ("[snapshot]\nignore = [\"a\\nb\"]", "line 2: `ignore` must be a list of texts of one line each"),
        ("[snapshot]\nstrategy = \"zfs\"", "line 2: `strategy` must be one of auto, copy"),
        ("[snapshot]\ninterval = \"soon\"", "line 2: `soon` is not a duration"),
        ("[snapshot\n", "line 1: "),
        ("[[target]]\nname = \"x\"", "line 1: a [[target]] without `backend`"),
        ("[[target]]\nbackend = \"tree\"", "there are two targets called `tree`"),
        ("[snapshot]\nenabled = false\n[[target]]\nbackend = \"tree\"", "two targets called `tree`"),
        ("[[target]]\nbackend = \"s\"\nname = \"../x\"", "cannot be the name of a target"),
        ("[[target]]\nbackend = \"s\"\nname = \".x\"", "cannot be the name of a target"),
        ("target = 5", "`target` must be written as [[target]]"),
    ] {
        let message = message(text);
        assert!(message.contains(wanted), "{text}: {message}");
    }
}

#[test]
fn the_tree_can_be_switched_off() {
    assert!(Config::parse("[snapshot]\nenabled = false").unwrap().targets.is_empty());
}
