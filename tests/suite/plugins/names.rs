//! Two backends of one name, in every pair of places: the order decides, and it is said.

use super::{folder, probe};
use crate::sandbox;
use snapback_tests::Sandbox;
use std::fs;
use std::path::PathBuf;

/// Where backends are found, in order; in the program first.
const PLACES: [&str; 4] = ["mine", "dir", "first", "second"];

fn place(s: &Sandbox, which: &str) -> PathBuf {
    match which {
        "mine" => folder(s),
        other => s.project().join(other),
    }
}

fn list(s: &Sandbox) -> Vec<serde_json::Value> {
    let path = format!("{0}/first:{0}/second", s.project().display());
    let said = s.finish(s.program().env("SNAPBACK_PLUGIN_PATH", path).args(["backends", "--json"]));
    said.exits(0);
    said.json().as_array().unwrap().clone()
}

#[test]
fn the_first_place_wins_and_the_other_is_named_with_it() {
    for (at, first) in PLACES.iter().enumerate() {
        for second in &PLACES[at + 1..] {
            let s = sandbox();
            s.write("snapback.toml", "[plugins]\ndir = \"dir\"\n");
            for which in PLACES {
                fs::create_dir_all(place(&s, which)).unwrap();
            }
            for which in [first, second] {
                fs::write(place(&s, which).join("probe.wasm"), probe()).unwrap();
            }
            let list = list(&s);
            let of = |which: &str| {
                let file = place(&s, which).join("probe.wasm");
                let file = file.to_str().unwrap();
                let item = list.iter().find(|item| item["origin"] == file);
                item.unwrap_or_else(|| panic!("{file} is not listed"))["status"].as_str().unwrap().to_owned()
            };
            assert!(!of(first).contains("hidden"), "{first} {second}: {}", of(first));
            let hidden = of(second);
            assert!(hidden.contains("it is hidden by the one of that name"), "{first} {second}: {hidden}");
            assert!(hidden.contains(place(&s, first).to_str().unwrap()), "{first} {second}: {hidden}");
        }
    }
}

#[test]
fn nothing_takes_the_place_of_what_came_inside_the_program() {
    for which in PLACES {
        let s = sandbox();
        s.write("snapback.toml", "[plugins]\ndir = \"dir\"\n");
        fs::create_dir_all(place(&s, which)).unwrap();
        fs::write(place(&s, which).join("tree.wasm"), probe()).unwrap();
        let list = list(&s);
        let all: Vec<_> = list.iter().filter(|item| item["name"] == "tree").collect();
        assert_eq!((&all[0]["origin"], &all[0]["status"]), (&"built-in".into(), &"ready".into()), "{which}");
        assert!(
            all[1]["status"].as_str().unwrap().contains("hidden by the one of that name: built-in"),
            "{which}"
        );
    }
}

#[test]
fn one_that_is_added_where_another_hides_it_is_told() {
    let s = sandbox();
    s.write("snapback.toml", "[plugins]\ndir = \"dir\"\n");
    fs::write(s.home().join("x.wasm"), probe()).unwrap();
    s.ok(["backends", "add", "../x.wasm"]);
    fs::create_dir(s.project().join("dir")).unwrap();
    fs::write(s.project().join("dir/probe.wasm"), probe()).unwrap();
    // The user's own come before the project's.
    let list = s.ok(["backends", "--json"]).json();
    let first = list.as_array().unwrap().iter().find(|item| item["name"] == "probe").unwrap().clone();
    assert_eq!(first["origin"], folder(&s).join("probe.wasm").to_str().unwrap());
}
