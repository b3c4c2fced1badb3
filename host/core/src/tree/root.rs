//! A captured directory: where its tree starts, and what was left out of it.
//!
//! The `Root` object is what a snapshot's part names. Its top is an entry like any
//! other, but without a name. Identity (is it the same state?) is the top without
//! times; what was left out is a record for people and for restore, not state.

use super::node::{Entry, Node, Time, is_name, put_entry, take_entry};
use crate::error::Result;
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};

/// The first byte of the stored form.
const VERSION: u8 = 1;

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
    /// Files in the tree (hard links counted once a name).
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

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
}

impl Why {
    /// The reason that `number` stands for in stored data.
    pub fn from_number(number: u8) -> Option<Self> {
        use Why::*;
        let all =
            [Ignored, Regenerable, Store, Git, Mount, TooManyFiles, Unreadable, ChangedWhileRead, Outside];
        all.into_iter().find(|why| *why as u8 == number)
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
        }
    }

    /// A hole is something that should have been captured and was not.
    pub fn is_hole(self) -> bool {
        matches!(self, Self::Unreadable | Self::ChangedWhileRead | Self::TooManyFiles)
    }
}

impl Root {
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
        for item in &self.left_out {
            out.put_bytes(&item.path);
            out.put_u8(item.why as u8);
            out.put_bytes(item.detail.as_bytes());
            out.put_uint(item.files.map_or(0, |n| n + 1));
        }
        out.put_uint(self.ignored.len() as u64);
        for (pattern, count) in &self.ignored {
            out.put_bytes(pattern.as_bytes());
            out.put_uint(*count);
        }
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not that.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes, "a captured directory");
        if r.u8()? != VERSION {
            return Err(r.damaged("an unknown version"));
        }
        let setting = text(&mut r)?;
        let value = text(&mut r)?;
        let mut options = Vec::new();
        for _ in 0..r.uint()? {
            options.push((text(&mut r)?, text(&mut r)?));
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
            let path = r.bytes()?.to_vec();
            if !path.split(|&b| b == b'/').all(is_name) {
                return Err(r.damaged("a path that leads out of it"));
            }
            let why = Why::from_number(r.u8()?).ok_or_else(|| r.damaged("an unknown reason"))?;
            let detail = text(&mut r)?;
            let files = r.uint()?.checked_sub(1);
            left_out.push(LeftOut { path, why, detail, files });
        }
        let mut ignored = Vec::new();
        for _ in 0..r.uint()? {
            ignored.push((text(&mut r)?, r.uint()?));
        }
        r.end()?;
        Ok(Self { setting, value, options, top, mtime, times, left_out, ignored, files, bytes })
    }
}

fn text(r: &mut Reader<'_>) -> Result<String> {
    let bytes = r.bytes()?;
    String::from_utf8(bytes.to_vec()).map_err(|_| r.damaged("text that is not UTF-8"))
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
            }],
            ignored: vec![("*.log".into(), 3)],
            files: 5,
            bytes: 500,
        }
    }

    #[test]
    fn a_root_comes_back_as_it_was() {
        assert_eq!(Root::decode(&sample().encode()).unwrap(), sample());
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
