//! The record of one directory: its keys, and each entry with what `stat` said.
//!
//! ```text
//! record  checksum u32, device u64, inode u64, generation u32, tree [32], times [32],
//!         count u32, offsets u32 x count, entries
//! entry   flags u8, kind u8, length of stat u8, length of name u16, name, stat, body
//! body    device u64 if it is not the directory's; link u64 if flagged; a file's key
//!         [33], a directory's tree [32] and times [32], a link's length u32 and target;
//!         attributes if flagged
//! ```
//!
//! Integers are little-endian. Entries are sorted by name; each stands for itself, so
//! it can be copied into another record.

use super::Fields;
use super::compact::{Compact, Remains, remains};
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};
use crate::tree::node::{Entry, EntryTime, Node, Xattr, is_name, wrong};
use crate::tree::scan::Stat;

/// Bytes of a record before its offsets.
const HEAD: usize = 4 + 8 + 8 + 4 + 32 + 32 + 4;
/// Bytes of an entry before its name.
const ENTRY: usize = 5;

const RACY: u8 = 1;
const LINKED: u8 = 2;
const XATTRS: u8 = 4;
/// It lies on another device than its directory.
const ELSEWHERE: u8 = 8;

/// The record of one directory.
#[derive(Clone, Copy)]
pub struct DirRecord<'a> {
    bytes: &'a [u8],
    count: usize,
}

/// One entry of a record.
#[derive(Clone, Copy)]
pub struct CachedEntry<'a> {
    bytes: &'a [u8],
    name_len: usize,
    stat_len: usize,
    /// The device of its directory.
    dev: u64,
}

impl<'a> DirRecord<'a> {
    /// The record in `bytes`, if it is that of the directory `id` and undamaged.
    pub(super) fn read(bytes: &'a [u8], id: (u64, u64)) -> Option<Self> {
        let mut fields = Fields(bytes);
        let sum = fields.u32()?;
        if (fields.u64()?, fields.u64()?) != id || crc32fast::hash(&bytes[4..]) != sum {
            return None;
        }
        fields.take(4 + 64)?;
        let count = fields.u32()? as usize;
        fields.take(count.checked_mul(4)?)?;
        Some(Self { bytes, count })
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Whether the directory was empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The directory's `Tree`, as it was captured.
    pub fn tree(&self) -> Key {
        self.key(ObjectKind::Tree, 24)
    }

    /// The directory's `Times`.
    pub fn times(&self) -> Key {
        self.key(ObjectKind::Times, 56)
    }

    fn key(&self, kind: ObjectKind, at: usize) -> Key {
        let mut hash = [0; 32];
        hash.copy_from_slice(&self.bytes[at..at + 32]);
        Key::from_parts(kind, hash)
    }

    /// In which generation of the cache it was made.
    pub(crate) fn generation(&self) -> u32 {
        Fields(&self.bytes[20..]).u32().unwrap_or(u32::MAX)
    }

    /// All of it, to be written again as it is.
    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The entry at `at`; they are sorted by name.
    pub fn at(&self, at: usize) -> Option<CachedEntry<'a>> {
        if at >= self.count {
            return None;
        }
        let bytes: &'a [u8] = self.bytes;
        let start = Fields(bytes.get(HEAD + at * 4..)?).u32()? as usize;
        let end = match at + 1 == self.count {
            true => bytes.len(),
            false => Fields(bytes.get(HEAD + at * 4 + 4..)?).u32()? as usize,
        };
        CachedEntry::read(bytes.get(start..end)?, Fields(&bytes[4..]).u64()?)
    }

    /// The entry called `name`.
    pub fn entry(&self, name: &[u8]) -> Option<CachedEntry<'a>> {
        self.at(self.find(name)?)
    }

    /// Where the entry called `name` is.
    pub(crate) fn find(&self, name: &[u8]) -> Option<usize> {
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.at(middle)?.name().cmp(name) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Some(middle),
            }
        }
        None
    }
}

impl<'a> CachedEntry<'a> {
    fn read(bytes: &'a [u8], dev: u64) -> Option<Self> {
        let stat_len = usize::from(*bytes.get(2)?);
        let name_len = usize::from(u16::from_le_bytes(bytes.get(3..ENTRY)?.try_into().ok()?));
        bytes.get(ENTRY..ENTRY + name_len + stat_len)?;
        Some(Self { bytes, name_len, stat_len, dev })
    }

    /// Its name.
    pub fn name(&self) -> &'a [u8] {
        &self.bytes[ENTRY..ENTRY + self.name_len]
    }

    /// Whether an entry of which `stat` is true now is still what was captured when the
    /// cache was written; which capture that was is another question.
    pub fn matches(&self, stat: &Stat) -> bool {
        self.flags() & RACY == 0
            && self.device() == Some(stat.dev)
            && *self.stat() == *Compact::of(stat).bytes()
    }

    fn flags(&self) -> u8 {
        self.bytes[0]
    }

    fn kind(&self) -> u8 {
        self.bytes[1]
    }

    fn stat(&self) -> &'a [u8] {
        let start = ENTRY + self.name_len;
        &self.bytes[start..start + self.stat_len]
    }

    /// What comes after what `stat` said.
    fn rest(&self) -> Fields<'a> {
        Fields(&self.bytes[ENTRY + self.name_len + self.stat_len..])
    }

    fn device(&self) -> Option<u64> {
        if self.flags() & ELSEWHERE == 0 { Some(self.dev) } else { self.rest().u64() }
    }

    fn body(&self) -> Fields<'a> {
        let mut rest = self.rest();
        let before = [ELSEWHERE, LINKED].iter().filter(|flag| self.flags() & **flag != 0).count();
        match rest.take(before * 8) {
            Some(_) => rest,
            None => Fields(&[]),
        }
    }

    /// The number that entries of the same inode share.
    pub fn link(&self) -> Option<u64> {
        if self.flags() & LINKED == 0 {
            return None;
        }
        let mut rest = self.rest();
        if self.flags() & ELSEWHERE != 0 {
            rest.take(8)?;
        }
        rest.u64()
    }

    /// A file's content.
    pub fn content(&self) -> Option<Key> {
        matches!(self.kind(), 1 | 2).then(|| Key::from_bytes(self.body().take(Key::LEN)?))?
    }

    /// A directory's `Tree` and `Times`.
    pub fn directory(&self) -> Option<(Key, Key)> {
        if self.kind() != 3 {
            return None;
        }
        let mut body = self.body();
        let mut hash = || body.take(32).and_then(|hash| <[u8; 32]>::try_from(hash).ok());
        Some((Key::from_parts(ObjectKind::Tree, hash()?), Key::from_parts(ObjectKind::Times, hash()?)))
    }

    /// Its extended attributes.
    pub fn xattrs(&self) -> Option<Vec<Xattr>> {
        self.to_entry().map(|(entry, _)| entry.xattrs)
    }

    /// The entry as it stands in a directory, and its times.
    pub fn to_entry(&self) -> Option<(Entry, EntryTime)> {
        let Remains { mode, uid, gid, size, mtime, rdev } = remains(self.stat())?;
        let mut body = self.body();
        let mut inside = None;
        let node = match self.kind() {
            kind @ (1 | 2) => {
                Node::File { content: Key::from_bytes(body.take(Key::LEN)?)?, size, sparse: kind == 2 }
            }
            3 => {
                let (tree, times) = self.directory()?;
                body.take(64)?;
                inside = Some(times);
                Node::Dir(tree)
            }
            4 => {
                let len = body.u32()? as usize;
                Node::Symlink(body.take(len)?.to_vec())
            }
            5 => Node::Fifo,
            6 => Node::Socket,
            7 => Node::CharDevice(rdev.0, rdev.1),
            8 => Node::BlockDevice(rdev.0, rdev.1),
            _ => return None,
        };
        let mut xattrs = Vec::new();
        if self.flags() & XATTRS != 0 {
            let mut r = Reader::new(body.0, "a cached entry");
            for _ in 0..r.uint().ok()? {
                xattrs.push((r.bytes().ok()?.to_vec(), r.bytes().ok()?.to_vec()));
            }
        }
        let name = self.name().to_vec();
        let entry = Entry { name, mode: mode & 0o7777, uid, gid, xattrs, link: self.link(), node };
        // What could not be read again is not believed.
        let sound = is_name(&entry.name) && wrong(&entry).is_none() && mtime.nsec < 1_000_000_000;
        sound.then_some((entry, EntryTime { mtime, inside }))
    }
}

/// Everything by which an entry is known again.
pub(crate) fn identity(stat: &Stat) -> [u8; 72] {
    let mut out = [0; 72];
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    [stat.mode, stat.uid, stat.gid, stat.nlink].iter().for_each(|v| put(&v.to_le_bytes()));
    [stat.dev, stat.ino, stat.size].iter().for_each(|v| put(&v.to_le_bytes()));
    [stat.mtime.sec, stat.ctime.sec].iter().for_each(|v| put(&v.to_le_bytes()));
    [stat.mtime.nsec, stat.ctime.nsec, stat.rdev.0, stat.rdev.1].iter().for_each(|v| put(&v.to_le_bytes()));
    out
}

/// What is remembered of one entry.
pub(crate) struct Remembered<'a> {
    /// The entry.
    pub entry: &'a Entry,
    /// Its times.
    pub time: &'a EntryTime,
    /// What `stat` said.
    pub stat: &'a Stat,
    /// It may yet change without `stat` saying so.
    pub racy: bool,
}

/// Builds the record of one directory.
pub(crate) struct RecordBuilder {
    bytes: Vec<u8>,
    dev: u64,
    count: usize,
    added: usize,
}

impl RecordBuilder {
    /// A record of `count` entries for the directory `id`.
    pub fn new(id: (u64, u64), generation: u32, count: usize) -> Self {
        let mut bytes = Vec::with_capacity(HEAD + count * 112);
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&id.0.to_le_bytes());
        bytes.extend_from_slice(&id.1.to_le_bytes());
        bytes.extend_from_slice(&generation.to_le_bytes());
        bytes.extend_from_slice(&[0; 64]);
        bytes.extend_from_slice(&(count as u32).to_le_bytes());
        bytes.resize(HEAD + count * 4, 0);
        Self { bytes, dev: id.0, count, added: 0 }
    }

    fn begin(&mut self) {
        let start = (self.bytes.len() as u32).to_le_bytes();
        let at = HEAD + self.added * 4;
        self.bytes[at..at + 4].copy_from_slice(&start);
        self.added += 1;
    }

    /// Adds an entry that is as it was, from a record of the same directory.
    pub fn copy(&mut self, entry: &CachedEntry<'_>) {
        self.begin();
        self.bytes.extend_from_slice(entry.bytes);
    }

    /// Adds an entry.
    pub fn add(&mut self, new: &Remembered<'_>) {
        self.begin();
        let Remembered { entry, time, stat, racy } = new;
        let out = &mut self.bytes;
        let mut flags = if *racy { RACY } else { 0 };
        flags |= if stat.dev == self.dev { 0 } else { ELSEWHERE };
        flags |= if entry.link.is_some() { LINKED } else { 0 };
        flags |= if entry.xattrs.is_empty() { 0 } else { XATTRS };
        let kind = match entry.node {
            Node::File { sparse: false, .. } => 1,
            Node::File { sparse: true, .. } => 2,
            Node::Dir(_) => 3,
            Node::Symlink(_) => 4,
            Node::Fifo => 5,
            Node::Socket => 6,
            Node::CharDevice(..) => 7,
            Node::BlockDevice(..) => 8,
        };
        let compact = Compact::of(stat);
        out.extend_from_slice(&[flags, kind, compact.bytes().len() as u8]);
        out.extend_from_slice(&(entry.name.len() as u16).to_le_bytes());
        out.extend_from_slice(&entry.name);
        out.extend_from_slice(compact.bytes());
        if stat.dev != self.dev {
            out.extend_from_slice(&stat.dev.to_le_bytes());
        }
        if let Some(link) = entry.link {
            out.extend_from_slice(&link.to_le_bytes());
        }
        match &entry.node {
            Node::File { content, .. } => out.put_key(content),
            Node::Dir(tree) => {
                out.extend_from_slice(tree.hash());
                out.extend_from_slice(time.inside.as_ref().map_or(&[0; 32], |key| key.hash()));
            }
            Node::Symlink(to) => {
                out.extend_from_slice(&(to.len() as u32).to_le_bytes());
                out.extend_from_slice(to);
            }
            _ => {}
        }
        if !entry.xattrs.is_empty() {
            out.put_uint(entry.xattrs.len() as u64);
            for (name, value) in &entry.xattrs {
                out.put_bytes(name);
                out.put_bytes(value);
            }
        }
    }

    /// The record; `None` when it would be larger than its offsets can say.
    pub fn finish(mut self, tree: &Key, times: &Key) -> Option<Vec<u8>> {
        debug_assert_eq!(self.added, self.count);
        u32::try_from(self.bytes.len()).ok()?;
        self.bytes[24..56].copy_from_slice(tree.hash());
        self.bytes[56..88].copy_from_slice(times.hash());
        let sum = crc32fast::hash(&self.bytes[4..]).to_le_bytes();
        self.bytes[..4].copy_from_slice(&sum);
        Some(self.bytes)
    }
}
