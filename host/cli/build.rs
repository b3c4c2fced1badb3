//! Links `snapback-volumes`, which works in containers that hold nothing else, with all that it needs,
//! and gives the two programs of one build a mark that no other build has.
//!
//! Cargo gives flags for the compiler to all that it builds, and flags for the linker to one program.
//! So it is the linker that is told: libraries come whole, found by the names that the compiler asks
//! for shared ones by. Whether that works here is tried with a small program that does a little of
//! everything, since not every machine has these libraries; where it does not work, the
//! program is linked like any other, and its image brings its loader and libraries.

#![allow(clippy::print_stdout, reason = "that is how cargo is told")]

use std::collections::hash_map::DefaultHasher;
use std::env::var;
use std::fs;
use std::hash::Hasher;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program.
const PROGRAM: &str = "snapback-volumes";
/// What both programs are made of, seen from this package.
const SOURCES: [&str; 3] = ["../core/src", "../runtime/src", "../../Cargo.lock"];
/// What the compiler asks the linker for, and what that is when it comes whole.
const LIBRARIES: [(&str, &str); 7] = [
    ("gcc_s", "gcc_eh"),
    ("util", "util"),
    ("rt", "rt"),
    ("pthread", "pthread"),
    ("m", "m"),
    ("dl", "dl"),
    ("c", "c"),
];
/// Threads, what unwinds, mathematics, files.
const TRIAL: &str = r#"
fn main() {
    let thread = || std::panic::catch_unwind(|| std::panic::resume_unwind(Box::new(()))).is_err();
    assert!(std::thread::spawn(thread).join().unwrap());
    assert!((std::env::args().count() as f64).powf(0.5) >= 1.0);
    assert!(std::fs::read_dir("/").unwrap().count() > 0);
}
"#;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let mut hasher = DefaultHasher::new();
    for source in SOURCES.map(Path::new).into_iter().filter(|source| source.exists()) {
        println!("cargo::rerun-if-changed={}", source.display());
        read(source, &mut hasher);
    }
    println!("cargo::rustc-env=SNAPBACK_BUILD=a build of snapback: {:016x}", hasher.finish());
    for argument in whole().into_iter().flatten() {
        println!("cargo::rustc-link-arg-bin={PROGRAM}={argument}");
    }
}

/// Reads all files at or beneath `path`, always in the same order.
fn read(path: &Path, hasher: &mut DefaultHasher) {
    if let Ok(entries) = fs::read_dir(path) {
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        paths.iter().for_each(|path| read(path, hasher));
    } else if let Ok(bytes) = fs::read(path) {
        hasher.write(path.as_os_str().as_encoded_bytes());
        hasher.write(&bytes);
    }
}

/// What the linker is told so that a program needs no library where it runs; none where that does
/// not work, or cannot be tried.
fn whole() -> Option<[String; 3]> {
    let is = |name: &str, value: &str| var(name).is_ok_and(|is| is == value);
    let is_own = var("HOST") == var("TARGET");
    if !is_own || !is("CARGO_CFG_TARGET_OS", "linux") || !is("CARGO_CFG_TARGET_ENV", "gnu") {
        return None;
    }
    let out = PathBuf::from(var("OUT_DIR").ok()?);
    let folder = out.join("whole");
    fs::create_dir_all(&folder).ok()?;
    for (name, library) in LIBRARIES {
        fs::write(folder.join(format!("lib{name}.so")), format!("INPUT(-l:lib{library}.a)\n")).ok()?;
    }
    let arguments = ["-static".to_owned(), "-no-pie".to_owned(), format!("-L{}", folder.display())];
    let (source, trial) = (out.join("trial.rs"), out.join("trial"));
    fs::write(&source, TRIAL).ok()?;
    let mut rustc = Command::new(var("RUSTC").ok()?);
    rustc.args(["--edition", "2024", "-o"]).arg(&trial).arg(&source);
    rustc.args(arguments.iter().map(|argument| format!("-Clink-arg={argument}")));
    rustc.args(var("RUSTC_LINKER").ok().map(|linker| format!("-Clinker={linker}")));
    let flags = var("CARGO_ENCODED_RUSTFLAGS").unwrap_or_default();
    rustc.args(flags.split('\x1f').filter(|flag| !flag.is_empty()));
    let done = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    (done(&mut rustc) && done(&mut Command::new(&trial))).then_some(arguments)
}
