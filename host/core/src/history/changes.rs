//! What a run changed: `snapshots/<id>/changes`, written when the run ends.
//!
//! It names each path that differed when the command ended, with a digest of the entry
//! as it was then, so that an undo can tell the run's changes from edits made later.
//! Stored form: a version, then entries sorted by target and path, compressed with
//! zstd, and in front of that the SHA-256 of the compressed bytes. Losing it loses only
//! that distinction.

use super::id::Id;
use super::snapshot::read;
use crate::disk::{Dir, Disk};
use crate::error::{Error, Result};
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};
use crate::store::pack::decompress;
use crate::tree::node::{Entry, encode_tree};
use std::collections::BTreeMap;
use std::path::Path;

const FILE: &str = "changes";
const WHAT: &str = "the changes of a run";
const VERSION: u8 = 1;

/// The decoded form is never larger than this; a run that changed more is not told
/// apart from later edits.
const MOST_BYTES: usize = 256 << 20;

/// What identifies the state of one path: nothing when it was gone.
type Digest = Option<[u8; 8]>;

/// The paths that a run changed, and how it left them: the bytes that hold them, as they
/// are stored, and for each target where in these each path begins, sorted by their paths
/// where they were read.
#[derive(Debug, Clone, Default)]
pub struct Changes {
    bytes: Vec<u8>,
    targets: BTreeMap<String, Vec<u32>>,
}

impl Changes {
    /// Adds a path of `target` as the run left it.
    pub fn add(&mut self, target: &str, path: &[u8], left: Option<&Entry>) {
        if !self.targets.contains_key(target) {
            self.targets.insert(target.to_owned(), Vec::new());
        }
        let start = u32::try_from(self.bytes.len()).unwrap_or(u32::MAX);
        self.targets.get_mut(target).into_iter().for_each(|starts| starts.push(start));
        put(&mut self.bytes, path, left.map(digest));
    }

    /// The path that begins at `start`, and how it was left.
    fn at(&self, start: u32) -> Result<(&[u8], Digest)> {
        let mut r = Reader::new(self.bytes.get(start as usize..).unwrap_or_default(), WHAT);
        let path = r.bytes()?;
        let there = r.u8()? != 0;
        let digest: [u8; 8] = r.take(8)?.try_into().expect("eight bytes were taken");
        Ok((path, there.then_some(digest)))
    }

    fn path(&self, start: u32) -> &[u8] {
        self.at(start).map_or(b"", |(path, _)| path)
    }

    /// Whether a path that differs now (it is `now`) is just as the run left it. Of what
    /// was read, not of what is being added to.
    pub fn explain(&self, target: &str, path: &[u8], now: Option<&Entry>) -> bool {
        let left = self.targets.get(target).and_then(|starts| {
            let found = starts.binary_search_by(|start| self.path(*start).cmp(path)).ok()?;
            self.at(starts[found]).ok()
        });
        left.is_some_and(|(_, left)| left == now.map(digest))
    }

    /// How many paths there are.
    pub fn count(&self) -> usize {
        self.targets.values().map(Vec::len).sum()
    }

    /// Writes them for the run of snapshot `id`.
    ///
    /// # Errors
    /// When the disk refuses.
    pub fn record(&self, disk: &Disk, snapshots: &Dir, id: &Id) -> Result<()> {
        let raw = self.encode();
        if raw.len() > MOST_BYTES {
            return Ok(());
        }
        let packed = zstd::bulk::compress(&raw, 1)
            .map_err(|error| Error::io(error, "could not compress", "the changes of a run"))?;
        let mut bytes = Key::of(ObjectKind::Opaque, &packed).hash().to_vec();
        bytes.extend(packed);
        let dir = snapshots.child(id.as_str().as_bytes())?;
        disk.write_cache(&dir, FILE.as_bytes(), &bytes, 0o400)
    }

    /// What the run of snapshot `id` changed, when that was recorded and is whole.
    pub fn load(snapshots: &Path, id: &Id) -> Option<Self> {
        let what = "the changes of a run";
        Self::open(&read(&snapshots.join(id.as_str()), FILE, what, MOST_BYTES as u64).ok()?)
    }

    /// What is in the bytes of such a file, when they are whole.
    pub(crate) fn open(bytes: &[u8]) -> Option<Self> {
        let (hash, packed) = bytes.split_at_checked(32)?;
        if Key::of(ObjectKind::Opaque, packed).hash() != hash {
            return None;
        }
        Self::decode(decompress(packed, MOST_BYTES)?).ok()
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.bytes.len() + 64);
        out.push(VERSION);
        out.put_uint(self.targets.len() as u64);
        for (name, starts) in &self.targets {
            let mut starts = starts.clone();
            starts.sort_by(|a, b| self.path(*a).cmp(self.path(*b)));
            out.put_bytes(name.as_bytes());
            out.put_uint(starts.len() as u64);
            for (path, left) in starts.iter().filter_map(|start| self.at(*start).ok()) {
                put(&mut out, path, left);
            }
        }
        out
    }

    pub(crate) fn decode(bytes: Vec<u8>) -> Result<Self> {
        let mut r = Reader::new(&bytes, WHAT);
        if r.u8()? != VERSION {
            return Err(r.damaged("an unknown version"));
        }
        let mut targets = BTreeMap::new();
        let mut last_name = None;
        for _ in 0..r.uint()? {
            let name = r.text()?.to_owned();
            let mut starts = Vec::new();
            let mut last = None;
            for _ in 0..r.uint()? {
                starts.push(u32::try_from(bytes.len() - r.left()).map_err(|_| r.damaged("it is too long"))?);
                let path = r.bytes()?;
                let there = r.u8()?;
                let digest: [u8; 8] = r.take(8)?.try_into().expect("eight bytes were taken");
                if last.is_some_and(|last| last >= path) || there > 1 || (there == 0 && digest != [0; 8]) {
                    return Err(r.damaged("a path that is not in its one form"));
                }
                last = Some(path);
            }
            if last_name.as_ref().is_some_and(|last| *last >= name) {
                return Err(r.damaged("targets out of order"));
            }
            last_name = Some(name.clone());
            targets.insert(name, starts);
        }
        r.end()?;
        Ok(Self { bytes, targets })
    }
}

/// Writes one path, and how it was left.
fn put(out: &mut Vec<u8>, path: &[u8], left: Digest) {
    out.put_bytes(path);
    out.put_u8(u8::from(left.is_some()));
    out.extend_from_slice(&left.unwrap_or_default());
}

/// What identifies an entry. A directory stands for itself here: what is in it has
/// entries of its own.
fn digest(entry: &Entry) -> [u8; 8] {
    use crate::tree::node::Node;
    let node = match &entry.node {
        Node::Dir(_) => Node::Dir(Key::of(ObjectKind::Tree, b"")),
        other => other.clone(),
    };
    let form = encode_tree(&[Entry { node, ..entry.clone() }]);
    let key = Key::of(ObjectKind::Tree, &form);
    key.hash()[..8].try_into().expect("a hash has eight bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;
    use crate::tree::node::Node;
    use std::fs;

    fn entry(mode: u32) -> Entry {
        let name = b"x".to_vec();
        Entry { name, mode, uid: 0, gid: 0, xattrs: vec![], link: None, node: Node::Fifo }
    }

    #[test]
    fn later_edits_are_told_from_the_runs_own() {
        let temp = TempDir::new();
        let id = Id::parse("20260102-030405-0001").unwrap();
        fs::create_dir(temp.path().join(id.as_str())).unwrap();
        let mut changes = Changes::default();
        changes.add("tree", b"a/\xfe", Some(&entry(0o644)));
        changes.add("tree", b"gone", None);
        changes.record(&Disk::default(), &Dir::open(temp.path()).unwrap(), &id).unwrap();
        let read = Changes::load(temp.path(), &id).unwrap();
        assert_eq!(read.encode(), changes.encode());
        assert!(read.explain("tree", b"a/\xfe", Some(&entry(0o644))));
        assert!(!read.explain("tree", b"a/\xfe", Some(&entry(0o600))));
        assert!(!read.explain("tree", b"a/\xfe", None));
        assert!(read.explain("tree", b"gone", None));
        assert!(!read.explain("tree", b"other", None) && !read.explain("other", b"gone", None));
    }

    #[test]
    fn damage_counts_as_not_recorded() {
        let temp = TempDir::new();
        let id = Id::parse("20260102-030405-0001").unwrap();
        let dir = temp.path().join(id.as_str());
        fs::create_dir(&dir).unwrap();
        Changes::default().record(&Disk::default(), &Dir::open(temp.path()).unwrap(), &id).unwrap();
        let whole = fs::read(dir.join(FILE)).unwrap();
        for at in 0..whole.len() {
            let mut wrong = whole.clone();
            wrong[at] ^= 1;
            fs::remove_file(dir.join(FILE)).unwrap();
            fs::write(dir.join(FILE), wrong).unwrap();
            assert!(Changes::load(temp.path(), &id).is_none(), "byte {at}");
        }
    }
}
