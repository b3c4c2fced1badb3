//! Never destroy what was not captured; never touch what did not change.

use super::world::{World, set_time};
use crate::testing::{as_nobody, give_to_nobody};
use crate::tree::root::{LeftOut, Why};
use std::io::Write;
use std::os::unix::fs::MetadataExt;

#[test]
fn what_did_not_change_is_not_touched() {
    let world = World::new("untouched");
    for i in 0..500 {
        world.write(&format!("d{}/f{i}", i % 20), format!("content {i}"));
    }
    let stored = world.capture(&[], None);
    let before = world.state();
    world.write("d7/f7", "changed");
    let current = world.capture(&[], None);
    let (outcome, told) = world.put_back(&[], &stored, &current, &[]).unwrap();
    assert_eq!((outcome.added, outcome.modified, outcome.deleted, told.len()), (0, 1, 0, 0), "{outcome:?}");
    let after = world.state();
    assert_eq!(after.what(), before.what());
    for (path, it) in &after.0 {
        if path != b"d7/f7" {
            assert_eq!(it, &before.0[path], "{}", String::from_utf8_lossy(path));
        }
    }
}

#[test]
fn a_restored_file_is_newer_than_what_was_built_from_the_other() {
    let world = World::new("newer");
    world.write("src/main.c", "int one;");
    world.touch("src/main.c", 1_000_000_000);
    let options = [("ignore", "target/")];
    let stored = world.capture(&options, None);
    world.write("src/main.c", "int two;");
    world.write("target/main.o", "built");
    let built = world.path("target/main.o").metadata().unwrap().modified().unwrap();
    let current = world.capture(&options, None);
    let (outcome, told) = world.put_back(&options, &stored, &current, &[]).unwrap();
    assert!(outcome.refused.is_empty() && told.is_empty(), "{told:?}");
    assert!(world.path("src/main.c").metadata().unwrap().modified().unwrap() >= built);
    assert_eq!(world.read("target/main.o"), b"built");
    // Unless it is asked for.
    world.put_back(&options, &current, &stored, &[]).unwrap();
    let exact = [options[0], ("times", "stored")];
    world.put_back(&exact, &stored, &current, &[]).unwrap();
    assert_eq!(world.path("src/main.c").metadata().unwrap().mtime(), 1_000_000_000);
}

#[test]
fn a_time_alone_comes_back_in_place() {
    let world = World::new("times");
    world.write("d/f", "x");
    std::os::unix::fs::symlink("f", world.path("d/l")).unwrap();
    for path in ["d/f", "d/l", "d", ""] {
        world.touch(path, 1_234_567);
    }
    let (before, stored) = (world.state(), world.capture(&[], None));
    for path in ["d/f", "d/l", "d", ""] {
        world.touch(path, 7_654_321);
    }
    let current = world.capture(&[], None);
    let (outcome, _) = world.put_back(&[], &stored, &current, &[]).unwrap();
    assert_eq!((outcome.added, outcome.modified, outcome.deleted), (0, 0, 0));
    assert_eq!(world.state(), before);
}

#[test]
fn what_the_snapshot_left_out_is_left_alone() {
    let world = World::new("left-out");
    world.write("src/a", "one");
    world.write("output/big", "left out");
    world.write("x.log", "left out as well");
    let options = [("ignore", "output/\n*.log")];
    let stored = world.capture(&options, None);
    world.write("src/a", "two");
    let append = |path: &str| {
        let mut file = std::fs::File::options().append(true).open(world.path(path)).unwrap();
        file.write_all(b", then written to").unwrap();
    };
    append("output/big");
    append("x.log");
    let current = world.capture(&options, Some(stored));
    let (outcome, _) = world.put_back(&options, &stored, &current, &[]).unwrap();
    assert!(outcome.refused.is_empty(), "{outcome:?}");
    assert_eq!(world.read("src/a"), b"one");
    assert_eq!(world.read("output/big"), b"left out, then written to");
    assert_eq!(world.read("x.log"), b"left out as well, then written to");
}

#[test]
fn a_rule_that_the_run_changed_does_not_decide() {
    let world = World::new("rules");
    world.write(".venv/pyvenv.cfg", "home = /usr");
    std::os::unix::fs::symlink("/usr/bin/python3", world.path(".venv/python")).unwrap();
    let (before, stored) = (world.state(), world.capture(&[], None));
    std::fs::remove_dir_all(world.path(".venv")).unwrap();
    world.write(".venv/pyvenv.cfg", "home = /opt");
    // Today's rules would leave it out; what is stored must be covered all the same.
    let today = [("ignore", ".venv/")];
    let spoilt = world.state();
    let current = world.capture(&today, Some(stored));
    world.put_back(&today, &stored, &current, &[]).unwrap();
    assert_eq!(world.state().what(), before.what());
    world.put_back(&today, &current, &stored, &[]).unwrap();
    assert_eq!(world.state().what(), spoilt.what());
}

#[test]
fn a_new_directory_that_holds_what_was_left_out_stays() {
    let world = World::new("stays");
    world.write("keep", "x");
    let options = [("ignore", "node_modules/")];
    let stored = world.capture(&options, None);
    world.write("app/index.js", "new");
    world.write("app/node_modules/m/index.js", "installed");
    let current = world.capture(&options, Some(stored));
    let (outcome, told) = world.put_back(&options, &stored, &current, &[]).unwrap();
    assert!(!world.path("app/index.js").exists());
    assert_eq!(world.read("app/node_modules/m/index.js"), b"installed");
    assert_eq!(outcome.refused.len(), 1);
    let (path, reason) = &told[0];
    assert!(path == "app" && reason.contains("node_modules"), "{told:?}");
}

#[test]
fn what_happened_after_the_capture_stays_and_is_told() {
    let world = World::new("after-capture");
    for name in ["edited", "same-size", "removed", "replaced", "gone/inside", "mode"] {
        world.write(name, "one");
        world.touch(name, 1_000_000_000);
    }
    let stored = world.capture(&[], None);
    for name in ["edited", "same-size", "removed", "replaced", "mode"] {
        world.write(name, "two");
        world.touch(name, 1_500_000_000);
    }
    std::fs::remove_dir_all(world.path("gone")).unwrap();
    world.write("new/a", "new");
    let current = world.capture(&[], None);
    world.write("edited", "by hand");
    world.write("same-size", "owt");
    set_time(&world.path("same-size"), 1_500_000_000);
    std::fs::remove_file(world.path("removed")).unwrap();
    std::fs::rename(world.path("replaced"), world.path("other")).unwrap();
    std::os::unix::fs::symlink("other", world.path("replaced")).unwrap();
    world.write("gone/inside", "made by hand");
    world.write("new/b", "made by hand");
    world.chmod("mode", 0o600);
    let (outcome, told) = world.put_back(&[], &stored, &current, &[]).unwrap();
    assert_eq!(world.read("edited"), b"by hand");
    assert_eq!(world.read("same-size"), b"owt");
    assert_eq!(world.read("removed"), b"one");
    assert_eq!(world.read("other"), b"two");
    assert_eq!(world.read("gone/inside"), b"made by hand");
    assert_eq!(world.read("new/b"), b"made by hand");
    assert!(!world.path("new/a").exists());
    assert_eq!(world.read("mode"), b"two");
    let paths: Vec<&str> = told.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["edited", "gone/inside", "mode", "new", "replaced", "same-size"], "{outcome:?}");
    assert_eq!(world.leftovers(), [""; 0]);
}

#[test]
fn a_file_that_somebody_has_open_is_kept() {
    let world = World::new("open");
    world.write("log", "one\n");
    world.write("removed.log", "");
    let stored = world.capture(&[], None);
    std::fs::remove_file(world.path("removed.log")).unwrap();
    let mut log = std::fs::File::options().append(true).open(world.path("log")).unwrap();
    log.write_all(b"two\n").unwrap();
    world.write("new.log", "");
    let mut new = std::fs::File::options().append(true).open(world.path("new.log")).unwrap();
    let current = world.capture(&[], None);
    let (outcome, told) = world.put_back(&[], &stored, &current, &[]).unwrap();
    assert_eq!(world.read("log"), b"one\n");
    assert!(!world.path("new.log").exists());
    log.write_all(b"three\n").unwrap();
    new.write_all(b"first\n").unwrap();
    let saved: Vec<(&[u8], Vec<u8>)> =
        outcome.saved.iter().map(|s| (s.path.as_slice(), std::fs::read(&s.at).unwrap())).collect();
    assert_eq!(saved, [(&b"log"[..], b"one\ntwo\nthree\n".to_vec()), (b"new.log", b"first\n".to_vec())]);
    // All is as it should be: nothing was refused.
    assert!(told.is_empty() && outcome.refused.is_empty(), "{told:?}");
    assert_eq!((outcome.modified, outcome.deleted, outcome.added), (1, 1, 1));
    let lines = crate::tree::apply::lines(&outcome.saved);
    assert!(lines.len() == 2 && lines[0].starts_with("log: somebody has the file"), "{lines:?}");
    assert!(lines[0].contains("open for writing; it is kept as ") && lines[0].contains("saved/"));
}

#[test]
fn a_hole_is_not_restored_over() {
    if !rustix::process::geteuid().is_root() {
        // Only root makes what is somebody else's.
        return;
    }
    let world = World::new("hole");
    world.write("f", "one");
    world.write("g", "one");
    world.write("d/x", "one");
    give_to_nobody(&world.base);
    let stored = as_nobody(|| world.capture(&[], None));
    world.write("f", "two, which nobody could read");
    world.write("g", "two");
    world.write("d/x", "two");
    for (path, mode) in [("f", 0o600), ("d", 0o700)] {
        std::os::unix::fs::chown(world.path(path), Some(0), Some(0)).unwrap();
        world.chmod(path, mode);
    }
    let (_, told) = as_nobody(|| {
        let current = world.capture(&[], Some(stored));
        world.put_back(&[], &stored, &current, &[]).unwrap()
    });
    assert_eq!(world.read("f"), b"two, which nobody could read");
    assert_eq!(world.read("d/x"), b"two");
    assert_eq!(world.read("g"), b"one");
    let paths: Vec<&str> = told.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["d", "f"], "{told:?}");
}

#[test]
fn a_damaged_object_is_found_before_anything_is_touched() {
    let mut world = World::new("damaged");
    world.write("a", "one");
    world.write("b", "two");
    let stored = world.record();
    world.write("a", "other");
    world.write("b", "other");
    world.write("c", "other");
    let (spoilt, current) = (world.state(), world.record());
    let objects = crate::tree::sample::Objects::default();
    objects.copy(&*world.store, &stored);
    objects.copy(&*world.store, &current);
    objects.forget(&crate::object::Key::of(crate::object::ObjectKind::Blob, b"two"));
    let error = world.restore_from(&objects, &stored, &current).unwrap_err();
    assert!(error.message().starts_with('b'), "{error}");
    assert_eq!(world.state(), spoilt);
    assert_eq!(world.leftovers(), [""; 0]);
    // In part, what is whole comes back, and the rest stays and is named.
    world.options.partial = true;
    let outcome = world.restore_from(&objects, &stored, &current).unwrap();
    let refused: Vec<&[u8]> = outcome.refused.iter().map(|refusal| &refusal.path[..]).collect();
    assert_eq!(refused, [b"b"], "{outcome:?}");
    assert!(outcome.refused[0].reason.contains("no object"), "{outcome:?}");
    assert_eq!((world.read("a"), world.read("b")), (b"one".to_vec(), b"other".to_vec()));
    assert!(!world.path("c").exists());
    assert_eq!(world.leftovers(), [""; 0]);
}

#[test]
fn only_what_was_asked_for() {
    let world = World::new("only");
    for path in ["a/x", "a/y", "b/deep/er/z", "b/deep/w", "c"] {
        world.write(path, "one");
    }
    let stored = world.capture(&[], None);
    std::fs::remove_dir_all(world.path("b")).unwrap();
    for path in ["a/x", "a/y", "c", "a/new"] {
        world.write(path, "two");
    }
    let current = world.capture(&[], None);
    let only = ["a/x", "b/deep/er", "a/new"];
    let (outcome, told) = world.put_back(&[], &stored, &current, &only).unwrap();
    assert!(told.is_empty(), "{told:?}");
    assert_eq!((outcome.added, outcome.modified, outcome.deleted), (4, 1, 1), "{outcome:?}");
    assert_eq!(
        (world.read("a/x"), world.read("a/y"), world.read("c")),
        ("one".into(), "two".into(), "two".into())
    );
    assert_eq!(world.read("b/deep/er/z"), b"one");
    assert!(!world.path("b/deep/w").exists() && !world.path("a/new").exists());
}

#[test]
fn a_store_on_another_file_system() {
    let dev = |path: &str| std::fs::metadata(path).map(|m| m.dev()).ok();
    let Some((tree, store)) = [("/dev/shm", "/tmp"), ("/tmp", "/var/tmp")]
        .into_iter()
        .find(|(a, b)| dev(a).is_some() && dev(b).is_some() && dev(a) != dev(b))
    else {
        return;
    };
    let world = World::at(tree.as_ref(), store.as_ref(), "elsewhere");
    super::sample(&world);
    let (before, stored) = (world.state(), world.record());
    super::spoil(&world);
    world.write("removed/while/open", "x");
    let (spoilt, current) = (world.state(), world.record());
    let open = std::fs::File::options().append(true).open(world.path("removed/while/open")).unwrap();
    let outcome = world.restore(&stored, &current).unwrap();
    assert_eq!(outcome.saved.len(), 1, "{outcome:?}");
    // It cannot go to the store from there: it stays beside the tree's own.
    assert!(outcome.saved[0].at.starts_with(world.path(".snapback~")), "{outcome:?} {:?}", world.leftovers());
    drop(open);
    std::fs::remove_dir_all(world.path(".snapback~")).unwrap();
    world.touch("", 1_000_000_000);
    world.state().assert_is(&before, &["a/x", "a/y", "b/deep/er/z"]);
    world.restore(&current, &stored).unwrap();
    assert_eq!(world.state().what(), spoilt.what());
    let _ = std::fs::remove_dir_all(world.store.path());
}

#[test]
fn a_directory_that_was_swapped_in_and_stands_aside_is_kept_and_stops_nothing() {
    let world = World::new("aside-directory");
    world.write("f", "one");
    std::os::unix::fs::symlink("one", world.path("link")).unwrap();
    let stored = world.capture(&[], None);
    let change = |n: u32| {
        world.write("f", format!("other {n}"));
        std::fs::remove_file(world.path("link")).unwrap();
        std::os::unix::fs::symlink(format!("other {n}"), world.path("link")).unwrap();
        world.capture(&[], None)
    };
    world.put_back(&[], &stored, &change(0), &[]).unwrap();
    let top = world.store.path().join("aside");
    let scope = std::fs::read_dir(&top).unwrap().next().unwrap().unwrap().file_name().into_string().unwrap();
    // Of what is restored, of what was restored once, and what was being made.
    for (n, path, unfinished) in [(1, "f", false), (2, "link", false), (3, "gone", false), (4, "f", true)] {
        let current = change(n);
        let mut name = String::from_utf8(super::super::aside::name_of(&scope, path.as_bytes())).unwrap();
        if unfinished {
            name.replace_range(..1, "w");
        }
        let dir = top.join(&scope).join(name);
        std::fs::create_dir(&dir).unwrap();
        std::fs::write(dir.join("mine"), "the only copy").unwrap();
        let (outcome, _) = world.put_back(&[], &stored, &current, &[]).unwrap();
        assert_eq!(outcome.saved.len(), 1, "{path}: {outcome:?}");
        assert_eq!(std::fs::read(outcome.saved[0].at.join("mine")).unwrap(), b"the only copy", "{path}");
        assert!(!dir.exists(), "{path}");
        assert_eq!(world.read("f"), b"one");
        assert_eq!(std::fs::read_link(world.path("link")).unwrap().to_str(), Some("one"));
    }
}

#[test]
fn a_git_file_that_an_old_snapshot_left_out_is_left_alone() {
    let world = World::new("git-file");
    world.write("sub/f", "one");
    world.write("f", "one");
    let mut stored = world.record();
    let left = |path: &str| LeftOut {
        path: path.into(),
        why: Why::Git,
        detail: String::new(),
        files: None,
        stamp: None,
    };
    stored.left_out = vec![left(".git"), left("sub/.git")];
    // What captures it today has it as a file like any other.
    world.write(".git", "gitdir: a");
    world.write("sub/.git", "gitdir: b");
    world.write("sub/f", "two");
    let outcome = world.restore(&stored, &world.record()).unwrap();
    assert!(outcome.refused.is_empty(), "{outcome:?}");
    assert_eq!((outcome.deleted, outcome.modified), (0, 1), "{outcome:?}");
    assert_eq!((world.read(".git"), world.read("sub/.git")), (b"gitdir: a".into(), b"gitdir: b".into()));
    assert_eq!(world.read("sub/f"), b"one");
}
