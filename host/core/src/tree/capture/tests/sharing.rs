//! Large files, whose blocks are shared with the store where that can be.

use super::*;
use crate::disk::{Counter, Hook, Op, OpKind};
use crate::error::Kind;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

fn bytes() -> Vec<u8> {
    (0..(9 << 18) + 77u32).flat_map(|i| i.wrapping_mul(2_654_435_761).to_le_bytes()).collect()
}

/// Writes to a file each time something of its still gets into the store.
#[derive(Default)]
struct Writing(OnceLock<File>);

impl Hook for Writing {
    fn before(&self, op: &Op<'_>) -> std::io::Result<()> {
        match self.0.get().filter(|_| op.kind == OpKind::CopyRange) {
            Some(file) => file.write_all_at(b"written meanwhile", 5 << 20),
            None => Ok(()),
        }
    }
}

#[test]
fn what_is_written_while_a_still_is_stored_is_no_part_of_it() {
    let writing = Arc::new(Writing::default());
    let mut world = World::with(Disk::default().with_copies_as_clones().with_hook(writing.clone()));
    world.write("large", bytes());
    let file = File::options().write(true).open(world.path("large")).unwrap();
    writing.0.set(file).unwrap();
    let taken = world.capture();
    assert!(taken.root.left_out.is_empty());
    let size = bytes().len() as u64;
    let back = crate::store::content::read_all(&*world.store, &taken.content("large"), size, size).unwrap();
    assert!(back == bytes());
    assert!(std::fs::read(world.path("large")).unwrap() != bytes());
    // It is seen as changed the next time.
    assert_ne!(world.capture().content("large"), taken.content("large"));
}

#[test]
fn the_strategy_decides() {
    for (strategy, clones) in [("auto", 1), ("reflink", 1), ("copy", 0)] {
        let counter = Arc::new(Counter::default());
        let mut world = World::with(Disk::default().with_copies_as_clones().with_hook(counter.clone()));
        world.write("large", bytes());
        world.write("small", "s");
        world.options = vec![("strategy", strategy.to_owned())];
        let taken = world.capture();
        assert_eq!(counter.of(OpKind::Clone), clones, "{strategy}");
        let stored = world.store.read(&taken.content("large"));
        assert!(stored.is_ok(), "{strategy}");
    }
    let mut world = World::new();
    world.write("large", bytes());
    let probe = File::create(world.path("probe")).unwrap();
    let shares = rustix::fs::ioctl_ficlone(&probe, File::open(world.path("large")).unwrap()).is_ok();
    world.options = vec![("strategy", "reflink".to_owned())];
    let told = world.try_capture(true);
    if !shares {
        let error = told.unwrap_err();
        assert_eq!(error.kind(), Kind::Invalid);
        assert!(error.message().starts_with("large cannot share its blocks with the store at "), "{error}");
        assert!(error.hint_text().unwrap().contains("strategy = \"auto\""));
    }
    world.options = vec![("strategy", "auto".to_owned())];
    assert!(world.capture().added > 0);
}
