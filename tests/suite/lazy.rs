//! No work that was not asked for: the engine, compilation, syncs.

use crate::{newest, sandbox};
use snapback_tests::{Sandbox, have};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Syncs of one `run` in a project whose store is there already.
const SYNCS_OF_A_RUN: usize = 7;
/// As many more when there was something new to store: the pack, and its directory.
const SYNCS_OF_A_PACK: usize = 2;

/// All files in the cache of compiled components.
fn compiled(s: &Sandbox) -> Vec<(PathBuf, u64, i64, i64)> {
    fn walk(dir: &std::path::Path, out: &mut Vec<(PathBuf, u64, i64, i64)>) {
        for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
            let meta = entry.metadata().unwrap();
            if meta.is_dir() {
                walk(&entry.path(), out);
            } else {
                out.push((entry.path(), meta.ino(), meta.mtime(), meta.mtime_nsec()));
            }
        }
    }
    let mut out = Vec::new();
    walk(s.cache(), &mut out);
    out.sort();
    out
}

/// What the program asks of the kernel: one line for each call among `calls`.
fn trace(s: &Sandbox, calls: &str, words: &[&str]) -> Vec<String> {
    let log = s.dir().join("trace");
    let program = s.program().get_program().to_owned();
    let mut strace = s.command("strace");
    strace
        .args(["-f", "-qq", "-e", "signal=none", "-e", &format!("trace={calls}"), "-o"])
        .arg(&log)
        .arg(program);
    s.finish(strace.args(words)).exits(0);
    fs::read_to_string(log).unwrap().lines().filter(|l| !l.contains("resumed>")).map(str::to_owned).collect()
}

#[test]
fn a_component_is_compiled_once() {
    let s = sandbox().cold();
    s.write("f", "0");
    assert!(compiled(&s).is_empty());
    s.run("echo A > f");
    let first = compiled(&s);
    assert!(!first.is_empty(), "what was compiled is kept");
    for (path, ..) in &first {
        let mode = fs::metadata(path).unwrap().mode() & 0o777;
        assert_eq!(mode & 0o022, 0, "only the user can write {}", path.display());
    }
    s.run("echo B > f");
    s.ok(["undo"]);
    assert_eq!(compiled(&s), first);
}

#[test]
fn what_needs_no_backend_starts_no_engine() {
    let s = sandbox();
    s.write("f", "0");
    s.run("echo A > f");
    s.run("echo B > f");
    let id = newest(&s);
    let s = s.cold();
    for words in [
        &["list"][..],
        &["list", "--json"],
        &["show", &id],
        &["cat", &id, "f"],
        &["gc", "--keep", "1"],
        &["verify"],
        &["forget", "--yes", &id],
        &["--help"],
    ] {
        s.ok(words);
        assert!(compiled(&s).is_empty(), "{words:?} compiled a component");
    }
}

#[test]
fn looking_starts_no_thread_and_opens_no_component() {
    if !have("strace") {
        return;
    }
    let s = sandbox();
    s.write("f", "0");
    s.run("echo A > f");
    let started =
        |calls: &[String]| calls.iter().filter(|c| c.contains("clone") || c.contains("fork(")).count();
    let opened = |calls: &[String]| calls.iter().filter(|c| c.contains(".cwasm")).count();
    for words in [&["list"][..], &["show", "@0"], &["gc"]] {
        let calls = trace(&s, "clone,clone3,fork,vfork,open,openat,execve", words);
        assert_eq!((started(&calls), opened(&calls)), (0, 0), "{words:?}: {calls:#?}");
        assert!(calls.iter().any(|c| c.contains("meta.json")), "the trace sees what is read: {calls:#?}");
    }
    let calls = trace(&s, "clone,clone3,fork,vfork,open,openat", &["run", "--", "true"]);
    assert!(started(&calls) > 0 && opened(&calls) == 1, "a run opens its compiled component: {calls:#?}");
}

#[test]
fn a_run_syncs_a_fixed_number_of_times() {
    if !have("strace") {
        return;
    }
    let s = sandbox();
    let syncs = |words: &[&str]| {
        let calls = trace(&s, "fsync,fdatasync,syncfs,sync,sync_file_range,msync", words);
        calls.len()
    };
    s.sh("for f in $(seq 20); do echo $f > f$f; done");
    s.run("true");
    let unchanged = syncs(&["run", "--", "true"]);
    s.sh("for f in $(seq 200); do echo x$f > g$f; done");
    let changed = syncs(&["run", "--", "sh", "-c", "rm g*"]);
    assert_eq!((unchanged, changed), (SYNCS_OF_A_RUN, SYNCS_OF_A_RUN + SYNCS_OF_A_PACK));
    s.sh("mkdir d; cd d; for f in $(seq 900); do echo y$f > h$f; done");
    let more = syncs(&["run", "--", "sh", "-c", "rm -r d"]);
    assert_eq!(more, changed, "the number does not depend on the tree");
    for words in [&["list"][..], &["show", "@0"], &["diff"]] {
        assert_eq!(syncs(words), 0, "{words:?} only looks");
    }
}
