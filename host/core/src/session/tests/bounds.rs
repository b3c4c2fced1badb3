//! Keeping the history within bounds.

use super::*;

#[test]
fn old_snapshots_go_and_what_undo_needs_stays() {
    let mut world = World::new();
    world.user.retention.keep = 3;
    for n in 0..6 {
        world.set(&n.to_string());
        world.run(&format!("after {n}"));
    }
    assert_eq!(world.open().unwrap().ids().unwrap().len(), 3);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "5");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after 5");
    world.go(&Ask::Undo).unwrap();
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "4");
    assert_eq!(world.open().unwrap().ids().unwrap().len(), 3);
    assert!(world.go(&Ask::Undo).is_err(), "older steps went with their snapshots");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "5");
}

#[test]
fn a_forgotten_snapshot_is_gone_from_the_list_and_the_timeline() {
    let world = World::new();
    world.set("secret");
    let first = world.run("clean");
    world.run("later");
    world.session().forget(&first).unwrap();
    let project = world.open().unwrap();
    assert!(!project.ids().unwrap().contains(&first));
    assert_eq!(project.timeline().unwrap().done.len(), 1);
    let secret = crate::object::Key::of(ObjectKind::Blob, b"secret");
    assert!(!project.need_store().unwrap().contains(&secret).unwrap());
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "clean");
}
