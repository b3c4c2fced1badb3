//! `cargo guests [--check] [NAME]...`: builds the backends into components, or checks
//! that the ones checked in are those of the present sources.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a build tool says what it does")]

use snapback_guests::{Failure, Result, Workspace, build, find_toolchain, recorded_digest};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(Failure { message, hint }) => {
            eprintln!("error: {message}");
            if let Some(hint) = hint {
                eprintln!("hint: {hint}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<bool> {
    let (mut check, mut names) = (false, Vec::new());
    for argument in std::env::args().skip(1) {
        match argument.as_str() {
            "--check" => check = true,
            "--help" | "-h" => {
                println!("usage: cargo guests [--check] [NAME]...");
                return Ok(true);
            }
            _ => names.push(argument),
        }
    }
    let workspace = Workspace::here();
    if names.is_empty() {
        names = workspace.plugins()?;
    }
    if check {
        let mut fresh = true;
        for name in &names {
            let component = std::fs::read(workspace.component(name)).unwrap_or_default();
            if recorded_digest(&component) != Some(workspace.digest(name)?) {
                eprintln!(
                    "error: the component of `{name}` is not that of its sources\nhint: run `cargo guests`"
                );
                fresh = false;
            }
        }
        return Ok(fresh);
    }
    let toolchain = find_toolchain()?;
    for name in &names {
        let (path, changed) = build(&workspace, &toolchain, name)?;
        let word = if changed { "written" } else { "unchanged" };
        let path = path.strip_prefix(workspace.root()).unwrap_or(&path);
        println!("{}: {word}", path.display());
    }
    Ok(true)
}
