//! Source to component.

use crate::{Failure, Result, TARGET, Toolchain, Workspace, section, sources};
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use wit_component::ComponentEncoder;

/// The profile of `Cargo.toml` that components are built with.
const PROFILE: &str = "guest";

/// Builds the component of plugin `name` and writes it beside its sources. Returns
/// where it is and whether it differs from what was there.
///
/// # Errors
/// When it does not compile, or is not a component that the contract allows.
pub fn build(workspace: &Workspace, toolchain: &Toolchain, name: &str) -> Result<(PathBuf, bool)> {
    let digest = workspace.digest(name)?;
    let module = compile(workspace, toolchain, name)?;
    let component = ComponentEncoder::default()
        .module(&module)
        .and_then(|encoder| encoder.validate(true).encode())
        .map_err(|e| Failure::new(format!("could not make a component of `{name}`: {e:#}")))?;
    let component = section::with_digest(component, &digest);
    let path = workspace.component(name);
    let changed = fs::read(&path).ok().is_none_or(|old| old != component);
    if changed {
        fs::write(&path, component)
            .map_err(|e| Failure::new(format!("could not write {}: {e}", path.display())))?;
    }
    Ok((path, changed))
}

/// Compiles the plugin to a core module. Paths are trimmed, so that two folders on two
/// machines give the same bytes; cargo calls that unstable, hence the bootstrap flag.
fn compile(workspace: &Workspace, toolchain: &Toolchain, name: &str) -> Result<Vec<u8>> {
    let target_dir = workspace.root().join("target/guests");
    let package = sources::package(name);
    let mut cargo = Command::new(&toolchain.cargo);
    cargo
        .current_dir(workspace.root())
        .args(["build", "--quiet", "--locked", "--lib", "--package", &package])
        .args(["--profile", PROFILE, "--target", TARGET, "--target-dir"])
        .arg(&target_dir)
        .args(["-Ztrim-paths", "--config", "profile.guest.trim-paths=\"all\""])
        .env("RUSTC_BOOTSTRAP", "1")
        .env("RUSTC", &toolchain.rustc)
        .env_remove("RUSTUP_TOOLCHAIN")
        .env_remove("RUSTFLAGS")
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .env_remove("CARGO_TARGET_DIR");
    if toolchain.build_std {
        cargo.arg("-Zbuild-std=std,panic_abort");
    }
    if let Some(linker) = &toolchain.linker {
        cargo.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", linker);
    }
    let status = cargo
        .status()
        .map_err(|e| Failure::new(format!("could not run {}: {e}", toolchain.cargo.display())))?;
    if !status.success() {
        return Err(Failure::new(format!("`{name}` does not build for {TARGET}")));
    }
    let module = target_dir.join(TARGET).join(PROFILE).join(format!("{}.wasm", package.replace('-', "_")));
    fs::read(&module).map_err(|e| Failure::new(format!("could not read {}: {e}", module.display())))
}
