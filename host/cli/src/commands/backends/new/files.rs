//! The files of a new project, by path, as they are in the repository that this program was
//! built in.

use crate::args::Language;
use snapback_core::error::{Error, Kind, Result};

/// Files with these names, of a folder of the repository.
macro_rules! of_repository {
    ($folder:literal: $($name:literal),* $(,)?) => {
        &[$(($name, include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../", $folder, "/", $name)))),*]
    };
}

/// The contract.
const WIT: &[(&str, &str)] = of_repository!("wit":
    "backend.wit", "docker.wit", "explain.wit", "file.wit", "finder.wit", "process.wit", "release.wit",
    "report.wit", "sqlite.wit", "store.wit", "tree.wit", "types.wit", "worlds.wit", "deps/README.md",
    "deps/cli.wit", "deps/clocks.wit", "deps/filesystem.wit", "deps/io.wit", "deps/random.wit",
    "deps/sockets.wit",
);

/// The library for Rust, without its Cargo.toml.
const SDK: &[(&str, &str)] = of_repository!("sdk":
    "src/bindings.rs", "src/content.rs", "src/error.rs", "src/file.rs", "src/fs.rs", "src/lib.rs",
    "src/net.rs", "src/options.rs", "src/process.rs", "src/wait.rs",
);

/// The library's Cargo.toml, and the workspace's, from which it has its versions.
const SDK_MANIFEST: &str = include_str!("../../../../../../sdk/Cargo.toml");
const WORKSPACE: &str = include_str!("../../../../../../Cargo.toml");

const LAW: (&str, &str) = ("law.toml", include_str!("law.toml"));

const RUST: &[(&str, &str)] = &[
    LAW,
    (".gitignore", include_str!("rust/gitignore")),
    ("Cargo.toml", include_str!("rust/Cargo.toml")),
    ("README.md", include_str!("rust/README.md")),
    ("src/lib.rs", include_str!("rust/src/lib.rs")),
];

const PYTHON: &[(&str, &str)] = &[
    LAW,
    (".gitignore", include_str!("python/gitignore")),
    ("README.md", include_str!("python/README.md")),
    ("app.py", include_str!("python/app.py")),
];

/// The files of a project for the backend called `name`: their paths and what is in them.
///
/// # Errors
/// When this program was built in a repository that it does not understand.
pub fn of(name: &str, language: Language) -> Result<Vec<(String, String)>> {
    let own = match language {
        Language::Rust => RUST,
        Language::Python => PYTHON,
    };
    let named = |text: &str| text.replace("@NAME@", name).replace("@MODULE@", &name.replace('-', "_"));
    let mut files: Vec<_> = own.iter().map(|(path, text)| ((*path).to_owned(), named(text))).collect();
    files.extend(WIT.iter().map(|(path, text)| (format!("wit/{path}"), (*text).to_owned())));
    if matches!(language, Language::Rust) {
        files.extend(SDK.iter().map(|(path, text)| (format!("sdk/{path}"), (*text).to_owned())));
        files.push(("sdk/Cargo.toml".into(), alone(SDK_MANIFEST, WORKSPACE)?));
    }
    Ok(files)
}

/// `manifest` of a package of `workspace` as it stands without it.
fn alone(manifest: &str, workspace: &str) -> Result<String> {
    let parse = |text: &str| text.parse::<toml::Table>().ok();
    let wrong = || Error::new(Kind::Other, "the library's Cargo.toml makes no sense");
    let (mut manifest, workspace) = (parse(manifest).ok_or_else(wrong)?, parse(workspace).ok_or_else(wrong)?);
    let shared = workspace.get("workspace").and_then(toml::Value::as_table).ok_or_else(wrong)?;
    for section in ["package", "dependencies"] {
        let table = manifest.get_mut(section).and_then(toml::Value::as_table_mut).ok_or_else(wrong)?;
        for (key, value) in table.iter_mut().filter(|(_, value)| value.get("workspace").is_some()) {
            let of = shared.get(section).and_then(|all| all.get(key)).ok_or_else(wrong)?;
            *value = of.clone();
        }
    }
    // How the repository looks at its own sources is no part of a library.
    manifest.remove("lints");
    toml::to_string(&manifest).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::path::Path;

    fn there(folder: &str) -> BTreeSet<String> {
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
        let (mut todo, mut found) = (vec![top.clone()], BTreeSet::new());
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(dir).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    todo.push(path);
                } else {
                    found.insert(path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        found
    }

    #[test]
    fn a_project_gets_all_of_the_contract_and_the_library() {
        let own = |files: &[(&str, &str)]| {
            files.iter().map(|(path, _)| (*path).to_owned()).collect::<BTreeSet<_>>()
        };
        assert_eq!(own(WIT), there("wit"));
        let mut sdk = own(SDK);
        sdk.insert("Cargo.toml".into());
        assert_eq!(sdk, there("sdk"));
    }

    #[test]
    fn the_library_stands_alone_with_the_versions_of_the_workspace() {
        let alone: toml::Table = alone(SDK_MANIFEST, WORKSPACE).unwrap().parse().unwrap();
        assert!(!alone["package"]["version"].is_table() && !alone.contains_key("lints"), "{alone}");
        let workspace: toml::Table = WORKSPACE.parse().unwrap();
        assert_eq!(
            alone["dependencies"]["wit-bindgen"],
            workspace["workspace"]["dependencies"]["wit-bindgen"]
        );
    }

    #[test]
    fn names_are_put_in_everywhere() {
        for language in [Language::Rust, Language::Python] {
            for (path, text) in of("my-own", language).unwrap() {
                assert!(!text.contains("@NAME@") && !text.contains("@MODULE@"), "{path}");
            }
        }
        let readme = of("my-own", Language::Rust).unwrap().into_iter().find(|(path, _)| path == "README.md");
        assert!(readme.unwrap().1.contains("release/my_own.wasm"));
    }
}
