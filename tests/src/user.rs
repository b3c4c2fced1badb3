//! Who runs the program: the user who runs the tests, and, where that is root, also
//! somebody who may do nothing special, since that is who most people are.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

/// Who runs the program in a sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum User {
    /// The user who runs the tests.
    Me,
    /// Uid 65534, without any group or capability. Only root can become it.
    Nobody,
}

const NOBODY: u32 = 65534;

/// Whether the tests run as root.
pub fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// All users that a test can be run as here.
pub fn users() -> Vec<User> {
    if is_root() { vec![User::Me, User::Nobody] } else { vec![User::Me] }
}

impl User {
    /// Makes `command` run as this user. The standard library drops the supplementary
    /// groups of a root process that sets a uid.
    pub fn become_in(self, command: &mut Command) {
        if self == Self::Nobody {
            command.uid(NOBODY).gid(NOBODY);
        }
    }

    /// Makes `path` this user's.
    ///
    /// # Panics
    /// When it cannot be.
    pub fn own(self, path: &Path) {
        if self == Self::Nobody {
            std::os::unix::fs::lchown(path, Some(NOBODY), Some(NOBODY))
                .unwrap_or_else(|e| panic!("could not give {} away: {e}", path.display()));
        }
    }

    /// Makes `dir` and all in it this user's.
    ///
    /// # Panics
    /// When it cannot be.
    pub fn own_all(self, dir: &Path) {
        if self == Self::Nobody {
            let owner = format!("{NOBODY}:{NOBODY}");
            let done = Command::new("chown").args(["-R", "-h", &owner]).arg(dir).status();
            assert!(done.is_ok_and(|s| s.success()), "could not give {} away", dir.display());
        }
    }

    /// Whether the kernel refuses this user what modes forbid.
    pub fn is_ordinary(self) -> bool {
        self == Self::Nobody || !is_root()
    }
}
