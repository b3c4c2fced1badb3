//! Somebody acts in the very moment between looking and acting.

use super::world::World;
use crate::disk::{Hook, Op, OpKind};
use crate::tree::apply::Outcome;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// What somebody does.
type Deed = Box<dyn Fn(&Path) + Send + Sync>;

/// Does each deed once, just before the operation of its kind that concerns `name`.
struct Slip {
    name: &'static str,
    path: PathBuf,
    deeds: Vec<(OpKind, AtomicU64, Deed)>,
    seen: Mutex<Vec<OpKind>>,
}

impl Hook for Slip {
    fn before(&self, op: &Op<'_>) -> std::io::Result<()> {
        let is = |name: &[u8]| name == Path::new(self.name).file_name().unwrap().as_bytes();
        if is(op.name) || op.to.is_some_and(|(_, name)| is(name)) {
            self.seen.lock().unwrap().push(op.kind);
            let todo = self
                .deeds
                .iter()
                .find(|(kind, done, _)| *kind == op.kind && done.load(Ordering::SeqCst) == 0);
            if let Some((_, done, deed)) = todo {
                done.store(1, Ordering::SeqCst);
                deed(&self.path);
            }
        }
        Ok(())
    }
}

fn append(path: &Path) {
    let mut file = std::fs::File::options().append(true).create(true).open(path).unwrap();
    file.write_all(b" and more").unwrap();
}

fn replace(path: &Path) {
    let aside = path.with_extension("aside");
    std::fs::write(&aside, "by somebody").unwrap();
    std::fs::rename(aside, path).unwrap();
}

fn remove(path: &Path) {
    std::fs::remove_file(path).unwrap();
}

fn link(path: &Path) {
    let _ = std::fs::remove_file(path);
    std::os::unix::fs::symlink("../victim", path).unwrap();
}

/// What became of it.
struct Told {
    world: World,
    outcome: Outcome,
    seen: Vec<OpKind>,
}

impl Told {
    /// The refused paths and reasons.
    fn refused(&self) -> Vec<(&str, &str)> {
        let text = |path| std::str::from_utf8(path).unwrap();
        self.outcome.refused.iter().map(|r| (text(&r.path), r.reason.as_str())).collect()
    }

    /// What was saved.
    fn saved(&self) -> Vec<Vec<u8>> {
        self.outcome.saved.iter().map(|s| std::fs::read(&s.at).unwrap()).collect()
    }

    fn read(&self, path: &str) -> String {
        String::from_utf8(self.world.read(path)).unwrap()
    }
}

/// `change` is what the run does to `name`; `deeds` slip in while it is restored.
fn slip(name: &'static str, case: &str, change: fn(&Path), deeds: Vec<(OpKind, Deed)>) -> Told {
    let world = World::new(&format!("slip-{case}"));
    world.write("other", "one");
    world.write("d/other", "one");
    world.write("d/f", "one");
    std::fs::write(world.base.join("victim"), "victim").unwrap();
    let stored = world.record();
    world.write("other", "two");
    change(&world.path(name));
    let current = world.record();
    let deeds = deeds.into_iter().map(|(kind, deed)| (kind, AtomicU64::new(0), deed)).collect();
    let hook = Arc::new(Slip { name, path: world.path(name), deeds, seen: Mutex::default() });
    let outcome = world.restore_with(&stored, &current, &[], Some(hook.clone())).unwrap();
    assert_eq!(world.read("other"), b"one");
    assert_eq!(std::fs::read(world.base.join("victim")).unwrap(), b"victim");
    assert!(world.leftovers().iter().all(|left| left.starts_with("saved")), "{:?}", world.leftovers());
    let seen = hook.seen.lock().unwrap().clone();
    Told { world, outcome, seen }
}

fn edit(path: &Path) {
    std::fs::write(path, "two").unwrap();
}

#[test]
fn a_file_that_is_to_be_replaced() {
    let told = slip("d/f", "append", edit, vec![(OpKind::Exchange, Box::new(append))]);
    assert_eq!(told.read("d/f"), "two and more");
    assert_eq!(told.refused()[0].0, "d/f");
    assert_eq!(told.seen, [OpKind::Exchange, OpKind::Exchange]);

    let told = slip("d/f", "replace", edit, vec![(OpKind::Exchange, Box::new(replace))]);
    assert_eq!(told.read("d/f"), "by somebody");
    assert_eq!(told.refused()[0].0, "d/f");

    let told = slip("d/f", "remove", edit, vec![(OpKind::Exchange, Box::new(remove))]);
    assert_eq!(told.read("d/f"), "one");
    assert!(told.refused().is_empty());

    let told = slip("d/f", "link", edit, vec![(OpKind::Exchange, Box::new(link))]);
    assert!(told.world.path("d/f").symlink_metadata().unwrap().is_symlink());
    assert_eq!(told.refused()[0].0, "d/f");
}

#[test]
fn a_file_that_is_written_to_twice() {
    // The second time it is the restored one that is written to: that is the newest.
    let deeds: Vec<(OpKind, Deed)> =
        vec![(OpKind::Exchange, Box::new(append)), (OpKind::Exchange, Box::new(append))];
    let told = slip("d/f", "twice", edit, deeds);
    assert_eq!(told.read("d/f"), "one and more");
    assert_eq!(told.saved(), [b"two and more"]);
    assert_eq!(told.refused()[0].0, "d/f");

    let deeds: Vec<(OpKind, Deed)> =
        vec![(OpKind::Exchange, Box::new(append)), (OpKind::Exchange, Box::new(replace))];
    let told = slip("d/f", "twice-replace", edit, deeds);
    assert_eq!(told.read("d/f"), "by somebody");
    assert_eq!(told.saved(), [b"two and more"]);

    let deeds: Vec<(OpKind, Deed)> =
        vec![(OpKind::Exchange, Box::new(append)), (OpKind::Exchange, Box::new(remove))];
    let told = slip("d/f", "twice-remove", edit, deeds);
    assert_eq!(told.read("d/f"), "two and more");
    assert!(told.saved().is_empty());
}

#[test]
fn a_file_that_is_to_go() {
    let told = slip("d/new", "go-append", edit, vec![(OpKind::Rename, Box::new(append))]);
    assert_eq!(told.read("d/new"), "two and more");
    assert_eq!(told.refused()[0].0, "d/new");

    let deeds: Vec<(OpKind, Deed)> =
        vec![(OpKind::Rename, Box::new(append)), (OpKind::RenameNoReplace, Box::new(replace))];
    let told = slip("d/new", "go-twice", edit, deeds);
    assert_eq!(told.read("d/new"), "by somebody");
    assert_eq!(told.saved(), [b"two and more"]);

    let told = slip("d/new", "go-gone", edit, vec![(OpKind::Rename, Box::new(remove))]);
    assert!(!told.world.path("d/new").exists());
    assert!(told.refused().is_empty());
}

#[test]
fn a_name_that_is_to_be_made_again() {
    let told = slip("d/f", "made", remove, vec![(OpKind::RenameNoReplace, Box::new(replace))]);
    assert_eq!(told.read("d/f"), "by somebody");
    assert_eq!(told.refused()[0].0, "d/f");

    let told = slip("d/f", "made-link", remove, vec![(OpKind::RenameNoReplace, Box::new(link))]);
    assert!(told.world.path("d/f").symlink_metadata().unwrap().is_symlink());
    assert_eq!(told.refused()[0].0, "d/f");
}

#[test]
fn a_directory_that_is_to_be_made_again() {
    let gone = |path: &Path| std::fs::remove_dir_all(path).unwrap();
    let told = slip(
        "d",
        "dir-link",
        gone,
        vec![(
            OpKind::MakeDir,
            Box::new(|path: &Path| {
                std::os::unix::fs::symlink("..", path).unwrap();
            }),
        )],
    );
    assert!(told.world.path("d").symlink_metadata().unwrap().is_symlink());
    assert_eq!(told.refused()[0].0, "d");
    assert!(!told.world.base.join("f").exists());

    let told = slip(
        "d",
        "dir-dir",
        gone,
        vec![(
            OpKind::MakeDir,
            Box::new(|path: &Path| {
                std::fs::create_dir(path).unwrap();
                std::fs::write(path.join("f"), "by somebody").unwrap();
            }),
        )],
    );
    assert_eq!((told.read("d/f"), told.read("d/other")), ("by somebody".into(), "one".into()));
    assert_eq!(told.refused()[0].0, "d/f");
}

#[test]
fn a_directory_that_is_to_go() {
    let make = |path: &Path| {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("inside"), "two").unwrap();
    };
    let deed: Deed = Box::new(|path: &Path| std::fs::write(path.join("late"), "by somebody").unwrap());
    let told = slip("new", "dir-go", make, vec![(OpKind::RemoveDir, deed)]);
    assert_eq!(told.read("new/late"), "by somebody");
    assert!(!told.world.path("new/inside").exists());
    assert!(told.refused()[0].1.contains("late"), "{:?}", told.refused());
}
