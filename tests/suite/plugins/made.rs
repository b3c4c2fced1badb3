//! Projects that `backends new` makes: they build with what their language brings, and what
//! they build keeps the law.

use crate::sandbox;
use snapback_tests::{Sandbox, have, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

const TARGET: &str = "wasm32-unknown-unknown";

/// Every law is kept by `file`, and one state is undone by it.
fn keeps_the_law(s: &Sandbox, project: &str, file: &Path) {
    let file = file.to_str().unwrap();
    let settings = format!("{project}/law.toml");
    let verdicts = s.ok(["backends", "test", file, "--settings", &settings, "--json"]).json();
    let verdicts = verdicts.as_array().unwrap();
    assert!(verdicts.len() >= 9, "{verdicts:?}");
    for verdict in verdicts {
        assert_eq!(verdict["outcome"], "kept", "{verdict}");
    }
}

/// The cargo that can build for WebAssembly here, as README.md of such a project has it.
fn cargo() -> Option<Command> {
    let sysroot = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
    let sysroot = PathBuf::from(String::from_utf8(sysroot.stdout).ok()?.trim());
    if sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir() {
        return Some(Command::new("cargo"));
    }
    if !Path::new("/usr/lib/rustlib/src/rust/library/std/Cargo.toml").exists() {
        return None;
    }
    let own = sysroot.join(format!("lib/rustlib/{}-unknown-linux-gnu/bin/rust-lld", std::env::consts::ARCH));
    let linker = if own.exists() { own } else { "wasm-ld".into() };
    let mut cargo = Command::new("/usr/bin/cargo");
    cargo
        .args(["-Zbuild-std=std,panic_abort"])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTC", "/usr/bin/rustc")
        .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    Some(cargo)
}

#[test]
fn a_rust_project_builds_and_keeps_the_law() {
    let s = sandbox();
    s.ok(["backends", "new", "my-own", "--lang", "rust"]).says("README.md");
    assert!(s.read("my-own/README.md").contains("rustup target add wasm32-unknown-unknown"));
    let lines = s.read("my-own/src/lib.rs").lines().count();
    assert!(lines < 70, "{lines} lines are more than a beginning");
    let Some(mut cargo) = cargo() else {
        skip("no compiler for WebAssembly");
        return;
    };
    // Kept from run to run: the standard library is built in it.
    let built = Path::new(env!("CARGO_TARGET_TMPDIR")).join("made");
    let status = cargo
        .current_dir(s.project().join("my-own"))
        .args(["build", "--quiet", "--offline", "--release", "--target", TARGET, "--target-dir"])
        .arg(&built)
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("RUSTUP_TOOLCHAIN")
        .status();
    assert!(status.expect("cargo runs").success(), "the project does not build");
    let module = built.join(TARGET).join("release/my_own.wasm");
    keeps_the_law(&s, "my-own", &module);

    // Nothing but what it calls is asked for.
    s.ok(["backends", "add", module.to_str().unwrap()]).says("asks for file");
    let wants = s.ok(["backends", "show", "my-own", "--json"]).json()["wants"].to_string();
    assert_eq!(wants, "[\"file\",\"file (file)\"]");
}

#[test]
fn a_python_project_builds_and_keeps_the_law() {
    let s = sandbox();
    s.ok(["backends", "new", "my-py", "--lang", "python"]).says("README.md");
    if !have("componentize-py") {
        return;
    }
    let words = ["--wit-path", "wit", "--world", "file-plugin", "componentize", "app", "-o", "my-py.wasm"];
    let readme = s.read("my-py/README.md");
    assert!(readme.contains(&words.join(" ")), "{readme}");
    let status = Command::new("componentize-py").args(words).current_dir(s.project().join("my-py")).status();
    assert!(status.expect("componentize-py runs").success(), "the project does not build");
    keeps_the_law(&s, "my-py", &s.project().join("my-py/my-py.wasm"));
}

#[test]
fn what_is_there_is_not_written_over_and_a_bad_name_is_told() {
    let s = sandbox();
    s.write("there/f", "mine\n");
    for language in ["rust", "python"] {
        s.snapback(["backends", "new", "there", "--lang", language]).fails(2, &["there is something at"]);
        for name in ["Upper", "../up", "a b", "1st"] {
            s.snapback(["backends", "new", name, "--lang", language]).fails(2, &["is not a backend's name"]);
        }
    }
    assert_eq!(s.sh("ls there"), "f\n");
    let said = s.snapback(["backends", "new", "x", "--lang", "cobol"]);
    said.exits(2).says("rust");
}

#[test]
fn what_the_law_said_is_shown_with_the_component_that_it_said_it_of() {
    let s = sandbox();
    super::install(&s);
    let file = super::folder(&s).join("probe.wasm");
    let file = file.to_str().unwrap();
    s.ok(["backends", "show", "probe"]).prints("law       not tried");
    s.write(
        "law.toml",
        "[target]\nroom = \"room\"\ncareless = true\n[test]\nsetup = \"mkdir room; echo one > room/state\"\n\
        change = [\"echo two > room/state\", \"echo three >> room/state\"]\nprobe = \"cat room/state\"\n",
    );
    s.snapback(["backends", "test", file, "--settings", "law.toml"]).exits(1);
    let shown = s.ok(["backends", "show", "probe"]);
    shown
        .prints("8 kept, 1 broken")
        .prints("just now")
        .prints("broken: what changed in between is left alone");
    let json = s.ok(["backends", "show", "probe", "--json"]).json();
    assert_eq!(json["law"]["verdicts"].as_array().unwrap().len(), 9, "{json}");
    // One byte more is another component.
    let mut other = super::probe();
    other.extend_from_slice(b"\0\x02\x01x");
    std::fs::write(file, other).unwrap();
    s.ok(["backends", "show", "probe"]).prints("law       not tried");
}
