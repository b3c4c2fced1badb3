//! What changes while it is captured: never a mixture.

use super::*;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// Runs `work` again and again on a thread of its own while `f` runs.
fn meanwhile<T>(mut work: impl FnMut(u64) + Send, f: impl FnOnce() -> T) -> T {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut round = 0;
            while !stop.load(Ordering::Relaxed) {
                work(round);
                round += 1;
            }
        });
        let out = f();
        stop.store(true, Ordering::Relaxed);
        out
    })
}

fn read(world: &World, taken: &Taken, path: &str) -> Vec<u8> {
    let Node::File { content, size, .. } = taken.entry(path).node else { panic!("{path}") };
    crate::store::content::read_all(&*world.store, &content, size, 1 << 30).unwrap()
}

#[test]
fn a_log_that_grows_is_captured_as_it_was_at_one_moment() {
    let mut world = World::new();
    let mut log = File::create(world.path("log")).unwrap();
    for line in 0..200_000 {
        writeln!(log, "{line}").unwrap();
    }
    let mut line = 200_000;
    let grow = |_| {
        let mut text = String::new();
        for _ in 0..50 {
            text += &format!("{line}\n");
            line += 1;
        }
        log.write_all(text.as_bytes()).unwrap();
    };
    let taken = meanwhile(grow, || world.capture());
    assert!(taken.root.left_out.is_empty(), "{:?}", taken.left_out());
    // A moment may lie within a write; what is there is a beginning of the log all the same.
    let text = String::from_utf8(read(&world, &taken, "log")).unwrap();
    let whole: String = (0..text.lines().count()).map(|line| format!("{line}\n")).collect();
    assert!(whole.starts_with(&text), "nothing is missing, nothing mixed in");
    assert!(text.lines().count() >= 200_000);
}

#[test]
fn a_file_that_is_rewritten_is_one_version_or_a_hole() {
    let mut world = World::new();
    let size = 2 << 20;
    world.write("file", vec![0; size]);
    world.write("quiet", "q");
    let file = File::options().write(true).open(world.path("file")).unwrap();
    let (mut holes, mut whole) = (0, 0);
    for _ in 0..10 {
        let rewrite = |round: u64| {
            let byte = vec![round as u8; 64 << 10];
            for at in 0..size / byte.len() {
                file.write_at(&byte, (at * byte.len()) as u64).unwrap();
            }
        };
        let taken = meanwhile(rewrite, || world.capture());
        assert!(taken.entries.contains_key("quiet"));
        if taken.entries.contains_key("file") {
            // The writer goes from front to back: one version, or two with one border
            // where the writer stood at that moment.
            let bytes = read(&world, &taken, "file");
            let borders = bytes.windows(2).filter(|pair| pair[0] != pair[1]).count();
            assert!(borders <= 1, "{borders} borders");
            whole += 1;
        } else {
            assert_eq!(taken.left_out(), [("file".into(), Why::ChangedWhileRead, "")]);
            assert_eq!(taken.omitted, [("file".into(), "changed while read".into())]);
            holes += 1;
        }
    }
    assert_eq!(holes + whole, 10);
    // Left alone, it is captured again.
    assert!(world.capture().entries.contains_key("file"));
}

#[test]
fn what_vanishes_or_becomes_something_else_stops_nothing() {
    let mut world = World::new();
    for at in 0..200 {
        world.write(&format!("keep/{at}"), format!("{at}"));
    }
    world.write("../victim/secret", "outside");
    let path = world.path("change");
    let flip = |round: u64| {
        let _ = match round % 5 {
            0 => std::fs::create_dir_all(path.join("inner"))
                .and_then(|()| std::fs::write(path.join("inner/f"), "1")),
            1 | 4 => std::fs::remove_dir_all(&path).or_else(|_| std::fs::remove_file(&path)),
            2 => std::os::unix::fs::symlink("../victim", &path),
            _ => std::fs::remove_file(&path).and_then(|()| std::fs::write(&path, "file")),
        };
    };
    let kept = |taken: &Taken| taken.paths().iter().filter(|path| path.starts_with("keep/")).count();
    for _ in 0..100 {
        world.previous = None;
        let taken = meanwhile(flip, || world.capture());
        assert_eq!(kept(&taken), 200);
        assert!(!taken.paths().iter().any(|path| path.contains("secret")), "nothing is followed");
    }
}
