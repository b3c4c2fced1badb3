//! Names in JSON: exact, whatever bytes they are.

use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use snapback_core::text::Bytes;

/// Names under one key each, flattened into the object around them.
pub struct Named<'a, const N: usize>(pub [(&'static str, &'static str, &'a Bytes); N]);

impl<const N: usize> Serialize for Named<'_, N> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(N))?;
        for (plain, base64, name) in &self.0 {
            match name.text() {
                Some(text) => map.serialize_entry(plain, text)?,
                None => map.serialize_entry(base64, &name.base64())?,
            }
        }
        map.end()
    }
}

/// A path.
pub fn path(name: &Bytes) -> Named<'_, 1> {
    Named([("path", "path_b64", name)])
}

/// The words of a command: as text when all are, else all in base64.
pub struct Words<'a>(pub Option<&'a [Bytes]>);

impl Serialize for Words<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(Some(1))?;
        match self.0 {
            None => map.serialize_entry("command", &None::<()>)?,
            Some(words) => match words.iter().map(Bytes::text).collect::<Option<Vec<_>>>() {
                Some(texts) => map.serialize_entry("command", &texts)?,
                None => {
                    let words: Vec<_> = words.iter().map(Bytes::base64).collect();
                    map.serialize_entry("command_b64", &words)?;
                }
            },
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(value: &impl Serialize) -> String {
        serde_json::to_string(value).unwrap()
    }

    #[test]
    fn a_name_stands_under_the_key_that_fits_it() {
        assert_eq!(json(&path(&Bytes("a\n日".into()))), "{\"path\":\"a\\n日\"}");
        assert_eq!(json(&path(&Bytes(b"\xfe\xff".to_vec()))), "{\"path_b64\":\"/v8=\"}");
    }

    #[test]
    fn a_command_is_text_as_a_whole_or_not_at_all() {
        let words = |list: &[&[u8]]| list.iter().map(|word| Bytes(word.to_vec())).collect::<Vec<_>>();
        assert_eq!(json(&Words(Some(&words(&[b"ls", b"-l"])))), "{\"command\":[\"ls\",\"-l\"]}");
        assert_eq!(json(&Words(Some(&words(&[b"ls", b"\xfe"])))), "{\"command_b64\":[\"bHM=\",\"/g==\"]}");
        assert_eq!(json(&Words(None)), "{\"command\":null}");
    }
}
