//! Owner, mode, extended attributes and times of an entry, set in this order.
//!
//! A change of owner clears setuid and capabilities, so the owner comes first; a mode
//! comes before an ACL, whose mask it would overwrite; times come last. What may not be written
//! by its owner is made writable for an attribute of the user's. What the user
//! is not allowed to give is noted, not failed: the content is there.

use super::outcome::Refusal;
use super::rights::Rights;
use crate::disk::{Dir, Disk, Handle, Held, Opened};
use crate::error::{Error, Kind, Result};
use crate::tree::node::{Entry, Node, Time, Xattr};
use crate::tree::scan::Stat;
use rustix::fd::{AsFd, BorrowedFd};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// What attributes are set on.
#[derive(Clone, Copy)]
pub enum On<'a> {
    /// A file that is open for writing.
    File(&'a Handle),
    /// An open directory.
    Dir(&'a Dir),
    /// An entry of any kind that is held fast.
    Held(&'a Held),
}

impl AsFd for On<'_> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            On::File(file) => file.as_fd(),
            On::Dir(dir) => dir.as_fd(),
            On::Held(held) => held.as_fd(),
        }
    }
}

impl On<'_> {
    /// What it is now.
    pub fn stat(&self, path: &[u8]) -> Result<Stat> {
        Stat::of_open(self).map_err(|e| Error::io(e, "could not look at", crate::error::show_bytes(path)))
    }

    /// Its extended attributes, as a capture records them.
    pub fn xattrs(&self) -> Vec<Xattr> {
        match self {
            On::Held(held) => crate::tree::xattr::of_held(held),
            On::File(_) | On::Dir(_) => crate::tree::xattr::of_open(self),
        }
    }

    fn set_owner(&self, disk: &Disk, uid: u32, gid: u32) -> Result<()> {
        fn of(disk: &Disk, on: &impl Opened, uid: u32, gid: u32) -> Result<()> {
            disk.set_owner_of(on, uid, gid)
        }
        match self {
            On::File(file) => of(disk, *file, uid, gid),
            On::Dir(dir) => of(disk, *dir, uid, gid),
            On::Held(held) => disk.set_owner_held(held, uid, gid),
        }
    }

    fn set_mode(&self, disk: &Disk, bits: u32) -> Result<()> {
        match self {
            On::File(file) => disk.set_mode_of(*file, bits),
            On::Dir(dir) => disk.set_mode_of(*dir, bits),
            On::Held(held) => disk.set_mode_held(held, bits),
        }
    }

    fn set_times(&self, disk: &Disk, mtime: Time) -> Result<()> {
        match self {
            On::File(file) => disk.set_times_of(*file, mtime),
            On::Dir(dir) => disk.set_times_of(*dir, mtime),
            On::Held(held) => disk.set_times_held(held, mtime),
        }
    }

    fn set_xattr(&self, disk: &Disk, (name, value): &Xattr) -> Result<()> {
        match self {
            On::File(file) => disk.set_xattr_of(*file, name, value),
            On::Dir(dir) => disk.set_xattr_of(*dir, name, value),
            On::Held(held) => disk.set_xattr_held(held, name, value),
        }
    }

    fn remove_xattr(&self, disk: &Disk, name: &[u8]) -> Result<()> {
        match self {
            On::File(file) => disk.remove_xattr_of(*file, name),
            On::Dir(dir) => disk.remove_xattr_of(*dir, name),
            On::Held(held) => disk.remove_xattr_held(held, name),
        }
    }
}

/// Hears what could not be given.
pub trait Note: Sync {
    /// Not all of the entry could be given back.
    fn note(&self, refusal: Refusal);
}

/// Sets attributes, and tells what could not be given.
pub struct Attributes<'a> {
    /// The door.
    pub disk: &'a Disk,
    /// What may be given.
    pub rights: &'a Rights,
    /// Where the paths that are told of begin.
    pub top: &'a Path,
    /// Who is told.
    pub note: &'a dyn Note,
}

/// Bits of a mode in words.
fn bits(lost: u32) -> &'static str {
    match (lost & SETUID != 0, lost & SETGID != 0) {
        (true, true) => "setuid and setgid bits",
        (true, false) => "setuid bit",
        (false, _) => "setgid bit",
    }
}

/// Whether the system gives this attribute by itself: labels of security modules.
fn is_systems(name: &[u8]) -> bool {
    name.starts_with(b"security.") && name != b"security.capability"
}

/// What is permitted is given; a refusal of the system says that this is not.
fn permitted(done: Result<()>) -> Result<bool> {
    const NOT_GIVEN: [rustix::io::Errno; 4] = {
        use rustix::io::Errno;
        [Errno::PERM, Errno::ACCESS, Errno::INVAL, Errno::OPNOTSUPP]
    };
    match done {
        Ok(()) => Ok(true),
        Err(e) if NOT_GIVEN.iter().any(|&errno| e.is(errno)) => Ok(false),
        Err(e) => Err(e),
    }
}

impl Attributes<'_> {
    /// Gives `on`, which is now as in `stat` with the attributes `have`, what `entry`
    /// says, and the time `mtime`. `path` is for notes. What is right is not touched;
    /// whether anything was.
    pub fn settle(
        &self,
        on: On<'_>,
        stat: &Stat,
        have: &[Xattr],
        entry: &Entry,
        mtime: Option<Time>,
        path: &[u8],
    ) -> Result<bool> {
        let (uid, gid) = self.owner(on, stat, entry, path)?;
        let moved = (uid, gid) != (stat.uid, stat.gid);
        let mut touched = moved;
        if !matches!(entry.node, Node::Symlink(_)) {
            touched |= self.mode(on, stat, entry, (uid, gid), moved, path)?;
        }
        // A new owner took capabilities away.
        let reread = if moved && !have.is_empty() { Some(on.xattrs()) } else { None };
        touched |= self.xattrs(on, reread.as_deref().unwrap_or(have), entry, path)?;
        match mtime {
            Some(mtime) if stat.mtime != mtime => {
                touched = true;
                // That of somebody else's directory is no part of what a state is.
                let is_dir = matches!(entry.node, Node::Dir(_));
                if !permitted(on.set_times(self.disk, mtime))? && !is_dir {
                    self.note.note(Refusal::partly(path, "its time could not be given back"));
                }
            }
            _ => {}
        }
        Ok(touched)
    }

    /// Returns the owner and group that it has then.
    fn owner(&self, on: On<'_>, stat: &Stat, entry: &Entry, path: &[u8]) -> Result<(u32, u32)> {
        let (want, have) = ((entry.uid, entry.gid), (stat.uid, stat.gid));
        if want == have {
            return Ok(have);
        }
        let may = self.rights.root() || self.rights.can_change(stat.uid);
        if may && self.rights.can_give(want.0, want.1) && permitted(on.set_owner(self.disk, want.0, want.1))?
        {
            return Ok(want);
        }
        let mut got = have;
        if may
            && want.1 != have.1
            && self.rights.gids.contains(&want.1)
            && permitted(on.set_owner(self.disk, have.0, want.1))?
        {
            got.1 = want.1;
        }
        let link = if matches!(entry.node, Node::Symlink(_)) { "-h " } else { "" };
        let (shown, lost) = (self.word(path), self.lost(got, entry));
        let (mut what, mut hint) = (String::new(), format!("sudo chown {link}{}:{} {shown}", want.0, want.1));
        if lost != 0 {
            // A change of owner takes these bits away, so they come after it.
            what = format!(" and its {}", bits(lost));
            hint = format!("{hint} && sudo chmod {:04o} {shown}", entry.mode);
        }
        let reason = format!("its owner {}:{}{what} could not be given back", want.0, want.1);
        self.note.note(Refusal::partly(path, reason).hint(hint));
        Ok(got)
    }

    fn mode(
        &self,
        on: On<'_>,
        stat: &Stat,
        entry: &Entry,
        (uid, gid): (u32, u32),
        moved: bool,
        path: &[u8],
    ) -> Result<bool> {
        let is_kept = stat.permissions() == entry.mode && stat.is_dir() && !moved;
        let lost = if is_kept { 0 } else { self.lost((uid, gid), entry) };
        let want = entry.mode & !lost;
        let cleared = moved && stat.permissions() & (SETUID | SETGID) != 0;
        let touch = stat.permissions() != want || cleared;
        if touch && !permitted(on.set_mode(self.disk, want))? {
            let shown = self.word(path);
            self.note.note(
                Refusal::partly(path, format!("its mode {want:04o} could not be given back"))
                    .hint(format!("sudo chmod {want:04o} {shown}")),
            );
        }
        // With another owner it was told together with that.
        if lost != 0 && (uid, gid) == (entry.uid, entry.gid) {
            let shown = self.word(path);
            self.note.note(
                Refusal::partly(path, format!("its {} could not be given back", bits(lost)))
                    .hint(format!("sudo chmod {:04o} {shown}", entry.mode)),
            );
        }
        Ok(touch)
    }

    /// What of an entry's mode must not be given with this owner and group: running as
    /// somebody else than the one who was meant is worse than not at all.
    fn lost(&self, (uid, gid): (u32, u32), entry: &Entry) -> u32 {
        let is_dir = matches!(entry.node, Node::Dir(_));
        let mut lost = 0;
        if uid != entry.uid {
            lost |= entry.mode & SETUID;
        }
        // A directory with it runs nothing, but the system takes it from whoever is not in the group.
        let is_member = self.rights.root() || self.rights.gids.contains(&gid);
        if !is_member || (gid != entry.gid && !is_dir) {
            lost |= entry.mode & SETGID;
        }
        lost
    }

    /// Does `work` on what may have to be writable for it, as the system has it for attributes of
    /// users: its owner may not write it, and makes it so for the time.
    fn writable(&self, on: On<'_>, path: &[u8], work: impl Fn() -> Result<()>) -> Result<()> {
        const WRITE: u32 = 0o200;
        let error = match work() {
            Err(error) if error.is(rustix::io::Errno::ACCESS) => error,
            done => return done,
        };
        let stat = on.stat(path)?;
        let mode = stat.permissions();
        let keeps = mode & SETGID == 0 || self.rights.gids.contains(&stat.gid);
        if stat.uid != self.rights.uid || mode & WRITE != 0 || !keeps {
            return Err(error);
        }
        on.set_mode(self.disk, mode | WRITE)?;
        let done = work();
        on.set_mode(self.disk, mode).and(done)
    }

    /// `path` as a word of a command that can be given anywhere.
    fn word(&self, path: &[u8]) -> String {
        crate::error::shell_word(self.top.join(OsStr::from_bytes(path)))
    }

    fn xattrs(&self, on: On<'_>, have: &[Xattr], entry: &Entry, path: &[u8]) -> Result<bool> {
        if have == entry.xattrs {
            return Ok(false);
        }
        let named = |name: &[u8]| crate::error::show_bytes(name);
        let unwanted = |(name, _): &&Xattr| !is_systems(name) && !entry.xattrs.iter().any(|(n, _)| n == name);
        for (name, _) in have.iter().filter(unwanted) {
            match self.writable(on, path, || on.remove_xattr(self.disk, name)) {
                Err(e) if e.is(rustix::io::Errno::NODATA) => {}
                done if permitted(done.clone())? => {}
                _ => self.note.note(Refusal::partly(
                    path,
                    format!("its attribute {} could not be removed", named(name)),
                )),
            }
        }
        for xattr in entry.xattrs.iter().filter(|xattr| !have.contains(xattr)) {
            let done = self.writable(on, path, || on.set_xattr(self.disk, xattr));
            let no_room = matches!(&done, Err(e) if e.kind() == Kind::NoSpace);
            if no_room || !permitted(done)? {
                let name = named(&xattr.0);
                self.note
                    .note(Refusal::partly(path, format!("its attribute {name} could not be given back")));
            }
        }
        Ok(true)
    }
}
