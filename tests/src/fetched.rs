//! Programs of other versions, which tests/versions fetched into the target directory.

use crate::base::base;
use crate::skip;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Mutex;

/// What was fetched under this name, where whoever a server runs as can read it. Where it was not
/// fetched, a test that needs it says so and is skipped; with CI=true a skip is a failure.
///
/// # Panics
/// When it cannot be copied.
pub fn fetched(name: &str) -> Option<PathBuf> {
    static COPYING: Mutex<()> = Mutex::new(());
    let program = std::env::current_exe().expect("the test knows where it is");
    // Below the target directory it lies in release/deps.
    let from = program.ancestors().nth(3)?.join("versions").join(name);
    if !from.is_dir() {
        skip(&format!("{name} was not fetched by tests/versions"));
        return None;
    }
    let to = base().join(name);
    let _one_at_a_time = COPYING.lock();
    if !to.exists() {
        let copied = Command::new("cp").arg("-a").arg(from).arg(&to).status();
        assert!(copied.is_ok_and(|status| status.success()), "{name} cannot be copied");
    }
    Some(to)
}
