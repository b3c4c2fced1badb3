//! What is on the disk at one name: as it was captured, as it is stored, or neither.
//!
//! Invariant: nothing is called `Current` or `Stored` that was not compared in kind
//! and content, or that the witness (the stat cache of the capture) did not know as
//! exactly the captured inode. Attributes may be a mixture of both sides, since a
//! restore that was cut short leaves such; anything else is somebody's change.

use super::place::Place;
use super::rights::Rights;
use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result};
use crate::object::{Key, ObjectKind};
use crate::store::content::{self, holes};
use crate::store::{BLOCK, Source};
use crate::tree::compare::Change;
use crate::tree::node::{Entry, Node, Xattr};
use crate::tree::scan::Stat;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering};

/// What is at a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Nothing.
    Missing,
    /// What the restore is to bring about, attributes perhaps aside.
    Stored,
    /// What was captured just before.
    Current,
    /// Neither; why, in a few words.
    Foreign(&'static str),
}

/// It was made after the capture.
pub const MADE_SINCE: &str = "it was made after the state before the restore was recorded";
/// It was changed after the capture.
pub const CHANGED_SINCE: &str = "it was changed after the state before the restore was recorded";

/// How often a file with several names is looked at again before it counts as changed:
/// as many threads as a machine has may be moving names of it, each a few times.
const MOVED_TIMES: usize = 64;

/// Compares what is on the disk with what is stored.
pub struct Look<'a> {
    /// Where stored objects are read from.
    pub source: &'a dyn Source,
    /// What this process may give, so what a restore may have left.
    pub rights: &'a Rights,
    /// What lends this user the permission to read its own.
    pub disk: &'a Disk,
}

impl Look<'_> {
    /// What `name` in `place`, now as in `stat`, is; `change.before` is what was
    /// captured, `change.after` what is stored.
    pub fn at(&self, place: &Place<'_>, name: &[u8], stat: Option<&Stat>, change: &Change) -> Result<Found> {
        let Some(stat) = stat else { return Ok(Found::Missing) };
        let (current, stored) = (change.before.as_ref(), change.after.as_ref());
        if current.is_some_and(|entry| kind_is(stat, entry)) && place.unchanged(name, stat) {
            return Ok(Found::Current);
        }
        let made = if current.is_none() { MADE_SINCE } else { CHANGED_SINCE };
        for (entry, found) in [(stored, Found::Stored), (current, Found::Current)] {
            let Some(entry) = entry else { continue };
            if self.is(&place.dir, name, stat, entry)? {
                // What has the stored content and had not when it was captured was restored
                // by an earlier call, as far as that was permitted.
                let restored = found == Found::Stored && current.is_none_or(|now| now.node != entry.node);
                let sides: Vec<&Entry> = current.into_iter().chain(stored).collect();
                let known = restored || self.attributes_known(&place.dir, name, stat, &sides)?;
                return Ok(if known { found } else { Found::Foreign(made) });
            }
        }
        Ok(Found::Foreign(made))
    }

    /// Whether kind and content of `name` in `dir` are those of `entry`. What changes
    /// while it is read is not.
    pub fn is(&self, dir: &Dir, name: &[u8], stat: &Stat, entry: &Entry) -> Result<bool> {
        if !kind_is(stat, entry) {
            return Ok(false);
        }
        Ok(match &entry.node {
            Node::File { content, size, .. } => {
                if stat.size != *size {
                    return Ok(false);
                }
                let (file, lent) = match self.disk.open_own(dir, name) {
                    Ok(opened) => opened,
                    Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Invalid) => return Ok(false),
                    Err(e) => return Err(e),
                };
                // Lending the permission to read it has moved its ctime.
                let now = match lent {
                    true => {
                        Stat::of_open(&file).map_err(|e| Error::io(e, "could not look at", dir.join(name)))?
                    }
                    false => *stat,
                };
                // From then on a write shows in its mtime, if the clock has moved on since the last.
                if now.id() != stat.id() || (lent && now.ctime <= now.mtime) {
                    return Ok(false);
                }
                self.holds(&file, &now, content, *size)
                    .map_err(|e| e.context(crate::error::show(&dir.join(name))))?
            }
            Node::Symlink(to) => match dir.read_link(name) {
                Ok(now) => now == *to,
                Err(e) if matches!(e.kind(), Kind::NotFound | Kind::Invalid) => false,
                Err(e) if e.is(rustix::io::Errno::INVAL) => false,
                Err(e) => return Err(e),
            },
            Node::CharDevice(major, minor) | Node::BlockDevice(major, minor) => stat.rdev == (*major, *minor),
            Node::Dir(_) | Node::Fifo | Node::Socket => true,
        })
    }

    /// Whether the content of `file`, seen as `stat`, is `content`, and nobody changed it
    /// while it was read. A file with several names is looked at again when it changed:
    /// this restore itself may be moving another of them, and that shows in its ctime.
    fn holds(&self, file: &File, stat: &Stat, content: &Key, size: u64) -> Result<bool> {
        let look = || Stat::of_open(file).map_err(|e| Error::io(e, "could not look", "again"));
        let mut seen = *stat;
        for _ in 0..if stat.nlink > 1 { MOVED_TIMES } else { 1 } {
            let now = look()?;
            if (now.id(), now.size) != (stat.id(), stat.size) {
                return Ok(false);
            }
            if now.ctime != seen.ctime {
                seen = now;
                continue;
            }
            if !content_is(self.source, file, content, size)? {
                return Ok(false);
            }
            let after = look()?;
            if (after.ctime, after.size) == (seen.ctime, seen.size) {
                return Ok(true);
            }
            seen = after;
        }
        Ok(false)
    }

    /// Whether each attribute is one that one of `sides` has, or one that a restore
    /// without the right to give it leaves.
    fn attributes_known(&self, dir: &Dir, name: &[u8], stat: &Stat, sides: &[&Entry]) -> Result<bool> {
        let own_uid = stat.uid == self.rights.uid;
        let own_gid = self.rights.gids.contains(&stat.gid);
        let owner = (own_uid || sides.iter().any(|e| e.uid == stat.uid))
            && (own_gid || sides.iter().any(|e| e.gid == stat.gid));
        let is_link = stat.kind() == rustix::fs::FileType::Symlink;
        let mode = is_link || sides.iter().any(|e| mode_is(stat, e));
        if !owner || !mode {
            return Ok(false);
        }
        let now: Vec<Xattr> = match dir.hold(name)? {
            Some(held) => crate::tree::xattr::of_held(&held),
            None => return Ok(false),
        };
        Ok(now.iter().all(|xattr| sides.iter().any(|e| e.xattrs.contains(xattr))))
    }
}

/// Whether `stat` has the mode of `entry`, perhaps without setuid and setgid (a change
/// of owner takes them), or lent to its owner; a directory perhaps opened up, or just made.
pub fn mode_is(stat: &Stat, entry: &Entry) -> bool {
    let (now, want) = (stat.permissions(), entry.mode);
    now == want
        || now == want & !0o6000
        || now == want | 0o400
        || (stat.is_dir() && (now == want | 0o700 || now == want | 0o500 || now == 0o700))
}

/// Whether `stat` is of the kind of `entry`.
pub fn kind_is(stat: &Stat, entry: &Entry) -> bool {
    use rustix::fs::FileType;
    stat.kind()
        == match &entry.node {
            Node::File { .. } => FileType::RegularFile,
            Node::Dir(_) => FileType::Directory,
            Node::Symlink(_) => FileType::Symlink,
            Node::Fifo => FileType::Fifo,
            Node::Socket => FileType::Socket,
            Node::CharDevice(..) => FileType::CharacterDevice,
            Node::BlockDevice(..) => FileType::BlockDevice,
        }
}

/// Whether `file` holds exactly the content `key` of `size` bytes. Its holes are not read,
/// and of what is stored only the lists.
pub(super) fn content_is(source: &dyn Source, file: &File, key: &Key, size: u64) -> Result<bool> {
    // Thrown to end early, and told from what goes wrong by `same`.
    let same = AtomicBool::new(true);
    let done = content::spread(source, key, size, &|leaves| {
        let mut buffer = vec![0; BLOCK.min(size as usize)];
        for leaf in leaves {
            let (start, end) = (leaf.at, leaf.at + leaf.length);
            let is = match &leaf.key {
                None => is_zero(file, start..end, &mut buffer)?,
                Some(key) => {
                    let bytes = &mut buffer[..leaf.length as usize];
                    fill(file, bytes, start)? && Key::of(ObjectKind::Blob, bytes) == *key
                }
            };
            if !is {
                same.store(false, Ordering::Relaxed);
                return Err(Error::new(Kind::Changed, "it is not as stored"));
            }
        }
        Ok(())
    });
    if same.into_inner() { done.map(|()| true) } else { Ok(false) }
}

/// Whether `file` reads as zeros in `range`.
fn is_zero(file: &File, range: Range<u64>, buffer: &mut [u8]) -> Result<bool> {
    let mut rest = range;
    while rest.start < rest.end {
        let data = holes::data(file, rest.clone());
        let mut at = data.start;
        while at < data.end {
            let part = (data.end - at).min(buffer.len() as u64) as usize;
            let bytes = &mut buffer[..part];
            if !(fill(file, bytes, at)? && bytes.iter().all(|&b| b == 0)) {
                return Ok(false);
            }
            at += part as u64;
        }
        rest.start = data.end;
    }
    Ok(true)
}

/// Fills `buffer` from `file` at `offset`; false when the file ends before.
fn fill(file: &File, buffer: &mut [u8], offset: u64) -> Result<bool> {
    match file.read_exact_at(buffer, offset) {
        Ok(()) => Ok(true),
        Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(e) => Err(Error::io(e, "could not read", "a file")),
    }
}
