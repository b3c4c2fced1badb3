//! Which compiler builds the components.
//!
//! Two ways, tried in this order: the compiler on the path, when the standard library
//! for WebAssembly is installed with it (rustup); else the compiler of a Debian
//! package, which builds that library from its sources. Nothing is ever fetched.

use crate::{Failure, Result, TARGET};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A way to build for WebAssembly.
#[derive(Debug)]
pub struct Toolchain {
    /// The cargo to run.
    pub cargo: PathBuf,
    /// The rustc it must use.
    pub rustc: PathBuf,
    /// Whether the standard library is built from its sources.
    pub build_std: bool,
    /// The linker, when the compiler does not bring its own.
    pub linker: Option<PathBuf>,
}

/// The first way that works here.
///
/// # Errors
/// When there is none: the hint names the command for each.
pub fn find_toolchain() -> Result<Toolchain> {
    let sysroot = sysroot(Path::new("rustc"));
    if let Some(sysroot) = &sysroot
        && sysroot.join("lib/rustlib").join(TARGET).join("lib").is_dir()
    {
        return Ok(Toolchain {
            cargo: std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()).into(),
            rustc: "rustc".into(),
            build_std: false,
            linker: None,
        });
    }
    let (cargo, rustc) = (PathBuf::from("/usr/bin/cargo"), PathBuf::from("/usr/bin/rustc"));
    let sources = Path::new("/usr/lib/rustlib/src/rust/library/std/Cargo.toml");
    if cargo.is_file() && rustc.is_file() && sources.is_file() {
        let linker = linker(sysroot.as_deref()).ok_or_else(|| {
            Failure::new("there is no linker for WebAssembly").hint("run `apt-get install lld`")
        })?;
        return Ok(Toolchain { cargo, rustc, build_std: true, linker: Some(linker) });
    }
    Err(Failure::new("there is no compiler for WebAssembly here").hint(format!(
        "run `rustup target add {TARGET}`, or on Debian `apt-get install --no-install-recommends rustc-web \
         cargo-web rust-web-src`"
    )))
}

fn sysroot(rustc: &Path) -> Option<PathBuf> {
    let output = Command::new(rustc).args(["--print", "sysroot"]).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| PathBuf::from(text.trim_end()))
}

/// The `rust-lld` of some toolchain, or a `wasm-ld` on the path, whatever its version.
fn linker(sysroot: Option<&Path>) -> Option<PathBuf> {
    let host = format!("lib/rustlib/{}-unknown-linux-gnu/bin/rust-lld", std::env::consts::ARCH);
    let mut found: Vec<PathBuf> =
        sysroot.into_iter().chain([Path::new("/usr")]).map(|s| s.join(&host)).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        let names = std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut names: Vec<PathBuf> = names
            .filter(|e| e.file_name().to_str().is_some_and(|n| n == "wasm-ld" || n.starts_with("wasm-ld-")))
            .map(|e| e.path())
            .collect();
        names.sort();
        found.extend(names);
    }
    found.into_iter().find(|path| path.is_file())
}
