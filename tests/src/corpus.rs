//! Real input: the sources of the published crates that tests/corpus locks.

use std::path::Path;
use std::process::{Command, Stdio};

/// Lays the sources of all crates of tests/corpus into `dir`: about 22,000 files. What is
/// not on this machine yet is fetched.
///
/// # Panics
/// When cargo cannot fetch them.
pub fn corpus(dir: &Path) {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/Cargo.toml");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut vendor = Command::new(cargo);
    vendor.args(["vendor", "--quiet", "--locked", "--manifest-path"]).arg(manifest).arg(dir);
    let output = vendor.stdin(Stdio::null()).output().unwrap_or_else(|e| panic!("could not run cargo: {e}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
