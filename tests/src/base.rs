//! The directory that all sandboxes of one test process lie in.
//!
//! In memory (/dev/shm) unless TMPDIR says otherwise: tests that restore thousands of
//! files must not wait for a disk. Named after the process; what a killed process left
//! is removed by the next one.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "snapback-tests.";

/// The directory, made on first use.
pub fn base() -> &'static Path {
    static BASE: OnceLock<PathBuf> = OnceLock::new();
    BASE.get_or_init(|| {
        let parent = scratch();
        sweep(&parent);
        let base = parent.join(format!("{PREFIX}{}", std::process::id()));
        fs::create_dir_all(&base).unwrap_or_else(|e| panic!("could not make {}: {e}", base.display()));
        fs::set_permissions(&base, fs::Permissions::from_mode(0o755)).expect("its mode can be set");
        base
    })
}

/// A new name in it.
pub fn fresh(what: &str) -> PathBuf {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    base().join(format!("{what}-{}", NEXT.fetch_add(1, Ordering::Relaxed)))
}

/// Removes a directory whatever its modes are.
pub fn remove(dir: &Path) {
    if fs::remove_dir_all(dir).is_err() {
        let _ = Command::new("chmod").args(["-R", "u+rwX"]).arg(dir).status();
        let _ = fs::remove_dir_all(dir);
    }
}

/// Where tests make what they need.
pub fn scratch() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    match std::env::var_os("TMPDIR") {
        Some(dir) => dir.into(),
        None if rustix::fs::access(&memory, rustix::fs::Access::WRITE_OK).is_ok() => memory,
        None => std::env::temp_dir(),
    }
}

fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) = name.to_str().and_then(|n| n.strip_prefix(PREFIX)) else { continue };
        if pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists() {
            remove(&entry.path());
        }
    }
}
