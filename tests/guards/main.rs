//! What the workspace must stay like, whoever changes it: what its README says, who may depend
//! on whom, how files look, which licences may come in, and that wasmtime is built once.

mod docs;
mod edges;
mod features;
mod licences;
mod sources;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("tests/ lies in the workspace").to_owned()
}

/// What cargo prints, run in the repository.
fn cargo(arguments: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo).current_dir(root()).args(arguments).output().expect("cargo can be run");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("cargo prints text")
}

/// All packages of the lock file, with what they are and depend on.
fn metadata() -> Value {
    let text = cargo(&["metadata", "--format-version", "1", "--locked"]);
    serde_json::from_str(&text).expect("cargo prints JSON")
}
