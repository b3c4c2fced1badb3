//! The reference: a tree and its history, and what each operation makes of both.

use crate::deed::Deed;
use crate::history::{History, Number, Step, Way, chosen};
use crate::tree::{Listing, Path, Tree};
use snapback_core::history::SnapshotKind;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// One operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    Do(Deed),
    /// A run begins; inside another one if one goes on.
    Begin,
    /// The innermost run ends.
    End,
    /// The innermost run's snapback is killed.
    Kill,
    Snap {
        named: bool,
        pinned: bool,
    },
    Undo,
    Redo,
    /// `undo --step`.
    OneBack,
    /// To the snapshot that is so far back.
    Restore(usize),
    UndoPaths(Vec<Path>),
    RestorePaths(usize, Vec<Path>),
    Gc(usize),
    Forget(usize),
    /// The project's store is removed: its twin has the history.
    LoseStore,
    /// What can be made again is removed.
    LoseCaches,
}

/// Operations one after the other; shown one a line.
#[derive(Clone)]
pub struct Ops(pub Vec<Op>);

impl fmt::Debug for Ops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|op| write!(f, "\n    {op:?}"))
    }
}

/// A tree and its history.
#[derive(Clone)]
pub struct State {
    pub tree: Tree,
    /// The same at rest.
    pub now: Arc<Listing>,
    pub history: History,
    /// How each run left the tree, where that was recorded.
    pub ends: BTreeMap<Number, Arc<Listing>>,
    /// Who does it.
    pub uid: u32,
}

impl State {
    /// An empty tree of the user `uid`, of which `keep` snapshots are kept.
    pub fn new(uid: u32, keep: usize) -> Self {
        let tree = Tree::new(uid);
        let now = Arc::new(tree.listing());
        Self { tree, now, history: History::new(keep), ends: BTreeMap::new(), uid }
    }

    /// Where `op` goes, when it is one that puts something back: how it is planned, what
    /// kind of snapshot keeps what was there, and the paths it is narrowed to.
    pub fn way<'a>(&self, op: &'a Op) -> Option<(Way, SnapshotKind, &'a [Path])> {
        let history = &self.history;
        let to = |back: &usize| Some(Way { to: history.back(*back)?, step: None });
        let restore = SnapshotKind::PreRestore;
        Some(match op {
            Op::Undo => (history.undo()?, SnapshotKind::PreUndo, &[]),
            Op::Redo => (history.redo()?, SnapshotKind::PreRedo, &[]),
            Op::OneBack => (history.one_back(&self.now)?, restore, &[]),
            Op::Restore(back) => (to(back)?, restore, &[]),
            Op::UndoPaths(paths) => (history.undo_paths()?, restore, paths),
            Op::RestorePaths(back, paths) => (to(back)?, restore, paths),
            _ => return None,
        })
    }

    /// What the tree is once `way` is gone.
    pub fn goal(&self, way: &Way, paths: &[Path]) -> Option<Arc<Listing>> {
        let stored = self.history.state(way.to);
        // A step that did nothing has nothing to do again.
        if let Some(Step { before, after: Some(_), .. }) = &way.step
            && self.history.state(*before) == stored
        {
            return Some(self.now.clone());
        }
        if paths.is_empty() { Some(stored.clone()) } else { chosen(&self.now, stored, paths).map(Arc::new) }
    }

    /// Does `op`; none where it is not possible.
    pub fn step(&self, op: &Op) -> Option<Self> {
        let mut new = self.clone();
        let now = &self.now;
        if let Some((way, kind, paths)) = self.way(op) {
            let goal = self.goal(&way, paths)?;
            new.history.go(&way, kind, now, goal != *now);
            new.tree = Tree::of(&goal);
            new.now = goal;
            return Some(new);
        }
        let history = &mut new.history;
        match op {
            Op::Do(deed) => {
                new.tree = deed.apply(&self.tree, self.uid)?;
                new.now = Arc::new(new.tree.listing());
            }
            Op::Begin => (history.running.len() < 2).then(|| history.begin(now))?,
            Op::End => {
                let run = history.running.pop()?;
                new.ends.insert(run, now.clone());
            }
            Op::Kill => history.running.pop().map(drop)?,
            Op::Snap { named, pinned } => history.snap_now(*named, *pinned, now),
            Op::Gc(keep) => (!history.snaps.is_empty()).then(|| history.retain(*keep, &[]))?,
            Op::Forget(back) => history.back(*back).and_then(|number| history.forget(number))?,
            // What runs go on is marked in the store itself.
            Op::LoseStore => (!history.snaps.is_empty() && history.running.is_empty()).then_some(())?,
            Op::LoseCaches => (!history.snaps.is_empty()).then_some(())?,
            _ => return None,
        }
        Some(new)
    }
}
