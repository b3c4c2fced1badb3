//! Bytes that are usually text: paths and arguments, exact in JSON.
//!
//! UTF-8 is a JSON string; anything else is `{"base64": "..."}`. So no name is ever
//! changed by being written down.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// A path, a name or an argument.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub Vec<u8>);

impl Bytes {
    /// As a path.
    pub fn path(&self) -> &Path {
        Path::new(OsStr::from_bytes(&self.0))
    }

    /// As text, when it is.
    pub fn text(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// In base64, for JSON keys that end in `_b64`.
    pub fn base64(&self) -> String {
        STANDARD.encode(&self.0)
    }
}

impl From<&Path> for Bytes {
    fn from(path: &Path) -> Self {
        Self(path.as_os_str().as_bytes().to_vec())
    }
}

impl From<&OsStr> for Bytes {
    fn from(text: &OsStr) -> Self {
        Self(text.as_bytes().to_vec())
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::error::show_bytes(&self.0))
    }
}

impl fmt::Debug for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.escape_ascii())
    }
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Form {
    Text(String),
    Other { base64: String },
}

impl Serialize for Bytes {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self.text() {
            Some(text) => s.serialize_str(text),
            None => Form::Other { base64: self.base64() }.serialize(s),
        }
    }
}

impl<'de> Deserialize<'de> for Bytes {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(Self(match Form::deserialize(d)? {
            Form::Text(text) => text.into_bytes(),
            Form::Other { base64 } => STANDARD.decode(base64).map_err(serde::de::Error::custom)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_bytes_survive_json() {
        for bytes in [&b"src/main.rs"[..], b"\xfe\xff", b"", b"a\nb\"c"] {
            let value = Bytes(bytes.to_vec());
            let json = serde_json::to_string(&value).unwrap();
            assert_eq!(serde_json::from_str::<Bytes>(&json).unwrap(), value);
        }
        assert_eq!(serde_json::to_string(&Bytes(b"x".to_vec())).unwrap(), "\"x\"");
    }
}
