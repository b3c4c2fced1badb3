//! What works in a container that has a volume and nothing else: of snapback only what captures
//! a directory and puts it back. `snapback` starts it there, and people never do.

#![allow(clippy::print_stderr, reason = "it is told to whoever starts it by hand")]

#[path = "../faults.rs"]
#[allow(dead_code, reason = "a fault here ends the program; none is caught")]
mod faults;

use snapback_runtime::docker::inside;
use std::process::ExitCode;

/// By this `snapback` knows that it is of its own build.
const BUILD: &str = env!("SNAPBACK_BUILD");

fn main() -> ExitCode {
    faults::in_words();
    if std::env::args_os().nth(1).is_none_or(|word| word != inside::WORD) {
        eprintln!("snapback-volumes: snapback itself starts this, in a container ({BUILD})");
        return ExitCode::from(2);
    }
    // Nobody listens.
    match inside::serve(std::io::stdin(), std::io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}
