//! A captured directory: where its tree starts, and what was left out of it.
//!
//! The `Root` object is what a snapshot's part names. Its top is an entry like any
//! other, but without a name. Identity (is it the same state?) is the top without
//! times; what was left out is a record for people and for restore, not state.

pub use super::left_out::{LeftOut, Stamp, Why};

use super::node::{Entry, Node, Time, put_entry, take_entry};
use crate::error::Result;
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};

/// The first byte of the stored form. Version 1 had neither stamps nor a record of git,
/// version 2 no stamps of single files.
const VERSION: u8 = 3;

/// A captured directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// The setting that the directory was opened with: a component may open several.
    pub setting: String,
    /// The setting's value: where the directory was.
    pub value: String,
    /// What was selected of it, as text: the options it was opened with.
    pub options: Vec<(String, String)>,
    /// The directory itself; its name is empty and its node is `Dir`.
    pub top: Entry,
    /// When the directory itself was last modified.
    pub mtime: Time,
    /// The `Times` of its entries.
    pub times: Key,
    /// What is beneath it and not in the tree: directories left out by a rule, and
    /// holes; sorted by path. Restore never touches what these name.
    pub left_out: Vec<LeftOut>,
    /// Single files that a pattern of `ignore` left out: pattern, how many. The same
    /// settings leave them out again at restore, so their paths are not kept.
    pub ignored: Vec<(String, u64)>,
    /// What these looked like, sorted; of very many, only some.
    pub ignored_stamps: Vec<Stamp>,
    /// Files in the tree (hard links counted once a name).
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Where git stood, when the directory is a work tree whose repository is not part
    /// of the tree itself.
    pub git: Option<GitRecord>,
}

/// What was recorded of a repository, to be read: never restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GitRecord {
    /// A `Tree` with `HEAD`, `packed-refs`, `refs` and `logs`, what tells that git is in the
    /// middle of something, as far as they are there, and what is `staged`.
    pub tree: Key,
    /// Whether all of these files were read, rather than as much as the limits allow.
    pub whole: bool,
}

impl Root {
    /// Whether the times of files count as state: they come back exactly.
    pub fn counts_times(&self) -> bool {
        let set = self.options.iter().rev().find(|(key, _)| key == "times");
        set.is_some_and(|(_, value)| value == "stored")
    }

    /// Whether `other` is the same state, times aside.
    pub fn same_state(&self, other: &Self) -> bool {
        self.top == other.top
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(256 + self.left_out.len() * 48);
        out.put_u8(VERSION);
        out.put_bytes(self.setting.as_bytes());
        out.put_bytes(self.value.as_bytes());
        out.put_uint(self.options.len() as u64);
        for (key, value) in &self.options {
            out.put_bytes(key.as_bytes());
            out.put_bytes(value.as_bytes());
        }
        put_entry(&mut out, &Entry { name: Vec::new(), ..self.top.clone() });
        out.put_int(self.mtime.sec);
        out.put_uint(u64::from(self.mtime.nsec));
        out.put_key(&self.times);
        out.put_uint(self.files);
        out.put_uint(self.bytes);
        out.put_uint(self.left_out.len() as u64);
        self.left_out.iter().for_each(|item| item.put(&mut out));
        out.put_uint(self.ignored.len() as u64);
        for (pattern, count) in &self.ignored {
            out.put_bytes(pattern.as_bytes());
            out.put_uint(*count);
        }
        out.put_uint(self.ignored_stamps.len() as u64);
        self.ignored_stamps.iter().for_each(|stamp| Stamp::put(Some(*stamp), &mut out));
        match &self.git {
            None => out.put_u8(0),
            Some(GitRecord { tree, whole }) => {
                out.put_u8(if *whole { 1 } else { 2 });
                out.put_key(tree);
            }
        }
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not that.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes, "a captured directory");
        let version = r.u8()?;
        if !(1..=VERSION).contains(&version) {
            return Err(r.damaged("an unknown version"));
        }
        let setting = r.text()?.to_owned();
        let value = r.text()?.to_owned();
        let mut options = Vec::new();
        for _ in 0..r.uint()? {
            options.push((r.text()?.to_owned(), r.text()?.to_owned()));
        }
        let top = take_entry(&mut r)?;
        if !top.name.is_empty() || !matches!(top.node, Node::Dir(_)) {
            return Err(r.damaged("its top is not a directory"));
        }
        let mtime = Time { sec: r.int()?, nsec: r.u32()? };
        let times = r.key()?;
        if times.kind() != ObjectKind::Times || mtime.nsec >= 1_000_000_000 {
            return Err(r.damaged("times that are no times"));
        }
        let (files, bytes) = (r.uint()?, r.uint()?);
        let mut left_out = Vec::new();
        for _ in 0..r.uint()? {
            left_out.push(LeftOut::take(&mut r, version)?);
        }
        let mut ignored = Vec::new();
        for _ in 0..r.uint()? {
            ignored.push((r.text()?.to_owned(), r.uint()?));
        }
        let mut ignored_stamps = Vec::new();
        for _ in 0..if version < 3 { 0 } else { r.uint()? } {
            ignored_stamps.extend(Stamp::take(&mut r)?);
        }
        let git = match if version == 1 { 0 } else { r.u8()? } {
            0 => None,
            form @ (1 | 2) => Some(GitRecord { tree: r.key()?, whole: form == 1 }),
            _ => return Err(r.damaged("an unknown form of what git said")),
        };
        if git.is_some_and(|git| git.tree.kind() != ObjectKind::Tree) {
            return Err(r.damaged("a record of git that is no directory"));
        }
        r.end()?;
        Ok(Self {
            setting,
            value,
            options,
            top,
            mtime,
            times,
            left_out,
            ignored,
            ignored_stamps,
            files,
            bytes,
            git,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Root {
        let tree = Key::of(ObjectKind::Tree, b"t");
        Root {
            setting: "path".into(),
            value: ".".into(),
            options: vec![("ignore".into(), "*.log".into())],
            top: Entry {
                name: vec![],
                mode: 0o755,
                uid: 0,
                gid: 0,
                xattrs: vec![],
                link: None,
                node: Node::Dir(tree),
            },
            mtime: Time { sec: 1, nsec: 2 },
            times: Key::of(ObjectKind::Times, b"t"),
            left_out: vec![LeftOut {
                path: b"a/node_modules".to_vec(),
                why: Why::Regenerable,
                detail: "node_modules".into(),
                files: None,
                stamp: None,
            }],
            ignored: vec![("*.log".into(), 3)],
            ignored_stamps: vec![],
            files: 5,
            bytes: 500,
            git: None,
        }
    }

    #[test]
    fn a_root_comes_back_as_it_was() {
        let mut root = sample();
        assert_eq!(Root::decode(&root.encode()).unwrap(), root);
        let ctime = Time { sec: -4, nsec: 999_999_999 };
        for stamp in [Stamp { ino: u64::MAX, ctime: None }, Stamp { ino: 7, ctime: Some(ctime) }] {
            root.left_out[0].stamp = Some(stamp);
            root.ignored_stamps.push(stamp);
            for whole in [true, false] {
                root.git = Some(GitRecord { tree: Key::of(ObjectKind::Tree, b"g"), whole });
                assert_eq!(Root::decode(&root.encode()).unwrap(), root);
            }
        }
    }

    #[test]
    fn damage_is_refused() {
        let mut root = sample();
        let tree = Key::of(ObjectKind::Blob, b"g");
        root.git = Some(GitRecord { tree, whole: true });
        assert!(Root::decode(&root.encode()).is_err(), "a record of git that is no directory");
        root.git = None;
        let ctime = Some(Time { sec: 0, nsec: 1_000_000_000 });
        root.left_out[0].stamp = Some(Stamp { ino: 1, ctime });
        assert!(Root::decode(&root.encode()).is_err(), "a time that is no time");
        let mut bytes = sample().encode();
        bytes[0] = VERSION + 1;
        assert!(Root::decode(&bytes).is_err(), "a version of the future");
    }

    #[test]
    fn a_path_that_leads_out_is_refused() {
        for path in ["", "..", "a/../..", "/etc", "a//b", "a/"] {
            let mut root = sample();
            root.left_out[0].path = path.into();
            assert!(Root::decode(&root.encode()).is_err(), "{path}");
        }
    }
}
