//! What did not change is not read again: the kernel says which files are opened, by whomever
//! and wherever.

use super::{Engine, USERS, cover, each_user};
use rustix::fs::inotify::{CreateFlags, Reader, WatchFlags, add_watch, init};
use std::collections::BTreeSet;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Who listens to what is opened in one directory.
struct Opened(OwnedFd);

impl Opened {
    fn listen(dir: &Path) -> Self {
        let handle = init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC).expect("the kernel tells");
        add_watch(&handle, dir, WatchFlags::OPEN | WatchFlags::ACCESS).expect("the directory is there");
        Self(handle)
    }

    /// The files in it that were opened or read since the last time.
    fn names(&self) -> BTreeSet<String> {
        let mut room = [MaybeUninit::uninit(); 4096];
        let (mut reader, mut names) = (Reader::new(&self.0, &mut room), BTreeSet::new());
        while let Ok(event) = reader.next() {
            names.extend(event.file_name().map(|name| name.to_string_lossy().into_owned()));
        }
        names
    }
}

/// A volume with files that are older than the clock's next tick, and one that is none.
fn fill(engine: &Engine, volume: &str) -> Opened {
    engine.docker(&["volume", "create", volume]);
    let files = engine.files(volume);
    engine.sh(&format!("cd {}; for i in $(seq 40); do echo $i > f$i; done; sleep 3", files.display()));
    Opened::listen(&files)
}

#[test]
fn only_what_changed_is_opened_again() {
    assert_eq!(USERS.len(), 2, "in the engine's directory, and in a container");
    each_user(|s, engine, volume| {
        let opened = fill(engine, volume);
        cover(s, volume, "");
        s.run("true");
        assert_eq!(opened.names().len(), 40);
        let file = engine.files(volume).join("f7");
        std::fs::write(&file, "changed").unwrap();
        engine.sh("sleep 3");
        opened.names();
        s.run("true");
        assert_eq!(opened.names(), ["f7".to_owned()].into());
        s.run("true");
        assert_eq!(opened.names(), BTreeSet::new());
        // Nor is what is put back read where it is as it was.
        std::fs::write(&file, "again").unwrap();
        engine.sh("sleep 3");
        opened.names();
        s.ok(["undo", "--yes"]);
        let names = opened.names();
        assert!(names.iter().all(|name| name == "f7" || !name.starts_with('f')), "{names:?}");
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "changed");
    });
}
