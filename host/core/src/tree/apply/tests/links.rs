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

/// What each name is: the first name of its inode, its mode, its content.
fn names(world: &World) -> Vec<(String, String, u32, Vec<u8>)> {
    let mut names: Vec<String> = std::fs::read_dir(&world.tree)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let first = |name: &str| names.iter().find(|other| world.ino(other) == world.ino(name)).unwrap().clone();
    names.iter().map(|name| (name.clone(), first(name), world.mode(name), world.read(name))).collect()
}

#[test]
fn names_part_and_join_as_they_were_in_both_directions() {
    for (before, after) in [
        // Two inodes of the same content become one.
        ("echo s > a; ln a a1; echo s > b; ln b b1", "ln -f a b; ln -f a b1"),
        ("echo s > b; ln b b1; echo s > c; ln c c1", "ln -f c b; ln -f c b1; ln c a"),
        // One joins others, and what they share changes.
        ("echo s > a; ln a c; echo s > b; chmod 600 a", "ln -f a b; chmod 644 a"),
        ("echo s > a; ln a c; echo s > b; ln b d; chmod 600 a", "ln -f a b; chmod 644 a"),
        (
            "echo s > a; ln a c; echo s > b; ln b d; chmod 600 a b",
            "ln -f a b; ln -f d c; chmod 640 a; chmod 644 d",
        ),
        // They part.
        ("echo s > a; ln a b; ln a c", "cp a x; mv x b; chmod 600 a"),
        ("echo s > a; ln a b; ln a c; ln a d", "cp a x; ln -f x c; mv x d; chmod 600 a c"),
    ] {
        let world = World::new("links-part");
        let sh = |script: &str| {
            let mut sh = std::process::Command::new("sh");
            let done = sh.args(["-ec", script]).current_dir(&world.tree).status().unwrap();
            assert!(done.success(), "{script}");
        };
        sh(before);
        let (stored, was) = (world.capture(&[], None), names(&world));
        sh(after);
        let (current, is) = (world.capture(&[], None), names(&world));
        for (from, to, expected) in
            [(&current, &stored, &was), (&stored, &current, &is), (&current, &stored, &was)]
        {
            let (outcome, _) = world.put_back(&[], to, from, &[]).unwrap();
            assert!(outcome.refused.is_empty(), "{before} | {after}: {outcome:?}");
            assert_eq!(&names(&world), expected, "{before} | {after}");
        }
        assert_eq!(world.leftovers(), [""; 0], "{before} | {after}");
    }
}

#[test]
fn what_only_became_a_name_of_something_elsewhere_does_not_change_it() {
    let world = World::new("links-victim");
    let victim = world.base.join("victim");
    std::fs::write(&victim, "s").unwrap();
    std::fs::set_permissions(&victim, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    world.write("a", "s");
    world.chmod("a", 0o755);
    let stored = world.capture(&[], None);
    world.remove("a");
    std::fs::hard_link(&victim, world.path("a")).unwrap();
    let current = world.capture(&[], None);
    let (outcome, _) = world.put_back(&[], &stored, &current, &[]).unwrap();
    assert!(outcome.refused.is_empty(), "{outcome:?}");
    assert_eq!((world.mode("a"), world.read("a")), (0o755, b"s".to_vec()));
    assert_eq!(victim.metadata().unwrap().mode() & 0o7777, 0o600);
    assert_eq!(victim.metadata().unwrap().nlink(), 1);
}
