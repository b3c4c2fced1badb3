//! The mask of modes: what this program makes, its owner can use again.
//!
//! Invariant: the wrapped command has the mask that the user gave. Here, only what it
//! takes from others holds: with a mask such as 0377 a store could not be opened again.

use rustix::fs::Mode;
use rustix::process::umask;
use std::sync::OnceLock;

/// What the user gave, where that is not what holds.
static GIVEN: OnceLock<Mode> = OnceLock::new();

/// Takes out of the mask what it takes from the owner.
pub fn spare_owner() {
    let given = umask(Mode::RWXG | Mode::RWXO);
    umask(given - Mode::RWXU);
    if given.intersects(Mode::RWXU) {
        let _ = GIVEN.set(given);
    }
}

/// Does `work` under the mask that the user gave: what that starts has it for good.
pub fn as_given<T>(work: impl FnOnce() -> T) -> T {
    let Some(given) = GIVEN.get() else { return work() };
    let ours = umask(*given);
    let done = work();
    umask(ours);
    done
}
