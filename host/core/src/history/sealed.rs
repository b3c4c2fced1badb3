//! JSON that knows whether it is whole: `{"sha256":"<hex>","data":<document>}`.
//!
//! The hash is over the exact bytes of the document as they stand in the file, so a
//! flipped bit anywhere in it is noticed even where the result is still JSON.

use crate::error::{Error, Result};
use crate::object::{Key, ObjectKind};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    sha256: &'a str,
    #[serde(borrow)]
    data: &'a RawValue,
}

fn digest(bytes: &[u8]) -> String {
    let key = Key::of(ObjectKind::Blob, bytes);
    key.hash().iter().map(|b| format!("{b:02x}")).collect()
}

/// The sealed form of `value`.
pub fn seal<T: Serialize>(value: &T) -> Vec<u8> {
    let data = serde_json::value::to_raw_value(value).expect("records can be written as JSON");
    let sha256 = digest(data.get().as_bytes());
    let envelope = Envelope { sha256: &sha256, data: &data };
    serde_json::to_vec(&envelope).expect("an envelope can be written as JSON")
}

/// Reads what [`seal`] wrote; `what` names it in errors.
///
/// # Errors
/// `Corrupt` when it is not whole or not of this form.
pub fn open<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    let damaged = |how: &str| Error::corrupt(format!("{what} is damaged: {how}"));
    if bytes.is_empty() {
        return Err(damaged("it is empty"));
    }
    let envelope: Envelope<'_> =
        serde_json::from_slice(bytes).map_err(|_| damaged("it is cut short or garbled"))?;
    if digest(envelope.data.get().as_bytes()) != envelope.sha256 {
        return Err(damaged("it is not what was written"));
    }
    serde_json::from_str(envelope.data.get()).map_err(|error| damaged(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let value = vec![("a".to_owned(), 1u8), ("b".to_owned(), 2)];
        let sealed = seal(&value);
        assert_eq!(open::<Vec<(String, u8)>>(&sealed, "it").unwrap(), value);
        for at in 0..sealed.len() {
            for bit in 0..8 {
                let mut wrong = sealed.clone();
                wrong[at] ^= 1 << bit;
                assert!(open::<Vec<(String, u8)>>(&wrong, "it").is_err(), "bit {bit} of byte {at}");
            }
            assert!(open::<Vec<(String, u8)>>(&sealed[..at], "it").is_err(), "cut at {at}");
        }
    }
}
