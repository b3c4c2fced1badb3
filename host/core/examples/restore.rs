//! What a restore costs after a change that destroys much.
//!
//! `cargo run --release -p snapback-core --example restore DIR [ROUNDS]`: DIR is copied
//! (into the directory for temporary files, on the same file system as the store), then
//! a third of its files is removed, a tenth rewritten, some directories are renamed,
//! some modes changed; then it is put back. Prints the processor time of the whole
//! process, the wall time, and the same for `cp -a` of what had to be written.

#![allow(clippy::print_stdout)]

use rustix::time::{ClockId, clock_gettime};
use snapback_core::Result;
use snapback_core::backend::{Call, Part, Target};
use snapback_core::disk::Disk;
use snapback_core::object::Key;
use snapback_core::report::Silent;
use snapback_core::store::Store;
use snapback_core::tree::{Directory, Options, capture, restore};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let from = PathBuf::from(args.next().expect("a directory"));
    let rounds: usize = args.next().and_then(|n| n.parse().ok()).unwrap_or(3);
    let temp = std::env::temp_dir().join(format!("snapback-bench-restore-{}", std::process::id()));
    let tree = temp.join("tree");
    std::fs::create_dir_all(&temp).expect("a directory for the store");
    copy(&from, &tree);
    let sync = std::env::args().any(|arg| arg == "--sync");
    let store = Store::create(&temp.join("store"), Disk::default().with_sync(sync))?;
    let first = take(&temp, &store, None)?;
    for round in 0..rounds {
        let mut all = Vec::new();
        list(&tree, &mut all);
        let (removed, rewritten) = spoil(&all);
        let current = take(&temp, &store, Some(first))?;
        let (outcome, cpu, wall) = timed(|| put_back(&temp, &store, &first, &current))?;
        println!(
            "round {round}: {} files; {removed} removed, {rewritten} rewritten; put back: cpu {cpu:.0} ms, wall {wall:.0} ms; {} added, {} modified, {} deleted, {} refused, {} notes",
            all.len(),
            outcome.added,
            outcome.modified,
            outcome.deleted,
            outcome.refused.len(),
            outcome.notes.len()
        );
        let again = take(&temp, &store, Some(first))?;
        let root = |key: &Key| snapback_core::tree::view::read_root(&*store, key);
        assert!(root(&again)?.same_state(&root(&first)?), "it is as it was");
        let (_, cpu, wall) = timed(|| {
            copy(&tree, &temp.join("copy"));
            Ok(())
        })?;
        println!("         cp -a of the whole: wall {wall:.0} ms (cpu {cpu:.0} ms here)");
        std::fs::remove_dir_all(temp.join("copy")).expect("it was just made");
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
    std::fs::remove_dir_all(&temp).expect("it was just made");
    Ok(())
}

fn copy(from: &Path, to: &Path) {
    let done = Command::new("cp").arg("-a").arg(from).arg(to).status().expect("cp runs");
    assert!(done.success());
}

fn list(dir: &Path, into: &mut Vec<PathBuf>) {
    let mut names: Vec<_> = std::fs::read_dir(dir).expect("it is there").flatten().collect();
    names.sort_by_key(std::fs::DirEntry::file_name);
    for entry in names {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            list(&entry.path(), into);
        } else {
            into.push(entry.path());
        }
    }
}

/// Removes a third (whole stretches, so that directories become empty and go), rewrites
/// a tenth, renames directories, changes modes.
fn spoil(all: &[PathBuf]) -> (usize, usize) {
    let (mut removed, mut rewritten) = (0, 0);
    for (i, path) in all.iter().enumerate() {
        if i / 50 % 3 == 0 {
            std::fs::remove_file(path).expect("it is there");
            let mut dir = path.parent();
            while let Some(empty) = dir.filter(|dir| std::fs::remove_dir(dir).is_ok()) {
                dir = empty.parent();
            }
            removed += 1;
        } else if i % 10 == 7 {
            let mut bytes = std::fs::read(path).expect("it is there");
            bytes.extend_from_slice(b"changed");
            let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o644));
            std::fs::write(path, bytes).expect("it can be written");
            rewritten += 1;
        } else if i % 100 == 5 {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).expect("it is there");
        } else if i % 1000 == 333 {
            let dir = path.parent().expect("it lies in a directory");
            let _ = std::fs::rename(dir, dir.with_extension("renamed"));
            break_if_gone(path);
        }
    }
    (removed, rewritten)
}

/// The files after one whose directory was renamed are found under their new name only.
fn break_if_gone(path: &Path) {
    let dir = path.parent().expect("it lies in a directory").with_extension("renamed");
    let back = path.parent().expect("it lies in a directory");
    // Back at once, and a copy of one file left behind: a renamed directory of one file.
    let name = path.file_name().expect("a file has a name");
    let _ = std::fs::rename(&dir, back);
    let _ = std::fs::create_dir_all(&dir);
    let _ = std::fs::rename(path, dir.join(name));
}

fn call(temp: &Path, store: &Arc<Store>) -> Call {
    let target = Target { name: "tree".into(), backend: "tree".into(), settings: Default::default() };
    Call::about(temp.to_owned(), target, Some(store.clone()), Arc::new(Silent))
}

fn directory(temp: &Path) -> Result<Directory> {
    Directory::open(temp, "path", "tree", &Options::default())
}

fn take(temp: &Path, store: &Arc<Store>, cover: Option<Key>) -> Result<Key> {
    let writer = Arc::new(store.writer()?);
    let mut call = call(temp, store);
    call.cover = Arc::new(cover.into_iter().map(|content| Part { name: "tree".into(), content }).collect());
    call.writer = Some(writer.clone());
    let key = capture(&directory(temp)?, &call, None)?;
    drop(call);
    writer.seal()?;
    Ok(key)
}

fn put_back(
    temp: &Path,
    store: &Arc<Store>,
    stored: &Key,
    current: &Key,
) -> Result<snapback_core::tree::apply::Outcome> {
    restore(&directory(temp)?, &call(temp, store), stored, current)
}

fn timed<T>(act: impl FnOnce() -> Result<T>) -> Result<(T, f64, f64)> {
    let cpu = || {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    };
    let (before, start) = (cpu(), Instant::now());
    let done = act()?;
    Ok((done, cpu() - before, start.elapsed().as_secs_f64() * 1e3))
}
