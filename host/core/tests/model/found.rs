//! Cases that failed once, each as short as it was found to be.

use crate::deed::{Deed, Fill, Make};
use crate::run;
use crate::state::Op::{self, Begin, Do, End, Redo, Restore, Snap, Undo};
use crate::state::Ops;
use crate::tree::Path;
use snapback_core::text::Bytes;

/// Does all of `ops`, which must be possible.
fn all(keep: usize, ops: &[Op]) {
    assert_eq!(run(keep, &Ops(ops.to_vec())), ops.len() as u64);
}

fn at(path: &str) -> Path {
    Bytes(path.into())
}

fn file(path: &str) -> Op {
    Do(Deed::Make(at(path), Make::File(Fill { seed: 1, len: 10 })))
}

const SNAP: Op = Snap { named: false, pinned: false };

#[test]
fn the_same_step_is_taken_back_twice_in_a_row() {
    // Both undos go from snapshot 1 to itself.
    all(50, &[SNAP, file("a"), Begin, End, Restore(1), file("a"), Undo, Undo, Undo]);
}

#[test]
fn a_run_that_is_done_again_from_an_older_state_is_no_step_twice() {
    let gone = Do(Deed::Remove(at("b")));
    all(50, &[SNAP, file("b"), Restore(0), Undo, Begin, Undo, gone, Redo]);
}
