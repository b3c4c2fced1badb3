//! Where a database ends: with the last page that SQLite counts, however it is read.

use super::*;
use std::io::Write;

/// Bytes behind the last page: a few, whole pages, and room as applications set it aside.
const BEHIND: [usize; 3] = [10, 3 * 4096, 500_000];

impl World {
    fn lengthen(&self, by: usize) {
        let mut file = std::fs::OpenOptions::new().append(true).open(self.path("app.db")).unwrap();
        file.write_all(&vec![b'P'; by]).unwrap();
    }

    fn inode_of_it(&self) -> u64 {
        std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(self.path("app.db")).unwrap())
    }
}

#[test]
fn what_lies_behind_the_last_page_is_no_part_of_it_and_in_nobodys_way() {
    for mode in ["DELETE", "WAL"] {
        for behind in BEHIND {
            let what = format!("{mode} {behind}");
            let world = World::new();
            world.make(&format!("PRAGMA journal_mode = {mode}"), 300);
            let pages = std::fs::read(world.path("app.db")).unwrap();
            world.lengthen(behind);
            let closed = world.capture();
            assert!(world.bytes(closed) == pages, "{what}");
            assert!(world.told.0.lock().unwrap().is_empty(), "{what}: it is a database");
            let mut app = world.python();
            app.open();
            assert_eq!(app.count(), "[(300,)]");
            assert!(world.same_state(closed, world.capture()), "{what}: open");
            drop(app);
            assert!(world.same_state(closed, world.capture()), "{what}: closed");
            // As it comes and goes: made by a run, changed by one, removed by one.
            world.undo(None).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert!(world.names().is_empty(), "{what}");
            world.undo(Some(closed)).unwrap();
            world.lengthen(behind);
            world.sql("DELETE FROM t WHERE a > 10");
            world.lengthen(behind);
            let (changed, there) = (world.capture(), world.inode_of_it());
            world.restore(Some(closed), Some(changed)).unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!((world.count().as_str(), world.inode_of_it()), ("[(300,)]", there), "{what}");
            world.is_sound();
            assert!(world.same_state(closed, world.capture()), "{what}");
        }
    }
}
