//! That wasmtime is built once.
//!
//! Cargo turns on the features that all chosen packages want together. Where one choice
//! wants more of a shared dependency than another, each builds all that stands on it. The
//! mend is to name that dependency, with those features, in host/runtime/Cargo.toml.

use crate::root;
use serde_json::Value;
use std::collections::BTreeMap;
use std::process::Command;

/// Ways to build that share one build of the dependencies with `cargo test --workspace`.
const WAYS: [&[&str]; 4] =
    [&["build"], &["build", "--workspace"], &["test", "-p", "snapback"], &["test", "-p", "snapback-runtime"]];

#[test]
fn every_way_to_build_wants_the_same_dependencies() {
    let all = dependencies(&["test", "--workspace"]);
    assert!(all.values().any(|name| name.contains("#wasmtime@")), "{all:?}");
    for way in WAYS {
        let here = dependencies(way);
        assert!(here.len() > 100, "{way:?}");
        let other: Vec<&String> =
            here.iter().filter(|(key, _)| !all.contains_key(*key)).map(|(_, name)| name).collect();
        assert!(other.is_empty(), "`cargo {}` builds these once more: {other:#?}", way.join(" "));
    }
}

/// What cargo would build of others' packages: each with all that makes it what it is
/// (features, profile, and the same of what it depends on), and its name.
fn dependencies(way: &[&str]) -> BTreeMap<String, String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(root()).args(way).args(["--release", "--locked", "--unit-graph"]);
    // The graph of what would be built is something that cargo calls unstable.
    let output = command.args(["-Z", "unstable-options"]).env("RUSTC_BOOTSTRAP", "1").output();
    let output = output.expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let graph: Value = serde_json::from_slice(&output.stdout).expect("cargo prints JSON");
    let units = graph["units"].as_array().expect("a graph has units");
    let mut keys = vec![None; units.len()];
    let built = |unit: &&usize| {
        let unit = &units[**unit];
        unit["mode"] == "build" && unit["pkg_id"].as_str().is_some_and(|id| id.starts_with("registry"))
    };
    let indices: Vec<usize> = (0..units.len()).collect();
    indices
        .iter()
        .filter(built)
        .map(|&unit| {
            (key(units, unit, &mut keys), format!("{} {}", units[unit]["pkg_id"], units[unit]["features"]))
        })
        .collect()
}

/// All that makes a unit what it is, in few letters.
fn key(units: &[Value], at: usize, keys: &mut Vec<Option<String>>) -> String {
    use std::hash::{DefaultHasher, Hash, Hasher};
    if let Some(key) = &keys[at] {
        return key.clone();
    }
    let unit = &units[at];
    let mut hasher = DefaultHasher::new();
    for part in ["pkg_id", "target", "features", "mode", "platform", "profile"] {
        unit[part].to_string().hash(&mut hasher);
    }
    let depends = unit["dependencies"].as_array().expect("a unit has dependencies");
    let index = |d: &Value| usize::try_from(d["index"].as_u64().expect("a number")).expect("a small one");
    let mut below: Vec<String> = depends.iter().map(|d| key(units, index(d), keys)).collect();
    below.sort();
    below.hash(&mut hasher);
    let key = format!("{:016x}", hasher.finish());
    keys[at] = Some(key.clone());
    key
}
