//! What was told as done lasts: names that came and went are on the disk by then, and so is that a
//! journal went, which would bring the old rows back.

use super::*;
use snapback_core::disk::{Hook, Op, OpKind};
use std::collections::BTreeSet;

/// What the directory had when it was made durable the last time.
struct Durable {
    dir: PathBuf,
    names: Mutex<BTreeSet<String>>,
}

impl Hook for Durable {
    fn before(&self, _: &Op<'_>) -> std::io::Result<()> {
        Ok(())
    }

    fn after(&self, op: &Op<'_>, done: bool) {
        if op.kind == OpKind::SyncDir && op.dir == self.dir && done {
            let entries = std::fs::read_dir(&self.dir).unwrap();
            *self.names.lock().unwrap() =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        }
    }
}

#[test]
fn all_names_are_on_the_disk_when_a_restore_is_done() {
    let make = |world: &World, (mode, size): (&str, u32), rows| {
        let _ = std::fs::remove_file(world.path("app.db"));
        world.make(&format!("PRAGMA page_size = {size}\nPRAGMA journal_mode = {mode}"), rows);
    };
    let kinds = [
        (Some(("delete", 4096)), Some(("delete", 4096))),
        (Some(("wal", 4096)), Some(("wal", 4096))),
        (Some(("delete", 1024)), Some(("delete", 4096))),
        (Some(("delete", 4096)), Some(("wal", 4096))),
        (Some(("wal", 4096)), Some(("delete", 4096))),
        (Some(("delete", 4096)), None),
        (None, Some(("delete", 4096))),
    ];
    for (stored, now) in kinds {
        let mut world = World::new();
        let key = stored.map(|kind| {
            make(&world, kind, 50);
            world.capture()
        });
        let _ = std::fs::remove_file(world.path("app.db"));
        if let Some(kind) = now {
            make(&world, kind, 20);
        }
        let hook = Arc::new(Durable { dir: world.scratch.path().to_owned(), names: Mutex::default() });
        let disk = Disk::default().with_hook(hook.clone());
        let current = world.try_capture().unwrap();
        world.store = Store::open(&world.path(".store"), disk).unwrap();
        for how in ["put back", "put back again, by whoever was not told that it was done"] {
            hook.names.lock().unwrap().clear();
            world.restore(key, current).unwrap();
            let there = std::fs::read_dir(world.scratch.path()).unwrap();
            let there = there.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            assert_eq!(*hook.names.lock().unwrap(), there, "{now:?} to {stored:?}: {how}");
        }
        assert_eq!(world.names().contains(&"app.db".to_owned()), stored.is_some());
    }
}
