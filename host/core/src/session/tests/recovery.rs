//! A step that was begun and not finished: it is finished, taken back, or abandoned.

use super::*;

#[test]
fn a_failed_restore_is_taken_back() {
    let world = World::with("[[target]]\nbackend = \"other\"\n");
    world.set("start");
    world.run("after");
    *world.fakes.1.fail.lock().unwrap() = 1;
    let error = world.go(&Ask::Undo).err();
    // The other target did not change, so only a change in it makes it fail.
    assert!(error.is_some());
    assert_eq!(world.state(), "after");
    assert_eq!(world.open().unwrap().pending().unwrap(), None);
    world.go(&Ask::Undo).unwrap();
    assert_eq!(world.state(), "start");
}

#[test]
fn a_step_that_is_stopped_is_taken_back_in_all_targets() {
    let world = World::with("[[target]]\nbackend = \"other\"\n");
    let other = |state: Option<&str>| {
        let mut other = world.fakes.1.state.lock().unwrap();
        state.into_iter().for_each(|state| *other = state.to_owned());
        other.clone()
    };
    for stopped in [&world.fakes.0, &world.fakes.1] {
        world.set("start");
        other(Some("start"));
        let id = world.take(SnapshotKind::Run).snapshot.id;
        world.set("after");
        other(Some("after"));
        world.session().end_run(&id, 0).unwrap();
        *stopped.stops.lock().unwrap() = 1;
        let error = world.go(&Ask::Undo).err().unwrap();
        assert_eq!(error.kind(), Kind::Cancelled);
        assert!(error.to_string().contains("all is as it was before"), "{error}");
        assert_eq!((world.state(), other(None)), ("after".into(), "after".into()));
        assert_eq!(world.open().unwrap().pending().unwrap(), None);
        world.go(&Ask::Undo).unwrap();
        assert_eq!((world.state(), other(None)), ("start".into(), "start".into()));
    }
    // Where putting it back fails as well, that is said with what goes on.
    world.set("after");
    world.take(SnapshotKind::Manual);
    world.set("more");
    *world.fakes.0.stops.lock().unwrap() = 1;
    *world.fakes.0.fail.lock().unwrap() = 1;
    let error = world.go(&Ask::Undo).err().unwrap();
    assert_eq!(error.kind(), Kind::Cancelled);
    assert!(error.hint_text().unwrap().contains("undo --resume"), "{error:?}");
    assert!(world.open().unwrap().pending().unwrap().is_some());
}

#[test]
fn what_is_not_as_it_was_when_all_is_done_is_in_the_outcome() {
    let world = World::new();
    world.set("start");
    world.run("after");
    *world.fakes.0.stays.lock().unwrap() = Some("it does not start".into());
    let outcome = world.go(&Ask::Undo).unwrap();
    let told: Vec<&str> = outcome.not_restored.iter().map(|item| &*item.reason).collect();
    assert_eq!(told, ["it does not start"]);
    // It is no change that was not made.
    assert_eq!((outcome.changes.len(), &*world.state()), (1, "start"));
}

#[test]
fn what_cannot_be_taken_back_stays_pending_and_can_be_ended() {
    for (how, state) in
        [(None, "start"), (Some(Recovery::Resume), "start"), (Some(Recovery::TakeBack), "after")]
    {
        let world = World::new();
        world.set("start");
        world.run("after");
        *world.fakes.0.fail.lock().unwrap() = 2;
        let error = world.go(&Ask::Undo).err().unwrap();
        assert!(error.to_string().contains("could not be taken back"), "{error}");
        assert_eq!(world.state(), "half");
        assert!(world.open().unwrap().pending().unwrap().is_some());
        // What was saved is kept twice before anything is touched; what is captured once more
        // in the middle is not, until the step is finished.
        let outlives = || world.open().unwrap().twin().unwrap().unwrap();
        let Twin::Whole(place) = outlives() else { panic!("{:?}", outlives()) };
        let pack = fs::read_dir(place.join("packs")).unwrap().next().unwrap().unwrap().path();
        fs::rename(&pack, place.join("missing")).unwrap();
        assert_eq!(outlives(), Twin::Behind(place.clone()));
        fs::rename(place.join("missing"), pack).unwrap();
        assert_eq!(world.open().unwrap().list().unwrap().0.len(), 2, "reading goes on");
        match &how {
            Some(how) => drop(world.open().unwrap().lock_unrecovered().unwrap().end_pending(how).unwrap()),
            None => drop(world.session()),
        }
        assert_eq!(world.state(), state);
        assert_eq!(world.open().unwrap().pending().unwrap(), None);
        let timeline = world.open().unwrap().timeline().unwrap();
        assert_eq!(timeline.undone.len(), usize::from(state == "start"));
    }
}

#[test]
fn a_target_can_be_abandoned() {
    let world = World::with("[[target]]\nbackend = \"other\"\n");
    world.set("start");
    world.run("after");
    *world.fakes.1.fail.lock().unwrap() = u32::MAX;
    assert!(world.go(&Ask::Undo).is_err());
    assert!(world.open().unwrap().lock().is_err(), "writing waits for a decision");
    let session = world.open().unwrap().lock_unrecovered().unwrap();
    assert!(session.end_pending(&Recovery::Abandon("nobody".into())).is_err());
    session.end_pending(&Recovery::Abandon("other".into())).unwrap();
    assert_eq!(world.state(), "start");
    drop(session);
    world.session();
}

#[test]
fn a_crash_between_the_timeline_and_the_journal_adds_the_step_once() {
    let world = World::new();
    world.set("start");
    world.run("after");
    let outcome = world.go(&Ask::Undo).unwrap();
    let session = world.session();
    let timeline = session.timeline().unwrap();
    let journal = Journal {
        format: Journal::FORMAT,
        verb: Verb::Undo,
        to: outcome.restored_to,
        saved: outcome.saved_as.unwrap(),
        targets: vec!["tree".into()],
        only: Vec::new(),
        record: timeline.last.unwrap(),
        number: timeline.number,
    };
    journal.begin(&session.env().disk, &session.dir).unwrap();
    let before = session.timeline().unwrap();
    drop(session);
    let after = world.session().timeline().unwrap();
    assert_eq!((before.done, before.undone), (after.done, after.undone));
}

#[test]
fn a_step_like_the_last_one_is_not_taken_for_it() {
    let world = World::new();
    world.set("w");
    let first = world.take(SnapshotKind::Manual).snapshot.id;
    world.set("x");
    world.run("x");
    world.go(&Ask::Restore(first)).unwrap();
    world.set("x");
    // Both steps go from the run's snapshot to itself; the second is cut short.
    let outcome = world.go(&Ask::Undo).unwrap();
    let session = world.session();
    let before = session.timeline().unwrap();
    let journal = Journal {
        format: Journal::FORMAT,
        verb: Verb::Undo,
        to: outcome.restored_to,
        saved: outcome.saved_as.unwrap(),
        targets: vec!["tree".into()],
        only: Vec::new(),
        record: before.last.unwrap(),
        number: before.number + 1,
    };
    journal.begin(&session.env().disk, &session.dir).unwrap();
    drop(session);
    let after = world.session().timeline().unwrap();
    assert_eq!((after.done.len(), after.undone.len()), (before.done.len() - 1, before.undone.len() + 1));
}

#[test]
fn a_step_that_is_taken_back_late_leaves_the_history_as_it_was() {
    // Killed after the line was added and before the journal was removed.
    for ask in [Ask::Undo, Ask::Redo, Ask::Restore(Id::parse("20260102-030405-0000").unwrap())] {
        let world = World::new();
        world.set("start");
        let first = world.run("after A");
        world.run("after B");
        world.go(&Ask::Undo).unwrap();
        let before = (world.state(), world.open().unwrap().timeline().unwrap());
        let ask = if let Ask::Restore(_) = ask { Ask::Restore(first) } else { ask };
        let outcome = world.go(&ask).unwrap();
        let session = world.session();
        let journal = Journal {
            format: Journal::FORMAT,
            verb: Verb::Undo,
            to: outcome.restored_to,
            saved: outcome.saved_as.unwrap(),
            targets: vec!["tree".into()],
            only: Vec::new(),
            record: session.timeline().unwrap().last.unwrap(),
            number: session.timeline().unwrap().number,
        };
        journal.begin(&session.env().disk, &session.dir).unwrap();
        drop(session);
        world.open().unwrap().lock_unrecovered().unwrap().end_pending(&Recovery::TakeBack).unwrap();
        let after = (world.state(), world.open().unwrap().timeline().unwrap());
        assert_eq!(before.0, after.0, "{ask:?}");
        let next = |t: &Timeline| t.done.last().map(|step| step.kind);
        assert_eq!(next(&before.1), next(&after.1), "{ask:?}");
        world.go(&Ask::Undo).unwrap();
        assert_eq!(world.state(), "start", "{ask:?}");
        world.go(&Ask::Redo).unwrap();
        assert_eq!(world.state(), "after A", "{ask:?}");
    }
}

#[test]
fn a_command_that_is_given_again_finishes_what_was_cut_short_and_no_more() {
    let cut_short = |world: &World, ask: &Ask| {
        *world.fakes.0.fail.lock().unwrap() = 2;
        assert!(world.go(ask).is_err());
        assert!(world.open().unwrap().pending().unwrap().is_some());
    };
    let world = World::new();
    world.set("start");
    world.run("after A");
    world.run("after B");
    world.run("after C");
    cut_short(&world, &Ask::Undo);
    let session = world.session();
    let finished = session.finished().expect("it was finished first");
    assert!(Ask::Undo.means(&finished.step, false) && Ask::UndoStep.means(&finished.step, false));
    assert!(Ask::Undo.means(&finished.step, true), "what is chosen is as the whole step left it");
    assert!(!Ask::Redo.means(&finished.step, false));
    assert!(!Ask::Restore(finished.step.to.clone()).means(&finished.step, false));
    drop(session);
    assert_eq!(world.state(), "after B");
    assert_eq!(world.open().unwrap().timeline().unwrap().done.len(), 2);
    cut_short(&world, &Ask::Redo);
    let session = world.session();
    let finished = session.finished().expect("it was finished first");
    assert!(Ask::Redo.means(&finished.step, false) && !Ask::Undo.means(&finished.step, false));
    drop(session);
    assert_eq!(world.state(), "after C");
    assert!(world.session().finished().is_none());
}

#[test]
fn a_restore_of_chosen_things_that_was_cut_short_is_an_undo_or_a_restore() {
    let world = World::new();
    world.set("start");
    let first = world.run("after");
    for (ask, targets, verb) in [
        (Ask::Undo, &["tree".to_owned()][..], Verb::Undo),
        (Ask::UndoStep, &[], Verb::Undo),
        (Ask::Restore(first.clone()), &[], Verb::Restore),
    ] {
        world.set("after");
        *world.fakes.0.fail.lock().unwrap() = 2;
        let session = world.session();
        let plan = session.plan(&ask, targets, &[]).unwrap();
        assert!(session.execute(plan, false).is_err());
        drop(session);
        let session = world.session();
        let step = session.finished().expect("it was finished first").step.clone();
        assert_eq!(step.verb, verb);
        assert_eq!(Ask::Undo.means(&step, false), verb == Verb::Undo);
        assert!(!Ask::Undo.means(&step, true), "chosen things are put back once more");
        assert_eq!(world.state(), "start");
    }
}

#[test]
fn what_is_left_of_a_step_is_told_and_space_is_given_back_without_finishing_it() {
    let world = World::new();
    world.set("start");
    world.run("after");
    *world.fakes.0.fail.lock().unwrap() = 2;
    assert!(world.go(&Ask::Undo).is_err());
    let project = world.open().unwrap();
    let step = project.pending().unwrap().unwrap();
    assert_eq!(project.rest_of(&step).unwrap().len(), 1);
    let session = project.lock_unrecovered().unwrap();
    let bounds = Bounds { keep: Some(0), ..Bounds::default() };
    let dropped = session.gc(&bounds).unwrap().dropped;
    assert!(!dropped.contains(&step.to) && !dropped.contains(&step.saved), "{dropped:?}");
    assert_eq!(session.forget(&step.saved).unwrap_err().kind(), Kind::Busy);
    assert_eq!(world.state(), "half");
    session.end_pending(&Recovery::TakeBack).unwrap();
    assert_eq!(world.state(), "after");
}
