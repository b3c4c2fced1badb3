//! A repository whose work tree is captured and which itself lies elsewhere: that of a
//! submodule, or of a linked work tree. The file `.git` that leads there is covered; of the
//! repository only that it changed is noticed, as of a directory `.git` further down.
//!
//! It is left out under the path that its HEAD would have if that file were the directory, at
//! which nothing is. Only looked at: what tells is when HEAD, its log, or the names of branches
//! changed last, and not the index, which git writes whenever it is asked anything.

use super::{Place, Stat, Walk};
use crate::tree::git::{Located, locate};
use crate::tree::root::Why;
use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd};
use std::path::Component;

/// What tells that HEAD or a branch moved: of the work tree, and of all that share the repository.
const OWN: [&CStr; 2] = [c"HEAD", c"logs/HEAD"];
const COMMON: [&CStr; 2] = [c"packed-refs", c"refs/heads"];

impl Walk<'_> {
    /// Records the repository that a file `.git` in `place`, which is open as `handle`, leads to.
    pub(super) fn note_repository(&self, place: &Place, handle: impl AsFd) {
        if !place.has_git || self.directory.options().git {
            return;
        }
        let Some(located) = locate(handle).filter(|located| !located.is_inside()) else { return };
        if let Some(stat) = look(&located).filter(|_| !self.covers(&located)) {
            let path = [&place.dir.path_of(b".git")[..], b"/HEAD"].concat();
            self.leave_out(path, Why::Git, "", None, Some(&stat));
        }
    }

    /// Whether it is captured with all else, being called something else than `.git`.
    fn covers(&self, located: &Located) -> bool {
        let link = format!("/proc/self/fd/{}", located.own().as_raw_fd());
        let is_git = |name: Component<'_>| name.as_os_str() == ".git";
        std::fs::read_link(link).is_ok_and(|at| {
            at.strip_prefix(self.directory.path()).is_ok_and(|inside| !inside.components().any(is_git))
        })
    }
}

/// The directory itself, with the time at which something of it changed last.
fn look(located: &Located) -> Option<Stat> {
    let stat = Stat::of_open(located.own()).ok()?;
    let own = OWN.iter().map(|name| Stat::of(located.own(), name));
    let common = COMMON.iter().map(|name| Stat::of(located.common(), name));
    let ctime = own.chain(common).flatten().map(|stat| stat.ctime).max()?;
    Some(Stat { ctime, ..stat })
}
