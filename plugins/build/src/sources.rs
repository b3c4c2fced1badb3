//! What a component is made from.

use crate::{Failure, Result};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Where plugins are: those for use, and those that tests need.
const FOLDERS: [&str; 2] = ["plugins", "tests/components"];

/// The repository that the plugins are built in.
pub struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The one that this crate was compiled in.
    pub fn here() -> Self {
        Self::at(Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."))
    }

    /// The one at `root`.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The names of its plugins: the folders of `plugins/`, and of those for the tests,
    /// that hold a package called `snapback-plugin-` and the folder's name.
    ///
    /// # Errors
    /// When a folder cannot be read.
    pub fn plugins(&self) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for folder in FOLDERS.iter().map(|folder| self.root.join(folder)).filter(|folder| folder.is_dir()) {
            for entry in WalkDir::new(&folder).min_depth(1).max_depth(1).sort_by_file_name() {
                let entry =
                    entry.map_err(|e| Failure::new(format!("could not read {}: {e}", folder.display())))?;
                let Some(name) = entry.file_name().to_str() else { continue };
                let manifest = fs::read_to_string(entry.path().join("Cargo.toml")).unwrap_or_default();
                if manifest.contains(&format!("\"{}\"", package(name))) {
                    names.push(name.to_owned());
                }
            }
        }
        Ok(names)
    }

    /// The folder of plugin `name`, relative to the root.
    fn folder(&self, name: &str) -> String {
        let folders = FOLDERS.map(|folder| format!("{folder}/{name}"));
        let found = folders.iter().find(|folder| self.root.join(folder).is_dir());
        found.unwrap_or(&folders[0]).clone()
    }

    /// Where the component of `name` is checked in.
    pub fn component(&self, name: &str) -> PathBuf {
        self.root.join(self.folder(name)).join(format!("{name}.wasm"))
    }

    /// A digest over all that the component of plugin `name` is made from.
    ///
    /// # Errors
    /// When a source or the lock file cannot be read.
    pub fn digest(&self, name: &str) -> Result<String> {
        let locked = self.locked(name)?;
        let mut hasher = Sha256::new();
        let mut add = |what: &str, bytes: &[u8]| {
            for part in [what.as_bytes(), bytes] {
                hasher.update((part.len() as u64).to_le_bytes());
                hasher.update(part);
            }
        };
        for folder in ["wit".to_owned(), "sdk".to_owned(), self.folder(name)] {
            for path in self.files(&folder)? {
                let bytes = fs::read(self.root.join(&path)).map_err(|e| unreadable(&path, &e))?;
                add(&path, &bytes);
            }
        }
        for line in locked {
            add("locked", line.as_bytes());
        }
        add("profile", self.profile()?.as_bytes());
        Ok(hex(&hasher.finalize()))
    }

    /// The files of `folder`, relative to the root, without what an editor or a build leaves.
    fn files(&self, folder: &str) -> Result<Vec<String>> {
        let top = self.root.join(folder);
        let mut files = Vec::new();
        let wanted = |name: &str| !name.starts_with('.') && !name.ends_with('~') && name != "target";
        let walk = WalkDir::new(&top)
            .sort_by_file_name()
            .into_iter()
            .filter_entry(|entry| entry.depth() == 0 || entry.file_name().to_str().is_some_and(wanted));
        for entry in walk {
            let entry = entry.map_err(|e| Failure::new(format!("could not read {}: {e}", top.display())))?;
            let path = entry.path().strip_prefix(&self.root).unwrap_or(entry.path());
            if entry.file_type().is_file() && path.extension().is_none_or(|e| e != "wasm") {
                files.push(path.to_string_lossy().into_owned());
            }
        }
        Ok(files)
    }

    /// Name, version and checksum of all that the plugin depends on, sorted.
    fn locked(&self, name: &str) -> Result<BTreeSet<String>> {
        let lock = self.toml("Cargo.lock")?;
        let mut packages: BTreeMap<&str, Vec<&toml::Table>> = BTreeMap::new();
        for table in lock.get("package").and_then(toml::Value::as_array).into_iter().flatten() {
            if let Some(table) = table.as_table() {
                packages.entry(text(table, "name")).or_default().push(table);
            }
        }
        let (mut lines, mut todo) = (BTreeSet::new(), vec![package(name)]);
        while let Some(wanted) = todo.pop() {
            // A dependency is "name", or "name version" where several versions are locked.
            let mut words = wanted.split(' ');
            let (name, version) = (words.next().unwrap_or_default(), words.next());
            let found = packages.get(name).into_iter().flatten();
            for table in found.filter(|t| version.is_none_or(|v| v == text(t, "version"))) {
                let line = format!("{name} {} {}", text(table, "version"), text(table, "checksum"));
                if lines.insert(line) {
                    let dependencies = table.get("dependencies").and_then(toml::Value::as_array);
                    todo.extend(
                        dependencies.into_iter().flatten().filter_map(|d| d.as_str().map(str::to_owned)),
                    );
                }
            }
        }
        if lines.is_empty() {
            return Err(Failure::new(format!("there is no plugin called `{name}`"))
                .hint(format!("there are: {}", self.plugins()?.join(", "))));
        }
        Ok(lines)
    }

    /// The profile that plugins are built with, and the one it inherits from.
    fn profile(&self) -> Result<String> {
        let manifest = self.toml("Cargo.toml")?;
        let profiles = manifest.get("profile").and_then(toml::Value::as_table);
        let of = |name: &str| profiles.and_then(|p| p.get(name)).map(ToString::to_string).unwrap_or_default();
        Ok(format!("{}\n{}", of("release"), of("guest")))
    }

    fn toml(&self, file: &str) -> Result<toml::Table> {
        let text = fs::read_to_string(self.root.join(file)).map_err(|e| unreadable(file, &e))?;
        text.parse().map_err(|e| Failure::new(format!("{file} is not TOML: {e}")))
    }
}

/// The package of the plugin called `name`.
pub fn package(name: &str) -> String {
    format!("snapback-plugin-{name}")
}

fn text<'a>(table: &'a toml::Table, key: &str) -> &'a str {
    table.get(key).and_then(toml::Value::as_str).unwrap_or_default()
}

fn unreadable(path: &str, error: &std::io::Error) -> Failure {
    Failure::new(format!("could not read {path}: {error}"))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}
