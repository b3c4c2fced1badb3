//! That wasmtime is built once.
//!
//! Cargo turns on the features that all chosen packages want together. Where another
//! package of the workspace wanted more of a shared dependency than the program does,
//! `cargo build` and `cargo test --workspace` would each build all above it. The mend is
//! to name that dependency with those features in host/runtime/Cargo.toml.

use crate::cargo;
use std::collections::BTreeSet;

#[test]
fn building_and_testing_want_the_same_dependencies() {
    let program = packages(&["-p", "snapback", "-e", "normal,build"]);
    let all = packages(&["--workspace", "-e", "normal,build,dev"]);
    assert!(program.iter().any(|line| line.starts_with("wasmtime v")), "{program:?}");
    let other: Vec<&String> = program.difference(&all).collect();
    assert!(other.is_empty(), "built with fewer features when built alone: {other:?}");
}

/// One line for each package with its features.
fn packages(which: &[&str]) -> BTreeSet<String> {
    let fixed = ["tree", "--locked", "--prefix", "none", "--format", "{p} [{f}]"];
    let text = cargo(&[&fixed[..], which].concat());
    text.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
}
