//! Reading an RDB file, the form in which Redis copies and stores its data, entry by entry.
//!
//! Values are not decoded: it is only found out where each ends, so that they come back
//! exactly as they were. What has no order in Redis (the elements of sets and hashes)
//! is put in one, so that equal values have equal bytes. A kind of value that is not known
//! here is refused: where it ends cannot be told.

use crate::text::{decompress, number};
use snapback_sdk::{Error, ErrorKind, Result};
use std::io::BufRead;
use std::ops::Range;

/// The longest value, encoded: what a server accepts as one string.
const MAX_VALUE: usize = 512 << 20;
/// Bytes that a server needs beside those of a string or a pending entry, at most.
const BESIDE: u64 = 128;

// What stands before an entry.
pub const FUNCTION: u8 = 245;
const MODULE_AUX: u8 = 247;
const IDLE: u8 = 248;
const FREQ: u8 = 249;
const AUX: u8 = 250;
const SIZES: u8 = 251;
pub const EXPIRES_MS: u8 = 252;
const EXPIRES: u8 = 253;
pub const DATABASE: u8 = 254;
pub const END: u8 = 255;

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub key: Box<[u8]>,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// How `value` is encoded.
    pub kind: u8,
    pub value: Box<[u8]>,
}

/// What a file holds, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// The database that the entries after it are of.
    Database(u64),
    Entry(Entry),
    /// The source of a library of functions.
    Function(Vec<u8>),
    /// What a module keeps outside of keys.
    ModuleData,
}

/// A file being read.
pub struct Rdb<R> {
    input: R,
    /// The bytes of the value at hand.
    raw: Vec<u8>,
    /// Bytes that the last entry takes in a server's memory: rather more than it does.
    pub room: u64,
    /// The version of the format.
    pub version: u16,
}

impl<R: BufRead> Rdb<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(input: R) -> Result<Self> {
        let mut rdb = Self { input, raw: Vec::new(), room: 0, version: 0 };
        let head = rdb.bytes(9)?;
        let digits = rdb.raw[head].strip_prefix(b"REDIS").and_then(|digits| std::str::from_utf8(digits).ok());
        rdb.version =
            digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| broken("it has no head"))?;
        Ok(rdb)
    }

    /// What comes next; nothing at the end.
    ///
    /// # Errors
    /// When it cannot be read, or is of an unknown kind.
    pub fn next(&mut self) -> Result<Option<Item>> {
        let mut expires = None;
        loop {
            self.raw.clear();
            match self.byte()? {
                END => {
                    // The checksum: of the bytes on the wire, which arrived whole, or of our own.
                    self.bytes(8)?;
                    return Ok(None);
                }
                DATABASE => return Ok(Some(Item::Database(self.length()?))),
                AUX => {
                    self.text()?;
                    self.text()?;
                }
                SIZES => {
                    self.length()?;
                    self.length()?;
                }
                IDLE => {
                    self.length()?;
                }
                FREQ => {
                    self.byte()?;
                }
                EXPIRES_MS => {
                    let at = self.bytes(8)?;
                    expires = Some(u64::from_le_bytes(self.fixed(at)));
                }
                EXPIRES => {
                    let at = self.bytes(4)?;
                    expires = Some(u64::from(u32::from_le_bytes(self.fixed(at))) * 1000);
                }
                FUNCTION => {
                    let range = self.text()?;
                    return Ok(Some(Item::Function(plain(&self.raw[range])?)));
                }
                MODULE_AUX => {
                    for _ in 0..3 {
                        self.length()?;
                    }
                    self.module()?;
                    return Ok(Some(Item::ModuleData));
                }
                kind => {
                    self.raw.clear();
                    self.room = 0;
                    let range = self.text()?;
                    let key = plain(&self.raw[range])?.into();
                    self.raw.clear();
                    self.value(kind)?;
                    let value = self.raw.as_slice().into();
                    return Ok(Some(Item::Entry(Entry { key, expires, kind, value })));
                }
            }
        }
    }

    /// The bytes behind what was read, once the end was.
    pub fn into_input(self) -> R {
        self.input
    }

    fn value(&mut self, kind: u8) -> Result<()> {
        match kind {
            // A string, or what Redis keeps in one piece.
            0 | 9..=13 | 16 | 17 | 20 => self.text().map(drop),
            // Lists, as strings or in pieces; ordered sets.
            1 | 14 => self.many(|rdb| rdb.text().map(drop)),
            18 => self.many(|rdb| rdb.length().and_then(|_| rdb.text()).map(drop)),
            3 => self.many(|rdb| {
                rdb.text()?;
                // Not a number, infinite: these have no digits.
                let digits = rdb.byte()?;
                rdb.bytes(if digits >= 253 { 0 } else { digits.into() }).map(drop)
            }),
            5 => self.many(|rdb| rdb.text().and_then(|_| rdb.bytes(8)).map(drop)),
            // Sets and hashes.
            2 => self.sorted(|rdb| rdb.text().map(drop)),
            4 => self.sorted(|rdb| rdb.text().and_then(|_| rdb.text()).map(drop)),
            7 => self.length().and_then(|_| self.module()),
            15 | 19 | 21 => self.stream(kind),
            _ => Err(Error::new(
                ErrorKind::Incompatible,
                format!("the server has a kind of value that is not known here (number {kind})"),
            )
            .with_hint("Redis 6.0 to 7.2 is known, without what modules of before Redis 4 made")),
        }
    }

    fn many(&mut self, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        for _ in 0..self.length()? {
            each(self)?;
        }
        Ok(())
    }

    /// As many, in the order of their bytes.
    fn sorted(&mut self, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let count = self.length()?;
        let start = self.raw.len();
        let mut ranges = Vec::new();
        for _ in 0..count {
            let from = self.raw.len();
            each(self)?;
            ranges.push(from..self.raw.len());
        }
        let raw = &self.raw;
        ranges.sort_unstable_by(|a, b| raw[a.clone()].cmp(&raw[b.clone()]));
        let sorted: Vec<u8> = ranges.into_iter().flat_map(|range| &raw[range]).copied().collect();
        self.raw.truncate(start);
        self.raw.extend_from_slice(&sorted);
        Ok(())
    }

    fn stream(&mut self, kind: u8) -> Result<()> {
        self.many(|rdb| rdb.text().and_then(|_| rdb.text()).map(drop))?;
        // How many, the last ID; later also the first, the highest deleted, how many there were.
        for _ in 0..if kind == 15 { 3 } else { 8 } {
            self.length()?;
        }
        self.many(|rdb| {
            rdb.text()?;
            for _ in 0..if kind == 15 { 2 } else { 3 } {
                rdb.length()?;
            }
            // Who has not acknowledged what, and since when.
            rdb.many(|rdb| {
                rdb.room = rdb.room.saturating_add(BESIDE);
                rdb.bytes(16 + 8).and_then(|_| rdb.length()).map(drop)
            })?;
            rdb.many(|rdb| {
                rdb.text()?;
                rdb.bytes(if kind == 21 { 16 } else { 8 })?;
                rdb.many(|rdb| rdb.bytes(16).map(drop))
            })
        })
    }

    fn module(&mut self) -> Result<()> {
        loop {
            match self.length()? {
                0 => return Ok(()),
                1 | 2 => self.length().map(drop)?,
                3 => self.bytes(4).map(drop)?,
                4 => self.bytes(8).map(drop)?,
                5 => self.text().map(drop)?,
                _ => return Err(broken("what a module wrote has no known form")),
            }
        }
    }

    /// A length.
    fn length(&mut self) -> Result<u64> {
        match self.length_or_form()? {
            Ok(length) => Ok(length),
            Err(_) => Err(broken("a length is none")),
        }
    }

    /// A length, or the form of a string that is not written as one.
    fn length_or_form(&mut self) -> Result<Result<u64, u8>> {
        let first = self.byte()?;
        let low = u64::from(first & 0x3f);
        Ok(Ok(match (first >> 6, first) {
            (0, _) => low,
            (1, _) => low << 8 | u64::from(self.byte()?),
            (_, 0x80) => {
                let at = self.bytes(4)?;
                u32::from_be_bytes(self.fixed(at)).into()
            }
            (_, 0x81) => {
                let at = self.bytes(8)?;
                u64::from_be_bytes(self.fixed(at))
            }
            (3, _) => return Ok(Err(first & 0x3f)),
            _ => return Err(broken("a length is none")),
        }))
    }

    /// A string in whatever form; where it is in `raw`, form included.
    fn text(&mut self) -> Result<Range<usize>> {
        let start = self.raw.len();
        let length = match self.length_or_form()? {
            Ok(length) => self.bytes(length).map(|_| length)?,
            Err(form @ 0..=2) => self.bytes(1 << form).map(|_| 0)?,
            Err(3) => {
                let (packed, length) = (self.length()?, self.length()?);
                self.bytes(packed)?;
                length
            }
            Err(_) => return Err(broken("a string has no known form")),
        };
        // What a server allocates is rounded up.
        let taken = length.saturating_add(length / 4).saturating_add(BESIDE);
        self.room = self.room.saturating_add(taken);
        Ok(start..self.raw.len())
    }

    fn byte(&mut self) -> Result<u8> {
        let at = self.bytes(1)?;
        Ok(self.raw[at.start])
    }

    /// The next `count` bytes; where they are in `raw`.
    fn bytes(&mut self, count: u64) -> Result<Range<usize>> {
        let start = self.raw.len();
        let mut left = usize::try_from(count).unwrap_or(usize::MAX);
        if left > MAX_VALUE.saturating_sub(start) {
            return Err(Error::new(ErrorKind::TooLarge, "a value is larger than 512 MiB")
                .with_hint("`database` can name another one"));
        }
        while left > 0 {
            let buffer = self.input.fill_buf().map_err(crate::wire::lost)?;
            if buffer.is_empty() {
                return Err(broken("it ends too early"));
            }
            let some = buffer.len().min(left);
            self.raw.extend_from_slice(&buffer[..some]);
            self.input.consume(some);
            left -= some;
        }
        Ok(start..self.raw.len())
    }

    fn fixed<const N: usize>(&self, at: Range<usize>) -> [u8; N] {
        let mut fixed = [0; N];
        fixed.copy_from_slice(&self.raw[at]);
        fixed
    }
}

/// What a string in the form of a file says.
///
/// # Errors
/// When it is none.
pub fn plain(encoded: &[u8]) -> Result<Vec<u8>> {
    let mut rdb = Rdb { input: encoded, raw: Vec::new(), room: 0, version: 0 };
    let form = rdb.length_or_form()?;
    match form {
        Ok(length) => Ok(rdb.bytes(length).map(|at| rdb.raw[at].to_vec())?),
        Err(form @ 0..=2) => Ok(rdb.bytes(1 << form).map(|at| number(&rdb.raw[at]))?),
        Err(_) => {
            let (packed, length) = (rdb.length()?, rdb.length()?);
            let at = rdb.bytes(packed)?;
            decompress(&rdb.raw[at], length).ok_or_else(|| broken("a string is packed wrongly"))
        }
    }
}

/// What is no RDB file.
pub fn broken(why: &str) -> Error {
    Error::new(ErrorKind::Corrupt, format!("the copy of the data cannot be read: {why}"))
        .with_hint("the server's log may say why")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn items(bytes: &[u8]) -> Result<Vec<Item>> {
        let mut rdb = Rdb::new(bytes)?;
        let mut items = Vec::new();
        while let Some(item) = rdb.next()? {
            items.push(item);
        }
        Ok(items)
    }

    fn file(body: &[u8]) -> Vec<u8> {
        [b"REDIS0010", body, &[END], &[0; 8]].concat()
    }

    #[test]
    fn entries_are_found() {
        let body = [
            &[AUX, 1, b'a', 0xc0, 5, DATABASE, 3, SIZES, 2, 1][..],
            &[EXPIRES_MS, 1, 2, 0, 0, 0, 0, 0, 0, FREQ, 7, 0, 1, b'k', 0xc1, 0xff, 0x00],
            // A packed key: "aaaaaaaa".
            &[0, 0xc3, 4, 8, 0, b'a', 0xa0, 0, 1, b'v'],
        ]
        .concat();
        let found = items(&file(&body[..body.len()])).unwrap();
        assert_eq!(found[0], Item::Database(3));
        let Item::Entry(entry) = &found[1] else { panic!("{found:?}") };
        assert_eq!((&*entry.key, entry.expires, &*entry.value), (&b"k"[..], Some(513), &[0xc1, 0xff, 0][..]));
        let Item::Entry(entry) = &found[2] else { panic!("{found:?}") };
        assert_eq!((&*entry.key, entry.expires, &*entry.value), (&b"aaaaaaaa"[..], None, &b"\x01v"[..]));
        assert_eq!(found.len(), 3);
    }

    #[test]
    fn sets_and_hashes_have_one_order() {
        let one = items(&file(b"\x02\x01s\x02\x01b\x01a")).unwrap();
        assert_eq!(one, items(&file(b"\x02\x01s\x02\x01a\x01b")).unwrap());
        let one = items(&file(b"\x04\x01h\x02\x01b\x012\x01a\x011")).unwrap();
        assert_eq!(one, items(&file(b"\x04\x01h\x02\x01a\x011\x01b\x012")).unwrap());
        // A list has its own.
        let list = |bytes| items(&file(bytes)).unwrap();
        assert_ne!(list(b"\x01\x01l\x02\x01b\x01a"), list(b"\x01\x01l\x02\x01a\x01b"));
    }

    #[test]
    fn what_an_entry_takes_is_counted_unpacked_and_for_each_entry_anew() {
        let bytes = file(
            &[&b"\x02\x01s\x02\x01b\x01a"[..], &[0, 1, b'k', 0xc3, 4, 0x40, 80, 0, b'a', 0xa0, 0]].concat(),
        );
        let mut rdb = Rdb::new(&bytes[..]).unwrap();
        let mut rooms = Vec::new();
        while rdb.next().unwrap().is_some() {
            rooms.push(rdb.room);
        }
        assert_eq!(rooms, [3 * (1 + BESIDE), 1 + BESIDE + 80 + 20 + BESIDE]);
    }

    #[test]
    fn what_is_no_file_is_an_error() {
        let whole = file(&[0, 1, b'k', 1, b'v']);
        for cut in 0..whole.len() {
            assert!(items(&whole[..cut]).is_err(), "{cut}");
        }
        for body in [
            &[0xee, 1, b'k'][..],
            &[0, 0xc3, 2, 9, 0xff, 0xff, 0],
            &[0, 0x81, 0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0],
        ] {
            assert!(items(&file(body)).is_err(), "{body:?}");
        }
    }
}
