//! How source files look: small, with a head that says what they are for, without
//! `unsafe` and without printing but where that is the room's work.

use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use walkdir::WalkDir;

/// Where our own sources lie.
const ROOMS: [&str; 6] = ["fuzz", "host", "plugins", "sdk", "tests", "wit"];

/// Where code that the compiler cannot check may stand: where a compiled component is
/// opened, a file is mapped, where guests meet the border, and for the one call of the
/// system that no library has.
const UNSAFE: [&str; 7] = [
    "host/core/src/disk/lease.rs",
    "host/runtime/src/artifact/mod.rs",
    "host/runtime/src/abi/v0_1/mod.rs",
    "host/runtime/src/abi/v0_1/optional.rs",
    "host/runtime/src/abi/wasi/lookup.rs",
    "sdk/src/bindings.rs",
    "sdk/src/lib.rs",
];

/// Who may print: the command line, tools, measurements, and the tests' word about a skip.
const PRINTS: [&str; 6] = [
    "host/cli/src/",
    "host/cli/build.rs",
    "plugins/build/src/main.rs",
    "tests/",
    "host/core/examples/",
    "host/runtime/examples/",
];

/// All Rust files beneath `dir`, with their text.
pub fn rust_files(dir: &Path) -> Vec<(PathBuf, String)> {
    files(dir, "rs")
}

fn files(dir: &Path, extension: &str) -> Vec<(PathBuf, String)> {
    let hidden = |name: &str| name == "target" || (name.len() > 1 && name.starts_with('.'));
    WalkDir::new(dir)
        .sort_by_file_name()
        .into_iter()
        .filter_entry(|e| e.depth() == 0 || !e.file_name().to_str().is_some_and(hidden))
        .map(|entry| entry.expect("the sources can be read"))
        .filter(|entry| {
            entry.file_type().is_file() && entry.path().extension().is_some_and(|e| e == extension)
        })
        .map(|entry| {
            let text = fs::read_to_string(entry.path()).expect("a source is text");
            (entry.path().strip_prefix(root()).expect("it lies in the repository").to_owned(), text)
        })
        .collect()
}

/// Our own Rust files.
fn ours() -> Vec<(PathBuf, String)> {
    let files: Vec<_> = ROOMS.iter().flat_map(|room| rust_files(&root().join(room))).collect();
    assert!(files.len() > 30, "only {} files", files.len());
    files
}

/// The code of a line, without what follows `//`.
fn code(line: &str) -> &str {
    line.split("//").next().unwrap_or_default()
}

#[test]
fn half_the_files_are_under_150_lines_and_nine_in_ten_under_400() {
    let mut sizes: Vec<(usize, PathBuf)> =
        ours().into_iter().map(|(path, text)| (text.lines().count(), path)).collect();
    sizes.sort();
    let under = |limit: usize| sizes.iter().filter(|(lines, _)| *lines < limit).count();
    let largest: Vec<_> = sizes.iter().rev().take(8).collect();
    assert!(under(150) * 2 >= sizes.len(), "{} of {} under 150: {largest:?}", under(150), sizes.len());
    assert!(under(400) * 10 >= sizes.len() * 9, "{} of {} under 400: {largest:?}", under(400), sizes.len());
}

#[test]
fn every_source_says_at_its_head_what_it_is_for() {
    for (path, text) in ours() {
        let head = text.lines().next().unwrap_or_default();
        assert!(head.starts_with("//! ") && head.len() > 20, "{}: {head:?}", path.display());
    }
    for (path, text) in files(&root().join("wit"), "wit") {
        if !path.starts_with("wit/deps") {
            assert!(text.contains("\n/// ") || text.starts_with("//"), "{}", path.display());
        }
    }
}

#[test]
fn unsafe_stands_only_where_it_was_allowed() {
    let mut seen = 0;
    for (path, text) in ours() {
        let allowed = UNSAFE.iter().any(|at| path.starts_with(at));
        let here = Path::new("tests/guards/sources.rs");
        let lines = text.lines().map(code).filter(|line| {
            line.contains("unsafe {")
                || line.contains("unsafe fn")
                || line.contains("unsafe impl")
                || line.contains("unsafe extern")
                || line.contains("allow(unsafe_code")
        });
        let count = if path == here { 0 } else { lines.count() };
        assert!(allowed || count == 0, "{}", path.display());
        seen += count;
    }
    assert!(seen > 0, "the search finds what is there");
}

#[test]
fn only_the_command_line_prints() {
    for (path, text) in ours() {
        let prints = text.lines().map(code).any(|line| {
            ["println!(", "eprintln!(", "print!(", "eprint!(", "clippy::print_std"]
                .iter()
                .any(|w| line.contains(w))
        });
        let allowed = PRINTS.iter().any(|at| path.to_string_lossy().starts_with(at));
        assert!(allowed || !prints, "{} prints", path.display());
    }
}

/// Where core reads a file whatever it is: it is the kernel's, or a test's.
const READS_ALL: [&str; 3] = ["project/mounts.rs", "store/mod.rs", "disk/power.rs"];

#[test]
fn core_reads_no_more_of_a_file_than_it_can_be() {
    let core = root().join("host/core/src");
    let mut seen = 0;
    for (path, text) in rust_files(&core) {
        let shown = path.to_string_lossy().into_owned();
        let code_of_tests =
            shown.contains("/tests/") || shown.ends_with("/tests.rs") || shown.contains("/fuzz/");
        let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        let reads = text.lines().map(code).filter(|line| {
            ["fs::read(", "fs::read_to_string(", "File::open("].iter().any(|word| line.contains(word))
        });
        let count = if code_of_tests { 0 } else { reads.count() };
        let allowed = READS_ALL.iter().any(|at| path.ends_with(at));
        assert!(allowed || count == 0, "{shown} reads with no limit, or waits for a pipe");
        seen += count;
    }
    assert!(seen > 0, "the search finds what is there");
}
