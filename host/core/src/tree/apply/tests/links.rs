//! Hard links: names become one inode again, and no other names change with them.

use super::world::World;
use std::os::unix::fs::MetadataExt;

impl World {
    fn ino(&self, path: &str) -> u64 {
        self.path(path).symlink_metadata().unwrap().ino()
    }

    fn link(&self, from: &str, to: &str) {
        std::fs::hard_link(self.path(from), self.path(to)).unwrap();
    }

    fn mode(&self, path: &str) -> u32 {
        self.path(path).symlink_metadata().unwrap().mode() & 0o7777
    }

    fn remove(&self, path: &str) {
        std::fs::remove_file(self.path(path)).unwrap();
    }

    /// Restores only `path` from `stored`.
    fn only(&self, path: &str, stored: &crate::object::Key) {
        let current = self.capture(&[], None);
        let (outcome, told) = self.put_back(&[], stored, &current, &[path]).unwrap();
        assert!(outcome.refused.is_empty() && told.is_empty(), "{path}: {told:?}");
    }
}

#[test]
fn a_name_that_was_not_chosen_does_not_change_with_one_that_was() {
    let world = World::new("links-chosen");
    world.write("x", "one");
    world.link("x", "y");
    world.touch("x", 1_000_000_000);
    let stored = world.capture(&[], None);
    // A time alone is nothing that names are torn apart for.
    world.touch("x", 1_200_000_000);
    let inode = world.ino("y");
    world.only("x", &stored);
    assert_eq!([world.ino("x"), world.ino("y")], [inode; 2]);
    assert_eq!(world.path("y").metadata().unwrap().mtime(), 1_200_000_000);

    world.chmod("x", 0o600);
    world.only("x", &stored);
    assert_eq!([world.mode("x"), world.mode("y")], [0o644, 0o600]);
    assert!(world.ino("y") == inode && world.ino("x") != inode);
    // What it was one with comes back to it.
    let inode = world.ino("x");
    world.only("y", &stored);
    assert_eq!([world.ino("x"), world.ino("y")], [inode; 2]);
    assert_eq!([world.mode("x"), world.mode("y")], [0o644; 2]);
    assert_eq!(world.leftovers(), [""; 0]);
}

#[test]
fn a_name_that_was_removed_comes_back_as_one_of_its_inode() {
    for names in [&["x"][..], &["x", "z"]] {
        let world = World::new("links-removed");
        world.write("a", "one");
        names.iter().for_each(|name| world.link("a", name));
        let stored = world.capture(&[], None);
        let inode = world.ino("x");
        world.remove("a");
        world.only("a", &stored);
        assert_eq!(world.ino("a"), inode, "{names:?}");
    }
}

#[test]
fn a_name_does_not_become_one_with_what_it_never_was() {
    let world = World::new("links-foreign");
    world.write("x", "one");
    world.link("x", "y");
    let stored = world.capture(&[], None);
    // The inode has another name now.
    world.remove("y");
    world.link("x", "z");
    let inode = world.ino("x");
    world.only("y", &stored);
    assert_eq!([world.ino("x"), world.ino("z")], [inode; 2]);
    assert!(world.ino("y") != inode && world.read("y") == b"one");
    // Or another content.
    world.remove("y");
    world.remove("z");
    world.write("x", "two");
    world.only("y", &stored);
    assert_eq!([world.read("x"), world.read("y")], [b"two".to_vec(), b"one".to_vec()]);
}
