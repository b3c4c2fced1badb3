//! The bytes of everything stored: integers, lengths, keys.
//!
//! Unsigned integers are LEB128 (seven bits a byte, lowest first, at most ten
//! bytes, no trailing zero groups: one value has one form, since forms are
//! hashed). Signed ones are zigzag first. Byte strings are a length, then bytes.
//! A `Reader` refuses what ends too early and never allocates by a length that
//! it has not seen the bytes for.

use super::Key;
use crate::error::{Error, Result};

/// Appends stored forms to a buffer.
pub trait Put {
    /// One byte.
    fn put_u8(&mut self, value: u8);
    /// An unsigned integer.
    fn put_uint(&mut self, value: u64);
    /// A signed integer.
    fn put_int(&mut self, value: i64);
    /// A byte string.
    fn put_bytes(&mut self, bytes: &[u8]);
    /// A key.
    fn put_key(&mut self, key: &Key);
}

impl Put for Vec<u8> {
    fn put_u8(&mut self, value: u8) {
        self.push(value);
    }

    fn put_uint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.push((value as u8 & 0x7f) | 0x80);
            value >>= 7;
        }
        self.push(value as u8);
    }

    fn put_int(&mut self, value: i64) {
        self.put_uint(((value << 1) ^ (value >> 63)) as u64);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        self.put_uint(bytes.len() as u64);
        self.extend_from_slice(bytes);
    }

    fn put_key(&mut self, key: &Key) {
        self.extend_from_slice(&key.to_bytes());
    }
}

/// The bytes that lower-case hexadecimal digits spell, which must be all of `text`.
pub fn from_hex<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = text.as_chunks::<2>();
    let mut out = [0; N];
    if pairs.len() != N || !rest.is_empty() {
        return None;
    }
    for (byte, [high, low]) in out.iter_mut().zip(pairs) {
        *byte = digit(*high)? << 4 | digit(*low)?;
    }
    Some(out)
}

/// Takes stored forms from a slice.
pub struct Reader<'a> {
    rest: &'a [u8],
    what: &'static str,
}

impl<'a> Reader<'a> {
    /// Reads `bytes`; `what` names them in errors ("a directory").
    pub fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { rest: bytes, what }
    }

    /// An error that says that what is read is damaged, and how.
    pub fn damaged(&self, how: &str) -> Error {
        Error::corrupt(format!("the stored form of {} is damaged: {how}", self.what))
    }

    /// Whether all was taken.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// How many bytes are left.
    pub fn left(&self) -> usize {
        self.rest.len()
    }

    /// Refuses bytes that are left over.
    pub fn end(&self) -> Result<()> {
        if self.is_empty() { Ok(()) } else { Err(self.damaged("bytes are left over")) }
    }

    /// The next `len` bytes.
    pub fn take(&mut self, len: usize) -> Result<&'a [u8]> {
        let (head, rest) =
            self.rest.split_at_checked(len).ok_or_else(|| self.damaged("it ends too early"))?;
        self.rest = rest;
        Ok(head)
    }

    /// One byte.
    pub fn u8(&mut self) -> Result<u8> {
        Ok(self.take(1)?[0])
    }

    /// An unsigned integer.
    pub fn uint(&mut self) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                if byte == 0 && shift > 0 {
                    break;
                }
                return Ok(value);
            }
        }
        Err(self.damaged("a number is not in its one form"))
    }

    /// An unsigned integer of at most 32 bits.
    pub fn u32(&mut self) -> Result<u32> {
        let value = self.uint()?;
        u32::try_from(value).map_err(|_| self.damaged("a number is too large"))
    }

    /// A signed integer.
    pub fn int(&mut self) -> Result<i64> {
        let value = self.uint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// A byte string.
    pub fn bytes(&mut self) -> Result<&'a [u8]> {
        let len = self.uint()?;
        let len = usize::try_from(len).map_err(|_| self.damaged("a length is too large"))?;
        self.take(len)
    }

    /// A byte string that is UTF-8.
    pub fn text(&mut self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.damaged("text that is not UTF-8"))
    }

    /// A key.
    pub fn key(&mut self) -> Result<Key> {
        let bytes = self.take(Key::LEN)?;
        Key::from_bytes(bytes).ok_or_else(|| self.damaged("an object of an unknown kind"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_is_read() {
        let key = Key::of(crate::object::ObjectKind::Tree, b"k");
        for value in [0u64, 1, 127, 128, 16_383, 16_384, u64::from(u32::MAX), u64::MAX] {
            let mut out = Vec::new();
            out.put_uint(value);
            out.put_int(value as i64);
            out.put_bytes(b"abc");
            out.put_key(&key);
            let mut r = Reader::new(&out, "a test");
            assert_eq!(r.uint().unwrap(), value);
            assert_eq!(r.int().unwrap(), value as i64);
            assert_eq!(r.bytes().unwrap(), b"abc");
            assert_eq!(r.key().unwrap(), key);
            r.end().unwrap();
        }
    }

    #[test]
    fn other_forms_of_a_number_are_refused() {
        for bytes in [&[0x80u8, 0x00][..], &[0xff; 10], &[0x80], &[]] {
            assert!(Reader::new(bytes, "a test").uint().is_err(), "{bytes:?}");
        }
    }
}
