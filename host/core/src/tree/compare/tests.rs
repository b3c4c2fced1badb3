//! Differences between two captured directories, in the order of their paths.

use super::*;
use crate::error::Kind;
use crate::tree::node::{Node, Time};
use crate::tree::root::{LeftOut, Why};
use crate::tree::sample::{Objects, dir, file, link, sample_root};
use std::sync::atomic::Ordering;

fn told(objects: &Objects, before: &Root, after: &Root, only: &[&str]) -> Vec<String> {
    let only = Only::new(&only.iter().map(|p| p.as_bytes().to_vec()).collect::<Vec<_>>()).unwrap();
    compare(objects, before, after, &only)
        .unwrap()
        .map(|change| {
            let change = change.unwrap();
            format!("{} {}", change.kind().word(), String::from_utf8_lossy(&change.path))
        })
        .collect()
}

#[test]
fn changes_come_in_the_order_of_their_paths() {
    let objects = Objects::default();
    let before = sample_root(
        &objects,
        vec![
            dir("a", vec![file("x", "1"), file("y", "2")]),
            file("a.txt", "3"),
            dir("gone", vec![file("z", "4")]),
        ],
    );
    let after = sample_root(
        &objects,
        vec![dir("a", vec![file("x", "1"), file("y", "new")]), dir("b", vec![file("n", "5")])],
    );
    let expected =
        ["modified a/y", "deleted a.txt", "added b", "added b/n", "deleted gone", "deleted gone/z"];
    assert_eq!(told(&objects, &before, &after, &[]), expected);
    assert!(told(&objects, &before, &before, &[]).is_empty());
}

#[test]
fn a_change_of_kind_tells_what_was_inside() {
    let objects = Objects::default();
    let before = sample_root(&objects, vec![dir("d", vec![file("x", "1")]), file("f", "2")]);
    let after = sample_root(&objects, vec![link("d", "/outside"), dir("f", vec![file("x", "1")])]);
    let expected = ["modified d", "deleted d/x", "modified f", "added f/x"];
    assert_eq!(told(&objects, &before, &after, &[]), expected);
}

#[test]
fn equal_sub_trees_are_not_read() {
    let objects = Objects::default();
    let big = || dir("big", (0..100).map(|i| dir(&format!("d{i}"), vec![file("x", "1")])).collect());
    let before = sample_root(&objects, vec![big(), file("f", "1")]);
    let after = sample_root(&objects, vec![big(), file("f", "2")]);
    objects.reads.store(0, Ordering::Relaxed);
    assert_eq!(told(&objects, &before, &after, &[]), ["modified f"]);
    assert_eq!(objects.reads.load(Ordering::Relaxed), 2);
}

#[test]
fn the_first_change_of_many_comes_at_once() {
    let objects = Objects::default();
    let many = (0..200).map(|i| dir(&format!("d{i:03}"), vec![file("x", "1")])).collect();
    let before = sample_root(&objects, vec![]);
    let after = sample_root(&objects, many);
    objects.reads.store(0, Ordering::Relaxed);
    let mut changes = compare(&objects, &before, &after, &Only::all()).unwrap();
    assert_eq!(changes.next().unwrap().unwrap().path, b"d000");
    assert!(objects.reads.load(Ordering::Relaxed) <= 3);
    assert_eq!(changes.count(), 399);
}

#[test]
fn times_count_only_when_they_are_asked_for() {
    let objects = Objects::default();
    let before = sample_root(&objects, vec![dir("d", vec![file("x", "1")]), file("f", "1")]);
    let mut later = file("f", "1");
    later.time = Time { sec: 99, nsec: 1 };
    let after = sample_root(&objects, vec![dir("d", vec![file("x", "1")]), later]);
    assert!(told(&objects, &before, &after, &[]).is_empty());
    let steps: Vec<Step> =
        Walk::with_times(&objects, &before, &after, &Only::all()).unwrap().map(Result::unwrap).collect();
    assert_eq!(steps.len(), 2);
    let Step::Change(change) = &steps[0] else { panic!("{steps:?}") };
    assert!(change.aspects().time && !change.aspects().any_but_time());
    assert!(matches!(&steps[1], Step::Leave(top) if top.path.is_empty()));
}

#[test]
fn what_one_side_left_out_is_not_compared() {
    let objects = Objects::default();
    let out =
        |path: &str, why| LeftOut { path: path.into(), why, detail: String::new(), files: None, stamp: None };
    let mut before = sample_root(&objects, vec![dir("d", vec![file("x", "1"), file("y", "1")])]);
    let mut after =
        sample_root(&objects, vec![dir("d", vec![file("y", "1"), file("z", "2"), file("w", "1")])]);
    before.left_out = vec![out("d/z", Why::Unreadable)];
    after.left_out = vec![out("d/x", Why::Ignored), out("unseen", Why::Git)];
    let steps: Vec<Step> =
        Walk::new(&objects, &before, &after, &Only::all()).unwrap().map(Result::unwrap).collect();
    assert_eq!(told(&objects, &before, &after, &[]), ["added d/w"]);
    let skipped: Vec<_> = steps
        .iter()
        .filter_map(|step| match step {
            Step::NotComparable { side, left_out } => Some((*side, left_out.path.as_slice())),
            _ => None,
        })
        .collect();
    assert_eq!(skipped, [(Side::After, &b"d/x"[..]), (Side::Before, b"d/z")]);
}

#[test]
fn only_the_selected_paths_are_compared() {
    let objects = Objects::default();
    let before = sample_root(&objects, vec![dir("a", vec![file("x", "1")]), file("f", "1")]);
    let after = sample_root(
        &objects,
        vec![
            dir("a", vec![file("x", "2"), file("y", "2")]),
            file("f", "2"),
            dir("n", vec![dir("m", vec![file("q", "1"), file("r", "1")])]),
        ],
    );
    assert_eq!(told(&objects, &before, &after, &["a/y", "f"]), ["added a/y", "modified f"]);
    assert_eq!(told(&objects, &before, &after, &["n/m/q"]), ["added n/m/q"]);
    let only = Only::new(&[b"n/m/q".to_vec()]).unwrap();
    let passages = Walk::new(&objects, &before, &after, &only)
        .unwrap()
        .filter(|step| matches!(step, Ok(Step::Change(change)) if change.passage))
        .count();
    assert_eq!(passages, 2);
}

#[test]
fn a_skipped_directory_is_not_walked() {
    let objects = Objects::default();
    let before = sample_root(&objects, vec![]);
    let after = sample_root(&objects, vec![dir("a", vec![file("x", "1")]), file("b", "1")]);
    let mut walk = Walk::new(&objects, &before, &after, &Only::all()).unwrap();
    let mut seen = Vec::new();
    while let Some(step) = walk.next() {
        if let Step::Change(change) = step.unwrap() {
            seen.push(change.path);
            walk.skip_inside();
        }
    }
    assert_eq!(seen, [b"a", b"b"]);
    // What is not told cannot be skipped.
    let before = sample_root(&objects, vec![dir("d", vec![file("x", "1"), file("y", "1")])]);
    let after = sample_root(&objects, vec![dir("d", vec![file("x", "2"), file("y", "2")])]);
    let mut walk = Walk::new(&objects, &before, &after, &Only::all()).unwrap();
    let mut seen = Vec::new();
    while let Some(step) = walk.next() {
        if let Step::Change(change) = step.unwrap() {
            seen.push(change.path);
            assert!(!walk.entered());
            walk.skip_inside();
        }
    }
    assert_eq!(seen, [b"d/x", b"d/y"]);
}

#[test]
fn a_change_knows_the_nearest_directory_that_both_sides_have() {
    let objects = Objects::default();
    let before = sample_root(&objects, vec![dir("a", vec![dir("b", vec![dir("c", vec![file("x", "1")])])])]);
    let after = sample_root(&objects, vec![dir("a", vec![link("b", "c"), file("y", "1")])]);
    let common: Vec<(Vec<u8>, usize)> = compare(&objects, &before, &after, &Only::all())
        .unwrap()
        .map(|change| change.map(|c| (c.path, c.common)).unwrap())
        .collect();
    let expected: [(&[u8], usize); 4] = [(b"a/b", 1), (b"a/b/c", 1), (b"a/b/c/x", 1), (b"a/y", 1)];
    assert!(common.iter().map(|(path, n)| (path.as_slice(), *n)).eq(expected), "{common:?}");
}

#[test]
fn a_tree_that_cannot_be_read_ends_the_walk() {
    let objects = Objects::default();
    let before = sample_root(&objects, vec![]);
    let mut after = sample_root(&objects, vec![dir("a", vec![file("x", "1")]), file("b", "1")]);
    let Node::Dir(tree) = &after.top.node else { panic!() };
    objects.forget(tree);
    assert!(Walk::new(&objects, &before, &after, &Only::all()).is_err());
    after.times = before.times;
    let mut after = sample_root(&objects, vec![file("b", "1")]);
    after.times = before.times;
    let error = Walk::with_times(&objects, &before, &after, &Only::all()).err().unwrap();
    assert_eq!(error.kind(), Kind::Corrupt);
}

#[test]
fn steps_that_are_kept_come_again_as_they_were() {
    let objects = Objects::default();
    let mut linked = file("linked", "1");
    linked.entry.link = Some(7);
    let mut named = file("x", "2");
    named.entry.xattrs = vec![(b"user.a".to_vec(), b"\0".to_vec())];
    named.time = Time { sec: -9, nsec: 999_999_999 };
    let before =
        vec![dir("d", vec![file("x", "1"), file("y", "1")]), file("f", "1"), linked, dir("gone", vec![])];
    let after =
        vec![dir("d", vec![named, file("y", "1")]), dir("f", vec![file("in", "1")]), file("linked", "1")];
    let (before, after) = (sample_root(&objects, before), sample_root(&objects, after));
    for only in [Only::all(), Only::new(&[b"f/in".to_vec(), b"d".to_vec()]).unwrap()] {
        let (mut tape, mut steps) = (Tape::default(), Vec::new());
        let mut walk = Walk::with_times(&objects, &before, &after, &only).unwrap();
        while let Some(step) = walk.next() {
            let step = step.unwrap();
            tape.add(&step, walk.entered());
            match step {
                Step::Change(change) => steps.push((false, walk.entered(), change)),
                Step::Leave(change) => steps.push((true, false, change)),
                Step::NotComparable { .. } => panic!("nothing was left out"),
            }
        }
        assert!(steps.len() >= 6);
        let mut again = Vec::new();
        tape.each(|step| {
            let change = step.change()?;
            assert_eq!((step.traits, step.path), (change.traits(), &change.path[..]));
            again.push((step.leaves, step.entered, change));
            Ok(())
        })
        .unwrap();
        assert_eq!(again, steps);
    }
}

#[test]
fn traits_say_what_the_change_says() {
    let objects = Objects::default();
    let mut linked = file("a", "1");
    linked.entry.link = Some(7);
    let before = sample_root(&objects, vec![linked, file("b", "1"), dir("c", vec![]), file("e", "1")]);
    let mut mode = file("e", "1");
    mode.entry.mode = 0o600;
    let after = sample_root(&objects, vec![file("a", "1"), dir("b", vec![]), mode]);
    let told: Vec<String> = Walk::new(&objects, &before, &after, &Only::all())
        .unwrap()
        .filter_map(|step| match step.unwrap() {
            Step::Change(change) => Some(change),
            _ => None,
        })
        .map(|change| {
            let t = change.traits();
            let flags = [
                (t.before(), "before"),
                (t.after(), "after"),
                (t.was_dir(), "was-dir"),
                (t.becomes_dir(), "becomes-dir"),
                (t.passage(), "passage"),
                (t.same_content(), "same"),
                (t.linked(), "linked"),
                (t.unshared(), "unshared"),
            ];
            let flags = flags.iter().filter(|(is, _)| *is).map(|(_, word)| *word);
            format!("{}: {}", String::from_utf8_lossy(&change.path), flags.collect::<Vec<_>>().join(" "))
        })
        .collect();
    assert_eq!(
        told,
        [
            "a: before after same linked unshared",
            "b: before after becomes-dir",
            "c: before was-dir",
            "e: before after same",
        ]
    );
}
