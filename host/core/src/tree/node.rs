//! Directories at rest: what an entry is, and the stored form of a directory.
//!
//! A directory is two objects. `Tree` holds names, kinds, modes, owners, links,
//! attributes and content: its key is the directory's identity. `Times` holds the
//! modification times of the same entries in the same order, so that a touch alone
//! is no change and costs only a small object. Both are Merkle trees: an entry that
//! is a directory names its own `Tree`, and its place in `Times` names its `Times`.
//!
//! Invariant: entries are sorted by the bytes of their names, without repetition;
//! a name is not empty, `.` or `..`, and holds no `/` and no NUL: what a decoder
//! returned can be joined to a directory handle without leaving it.

use crate::error::Result;
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};

/// The first byte of both forms.
const VERSION: u8 = 1;

/// One entry of a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, as bytes.
    pub name: Vec<u8>,
    /// Permissions with setuid, setgid and sticky: 12 bits.
    pub mode: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Extended attributes, POSIX ACLs and file capabilities among them, sorted by name.
    pub xattrs: Vec<Xattr>,
    /// Entries with the same number are one inode (hard links). The number is made
    /// from the path of the first of them, so it does not depend on inode numbers.
    pub link: Option<u64>,
    /// What it is.
    pub node: Node,
}

/// One extended attribute: name, value.
pub type Xattr = (Vec<u8>, Vec<u8>);

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// A regular file.
    File {
        /// `Blob`, or `List` when it is larger than a block.
        content: Key,
        /// Length in bytes.
        size: u64,
        /// It had holes: runs of zeros become holes again.
        sparse: bool,
    },
    /// A directory: its `Tree`.
    Dir(Key),
    /// A symbolic link: where it points, verbatim.
    Symlink(Vec<u8>),
    /// A named pipe.
    Fifo,
    /// A socket.
    Socket,
    /// A character device: major, minor.
    CharDevice(u32, u32),
    /// A block device: major, minor.
    BlockDevice(u32, u32),
}

impl Node {
    /// A word for what it is.
    pub fn word(&self) -> &'static str {
        match self {
            Self::File { .. } => "file",
            Self::Dir(_) => "directory",
            Self::Symlink(_) => "symbolic link",
            Self::Fifo => "fifo",
            Self::Socket => "socket",
            Self::CharDevice(..) => "character device",
            Self::BlockDevice(..) => "block device",
        }
    }

    /// Whether a target of a database may have it: a file or a link. All else is the tree's.
    pub fn may_be_database(&self) -> bool {
        matches!(self, Self::File { .. } | Self::Symlink(_))
    }
}

/// A modification time: seconds since 1970 and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Time {
    /// Seconds since 1970, negative before.
    pub sec: i64,
    /// Nanoseconds, below 1,000,000,000.
    pub nsec: u32,
}

/// The times of one entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EntryTime {
    /// When its content was last modified.
    pub mtime: Time,
    /// For a directory: its own `Times`.
    pub inside: Option<Key>,
}

/// Whether `name` can stand in a directory.
pub fn is_name(name: &[u8]) -> bool {
    !name.is_empty() && name != b"." && name != b".." && !name.iter().any(|&b| b == b'/' || b == 0)
}

/// The stored form of a directory's entries, which are sorted by name.
pub fn encode_tree(entries: &[Entry]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + entries.len() * 64);
    out.put_u8(VERSION);
    out.put_uint(entries.len() as u64);
    for entry in entries {
        put_entry(&mut out, entry);
    }
    out
}

pub(crate) fn put_entry(out: &mut Vec<u8>, entry: &Entry) {
    put_entry_as(out, &entry.name, entry);
}

/// Writes one entry as if it were called `name`.
pub(crate) fn put_entry_as(out: &mut Vec<u8>, name: &[u8], entry: &Entry) {
    let tag = match entry.node {
        Node::File { sparse: false, .. } => 1,
        Node::File { sparse: true, .. } => 2,
        Node::Dir(_) => 3,
        Node::Symlink(_) => 4,
        Node::Fifo => 5,
        Node::Socket => 6,
        Node::CharDevice(..) => 7,
        Node::BlockDevice(..) => 8,
    };
    let has_xattrs = u8::from(!entry.xattrs.is_empty());
    let has_link = u8::from(entry.link.is_some());
    out.put_u8(tag | has_xattrs << 6 | has_link << 7);
    out.put_bytes(name);
    out.put_uint(u64::from(entry.mode));
    out.put_uint(u64::from(entry.uid));
    out.put_uint(u64::from(entry.gid));
    if !entry.xattrs.is_empty() {
        out.put_uint(entry.xattrs.len() as u64);
        for (name, value) in &entry.xattrs {
            out.put_bytes(name);
            out.put_bytes(value);
        }
    }
    if let Some(link) = entry.link {
        out.extend_from_slice(&link.to_le_bytes());
    }
    match &entry.node {
        Node::File { content, size, .. } => {
            out.put_uint(*size);
            out.put_key(content);
        }
        Node::Dir(key) => out.put_key(key),
        Node::Symlink(to) => out.put_bytes(to),
        Node::CharDevice(major, minor) | Node::BlockDevice(major, minor) => {
            out.put_uint(u64::from(*major));
            out.put_uint(u64::from(*minor));
        }
        Node::Fifo | Node::Socket => {}
    }
}

/// Reads what [`encode_tree`] wrote.
///
/// # Errors
/// `Corrupt` when the bytes are not a directory's one stored form.
pub fn decode_tree(bytes: &[u8]) -> Result<Vec<Entry>> {
    let mut r = Reader::new(bytes, "a directory");
    if r.u8()? != VERSION {
        return Err(r.damaged("an unknown version"));
    }
    let count = r.uint()?;
    let mut entries: Vec<Entry> = Vec::new();
    for _ in 0..count {
        let entry = take_entry(&mut r)?;
        if !is_name(&entry.name) {
            return Err(r.damaged("a name that cannot stand in a directory"));
        }
        if entries.last().is_some_and(|last| last.name >= entry.name) {
            return Err(r.damaged("names out of order"));
        }
        entries.push(entry);
    }
    r.end()?;
    Ok(entries)
}

pub(crate) fn take_entry(r: &mut Reader<'_>) -> Result<Entry> {
    let tag = r.u8()?;
    let name = r.bytes()?.to_vec();
    let (mode, uid, gid) = (r.u32()?, r.u32()?, r.u32()?);
    let mut xattrs: Vec<Xattr> = Vec::new();
    if tag & 0x40 != 0 {
        for _ in 0..r.uint()? {
            xattrs.push((r.bytes()?.to_vec(), r.bytes()?.to_vec()));
        }
        if xattrs.is_empty() {
            return Err(r.damaged("an empty list of attributes"));
        }
    }
    let link = match tag & 0x80 {
        0 => None,
        _ => Some(u64::from_le_bytes(r.take(8)?.try_into().expect("eight bytes were taken"))),
    };
    let node = match tag & 0x3f {
        tag @ (1 | 2) => {
            let (size, content) = (r.uint()?, r.key()?);
            Node::File { content, size, sparse: tag == 2 }
        }
        3 => Node::Dir(r.key()?),
        4 => Node::Symlink(r.bytes()?.to_vec()),
        5 => Node::Fifo,
        6 => Node::Socket,
        7 => Node::CharDevice(r.u32()?, r.u32()?),
        8 => Node::BlockDevice(r.u32()?, r.u32()?),
        _ => return Err(r.damaged("an entry of an unknown kind")),
    };
    let entry = Entry { name, mode, uid, gid, xattrs, link, node };
    wrong(&entry).map_or(Ok(entry), |how| Err(r.damaged(how)))
}

/// Why there can be no such entry, whatever its name; none when there can.
pub(super) fn wrong(entry: &Entry) -> Option<&'static str> {
    if entry.mode > 0o7777 {
        return Some("a mode of more than 12 bits");
    }
    if !entry.xattrs.is_sorted_by(|a, b| a.0 < b.0) || entry.xattrs.iter().any(|(name, _)| name.contains(&0))
    {
        return Some("attributes out of order");
    }
    match &entry.node {
        Node::File { content, .. } if !matches!(content.kind(), ObjectKind::Blob | ObjectKind::List) => {
            Some("a file whose content is no file's")
        }
        Node::Dir(tree) if tree.kind() != ObjectKind::Tree => {
            Some("a directory whose content is no directory's")
        }
        Node::Symlink(to) if to.is_empty() || to.contains(&0) => Some("a link that points nowhere"),
        _ => None,
    }
}

/// The stored form of the times of a directory's entries, in the order of its `Tree`.
pub fn encode_times(times: &[EntryTime]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 + times.len() * 12);
    out.put_u8(VERSION);
    out.put_uint(times.len() as u64);
    for time in times {
        out.put_int(time.mtime.sec);
        out.put_uint(u64::from(time.mtime.nsec) << 1 | u64::from(time.inside.is_some()));
        if let Some(key) = &time.inside {
            out.put_key(key);
        }
    }
    out
}

/// Reads what [`encode_times`] wrote.
///
/// # Errors
/// `Corrupt` when the bytes are not that.
pub fn decode_times(bytes: &[u8]) -> Result<Vec<EntryTime>> {
    let mut r = Reader::new(bytes, "a directory's times");
    if r.u8()? != VERSION {
        return Err(r.damaged("an unknown version"));
    }
    let count = r.uint()?;
    let mut times = Vec::new();
    for _ in 0..count {
        let sec = r.int()?;
        let packed = r.uint()?;
        let nsec = u32::try_from(packed >> 1).unwrap_or(u32::MAX);
        if nsec >= 1_000_000_000 {
            return Err(r.damaged("a time with too many nanoseconds"));
        }
        let inside = if packed & 1 == 1 { Some(r.key()?) } else { None };
        if inside.is_some_and(|key| key.kind() != ObjectKind::Times) {
            return Err(r.damaged("times that are no times"));
        }
        times.push(EntryTime { mtime: Time { sec, nsec }, inside });
    }
    r.end()?;
    Ok(times)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(name: &[u8], node: Node) -> Entry {
        Entry { name: name.to_vec(), mode: 0o644, uid: 1, gid: 2, xattrs: vec![], link: None, node }
    }

    #[test]
    fn a_directory_comes_back_as_it_was() {
        let blob = Key::of(ObjectKind::Blob, b"x");
        let mut entries = vec![
            entry(b"\xfe", Node::Fifo),
            entry(b"a", Node::File { content: blob, size: 1, sparse: false }),
            entry(b"b", Node::File { content: blob, size: 1, sparse: true }),
            entry(b"c\n", Node::Dir(Key::of(ObjectKind::Tree, b"t"))),
            entry(b"d", Node::Symlink(b"../..".to_vec())),
            entry(b"e", Node::CharDevice(1, 3)),
            entry(b"f", Node::BlockDevice(8, 1)),
            entry(b"g", Node::Socket),
        ];
        entries[1].xattrs = vec![(b"user.a".to_vec(), b"\0".to_vec()), (b"user.b".to_vec(), vec![])];
        entries[2].link = Some(7);
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        assert_eq!(decode_tree(&encode_tree(&entries)).unwrap(), entries);
        assert!(decode_tree(&encode_tree(&[])).unwrap().is_empty());
    }

    #[test]
    fn times_come_back_as_they_were() {
        let times = vec![
            EntryTime { mtime: Time { sec: -5, nsec: 999_999_999 }, inside: None },
            EntryTime { mtime: Time::default(), inside: Some(Key::of(ObjectKind::Times, b"t")) },
        ];
        assert_eq!(decode_times(&encode_times(&times)).unwrap(), times);
    }

    #[test]
    fn hostile_forms_are_refused() {
        for name in [&b""[..], b".", b"..", b"a/b", b"a\0b"] {
            assert!(decode_tree(&encode_tree(&[entry(name, Node::Fifo)])).is_err(), "{name:?}");
        }
        let twice = [entry(b"a", Node::Fifo), entry(b"a", Node::Socket)];
        assert!(decode_tree(&encode_tree(&twice)).is_err());
        let wrong = [entry(b"a", Node::Dir(Key::of(ObjectKind::Blob, b"x")))];
        assert!(decode_tree(&encode_tree(&wrong)).is_err());
        let good = encode_tree(&[entry(b"a", Node::Symlink(b"x".to_vec()))]);
        for cut in 0..good.len() {
            assert!(decode_tree(&good[..cut]).is_err(), "cut at {cut}");
        }
    }
}
