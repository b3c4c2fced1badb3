//! What one step is, and where undo and redo go.

use super::*;

#[test]
fn run_a_run_b_undo_undo_redo_redo() {
    let world = World::new();
    world.set("start");
    let first = world.run("after A");
    let second = world.run("after B");
    let outcome = world.go(&Ask::Undo).unwrap();
    assert_eq!((world.state().as_str(), outcome.restored_to), ("after A", second.clone()));
    let outcome = world.go(&Ask::Undo).unwrap();
    assert_eq!((world.state().as_str(), outcome.restored_to), ("start", first.clone()));
    assert_eq!(outcome.saved_as.unwrap(), second, "a state that is stored is not stored again");
    assert_eq!(world.go(&Ask::Undo).err().unwrap().kind(), Kind::NotFound);
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after A");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after B");
    let error = world.go(&Ask::Redo).err().unwrap();
    assert_eq!(error.to_string(), "there is nothing to redo");
}

#[test]
fn a_step_that_is_done_again_is_still_itself() {
    let world = World::new();
    world.set("start");
    // Two runs from the same state: which one is meant is not for the state to say.
    let first = world.run("start");
    let second = world.run("after B");
    let ids = || world.open().unwrap().timeline().unwrap().done.into_iter().map(|step| step.before);
    let before: Vec<_> = ids().collect();
    assert_eq!(before, [first.clone(), second.clone()]);
    world.go(&Ask::Undo).unwrap();
    world.go(&Ask::Undo).unwrap();
    world.go(&Ask::Redo).unwrap();
    world.go(&Ask::Redo).unwrap();
    assert_eq!(ids().collect::<Vec<_>>(), before);
}

#[test]
fn edits_after_the_run_are_saved_and_redone() {
    let world = World::new();
    world.set("start");
    world.run("after");
    world.set("after, edited");
    let outcome = world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
    assert_eq!(world.open().unwrap().load(&outcome.saved_as.unwrap()).unwrap().kind, SnapshotKind::PreUndo);
    world.set("start, edited");
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "after, edited");
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start, edited", "an undo of a redo goes back to what the redo replaced");
}

#[test]
fn an_undo_that_changes_nothing_goes_one_step_back() {
    let world = World::new();
    world.set("start");
    world.run("after");
    world.take(SnapshotKind::Manual);
    let session = world.session();
    let plan = session.plan(&Ask::Undo, &[], &[]).unwrap();
    assert!(plan.is_empty());
    assert_eq!(plan.next.as_ref().unwrap().kind, SnapshotKind::Run);
    session.execute(plan, false).unwrap();
    drop(session);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
}

#[test]
fn an_unchanged_manual_snapshot_is_not_taken_again() {
    let world = World::new();
    world.set("x");
    let first = world.take(SnapshotKind::Manual);
    let again = world.take(SnapshotKind::Manual);
    assert!(first.new && !again.new);
    assert_eq!(first.snapshot.id, again.snapshot.id);
    world.set("y");
    assert!(world.take(SnapshotKind::Manual).new);
}

#[test]
fn a_restore_is_a_step_that_can_be_undone() {
    let world = World::new();
    world.set("start");
    let first = world.run("after A");
    world.run("after B");
    world.go(&Ask::Restore(first)).unwrap();
    assert_eq!(world.state(), "start");
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "after B");
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "after A");
}

#[test]
fn snapshots_inside_a_run_belong_to_it() {
    let mut world = World::new();
    world.set("start");
    let run = world.take(SnapshotKind::Run).snapshot.id;
    let session = world.session();
    let mark = session.begin_run(&run).unwrap();
    drop(session);
    world.inside = Some(run.to_string());
    world.set("one");
    let one = world.take(SnapshotKind::Manual).snapshot;
    assert_eq!(one.run.as_ref(), Some(&run));
    world.set("two");
    let two = world.take(SnapshotKind::Run).snapshot;
    assert_eq!(two.run.as_ref(), Some(&run));
    let session = world.session();
    assert_eq!(session.plan(&Ask::Undo, &[], &[]).unwrap().running, std::slice::from_ref(&run));
    assert_eq!(session.list().unwrap().0.last().unwrap().state, State::Running);
    drop(session);
    drop(mark);
    world.set("three");
    for expected in ["two", "one", "start"] {
        world.go(&Ask::UndoStep).unwrap();
        assert_eq!(world.state(), expected);
    }
    let (list, _) = world.open().unwrap().list().unwrap();
    assert_eq!(list.last().unwrap().state, State::Interrupted);
}

#[test]
fn chosen_things_come_back_one_after_another() {
    let world = World::with("[[target]]\nbackend = \"other\"\n");
    world.set("start");
    world.run("after");
    *world.fakes.1.state.lock().unwrap() = "other, changed".into();
    for (name, changed) in [("tree", 1), ("other", 1)] {
        let session = world.session();
        let plan = session.plan(&Ask::Undo, &[name.to_owned()], &[]).unwrap();
        assert_eq!(plan.changes.len(), changed, "{name}");
        session.execute(plan, false).unwrap();
    }
    assert_eq!((world.state().as_str(), world.fakes.1.state.lock().unwrap().as_str()), ("start", ""));
}

#[test]
fn what_is_written_between_capture_and_restore_is_captured_as_well() {
    let world = World::new();
    world.set("start");
    world.run("after");
    *world.fakes.0.meanwhile.lock().unwrap() = vec!["later".into(), "late".into()];
    let undone = world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
    assert!(*world.fakes.0.held.lock().unwrap(), "what is captured once more is held");
    let (list, _) = world.open().unwrap().list().unwrap();
    let kinds: Vec<SnapshotKind> = list.iter().map(|listing| listing.snapshot.kind).collect();
    assert_eq!(kinds, [SnapshotKind::PreUndo, SnapshotKind::Run], "what was captured before holds no more");
    assert_eq!(undone.saved_as.unwrap(), list[0].snapshot.id);
    world.go(&Ask::Redo).unwrap();
    assert_eq!(world.state(), "later");
    // Who writes without end is not overwritten, and what was done is taken back.
    world.run("again");
    *world.fakes.0.meanwhile.lock().unwrap() = (0..9).map(|n| format!("written {n}")).collect();
    assert_eq!(world.go(&Ask::Undo).err().unwrap().kind(), Kind::Changed);
    assert!(world.state().starts_with("written "));
    assert!(world.open().unwrap().pending().unwrap().is_none());
}

#[test]
fn who_is_in_use_is_not_taken_back_and_the_others_are() {
    let world = World::with("[[target]]\nbackend = \"other\"\n");
    world.set("start");
    world.run("after");
    *world.fakes.1.state.lock().unwrap() = "in use".into();
    *world.fakes.1.busy.lock().unwrap() = true;
    assert_eq!(world.go(&Ask::Undo).err().unwrap().kind(), Kind::Busy);
    assert_eq!(world.state(), "after");
    assert!(world.open().unwrap().pending().unwrap().is_none(), "nothing is left to be done");
}

#[test]
fn a_restore_that_changes_nothing_leaves_no_snapshot_behind() {
    let world = World::with("[[target]]\nbackend = \"other\"\n");
    world.set("start");
    let first = world.run("start");
    *world.fakes.1.state.lock().unwrap() = "other, changed".into();
    let session = world.session();
    let plan = session.plan(&Ask::Restore(first), &["tree".to_owned()], &[]).unwrap();
    assert!(plan.is_empty());
    assert_eq!(session.execute(plan, false).unwrap().saved_as, None);
    assert_eq!(session.ids().unwrap().len(), 1);
}
