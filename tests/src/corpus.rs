//! Real input: the sources of the published crates that tests/corpus locks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Copies whole crates into `dir` until it holds at least `files` files, in the order
/// of the lock file; fetches what is not on this machine yet.
///
/// # Panics
/// When there are not that many or cargo cannot fetch them.
pub fn corpus(dir: &Path, files: usize) -> usize {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus/Cargo.toml");
    let metadata = cargo(&manifest, &["metadata", "--locked", "--format-version", "1"]);
    let metadata: serde_json::Value = serde_json::from_slice(&metadata).expect("cargo prints JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let mut count = 0;
    for package in packages.iter().filter(|p| !p["source"].is_null()) {
        if count >= files {
            break;
        }
        let manifest = PathBuf::from(package["manifest_path"].as_str().expect("a package has a path"));
        let source = manifest.parent().expect("a manifest lies in a folder");
        let done = Command::new("cp").args(["-a", "--no-preserve=ownership"]).args([source, dir]).status();
        assert!(done.is_ok_and(|s| s.success()), "could not copy {}", source.display());
        count += count_files(&dir.join(source.file_name().expect("a folder has a name")));
    }
    assert!(count >= files, "the crates of tests/corpus hold only {count} files");
    count
}

fn cargo(manifest: &Path, arguments: &[&str]) -> Vec<u8> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    let output = command.args(arguments).arg("--manifest-path").arg(manifest).output();
    let output = output.unwrap_or_else(|e| panic!("could not run cargo: {e}"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

fn count_files(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("could not read {}: {e}", dir.display()));
    let count = |entry: std::io::Result<fs::DirEntry>| {
        let entry = entry.expect("a directory can be read");
        let kind = entry.file_type().expect("an entry has a kind");
        if kind.is_dir() { count_files(&entry.path()) } else { usize::from(kind.is_file()) }
    };
    entries.map(count).sum()
}
