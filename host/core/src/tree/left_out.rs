//! What a capture left out: where it is, why, and what it looked like from outside.
//!
//! Nothing inside of it is looked at. Its own inode and change time (`Stamp`) cost one
//! look, and tell a later capture whether it is gone, another one, or changed. Restore
//! never touches what these name.

use super::node::{Time, is_name};
use super::scan::Stat;
use crate::error::Result;
use crate::object::codec::{Put, Reader};

/// One thing that a capture left out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct LeftOut {
    /// Path from the captured directory, `/` between names, without one at the start.
    pub path: Vec<u8>,
    /// Why.
    pub why: Why,
    /// A few words for people, such as the pattern or rule that matched.
    pub detail: String,
    /// How many files it is, where that was counted.
    pub files: Option<u64>,
    /// What it looked like, where it could be looked at.
    pub stamp: Option<Stamp>,
}

/// What something looked like from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stamp {
    /// Its inode number. Not the device's, which is another one after each start of the
    /// machine on some file systems.
    pub ino: u64,
    /// When its inode was last changed, which for a directory is also when a name in it
    /// came or went. Of the repository, of which the refs tell more, when it was made. None
    /// where that says nothing: our own store changes all the time.
    pub ctime: Option<Time>,
}

/// Why something was left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Why {
    /// A pattern of `ignore` matched.
    Ignored = 1,
    /// It can be made again: node_modules, caches, build output.
    Regenerable,
    /// A snapshot store.
    Store,
    /// A repository's `.git`.
    Git,
    /// Another file system is mounted there.
    Mount,
    /// The directory directly holds more files than the limit.
    TooManyFiles,
    /// It could not be read: a hole.
    Unreadable,
    /// It changed while it was read, each time it was tried: a hole.
    ChangedWhileRead,
    /// It lies outside of the `paths` that are covered.
    Outside,
    /// Another target captures it: a database.
    Elsewhere,
}

impl Why {
    /// All reasons.
    pub const ALL: [Self; 10] = {
        use Why::*;
        [
            Ignored,
            Regenerable,
            Store,
            Git,
            Mount,
            TooManyFiles,
            Unreadable,
            ChangedWhileRead,
            Outside,
            Elsewhere,
        ]
    };

    /// The reason that `number` stands for in stored data.
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|why| *why as u8 == number)
    }

    /// The reason in words, as `list --json` has it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ignored => "ignored",
            Self::Regenerable => "regenerable",
            Self::Store => "snapback store",
            Self::Git => "git",
            Self::Mount => "mount",
            Self::TooManyFiles => "too many files",
            Self::Unreadable => "unreadable",
            Self::ChangedWhileRead => "changed while read",
            Self::Outside => "outside of the paths",
            Self::Elsewhere => "in another target",
        }
    }

    /// A hole is something that should have been captured and was not.
    pub fn is_hole(self) -> bool {
        matches!(self, Self::Unreadable | Self::ChangedWhileRead | Self::TooManyFiles)
    }
}

impl Stamp {
    /// Of what is left out at `path` for the reason `why`.
    pub(super) fn of(stat: &Stat, path: &[u8], why: Why) -> Self {
        let ctime = match why {
            Why::Store | Why::Elsewhere => None,
            _ if path == b".git" => stat.born,
            _ => Some(stat.ctime),
        };
        Self { ino: stat.ino, ctime }
    }

    /// Whether what looks like this may still be what looked like `before`.
    pub fn is_like(&self, before: &Self) -> bool {
        self.ino == before.ino
            && match (self.ctime, before.ctime) {
                (Some(now), Some(then)) => now == then,
                _ => true,
            }
    }

    /// Whether what is as `now` may be the inode that was seen then: one to which the number
    /// was given anew is younger.
    pub(crate) fn may_be_of(&self, now: &Stat) -> bool {
        self.ino == now.ino
            && match (now.born, self.ctime) {
                (Some(born), Some(seen)) => born <= seen,
                _ => true,
            }
    }
}

impl Stamp {
    /// Appends the stored form of `stamp`.
    pub(super) fn put(stamp: Option<Self>, out: &mut Vec<u8>) {
        match stamp {
            None => out.put_u8(0),
            Some(Self { ino, ctime: None }) => {
                out.put_u8(1);
                out.put_uint(ino);
            }
            Some(Self { ino, ctime: Some(ctime) }) => {
                out.put_u8(2);
                out.put_uint(ino);
                out.put_int(ctime.sec);
                out.put_uint(u64::from(ctime.nsec));
            }
        }
    }

    /// Takes the stored form.
    pub(super) fn take(r: &mut Reader<'_>) -> Result<Option<Self>> {
        let stamp = match r.u8()? {
            0 => None,
            1 => Some(Self { ino: r.uint()?, ctime: None }),
            2 => Some(Self { ino: r.uint()?, ctime: Some(Time { sec: r.int()?, nsec: r.u32()? }) }),
            _ => return Err(r.damaged("an unknown form of what something looked like")),
        };
        if stamp.and_then(|stamp| stamp.ctime).is_some_and(|ctime| ctime.nsec >= 1_000_000_000) {
            return Err(r.damaged("a time that is no time"));
        }
        Ok(stamp)
    }
}

impl LeftOut {
    /// Whether it can be told by its inode where it was moved. Stores are known wherever they
    /// are, databases come back by themselves, a mount stays what it is, and a repository that
    /// lies elsewhere stays there.
    pub(crate) fn can_move(&self) -> bool {
        !matches!(self.why, Why::Store | Why::Elsewhere | Why::Mount) && !self.is_apart()
    }

    /// Whether it is a repository that a file `.git` leads to: nothing is at its path.
    pub(crate) fn is_apart(&self) -> bool {
        self.why == Why::Git && self.path.ends_with(b"/.git/HEAD")
    }

    /// Appends the stored form.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        out.put_bytes(&self.path);
        out.put_u8(self.why as u8);
        out.put_bytes(self.detail.as_bytes());
        out.put_uint(self.files.map_or(0, |n| n + 1));
        Stamp::put(self.stamp, out);
    }

    /// Takes the stored form, as a captured directory of `version` has it.
    pub(super) fn take(r: &mut Reader<'_>, version: u8) -> Result<Self> {
        let path = r.bytes()?.to_vec();
        if !path.split(|&b| b == b'/').all(is_name) {
            return Err(r.damaged("a path that leads out of it"));
        }
        let why = Why::from_number(r.u8()?).ok_or_else(|| r.damaged("an unknown reason"))?;
        let detail = r.text()?.to_owned();
        let files = r.uint()?.checked_sub(1);
        let stamp = if version == 1 { None } else { Stamp::take(r)? };
        Ok(Self { path, why, detail, files, stamp })
    }
}
