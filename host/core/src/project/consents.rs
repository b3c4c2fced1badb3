//! What this user agreed to: one small file for each consent, in the user's own state
//! directory, where nothing that is granted reaches.
//!
//! A consent is named by a key that says all of what was agreed to; that its file is
//! there is the consent, and its text only tells people what it was. Losing the directory
//! means to be asked again. A file of another user's counts for nothing.

use crate::disk::{Dir, Disk};
use crate::error::{Error, Kind, Result};
use crate::history::clock::Moment;
use crate::text::Bytes;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The consents, kept in a directory.
#[derive(Debug, Clone)]
pub struct Consents {
    dir: PathBuf,
}

/// One consent, for people.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Consent {
    /// The identity of the store of the project that it was given for.
    pub store: String,
    /// That project's root, then.
    pub root: Bytes,
    /// The target.
    pub target: String,
    /// The backend.
    pub backend: String,
    /// What was agreed to, a line each.
    pub reaches: Vec<String>,
    /// When.
    pub given: Moment,
}

impl Consents {
    /// Those kept in `state` (`$XDG_STATE_HOME/snapback`), which need not exist.
    pub fn new(state: &Path) -> Self {
        Self { dir: state.join("consents") }
    }

    /// Whether what `key`, hexadecimal digits, stands for was agreed to.
    pub fn has(&self, key: &str) -> bool {
        is_key(key)
            && fs::symlink_metadata(self.dir.join(key))
                .is_ok_and(|meta| meta.is_file() && meta.uid() == rustix::process::geteuid().as_raw())
    }

    /// Whether a consent is kept whose key begins with `start`.
    pub fn has_one_like(&self, start: &str) -> bool {
        let Ok(entries) = fs::read_dir(&self.dir) else { return false };
        let mut names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        is_key(start) && names.any(|name| name.starts_with(start) && self.has(&name))
    }

    /// Keeps the consent `key`.
    ///
    /// # Errors
    /// When the state directory cannot be written.
    pub fn put(&self, disk: &Disk, key: &str, consent: &Consent) -> Result<()> {
        if !is_key(key) {
            return Err(Error::new(Kind::Invalid, "a consent is named by hexadecimal digits"));
        }
        let dir = disk.make_dirs(&self.dir)?;
        let text = serde_json::to_vec(consent).expect("texts and a time can be written as JSON");
        disk.write_cache(&dir, key.as_bytes(), &text, 0o600)
    }

    /// All of them with their keys, by root and target. One that cannot be read is told
    /// by its key alone.
    pub fn all(&self) -> Vec<(String, Option<Consent>)> {
        let Ok(entries) = fs::read_dir(&self.dir) else { return Vec::new() };
        let names = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        let mut all: Vec<_> = names
            .filter(|name| is_key(name))
            .map(|name| {
                let dir = Dir::open(&self.dir).ok();
                let text = dir.and_then(|dir| dir.read(name.as_bytes(), 1 << 20).ok());
                let consent: Option<Consent> = text.and_then(|text| serde_json::from_slice(&text).ok());
                (name, consent)
            })
            .collect();
        all.sort_by_key(|(_, consent)| consent.as_ref().map(|c| (c.root.clone(), c.target.clone())));
        all
    }

    /// Takes the consent `key` back.
    ///
    /// # Errors
    /// When the state directory cannot be written.
    pub fn remove(&self, disk: &Disk, key: &str) -> Result<()> {
        if !self.has(key) {
            return Ok(());
        }
        disk.unlink(&Dir::open(&self.dir)?, key.as_bytes())
    }
}

fn is_key(key: &str) -> bool {
    (16..=64).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TempDir;

    #[test]
    fn what_was_agreed_to_is_kept_until_it_is_taken_back() {
        let scratch = TempDir::new();
        let (consents, disk) = (Consents::new(&scratch.path().join("state")), Disk::default());
        let (key, other) = ("0123456789abcdef", "0123456789abcdee");
        let consent = Consent {
            store: "0".repeat(32),
            root: Bytes(b"/p\xff".to_vec()),
            target: "pg".into(),
            backend: "postgres".into(),
            reaches: vec!["address: db:5432".into()],
            given: Moment::of(jiff::Timestamp::UNIX_EPOCH),
        };
        assert!(!consents.has(key) && consents.all().is_empty());
        consents.put(&disk, key, &consent).unwrap();
        assert!(consents.has(key) && !consents.has(other));
        assert!(consents.has_one_like(key) && !consents.has_one_like(other) && !consents.has_one_like(""));
        assert_eq!(consents.all(), [(key.to_owned(), Some(consent.clone()))]);
        consents.remove(&disk, other).unwrap();
        consents.remove(&disk, key).unwrap();
        assert!(!consents.has(key));
        for bad in ["", "../0123456789abcdef", "0123456789ABCDEF", "0123"] {
            assert!(!consents.has(bad));
            assert!(consents.put(&disk, bad, &consent).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_link_is_no_consent() {
        let scratch = TempDir::new();
        let dir = scratch.path().join("consents");
        fs::create_dir(&dir).unwrap();
        fs::write(scratch.path().join("file"), "").unwrap();
        std::os::unix::fs::symlink("../file", dir.join("0123456789abcdef")).unwrap();
        assert!(!Consents::new(scratch.path()).has("0123456789abcdef"));
    }
}
