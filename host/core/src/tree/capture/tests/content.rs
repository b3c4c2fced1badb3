//! Content: sizes, holes, what cannot be read.

use super::*;
use std::fs::File;
use std::os::unix::fs::{FileExt, PermissionsExt};

#[test]
fn content_of_every_length_is_stored_whole() {
    let mut world = World::new();
    let block = crate::store::BLOCK;
    let sizes = [0, 1, block - 1, block, block + 1, 3 * block + 17];
    for size in sizes {
        let bytes: Vec<u8> = (0..size).map(|at| (at * 31 % 251) as u8).collect();
        world.write(&format!("{size}"), bytes);
    }
    let taken = world.capture();
    for size in sizes {
        let Node::File { content, size: stored, sparse } = taken.entry(&format!("{size}")).node else {
            panic!()
        };
        assert_eq!((stored, sparse), (size as u64, false));
        let back = crate::store::content::read_all(&*world.store, &content, stored, 1 << 20).unwrap();
        assert_eq!(back, std::fs::read(world.path(&format!("{size}"))).unwrap());
    }
}

#[test]
fn holes_are_not_read() {
    let mut world = World::new();
    let file = File::create(world.path("sparse")).unwrap();
    file.set_len(20 << 30).unwrap();
    file.write_at(b"in the middle", 10 << 30).unwrap();
    world.write("dense", vec![0; 200_000]);
    let taken = world.capture();
    let Node::File { size, sparse, .. } = taken.entry("sparse").node else { panic!() };
    assert_eq!((size, sparse), (20 << 30, true));
    assert!(matches!(taken.entry("dense").node, Node::File { sparse: false, .. }));
    assert!(taken.added < 300_000, "{} bytes were stored", taken.added);
    assert_eq!(taken.root.bytes, (20 << 30) + 200_000);
}

#[test]
fn what_may_not_be_read_is_a_hole_and_the_rest_is_captured() {
    let mut world = World::new();
    world.write("good", "g");
    world.write("secret", "s");
    world.write("closed/inside", "i");
    world.write("listed/inside", "i");
    world.previous = None;
    let mode = |path: &str, mode| {
        std::fs::set_permissions(world.path(path), PermissionsExt::from_mode(mode)).unwrap()
    };
    let taken = as_nobody(&world, || {
        mode("secret", 0);
        mode("closed", 0);
        mode("listed", 0o444);
        let taken = world.try_capture(true).unwrap();
        mode("closed", 0o700);
        mode("listed", 0o700);
        taken
    });
    assert_eq!(taken.paths(), ["good"]);
    let holes = taken.left_out();
    assert_eq!(
        holes,
        [
            ("closed".into(), Why::Unreadable, "could not be opened: permission denied"),
            ("listed".into(), Why::Unreadable, "could not be looked into: permission denied"),
            ("secret".into(), Why::Unreadable, "could not be opened: permission denied"),
        ]
    );
    let told: Vec<_> = taken.omitted.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(told, ["closed", "listed", "secret"]);
    assert!(taken.omitted[0].1.contains("permission denied"));
}

#[test]
fn a_request_to_stop_is_heard() {
    let world = World::new();
    world.write("file", "x");
    world.cancel.cancel();
    let error = world.try_capture(true).unwrap_err();
    assert_eq!(error.kind(), crate::error::Kind::Cancelled);
}
