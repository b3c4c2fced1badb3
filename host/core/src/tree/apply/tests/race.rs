//! Somebody writes all through captures and restores: nothing that was written is lost.

use super::world::World;
use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// All lines of all regular files under `path`.
fn lines(path: &Path, into: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        let stat = entry.path().symlink_metadata().unwrap();
        if stat.is_dir() {
            lines(&entry.path(), into);
        } else if stat.is_file() {
            let text = std::fs::read(entry.path()).unwrap();
            into.extend(String::from_utf8_lossy(&text).lines().map(str::to_owned));
        }
    }
}

/// How a writer writes a line to a file.
type Way = fn(&Path, &str) -> std::io::Result<()>;

/// Opens, appends, closes.
fn append(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::options().append(true).create(true).open(path)?;
    file.write_all(line.as_bytes())
}

/// Writes a new file with what was there and the line, and renames it over.
fn replace(path: &Path, line: &str) -> std::io::Result<()> {
    let mut text = match std::fs::read(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        text => text?,
    };
    text.extend_from_slice(line.as_bytes());
    let aside = path.with_extension("new");
    std::fs::write(&aside, text)?;
    std::fs::rename(aside, path)
}

/// Holds the file open for a few lines.
fn hold(path: &Path, line: &str) -> std::io::Result<()> {
    let mut file = std::fs::File::options().append(true).create(true).open(path)?;
    let (first, second) = line.split_at(line.len() / 2);
    file.write_all(first.as_bytes())?;
    std::thread::sleep(std::time::Duration::from_micros(300));
    file.write_all(second.as_bytes())
}

fn race(name: &str, way: Way) {
    let world = World::new(name);
    for file in 0..8 {
        world.write(&format!("d{}/f{file}", file % 3), "start\n");
    }
    let start = world.capture(&[], None);
    let (stop, number) = (AtomicBool::new(false), AtomicU64::new(0));
    let written = Mutex::new(BTreeSet::new());
    // What each restore could go back to: nothing in these is lost.
    let mut captured = BTreeSet::new();
    let mut restored = 0;
    std::thread::scope(|scope| {
        for writer in 0..2u64 {
            let (world, stop, number, written) = (&world, &stop, &number, &written);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let n = number.fetch_add(1, Ordering::Relaxed);
                    // Two writers never share a file: they would lose each other's lines.
                    let file = 2 * (n * 7 % 4) + writer;
                    let path = world.path(&format!("d{}/f{file}", file % 3));
                    let line = format!("line {n} of {writer}\n");
                    if way(&path, &line).is_ok() {
                        written.lock().unwrap().insert(line.trim_end().to_owned());
                    }
                    std::thread::yield_now();
                }
            });
        }
        // Until there was something to lose, however busy the machine is.
        for round in 0..400 {
            if round >= 40 && restored > 20 && number.load(Ordering::Relaxed) > 200 {
                break;
            }
            let current = world.capture(&[], Some(start));
            captured.extend(contents(&world, &current));
            let (outcome, _) = world.put_back(&[], &start, &current, &[]).unwrap();
            restored += outcome.modified + outcome.added;
            if round % 4 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    let mut there = captured;
    lines(&world.tree, &mut there);
    lines(&world.store.path().join("saved"), &mut there);
    let written = written.into_inner().unwrap();
    let lost: Vec<&String> = written.difference(&there).collect();
    assert!(lost.is_empty(), "{} of {} lost: {:?}", lost.len(), written.len(), &lost[..lost.len().min(5)]);
    assert!(restored > 20 && written.len() > 100, "{restored} restored, {} written", written.len());
    let aside = world.leftovers().iter().filter(|left| left.starts_with("aside")).count();
    assert_eq!(aside, 0);
}

/// The lines of all files of a captured tree.
fn contents(world: &World, key: &crate::object::Key) -> Vec<String> {
    let view = crate::tree::view::View::open(&*world.store, key).unwrap();
    let mut all = Vec::new();
    for seen in view.walk(&view.top()) {
        let seen = seen.unwrap();
        let mut text = Vec::new();
        let read = view.content(&seen.entry, &mut |bytes| {
            text.extend_from_slice(bytes);
            Ok(())
        });
        if read.is_ok() {
            all.extend(String::from_utf8_lossy(&text).lines().map(str::to_owned));
        }
    }
    all
}

#[test]
fn lines_that_are_appended() {
    race("race-append", append);
}

#[test]
fn files_that_are_replaced() {
    race("race-replace", replace);
}

#[test]
fn files_that_are_held_open() {
    race("race-hold", hold);
}

#[test]
fn directories_that_come_and_go() {
    let world = World::new("race-dirs");
    for i in 0..20 {
        world.write(&format!("a/{i}/f"), "one");
    }
    let stored = world.capture(&[], None);
    let outside = world.base.join("outside");
    std::fs::create_dir(&outside).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let flip = {
        let (stop, tree, outside) = (stop.clone(), world.tree.clone(), outside.clone());
        std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                for i in 0..20 {
                    let (dir, moved) = (tree.join(format!("a/{i}")), tree.join(format!("a/moved{i}")));
                    if std::fs::rename(&dir, &moved).is_ok() {
                        let _ = std::os::unix::fs::symlink(&outside, &dir);
                        std::thread::yield_now();
                        let _ = std::fs::remove_file(&dir);
                        let _ = std::fs::rename(&moved, &dir);
                    }
                }
            }
        })
    };
    for _ in 0..30 {
        for i in 0..20 {
            let path = world.path(&format!("a/{i}/f"));
            // Written through a link at times, which is the writer's own doing.
            if std::fs::metadata(&path).is_ok() {
                let _ = std::fs::write(path, "two");
            }
        }
        let _ = std::fs::remove_file(outside.join("f"));
        let current = world.capture(&[], Some(stored));
        let _ = world.put_back(&[], &stored, &current, &[]);
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
    }
    stop.store(true, Ordering::Relaxed);
    flip.join().unwrap();
}
