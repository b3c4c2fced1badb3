//! The records with which an archive says what its fixed fields cannot: long names, odd
//! bytes, large numbers, parts of seconds, attributes.

use crate::error::{Error, Result};
use crate::tree::node::{Time, Xattr};

/// What stands before the name of an extended attribute.
const XATTR: &[u8] = b"SCHILY.xattr.";

/// What the records of one member say.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Records {
    pub path: Option<Vec<u8>>,
    pub linkpath: Option<Vec<u8>>,
    pub size: Option<u64>,
    pub uid: Option<u64>,
    pub gid: Option<u64>,
    pub mtime: Option<Time>,
    pub xattrs: Vec<Xattr>,
}

impl Records {
    /// Reads `bytes` on top of what is known.
    ///
    /// # Errors
    /// `Corrupt` when they are no records; `Incompatible` for a form of holes of other tars.
    pub fn read(&mut self, mut bytes: &[u8]) -> Result<()> {
        let wrong = || Error::corrupt("the archive has a record that makes no sense");
        while !bytes.is_empty() {
            let space = bytes.iter().position(|&b| b == b' ').ok_or_else(wrong)?;
            let length = number(&bytes[..space]).and_then(|n| usize::try_from(n).ok()).ok_or_else(wrong)?;
            let record = bytes.get(space + 1..length).ok_or_else(wrong)?;
            let record = record.strip_suffix(b"\n").ok_or_else(wrong)?;
            let equals = record.iter().position(|&b| b == b'=').ok_or_else(wrong)?;
            self.take(&record[..equals], &record[equals + 1..]).ok_or_else(wrong)?;
            bytes = &bytes[length..];
        }
        Ok(())
    }

    fn take(&mut self, key: &[u8], value: &[u8]) -> Option<()> {
        match key {
            b"path" => self.path = Some(value.to_vec()),
            b"linkpath" => self.linkpath = Some(value.to_vec()),
            b"size" => self.size = Some(number(value)?),
            b"uid" => self.uid = Some(number(value)?),
            b"gid" => self.gid = Some(number(value)?),
            b"mtime" => self.mtime = Some(time(value)?),
            // How a file with holes is written by some: no engine does.
            key if key.starts_with(b"GNU.sparse.") => return None,
            key => {
                if let Some(name) = key.strip_prefix(XATTR).filter(|name| !name.is_empty()) {
                    self.xattrs.push((name.to_vec(), value.to_vec()));
                }
            }
        }
        Some(())
    }
}

/// Writes one record.
pub fn put(out: &mut Vec<u8>, key: &[u8], value: &[u8]) {
    let rest = key.len() + value.len() + 3;
    // Its length counts its own digits.
    let mut length = rest;
    while length != rest + length.to_string().len() {
        length = rest + length.to_string().len();
    }
    out.extend_from_slice(format!("{length} ").as_bytes());
    out.extend_from_slice(key);
    out.push(b'=');
    out.extend_from_slice(value);
    out.push(b'\n');
}

/// Writes the record of an attribute; nothing for one whose name no record can have.
pub fn put_xattr(out: &mut Vec<u8>, (name, value): &Xattr) {
    if !name.contains(&b'=') {
        put(out, &[XATTR, name].concat(), value);
    }
}

/// A time as a record has it.
pub fn time_text(time: Time) -> String {
    let Time { sec, nsec } = time;
    match (sec < 0 && nsec > 0, nsec) {
        (_, 0) => sec.to_string(),
        (false, _) => format!("{sec}.{nsec:09}"),
        // A number below zero: its parts of a second count down.
        (true, _) => format!("-{}.{:09}", (sec + 1).unsigned_abs(), 1_000_000_000 - nsec),
    }
}

fn time(text: &[u8]) -> Option<Time> {
    let text = std::str::from_utf8(text).ok()?;
    let (sec, part) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = part.chars().chain("000000000".chars()).take(9).collect();
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let (whole, nsec): (i64, u32) = (sec.parse().ok()?, digits.parse().ok()?);
    Some(match nsec > 0 && sec.starts_with('-') {
        true => Time { sec: whole.checked_sub(1)?, nsec: 1_000_000_000 - nsec },
        false => Time { sec: whole, nsec },
    })
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_as_they_were() {
        let mut bytes = Vec::new();
        put(&mut bytes, b"path", b"a=b\nc\xfe");
        put(&mut bytes, b"size", b"8589934592");
        put(&mut bytes, b"other", &[7; 90]);
        put_xattr(&mut bytes, &(b"user.a".to_vec(), b"\0\n".to_vec()));
        let mut records = Records::default();
        records.read(&bytes).unwrap();
        assert_eq!(records.path.as_deref(), Some(&b"a=b\nc\xfe"[..]));
        assert_eq!(records.size, Some(8 << 30));
        assert_eq!(records.xattrs, [(b"user.a".to_vec(), b"\0\n".to_vec())]);
        for cut in 1..bytes.len() {
            let _ = Records::default().read(&bytes[..cut]);
        }
        for wrong in [&b"x"[..], b"5 a=b\n", b"99 a=b\n", b"0 a=b\n", b"6 a=b\n1", b"14 size=minus\n"] {
            assert!(Records::default().read(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn times_before_1970_count_down() {
        let texts = [(0, 0, "0"), (5, 1, "5.000000001"), (-5, 0, "-5"), (-1, 999_999_999, "-0.000000001")];
        for (sec, nsec, text) in texts {
            assert_eq!(time_text(Time { sec, nsec }), text);
            assert_eq!(time(text.as_bytes()), Some(Time { sec, nsec }), "{text}");
        }
        assert_eq!(time(b"1.5"), Some(Time { sec: 1, nsec: 500_000_000 }));
        assert_eq!(time(b"1.2345678912"), Some(Time { sec: 1, nsec: 234_567_891 }));
        assert_eq!(time(b"1.x"), None);
    }
}
