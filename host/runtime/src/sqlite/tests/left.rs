//! A restore that is killed while files are moved: what somebody put there in between is never
//! lost, and the next one begins with all as it was.

use super::*;
use snapback_core::disk::{Hook, Op};
use snapback_core::error::Kind;
use std::fs;
use std::sync::atomic::{AtomicU64, Ordering};

/// Somebody does something before an operation, and after it the process is gone.
struct Killed {
    seen: AtomicU64,
    at: u64,
    deed: Box<dyn Fn() + Send + Sync>,
}

impl Hook for Killed {
    fn before(&self, _: &Op<'_>) -> std::io::Result<()> {
        let n = self.seen.fetch_add(1, Ordering::SeqCst);
        if n == self.at {
            (self.deed)();
        }
        if n > self.at { Err(rustix::io::Errno::IO.into()) } else { Ok(()) }
    }
}

impl World {
    /// Whether a file of the project, or one that was kept, or one that was captured last, holds `bytes`.
    fn has_somewhere(&self, bytes: &[u8]) -> bool {
        let mut kept = fs::read_dir(self.path(".store/saved")).into_iter().flatten();
        let kept = kept.any(|entry| fs::read(entry.unwrap().path()).unwrap() == bytes);
        let stored = |key: Key| {
            let captured = self.captured(key);
            captured.entries().iter().any(|entry| match entry.node {
                Node::File { content, size, .. } => {
                    content::read_all(&*self.store as &dyn Source, &content, size, u64::MAX).unwrap() == bytes
                }
                _ => false,
            })
        };
        kept || self.files().iter().any(|(.., content)| content == bytes)
            || self.last.lock().unwrap().is_some_and(stored)
    }

    fn reopen(&mut self, disk: Disk) {
        self.store = Store::open(&self.path(".store"), disk.with_sync(false)).unwrap();
    }
}

/// What stands there is replaced by `theirs` as `name` before each operation in turn.
fn killed_everywhere(prepare: impl Fn(&World), stored: bool, name: &str, theirs: &[u8]) -> u64 {
    let mut world = World::new();
    world.make("", 100);
    let image = world.capture();
    for at in (0..).step_by(2) {
        for entry in fs::read_dir(world.scratch.path()).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_file() {
                fs::remove_file(entry).unwrap();
            }
        }
        let _ = fs::remove_dir_all(world.path(".store/saved"));
        prepare(&world);
        world.reopen(Disk::default());
        let (spoilt, before) = (world.capture(), world.files());
        let (path, new, bytes) = (world.path(name), world.path("theirs"), theirs.to_vec());
        let deed = Box::new(move || {
            fs::write(&new, &bytes).unwrap();
            fs::rename(&new, &path).unwrap();
        });
        let hook = Arc::new(Killed { seen: AtomicU64::new(0), at, deed });
        world.reopen(Disk::default().with_hook(hook.clone()));
        let to = stored.then_some(image);
        let _ = world.restore(to, Some(spoilt));
        world.reopen(Disk::default());
        if hook.seen.load(Ordering::SeqCst) <= at {
            return at;
        }
        let what = format!("operation {at}, {name}");
        match world.restore(to, Some(spoilt)) {
            Err(error) if error.kind() == Kind::Changed => {
                assert!(world.has_somewhere(theirs), "{what}: lost");
                world.undo(to).unwrap_or_else(|error| panic!("{what}: {error}"));
            }
            done => done.unwrap_or_else(|error| panic!("{what}: {error}")),
        }
        assert!(world.has_somewhere(theirs), "{what}: lost");
        if stored {
            let rest: Vec<String> = world.names().into_iter().filter(|other| other != name).collect();
            assert!(rest == ["app.db"] || rest.is_empty(), "{what}: {rest:?}");
            if name == "app.db" {
                assert_eq!(world.count(), "[(100,)]", "{what}");
            }
        }
        assert!(!before.is_empty());
    }
    unreachable!()
}

fn spoilt(world: &World) {
    fs::write(world.path("app.db"), "text\n").unwrap();
    fs::write(world.path("app.db-journal"), [&JOURNAL[..], &[0x3b; 5000]].concat()).unwrap();
    fs::write(world.path("app.db-wal"), LOG).unwrap();
}

#[test]
fn what_came_in_between_is_put_back_or_kept_when_the_process_is_killed() {
    let journal = [&JOURNAL[..], b"theirs"].concat();
    for stored in [true, false] {
        for (name, theirs) in [("app.db", &b"theirs\n"[..]), ("app.db-journal", &journal)] {
            let operations = killed_everywhere(spoilt, stored, name, theirs);
            assert!(operations >= 8, "{operations}");
        }
        killed_everywhere(
            |world| fs::write(world.path("app.db"), "text\n").unwrap(),
            stored,
            "app.db",
            b"theirs\n",
        );
    }
}

#[test]
fn killed_anywhere_the_next_one_finds_all_as_it_was_or_as_it_is_to_be() {
    let mut world = World::new();
    world.make("", 100);
    let image = world.capture();
    let mut killed = 0;
    for at in (0..).step_by(2) {
        spoilt(&world);
        world.reopen(Disk::default());
        let spoilt = world.capture();
        let hook = Arc::new(Killed { seen: AtomicU64::new(0), at, deed: Box::new(|| {}) });
        world.reopen(Disk::default().with_hook(hook.clone()));
        let _ = world.restore(Some(image), Some(spoilt));
        world.reopen(Disk::default());
        if hook.seen.load(Ordering::SeqCst) <= at {
            break;
        }
        killed += 1;
        // Back and forth: the redo is of all that there was.
        let back = at % 4 == 0;
        match back {
            true => world.restore(Some(spoilt), Some(image)),
            false => world.restore(Some(image), Some(spoilt)),
        }
        .unwrap_or_else(|error| panic!("operation {at}: {error}"));
        if back {
            assert!(world.same_state(spoilt, world.capture()), "operation {at}");
            world.undo(Some(image)).unwrap();
        }
        assert_eq!(
            (world.count().as_str(), world.names()),
            ("[(100,)]", vec!["app.db".into()]),
            "operation {at}"
        );
        let saved = fs::read_dir(world.path(".store/saved")).map_or(0, Iterator::count);
        let aside = fs::read_dir(world.path(".store/aside")).map_or(0, Iterator::count);
        assert_eq!((saved, aside), (0, 0), "operation {at}: nothing of it stays");
    }
    assert!(killed >= 4, "{killed}");
}
