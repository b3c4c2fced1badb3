//! The record of git that was made last, and what all of it looked like then: a cache in
//! the store's `cache/`, which can be thrown away at any time.

use crate::disk::Dir;
use crate::object::Key;
use crate::tree::root::GitRecord;
use crate::tree::statcache;
use std::path::Path;

/// What the file begins with.
const MAGIC: &[u8] = b"snapback git 2\n";
/// Larger ones are none, in bytes.
const MOST_BYTES: u64 = 256;

/// The record that was made last.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Memo {
    /// What all of it looked like but the index; none when it may change without a trace.
    pub seen: Option<[u8; 32]>,
    /// What the index looked like; the same.
    pub index: Option<[u8; 32]>,
    pub record: GitRecord,
    /// A captured directory that holds the record and was in the store.
    pub base: Option<Key>,
    /// The captured directory that it was written for.
    pub root: Key,
}

/// Where the memo of `target` and `setting` lies.
pub(super) fn file_name(target: &str, setting: &str) -> String {
    let name = statcache::file_name(target, setting);
    format!("{}.git", name.strip_suffix(".stat").unwrap_or(&name))
}

impl Memo {
    /// The one called `name` in the store at `store`; none when there is none that is whole.
    pub fn load(store: &Path, name: &str) -> Option<Self> {
        let cache = Dir::open(&store.join("cache")).ok()?;
        Self::decode(&cache.read(name.as_bytes(), MOST_BYTES).ok()?)
    }

    /// Whether the record is in the store, when `stored` is known to be.
    pub fn is_stored(&self, stored: Option<&Key>) -> bool {
        stored.is_some() && (stored == Some(&self.root) || stored == self.base.as_ref())
    }

    /// The file.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        [self.seen, self.index].iter().for_each(|seen| out.extend_from_slice(&seen.unwrap_or_default()));
        out.push(u8::from(self.record.whole));
        out.extend_from_slice(&self.record.tree.to_bytes());
        out.extend_from_slice(&self.base.map_or([0; Key::LEN], |key| key.to_bytes()));
        out.extend_from_slice(&self.root.to_bytes());
        let sum = crc32fast::hash(&out).to_le_bytes();
        out.extend_from_slice(&sum);
        out
    }

    /// What the file says; none when it is not whole.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (bytes, sum) = bytes.split_last_chunk::<4>()?;
        if crc32fast::hash(bytes).to_le_bytes() != *sum {
            return None;
        }
        let (seen, rest) = bytes.strip_prefix(MAGIC)?.split_first_chunk::<32>()?;
        let (index, rest) = rest.split_first_chunk::<32>()?;
        let known = |seen: &[u8; 32]| Some(*seen).filter(|seen| *seen != [0; 32]);
        let (whole, keys) = rest.split_first()?;
        let mut keys = keys.chunks_exact(Key::LEN).map(Key::from_bytes);
        let record = GitRecord { tree: keys.next()??, whole: *whole == 1 };
        Some(Self { seen: known(seen), index: known(index), record, base: keys.next()?, root: keys.next()?? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::ObjectKind;

    #[test]
    fn what_is_no_small_file_is_none() {
        let temp = crate::testing::TempDir::new();
        let cache = temp.path().join("cache");
        std::fs::create_dir(&cache).unwrap();
        assert!(std::process::Command::new("mkfifo").arg(cache.join("m")).status().unwrap().success());
        assert_eq!(Memo::load(temp.path(), "m"), None);
        std::fs::File::create(cache.join("large")).unwrap().set_len(1 << 40).unwrap();
        assert_eq!(Memo::load(temp.path(), "large"), None);
    }

    #[test]
    fn a_memo_comes_back_and_a_damaged_one_is_none() {
        let key = |text: &str| Key::of(ObjectKind::Root, text.as_bytes());
        let record = GitRecord { tree: Key::of(ObjectKind::Tree, b"t"), whole: false };
        for base in [None, Some(key("base"))] {
            let memo = Memo { seen: Some([7; 32]), index: None, record, base, root: key("root") };
            let bytes = memo.encode();
            assert_eq!(Memo::decode(&bytes), Some(memo));
            for at in 0..bytes.len() {
                let mut bad = bytes.clone();
                bad[at] ^= 4;
                assert_eq!(Memo::decode(&bad), None, "byte {at}");
                assert_eq!(Memo::decode(&bytes[..at]), None, "cut at {at}");
            }
        }
        let memo =
            Memo { seen: None, index: Some([7; 32]), record, base: Some(key("base")), root: key("root") };
        assert!(memo.is_stored(Some(&key("root"))) && memo.is_stored(Some(&key("base"))));
        assert!(!memo.is_stored(Some(&key("other"))) && !memo.is_stored(None));
    }
}
