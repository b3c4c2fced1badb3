//! The components in the repository: of the present sources, and asking for no more
//! than they should. Needs no WebAssembly toolchain.

use snapback_guests::{Workspace, recorded_digest, sources_digest};
use std::fs;
use std::path::Path;
use wit_component::DecodedWasm;

/// The interfaces that the component of `name` imports.
fn imports(name: &str) -> Vec<String> {
    let component = fs::read(Workspace::here().component(name)).unwrap();
    let DecodedWasm::Component(resolve, world) = wit_component::decode(&component).unwrap() else {
        panic!("the component of {name} is not a component");
    };
    resolve.worlds[world].imports.keys().map(|key| resolve.name_world_key(key)).collect()
}

#[test]
fn every_component_is_that_of_its_sources() {
    let plugins = Workspace::here().plugins().unwrap();
    assert!(plugins.contains(&"tree".to_owned()), "{plugins:?}");
    for name in plugins {
        let component = fs::read(Workspace::here().component(&name)).unwrap();
        let recorded = recorded_digest(&component);
        assert_eq!(recorded, Some(sources_digest(&name).unwrap()), "{name} is stale: run `cargo guests`");
    }
}

#[test]
fn the_tree_imports_what_it_needs_and_no_wasi() {
    let imports = imports("tree");
    let expected = ["types", "store", "report", "tree"].map(|name| format!("snapback:plugin/{name}@0.1.0"));
    for import in &imports {
        assert!(expected.contains(import), "{import}");
    }
    assert_eq!(imports.len(), expected.len(), "{imports:?}");
}

/// A workspace with as much in it as a digest looks at.
fn small(root: &Path) -> Workspace {
    let files = [
        ("Cargo.toml", "[profile.release]\n[profile.guest]\nopt-level = \"s\"\n"),
        (
            "Cargo.lock",
            "[[package]]\nname = \"snapback-plugin-p\"\nversion = \"0.1.0\"\ndependencies = [\"d\"]\n\
                        [[package]]\nname = \"d\"\nversion = \"1.0.0\"\n\
                        [[package]]\nname = \"unrelated\"\nversion = \"1.0.0\"\n",
        ),
        ("wit/a.wit", "package a:b;"),
        ("sdk/src/lib.rs", ""),
        ("plugins/p/Cargo.toml", "name = \"snapback-plugin-p\""),
        ("plugins/p/src/lib.rs", ""),
    ];
    for (path, text) in files {
        fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
        fs::write(root.join(path), text).unwrap();
    }
    Workspace::at(root)
}

#[test]
fn each_source_counts_and_nothing_else_does() {
    let root = std::env::temp_dir().join(format!("snapback-guests-{}", std::process::id()));
    let workspace = small(&root);
    assert_eq!(workspace.plugins().unwrap(), ["p"]);
    let before = workspace.digest("p").unwrap();
    let edit = |path: &str, from: &str, to: &str| {
        let text = fs::read_to_string(root.join(path)).unwrap_or_default();
        assert!(text.contains(from));
        fs::write(root.join(path), text.replacen(from, to, 1)).unwrap();
        let after = workspace.digest("p").unwrap();
        fs::write(root.join(path), text).unwrap();
        after
    };
    for (path, from, to) in [
        ("wit/a.wit", "a:b", "a:c"),
        ("sdk/src/lib.rs", "", "// more"),
        ("plugins/p/src/lib.rs", "", "// more"),
        ("Cargo.lock", "name = \"d\"\nversion = \"1.0.0\"", "name = \"d\"\nversion = \"1.0.1\""),
        ("Cargo.toml", "\"s\"", "\"z\""),
    ] {
        assert_ne!(edit(path, from, to), before, "{path}");
    }
    assert_eq!(edit("Cargo.lock", "\"unrelated\"\nversion = \"1", "\"unrelated\"\nversion = \"2"), before);
    fs::write(root.join("plugins/p/p.wasm"), "x").unwrap();
    fs::write(root.join("plugins/p/src/.lib.rs.swp"), "x").unwrap();
    assert_eq!(workspace.digest("p").unwrap(), before);
    assert!(workspace.digest("q").unwrap_err().message.contains("no plugin called `q`"));
    fs::remove_dir_all(&root).unwrap();
}
