//! What may come in: licences, sources and bans, as deny.toml has them.
//!
//! `cargo deny check licenses bans sources` reads the same file; this needs nothing but
//! cargo. Security advisories need a database from the network and are not looked at.

use crate::{metadata, root};
use std::collections::BTreeSet;

/// deny.toml.
struct Rules {
    allow: BTreeSet<String>,
    deny: BTreeSet<String>,
    registry: String,
}

fn rules() -> Rules {
    let text = std::fs::read_to_string(root().join("deny.toml")).expect("deny.toml can be read");
    let table: toml::Table = text.parse().expect("deny.toml is TOML");
    let list = |table: &toml::Value| -> Vec<toml::Value> { table.as_array().expect("a list").clone() };
    let text = |value: &toml::Value| value.as_str().expect("a text").to_owned();
    Rules {
        allow: list(&table["licenses"]["allow"]).iter().map(text).collect(),
        deny: list(&table["bans"]["deny"]).iter().map(|entry| text(&entry["crate"])).collect(),
        registry: text(&list(&table["sources"]["allow-registry"])[0]),
    }
}

#[test]
fn every_dependency_may_be_used_and_comes_from_the_registry() {
    let (rules, metadata) = (rules(), metadata());
    let packages = metadata["packages"].as_array().expect("there are packages");
    assert!(packages.len() > 100);
    for package in packages {
        let name = package["name"].as_str().expect("a package has a name");
        let licence = package["license"].as_str().unwrap_or("none");
        assert!(allowed(licence, &rules.allow), "{name} is under {licence}");
        assert!(!rules.deny.contains(name), "{name} is banned");
        if let Some(source) = package["source"].as_str() {
            assert_eq!(source, format!("registry+{}", rules.registry), "{name}");
        }
    }
}

/// Whether a licence expression can be met with what is allowed. "/" is the old way to
/// write OR; an exception (WITH) is part of its licence's name.
fn allowed(expression: &str, allow: &BTreeSet<String>) -> bool {
    let text = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let tokens: Vec<&str> = text.split_whitespace().collect();
    let mut rest = &tokens[..];
    let met = either(&mut rest, allow);
    met && rest.is_empty()
}

fn either(rest: &mut &[&str], allow: &BTreeSet<String>) -> bool {
    let mut met = both(rest, allow);
    while rest.first() == Some(&"OR") {
        *rest = &rest[1..];
        met |= both(rest, allow);
    }
    met
}

fn both(rest: &mut &[&str], allow: &BTreeSet<String>) -> bool {
    let mut met = one(rest, allow);
    while rest.first() == Some(&"AND") {
        *rest = &rest[1..];
        met &= one(rest, allow);
    }
    met
}

fn one(rest: &mut &[&str], allow: &BTreeSet<String>) -> bool {
    if rest.first() == Some(&"(") {
        *rest = &rest[1..];
        let met = either(rest, allow);
        let closed = rest.first() == Some(&")");
        *rest = rest.get(1..).unwrap_or_default();
        return met && closed;
    }
    let end = rest.iter().position(|t| ["OR", "AND", ")"].contains(t)).unwrap_or(rest.len());
    let (name, after) = rest.split_at(end);
    *rest = after;
    allow.contains(&name.join(" "))
}

#[test]
fn licence_expressions_are_understood() {
    let allow = ["MIT", "BSD-3-Clause", "Apache-2.0 WITH LLVM-exception"].map(str::to_owned).into();
    for good in [
        "MIT",
        "GPL-3.0 OR MIT",
        "GPL-3.0/MIT",
        "Apache-2.0 WITH LLVM-exception",
        "(GPL-3.0 OR MIT) AND BSD-3-Clause",
        "Zlib OR (MIT AND BSD-3-Clause)",
    ] {
        assert!(allowed(good, &allow), "{good}");
    }
    for bad in ["", "none", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT)", "Apache-2.0", "MIT GPL-3.0"] {
        assert!(!allowed(bad, &allow), "{bad}");
    }
}
