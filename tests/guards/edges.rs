//! The arrows that must never be.
//!
//! Crate edges are read from `cargo metadata`, development dependencies aside. What an
//! edge cannot tell (who reads the environment, who knows of history) is a word that
//! must not stand in the sources of a room.

use crate::sources::rust_files;
use crate::{metadata, root};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// From, and what it must not reach through any number of edges.
const NEVER: [(&str, &[&str]); 4] = [
    ("snapback-core", &["wasmtime", "tokio", "clap", "rusqlite", "bollard", "snapback-runtime", "snapback"]),
    ("snapback-runtime", &["snapback", "clap"]),
    ("snapback-sdk", &["snapback-core", "snapback-runtime", "snapback"]),
    ("snapback", &["snapback-sdk", "snapback-guests", "snapback-tests"]),
];

/// Room, word that must not stand in its code, why.
const WORDS: [(&str, &str, &str); 6] = [
    ("host/core/src", "env::var", "core does not read the environment"),
    ("host/core/src", "env::current_dir", "core does not read the environment"),
    ("host/core/src", "process::exit", "only the command line exits"),
    ("host/runtime/src", "snapback_core::history", "the runtime knows objects and trees, not history"),
    ("host/runtime/src", "snapback_core::session", "the runtime knows objects and trees, not history"),
    ("host/runtime/src", "process::exit", "only the command line exits"),
];

#[test]
fn no_crate_reaches_what_it_must_not_know() {
    let edges = edges(&metadata());
    for (from, never) in NEVER {
        let reached = reach(&edges, from);
        assert!(reached.len() > 2, "{from} depends on nothing: is it still called that?");
        for to in never {
            assert!(!reached.contains(*to), "{from} -> {to}");
        }
    }
    let plugins: Vec<&String> = edges.keys().filter(|name| name.starts_with("snapback-plugin-")).collect();
    assert!(!plugins.is_empty(), "there are backends");
    for plugin in plugins {
        for to in reach(&edges, plugin).iter().filter(|to| to.starts_with("snapback")) {
            assert!(to == "snapback-sdk", "{plugin} -> {to}");
        }
    }
}

#[test]
fn no_room_uses_what_it_must_not_touch() {
    for (room, word, why) in WORDS {
        let files = rust_files(&root().join(room));
        assert!(!files.is_empty(), "{room} holds sources");
        for (path, text) in files.into_iter().filter(|(path, _)| !is_test(path)) {
            let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
            assert!(!code.contains(word), "{}: `{word}`: {why}", path.display());
        }
    }
}

/// Whether a file is compiled for tests alone.
fn is_test(path: &Path) -> bool {
    path.ends_with("tests.rs") || path.ends_with("testing.rs") || path.iter().any(|part| part == "tests")
}

/// Which package depends on which, by name, as the program is built.
fn edges(metadata: &Value) -> BTreeMap<String, BTreeSet<String>> {
    let packages = metadata["packages"].as_array().expect("there are packages");
    let name = |id: &Value| {
        let package = packages.iter().find(|p| p["id"] == *id).expect("an edge leads to a package");
        package["name"].as_str().expect("a package has a name").to_owned()
    };
    let nodes = metadata["resolve"]["nodes"].as_array().expect("there is a graph");
    nodes
        .iter()
        .map(|node| {
            let edges = node["deps"].as_array().expect("a node has edges");
            let used = edges.iter().filter(|edge| {
                edge["dep_kinds"].as_array().expect("an edge has kinds").iter().any(|k| k["kind"] != "dev")
            });
            (name(&node["id"]), used.map(|edge| name(&edge["pkg"])).collect())
        })
        .collect()
}

fn reach(edges: &BTreeMap<String, BTreeSet<String>>, from: &str) -> BTreeSet<String> {
    let (mut reached, mut todo) = (BTreeSet::new(), vec![from.to_owned()]);
    while let Some(name) = todo.pop() {
        for next in edges.get(&name).into_iter().flatten() {
            if reached.insert(next.clone()) {
                todo.push(next.clone());
            }
        }
    }
    reached
}
