//! The timeline says what was done, whatever became of its lines.

use super::*;

fn id(n: u32) -> Id {
    Id::parse(&format!("20260102-030405-{n:04x}")).unwrap()
}

fn text(records: &[Record]) -> Vec<u8> {
    (1..).zip(records).flat_map(|(number, record)| encode(number, record)).collect()
}

fn did(kind: SnapshotKind, n: u32) -> Record {
    Record::Did { kind, before: id(n) }
}

fn undid(n: u32, saved: u32) -> Record {
    Record::Undid { before: id(n), saved: id(saved) }
}

fn next(t: &Timeline) -> (Option<&Id>, Option<&Id>) {
    (t.done.last().map(|s| &s.before), t.undone.last().and_then(|s| s.after.as_ref()))
}

#[test]
fn two_runs_undo_undo_redo_redo() {
    use SnapshotKind::Run;
    let mut records = vec![did(Run, 1), did(Run, 2)];
    assert_eq!(next(&Timeline::replay(&text(&records))), (Some(&id(2)), None));
    records.push(undid(2, 3));
    assert_eq!(next(&Timeline::replay(&text(&records))), (Some(&id(1)), Some(&id(3))));
    records.push(undid(1, 2));
    assert_eq!(next(&Timeline::replay(&text(&records))), (None, Some(&id(2))));
    records.push(Record::Redid { before: id(1), saved: id(1) });
    assert_eq!(next(&Timeline::replay(&text(&records))), (Some(&id(1)), Some(&id(3))));
    records.push(Record::Redid { before: id(2), saved: id(2) });
    assert_eq!(next(&Timeline::replay(&text(&records))), (Some(&id(2)), None));
}

#[test]
fn a_run_ends_the_redo_branch_and_a_restore_does_not() {
    use SnapshotKind::{PreRestore, Run};
    let records = [did(Run, 1), undid(1, 2), did(PreRestore, 3)];
    assert_eq!(next(&Timeline::replay(&text(&records))), (Some(&id(3)), Some(&id(2))));
    let records = [did(Run, 1), undid(1, 2), did(Run, 3)];
    assert_eq!(next(&Timeline::replay(&text(&records))), (Some(&id(3)), None));
}

#[test]
fn damage_and_a_torn_end_are_counted_and_what_may_be_lost_is_not_passed_over() {
    let whole = text(&[did(SnapshotKind::Run, 1), did(SnapshotKind::Run, 2)]);
    let first = text(&[did(SnapshotKind::Run, 1)]).len();
    for cut in first + 1..whole.len() {
        let t = Timeline::replay(&whole[..cut]);
        assert_eq!((t.done.len(), t.damaged), (1, 1), "cut at {cut}");
        assert_eq!(t.last_done().unwrap_err().kind(), Kind::Corrupt);
    }
    for at in 0..whole.len() {
        let mut wrong = whole.clone();
        wrong[at] ^= 4;
        let t = Timeline::replay(&wrong);
        assert!(t.done.len() < 2 && t.damaged > 0, "byte {at}");
        // What follows the damage is known; what was before it may not be the next.
        assert_eq!(t.last_done().is_ok_and(|step| step.is_some()), at + 1 < first, "byte {at}");
    }
}

#[test]
fn what_is_certain_stays_so_until_it_is_taken_back() {
    use SnapshotKind::Run;
    let mut whole = text(&[did(Run, 1)]);
    whole.extend(b"damaged\n");
    assert!(Timeline::replay(&whole).last_done().is_err());
    assert!(Timeline::replay(&whole).last_undone().is_err());
    whole.extend(text(&[did(Run, 3)]));
    let t = Timeline::replay(&whole);
    assert_eq!(t.last_done().unwrap().unwrap().before, id(3));
    assert!(t.last_undone().unwrap().is_none(), "a run ends that anyway");
    whole.extend(text(&[undid(3, 4)]));
    let mut t = Timeline::replay(&whole);
    assert!(t.last_done().is_err() && t.last_undone().unwrap().is_some());
    t.keep(|i| *i != id(1));
    assert!(t.last_done().is_err(), "what is lost may still be there");
    whole.extend(text(&[did(SnapshotKind::PreRestore, 5)]));
    assert_eq!(Timeline::replay(&whole).last_done().unwrap().unwrap().before, id(5));
}

#[test]
fn pruning_keeps_what_can_still_be_done() {
    use SnapshotKind::Run;
    let temp = crate::testing::TempDir::new();
    let disk = Disk::default();
    let dir = Dir::open(temp.path()).unwrap();
    for record in [did(Run, 1), did(Run, 2), did(Run, 3), undid(3, 4), undid(2, 3)] {
        Timeline::append(&disk, &dir, &[record]).unwrap();
    }
    let before = Timeline::load(temp.path()).unwrap();
    assert_eq!(before.needed(), [&id(1), &id(3), &id(2)]);
    before.prune(&disk, &dir, |_| true).unwrap();
    let same = Timeline::load(temp.path()).unwrap();
    assert_eq!(same, before);
    before.prune(&disk, &dir, |i| *i != id(4)).unwrap();
    let mut less = Timeline::load(temp.path()).unwrap();
    assert_eq!(less.newest(), before.newest(), "what was noted once stays so");
    less.keep(|i| *i != id(4));
    assert_eq!((less.done.len(), less.undone.len()), (1, 1));
}

#[test]
fn what_was_noted_stays_so_when_no_step_is_named_by_it_any_more() {
    use SnapshotKind::{Manual, Run};
    // The run 5 is done again from the state 1.
    let records = [did(Manual, 1), did(Run, 5), undid(5, 5), Record::Redid { before: id(5), saved: id(1) }];
    let timeline = Timeline::replay(&text(&records));
    assert_eq!(timeline.done.iter().map(|step| &step.before).collect::<Vec<_>>(), [&id(1), &id(1)]);
    assert_eq!(timeline.newest(), Some(&id(5)));
    // Nor when its lines are dropped.
    let less = Timeline::replay(&timeline.lines(|state| *state == id(1)));
    assert_eq!((less.newest(), less.done.len(), less.number), (Some(&id(5)), 2, timeline.number));
}

#[test]
fn numbers_go_up_whatever_the_lines_say() {
    let lines = [encode(7, &did(SnapshotKind::Run, 1)), encode(1, &did(SnapshotKind::Run, 2))].concat();
    let timeline = Timeline::replay(&lines);
    assert_eq!((timeline.number, timeline.done.len()), (8, 2));
    assert_eq!(Timeline::replay(&timeline.lines(|_| true)), timeline);
}

#[test]
fn a_line_after_a_torn_one_is_kept() {
    let temp = crate::testing::TempDir::new();
    std::fs::write(temp.path().join(FILE), b"0123 torn").unwrap();
    let dir = Dir::open(temp.path()).unwrap();
    Timeline::append(&Disk::default(), &dir, &[did(SnapshotKind::Run, 1)]).unwrap();
    let timeline = Timeline::load(temp.path()).unwrap();
    assert_eq!((timeline.done.len(), timeline.damaged), (1, 1));
}

#[test]
fn steps_are_found_wherever_they_stand() {
    // Searched for one by one, these would take hours.
    const STEPS: u32 = 60_000;
    let name = |n: u32| {
        Id::parse(&format!("20260102-{:02}{:02}{:02}-{:04x}", n >> 12, (n >> 6) & 63, n & 63, 7)).unwrap()
    };
    let mut records: Vec<Record> =
        (0..STEPS).map(|n| Record::Did { kind: SnapshotKind::Run, before: name(n) }).collect();
    records.extend((0..STEPS).map(|n| Record::Undid { before: name(n), saved: name(n) }));
    let timeline = Timeline::replay(&text(&records));
    assert_eq!((timeline.done.len(), timeline.undone.len()), (0, STEPS as usize));
}
