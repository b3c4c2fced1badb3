//! Whether anybody can still write to a file: a process of whatever user, by an open
//! handle or by a mapping.
//!
//! The system grants a lease for reading only on a file that nobody has open for writing,
//! so asking for one tells, and it is given back at once. Source: fcntl(2), "Leases".

use super::Dir;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

/// Who can still write to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Writers {
    /// Nobody has it open.
    Nobody,
    /// Somebody has.
    Somebody,
    /// The file system, or the file's owner, does not let this user ask.
    Unknown,
}

impl Dir {
    /// Who can write to the file `name` by what they have open.
    pub fn writers(&self, name: &[u8]) -> Writers {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::openat(self, name, flags, Mode::empty()) {
            Ok(file) => ask(&file),
            Err(_) => Writers::Unknown,
        }
    }
}

#[allow(unsafe_code, reason = "no library has this call")]
fn ask(file: &OwnedFd) -> Writers {
    // SAFETY: the descriptor is open for as long as `file` lives; the argument is a number,
    // and nothing of this process is read or written. Closing the file gives the lease back.
    let done = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, libc::F_RDLCK) };
    if done == 0 {
        return Writers::Nobody;
    }
    match io::Error::last_os_error().kind() {
        io::ErrorKind::WouldBlock => Writers::Somebody,
        _ => Writers::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use std::fs::File;

    #[test]
    fn an_open_handle_is_found_and_a_closed_one_is_not() {
        let scratch = TempDir::new();
        let dir = Dir::open(scratch.path()).unwrap();
        let path = scratch.path().join("f");
        let writer = File::create(&path).unwrap();
        assert_eq!(dir.writers(b"f"), Writers::Somebody);
        drop(writer);
        let reader = File::open(&path).unwrap();
        assert_eq!(dir.writers(b"f"), Writers::Nobody);
        // It was given back.
        assert_eq!(dir.writers(b"f"), Writers::Nobody);
        drop(reader);
        File::options().write(true).open(&path).unwrap();
        assert_eq!(dir.writers(b"gone"), Writers::Unknown);
    }
}
