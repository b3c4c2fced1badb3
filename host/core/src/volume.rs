//! Volumes at rest: the object that is captured of a volume that a container engine keeps.
//!
//! What it holds is a directory like any other, a `Root`; beside that stands what the
//! engine needs to make the volume again. It lies at no path of the project: what looks
//! for directories that it could open by itself passes over it. A volume that was not
//! there is an empty directory that says so. Identity (is it the same state?) is whether
//! it is there and what it holds: what it was made with cannot be changed afterwards.

use crate::error::{Error, Kind, Result};
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};
use crate::store::{Lane, Source};
use crate::tree::node::{Entry, Node, Time, encode_times, encode_tree};
use crate::tree::root::Root;
use crate::tree::view::read_root;
use std::collections::BTreeMap;

/// The first byte of the stored form.
const VERSION: u8 = 1;

/// A captured volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// What the engine calls it.
    pub name: String,
    /// Whether it was there.
    pub present: bool,
    /// What keeps it.
    pub driver: String,
    /// What it was made with.
    pub options: BTreeMap<String, String>,
    /// What it is marked with.
    pub labels: BTreeMap<String, String>,
    /// What it holds: a `Root`.
    pub root: Key,
}

impl Volume {
    /// What stands for the volume `name`, which is not there: made with nothing, and empty.
    /// It is of `setting`.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub fn absent(name: &str, setting: &str, lane: &mut Lane<'_>) -> Result<Self> {
        let tree = lane.put(ObjectKind::Tree, &encode_tree(&[]))?;
        let times = lane.put(ObjectKind::Times, &encode_times(&[]))?;
        let top = Entry {
            name: Vec::new(),
            mode: 0o755,
            uid: 0,
            gid: 0,
            xattrs: Vec::new(),
            link: None,
            node: Node::Dir(tree),
        };
        let root = Root {
            setting: setting.to_owned(),
            value: name.to_owned(),
            options: Vec::new(),
            top,
            mtime: Time::default(),
            times,
            left_out: Vec::new(),
            ignored: Vec::new(),
            ignored_stamps: Vec::new(),
            files: 0,
            bytes: 0,
            git: None,
        };
        Ok(Self {
            name: name.to_owned(),
            present: false,
            driver: String::new(),
            options: BTreeMap::new(),
            labels: BTreeMap::new(),
            root: lane.put(ObjectKind::Root, &root.encode())?,
        })
    }

    /// Whether `other` is the same state, times aside.
    ///
    /// # Errors
    /// When what one of them holds cannot be read.
    pub fn same_state(&self, other: &Self, source: &dyn Source) -> Result<bool> {
        let root = |volume: &Self| read_root(source, &volume.root);
        Ok(self.present == other.present
            && (self.root == other.root || root(self)?.same_state(&root(other)?)))
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, u8::from(self.present)];
        out.put_bytes(self.name.as_bytes());
        out.put_bytes(self.driver.as_bytes());
        for pairs in [&self.options, &self.labels] {
            out.put_uint(pairs.len() as u64);
            for (key, value) in pairs {
                out.put_bytes(key.as_bytes());
                out.put_bytes(value.as_bytes());
            }
        }
        out.put_key(&self.root);
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not that.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes, "a captured volume");
        if r.u8()? != VERSION {
            return Err(r.damaged("an unknown version"));
        }
        let present = match r.u8()? {
            0 => false,
            1 => true,
            _ => return Err(r.damaged("neither there nor not there")),
        };
        let (name, driver) = (r.text()?.to_owned(), r.text()?.to_owned());
        let mut pairs = || -> Result<BTreeMap<String, String>> {
            let mut pairs = BTreeMap::new();
            for _ in 0..r.uint()? {
                let (key, value) = (r.text()?.to_owned(), r.text()?.to_owned());
                if pairs.last_key_value().is_some_and(|(last, _)| *last >= key) {
                    return Err(r.damaged("what it was made with is out of order"));
                }
                pairs.insert(key, value);
            }
            Ok(pairs)
        };
        let (options, labels) = (pairs()?, pairs()?);
        let root = r.key()?;
        r.end()?;
        if root.kind() != ObjectKind::Root {
            return Err(r.damaged("what it holds is no directory"));
        }
        Ok(Self { name, present, driver, options, labels, root })
    }

    /// Reads the object `key`.
    ///
    /// # Errors
    /// `Incompatible` when it is no captured volume; `NotFound` and `Corrupt` when it
    /// cannot be read.
    pub fn load(source: &(impl Source + ?Sized), key: &Key) -> Result<Self> {
        if key.kind() != ObjectKind::Volume {
            return Err(Error::new(Kind::Incompatible, "it is not a captured volume"));
        }
        Self::decode(&source.read(key)?)
    }
}

/// The key of the directory that the object `key` is or holds; none when it is neither a
/// captured directory nor a volume.
///
/// # Errors
/// When it cannot be read.
pub fn directory_of(source: &dyn Source, key: &Key) -> Result<Option<Key>> {
    Ok(match key.kind() {
        ObjectKind::Root => Some(*key),
        ObjectKind::Volume => Some(Volume::load(source, key)?.root),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> Volume {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        Volume {
            name: "data".into(),
            present: true,
            driver: "local".into(),
            options: [pair("device", "tmpfs"), pair("type", "tmpfs")].into(),
            labels: [pair("a", "")].into(),
            root: Key::of(ObjectKind::Root, b"r"),
        }
    }

    #[test]
    fn a_volume_comes_back_as_it_was() {
        let absent = Volume { present: false, options: BTreeMap::new(), ..volume() };
        for volume in [volume(), absent] {
            assert_eq!(Volume::decode(&volume.encode()).unwrap(), volume);
        }
    }

    #[test]
    fn damage_is_found() {
        let good = volume().encode();
        for cut in 0..good.len() {
            assert_eq!(Volume::decode(&good[..cut]).unwrap_err().kind(), Kind::Corrupt, "cut at {cut}");
        }
        let other = Volume { root: Key::of(ObjectKind::Tree, b"t"), ..volume() };
        assert_eq!(Volume::decode(&other.encode()).unwrap_err().kind(), Kind::Corrupt);
        let mut there = good.clone();
        there[1] = 2;
        assert_eq!(Volume::decode(&there).unwrap_err().kind(), Kind::Corrupt);
    }
}
