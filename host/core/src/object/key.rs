//! The name of an object.

use super::codec::from_hex;
use crate::error::{Error, Kind, Result};
use sha2::{Digest, Sha256};
use std::fmt;

/// What an object's bytes are. The number is part of the stored format: never reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum ObjectKind {
    /// Bytes of a file, whole or one block of it; its hash is what `sha256sum` says.
    Blob = 1,
    /// The blocks of one large content (see `store::content`).
    List = 2,
    /// One directory without its times (see `tree::node`).
    Tree = 3,
    /// The times that belong to one `Tree`.
    Times = 4,
    /// A captured directory: its tree, its times, and what was left out.
    Root = 5,
    /// Opaque bytes of a component: the list of its pieces.
    Opaque = 6,
    /// A captured database (see `database`).
    Database = 7,
    /// A captured volume (see `volume`).
    Volume = 8,
}

impl ObjectKind {
    /// The kind that `number` stands for in stored data.
    pub fn from_number(number: u8) -> Option<Self> {
        Some(match number {
            1 => Self::Blob,
            2 => Self::List,
            3 => Self::Tree,
            4 => Self::Times,
            5 => Self::Root,
            6 => Self::Opaque,
            7 => Self::Database,
            8 => Self::Volume,
            _ => return None,
        })
    }

    fn word(self) -> &'static str {
        match self {
            Self::Blob => "blob",
            Self::List => "list",
            Self::Tree => "tree",
            Self::Times => "times",
            Self::Root => "root",
            Self::Opaque => "opaque",
            Self::Database => "database",
            Self::Volume => "volume",
        }
    }
}

/// The name of an object: its kind and the SHA-256 of its bytes.
///
/// Written as text it is `kind:hex`, for example `blob:e3b0c442...`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key {
    kind: ObjectKind,
    hash: [u8; 32],
}

impl Key {
    /// Bytes that a key takes in stored data: the kind's number, then the hash.
    pub const LEN: usize = 33;

    /// The key of `bytes` as an object of `kind`.
    pub fn of(kind: ObjectKind, bytes: &[u8]) -> Self {
        Self { kind, hash: Sha256::digest(bytes).into() }
    }

    /// What the object's bytes are.
    pub fn kind(&self) -> ObjectKind {
        self.kind
    }

    /// The SHA-256 of the object's bytes.
    pub fn hash(&self) -> &[u8; 32] {
        &self.hash
    }

    /// A key from its parts, for decoders of data whose own hash was checked, and for what
    /// is known by less than its bytes.
    pub(crate) fn from_parts(kind: ObjectKind, hash: [u8; 32]) -> Self {
        Self { kind, hash }
    }

    /// The stored form: `LEN` bytes.
    pub fn to_bytes(self) -> [u8; Self::LEN] {
        let mut out = [0; Self::LEN];
        out[0] = self.kind as u8;
        out[1..].copy_from_slice(&self.hash);
        out
    }

    /// The key that `bytes` (exactly `LEN`) stand for; `None` for an unknown kind.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (&number, hash) = bytes.split_first()?;
        Some(Self { kind: ObjectKind::from_number(number)?, hash: hash.try_into().ok()? })
    }

    /// Reads the text form, `kind:hex`.
    ///
    /// # Errors
    /// `Invalid` when the text is not a key.
    pub fn parse(text: &str) -> Result<Self> {
        let wrong = || Error::new(Kind::Invalid, format!("`{text}` is not the name of an object"));
        let (word, hex) = text.split_once(':').ok_or_else(wrong)?;
        let kind =
            (1..=8).filter_map(ObjectKind::from_number).find(|k| k.word() == word).ok_or_else(wrong)?;
        let hash = from_hex(hex.as_bytes()).ok_or_else(wrong)?;
        Ok(Self { kind, hash })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.kind.word())?;
        self.hash.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl serde::Serialize for Key {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Key {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(d)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// Hashes content that arrives in pieces.
#[derive(Default)]
pub struct Hasher(Sha256);

impl Hasher {
    /// Adds the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// The key of all that was added, as an object of `kind`.
    pub fn finish(self, kind: ObjectKind) -> Key {
        Key { kind, hash: self.0.finalize().into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blob_is_named_as_sha256sum_names_it() {
        let key = Key::of(ObjectKind::Blob, b"hello\n");
        assert_eq!(key.to_string(), "blob:5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03");
        assert_eq!(Key::parse(&key.to_string()).unwrap(), key);
        assert_eq!(Key::from_bytes(&key.to_bytes()), Some(key));
    }

    #[test]
    fn the_kind_is_part_of_the_name() {
        assert_ne!(Key::of(ObjectKind::Blob, b"x"), Key::of(ObjectKind::Tree, b"x"));
    }

    #[test]
    fn what_is_no_key_is_refused() {
        for text in ["", "blob:", "blob:zz", "blob", "pie:00", "blob:é"] {
            assert!(Key::parse(text).is_err(), "{text}");
        }
        // One key has one form.
        let hex = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        assert!(Key::parse(&format!("blob:{hex}")).is_ok());
        for hex in [hex.to_uppercase(), hex.replacen("58", "+5", 1), format!("{hex}0"), hex[1..].to_owned()] {
            assert!(Key::parse(&format!("blob:{hex}")).is_err(), "{hex}");
        }
        assert_eq!(Key::from_bytes(&[9; 33]), None);
    }
}
