//! Comparing the project with the reference, after and before each operation.

use crate::history::{Step, Way};
use crate::look::Look;
use crate::state::State;
use crate::tree::{Listing, Node, Path, is_beneath};
use crate::world::World;
use snapback_core::history::{Id, timeline};
use snapback_core::object::{Key, ObjectKind};
use snapback_core::session::{By, Plan, Project};
use snapback_core::store::BLOCK;
use snapback_core::text::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

/// Fails unless the project's tree is `wanted`.
pub fn tree(look: &Look, wanted: &Listing) {
    let differs: Vec<_> = wanted.changes(&look.listing).into_keys().collect();
    let both = |path: &Path| format!("{path:?}: {:?} is {:?}", wanted.0.get(path), look.listing.0.get(path));
    assert!(
        differs.is_empty(),
        "not as the model:\n{}",
        differs.iter().map(both).collect::<Vec<_>>().join("\n")
    );
}

/// Fails unless what is planned is what the reference will do.
pub fn plan(world: &World, state: &State, plan: &Plan, way: &Way, goal: &Listing) {
    assert_eq!(plan.to.id, world.ids[&way.to], "where it goes");
    let known = |id: &Id| world.ids.iter().find(|(_, known)| **known == *id).map(|(number, _)| *number);
    let changes: BTreeMap<Path, _> = plan.changes.iter().map(|c| (Bytes(c.path.clone()), c.kind)).collect();
    let wanted = state.now.changes(goal);
    // Directories on the way to what was chosen are made with it.
    let made = wanted.keys().filter(|path| !changes.contains_key(*path)).cloned().collect::<Vec<_>>();
    assert!(
        made.iter().all(|dir| changes.keys().any(|path| is_beneath(path, dir))),
        "{made:?} of {wanted:?}"
    );
    assert!(
        changes.iter().all(|(path, kind)| wanted.get(path) == Some(kind)),
        "{changes:?} is not {wanted:?}"
    );
    assert!(
        plan.blocked.is_empty() && plan.not_restored.is_empty(),
        "{:?} {:?}",
        plan.blocked,
        plan.not_restored
    );
    let running: BTreeSet<_> = plan.running.iter().map(known).collect();
    assert_eq!(running, state.history.running.iter().map(|number| Some(*number)).collect());
    let edits: BTreeSet<Path> = plan.edits().map(|change| Bytes(change.path.clone())).collect();
    let end = state.ends.get(&way.to);
    let later = |path: &&Path| end.is_some_and(|end| end.0.get(*path) != state.now.0.get(*path));
    let is_told =
        plan.changes.iter().any(|change| change.by.is_some_and(|by| by == By::Run || by == By::Later));
    if is_told {
        assert_eq!(edits, changes.keys().filter(later).cloned().collect(), "edits after the run");
    }
    if let Some(Step { before, after: Some(_), .. }) = &way.step {
        let begun = state.history.state(*before);
        let since = |path: &&Path| begun.0.get(*path) != state.now.0.get(*path);
        assert_eq!(edits, changes.keys().filter(since).cloned().collect(), "edits since the undo");
    }
}

/// Fails unless the project's history is the reference's, and all of it is whole.
pub fn history(world: &World, state: &State, project: &Project) {
    let history = &state.history;
    let id = |number: &usize| world.ids[number].clone();
    let (list, damaged) = project.list().unwrap();
    let listed: Vec<_> = list.iter().rev().map(|l| &l.snapshot).collect();
    let listed: Vec<_> = listed.iter().map(|s| (s.id.clone(), s.kind, s.run.clone(), s.pinned)).collect();
    let wanted: Vec<_> = history
        .snaps
        .iter()
        .map(|snap| (id(&snap.number), snap.kind, snap.run.as_ref().map(id), snap.pinned))
        .collect();
    assert!(damaged.is_empty(), "{damaged:?}");
    assert_eq!(listed, wanted, "the snapshots");
    let timeline = project.timeline().unwrap();
    let steps = |steps: &[Step]| -> Vec<timeline::Step> {
        let step = |s: &Step| timeline::Step {
            kind: s.kind,
            before: id(&s.before),
            after: s.after.as_ref().map(id),
        };
        steps.iter().map(step).collect()
    };
    assert_eq!(timeline.done, steps(&history.done), "what can be undone");
    assert_eq!(timeline.undone, steps(&history.undone), "what can be redone");
    assert_eq!(project.pending().unwrap(), None);
    if !history.snaps.is_empty() {
        let found = project.verify().unwrap();
        assert!(found.is_whole(), "{found:?}");
    }
}

/// Fails unless a restore from `before` to `after` left alone what it need not touch, and
/// gave times as it should. `stored` is the project when the snapshot was taken.
///
/// A time alone is no state: where that of the present is kept by an older snapshot, its
/// times are taken for those of the present. So what is the same may keep the time that it
/// has, and a directory in which something was chosen may get another one.
pub fn untouched(before: &Look, after: &Look, stored: &Look, paths: &[Path], changes: bool) {
    for (path, item) in after.listing.0.iter().filter(|(path, _)| !path.0.is_empty()) {
        let (now, was, then) = (after.stamps[path], before.stamps.get(path), stored.stamps.get(path));
        let chosen = changes && (paths.is_empty() || paths.iter().any(|p| p == path || is_beneath(path, p)));
        let passage = changes && paths.iter().any(|p| is_beneath(p, path));
        let same = before.listing.0.get(path) == Some(item);
        let is_file = matches!(item.inode.node, Node::File(_));
        match (chosen, was, then) {
            (false, Some(was), _) if passage => assert_eq!(now.ino, was.ino, "{path:?} is on the way"),
            (false, Some(was), _) => assert_eq!(now, *was, "{path:?} was not chosen"),
            (true, Some(was), Some(then)) if same => {
                assert_eq!(now.ino, was.ino, "{path:?} is as it was");
                assert!(now.mtime == was.mtime || now.mtime == then.mtime, "the time of {path:?}: {now:?}");
            }
            (true, _, Some(then)) if !is_file => assert_eq!(now.mtime, then.mtime, "the time of {path:?}"),
            _ => {}
        }
    }
}

/// Fails when something is left of work in the store.
pub fn leftovers(world: &World) {
    for sub in ["aside", "saved", "tmp"] {
        let mut todo = vec![world.store().join(sub)];
        while let Some(dir) = todo.pop() {
            for entry in fs::read_dir(&dir).into_iter().flatten() {
                let entry = entry.unwrap();
                assert!(entry.file_type().unwrap().is_dir(), "{} is left over", entry.path().display());
                todo.push(entry.path());
            }
        }
    }
}

/// Fails when a block is stored that no snapshot of `after` has and one of `before` had:
/// what was forgotten is gone.
pub fn forgotten(before: &State, after: &State, project: &Project) {
    let blocks = |state: &State| -> BTreeSet<Key> {
        let items = state.history.snaps.iter().flat_map(|snap| snap.state.0.values());
        let contents = items.filter_map(|item| match &item.inode.node {
            Node::File(content) => Some(&content.0),
            _ => None,
        });
        contents.flat_map(|bytes| bytes.chunks(BLOCK)).map(|block| Key::of(ObjectKind::Blob, block)).collect()
    };
    let kept = blocks(after);
    for key in blocks(before).difference(&kept) {
        assert!(!project.need_store().unwrap().contains(key).unwrap(), "{key} is still stored");
    }
}
