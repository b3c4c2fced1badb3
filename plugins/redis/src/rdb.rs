//! Reading an RDB file, the form in which Redis copies and stores its data, entry by entry.
//!
//! Values are not decoded: it is only found out where each ends, so that they come back
//! exactly as they were. What has no order in Redis (the elements of sets and hashes)
//! is put in one, so that equal values have equal bytes. A kind of value that is not known
//! here is refused: where it ends cannot be told.

mod values;

use crate::text::{decompress, number};
use crate::window::Window;
use snapback_sdk::{Error, ErrorKind, Result};
use std::io::{BufRead, Read};
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
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    pub key: &'a [u8],
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<u64>,
    /// How `value` is encoded.
    pub kind: u8,
    pub value: &'a [u8],
}

/// What a file holds, one after the other.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// The database that the entries after it are of.
    Database(u64),
    /// One that [`Rdb::entry`] has.
    Entry,
    /// The source of a library of functions.
    Function(Vec<u8>),
    /// What a module keeps outside of keys.
    ModuleData,
}

/// A file being read. What it holds of an entry lies where it was read to.
pub struct Rdb<R> {
    window: Window<R>,
    /// How much of what is held belongs to what was read last.
    at: usize,
    last: Last,
    /// Bytes that the last entry takes in a server's memory: rather more than it does.
    pub room: u64,
    /// The version of the format.
    pub version: u16,
    /// Bytes that were read until the end.
    pub length: u64,
}

/// Where the last entry is.
#[derive(Default)]
struct Last {
    /// Among what is held, unless it had to be decoded.
    key: Range<usize>,
    decoded: Option<Vec<u8>>,
    expires: Option<u64>,
    kind: u8,
    value: Range<usize>,
}

impl<R: Read> Rdb<R> {
    /// Reads the head.
    ///
    /// # Errors
    /// When it is none.
    pub fn new(window: Window<R>) -> Result<Self> {
        let mut rdb = Self { window, at: 0, last: Last::default(), room: 0, version: 0, length: 0 };
        let head = rdb.bytes(9)?;
        let digits =
            rdb.held(head).strip_prefix(b"REDIS").and_then(|digits| std::str::from_utf8(digits).ok());
        let version = digits.and_then(|digits| digits.parse().ok());
        rdb.version = version.ok_or_else(|| broken("it has no head"))?;
        Ok(rdb)
    }

    /// What comes next; nothing at the end.
    ///
    /// # Errors
    /// When it cannot be read, or is of an unknown kind.
    pub fn next(&mut self) -> Result<Option<Item>> {
        self.last.expires = None;
        loop {
            self.done();
            match self.byte()? {
                END => {
                    // The checksum: of the bytes on the wire, which arrived whole, or of our own.
                    self.bytes(8)?;
                    self.done();
                    return Ok(None);
                }
                DATABASE => return Ok(Some(Item::Database(self.number()?))),
                AUX => {
                    self.text()?;
                    self.text()?;
                }
                SIZES => {
                    self.number()?;
                    self.number()?;
                }
                IDLE => {
                    self.number()?;
                }
                FREQ => {
                    self.byte()?;
                }
                EXPIRES_MS => self.last.expires = Some(u64::from_le_bytes(self.fixed()?)),
                EXPIRES => self.last.expires = Some(u64::from(u32::from_le_bytes(self.fixed()?)) * 1000),
                FUNCTION => {
                    let range = self.text()?;
                    return Ok(Some(Item::Function(plain(self.held(range))?)));
                }
                MODULE_AUX => {
                    for _ in 0..3 {
                        self.number()?;
                    }
                    self.module()?;
                    return Ok(Some(Item::ModuleData));
                }
                kind => {
                    self.room = 0;
                    self.key()?;
                    let start = self.at;
                    self.value(kind)?;
                    (self.last.kind, self.last.value) = (kind, start..self.at);
                    return Ok(Some(Item::Entry));
                }
            }
        }
    }

    /// The entry that came last.
    pub fn entry(&self) -> Entry<'_> {
        let Last { key, decoded, expires, kind, value } = &self.last;
        let key = decoded.as_deref().unwrap_or_else(|| self.held(key.clone()));
        Entry { key, expires: *expires, kind: *kind, value: self.held(value.clone()) }
    }

    /// The bytes behind what was read, once the end was.
    pub fn into_window(self) -> Window<R> {
        self.window
    }

    fn key(&mut self) -> Result<()> {
        let start = self.at;
        let form = self.number_or_form()?;
        self.last.decoded = None;
        match form {
            Ok(length) => {
                self.last.key = self.bytes(length)?;
                self.take_room(length);
            }
            Err(_) => {
                self.at = start;
                let range = self.text()?;
                self.last.decoded = Some(plain(self.held(range))?);
            }
        }
        Ok(())
    }

    /// A length, or another number.
    fn number(&mut self) -> Result<u64> {
        self.number_or_form()?.map_err(|_| broken("a length is none"))
    }

    /// A number, or the form of a string that is not written plainly.
    fn number_or_form(&mut self) -> Result<Result<u64, u8>> {
        let first = self.byte()?;
        let low = u64::from(first & 0x3f);
        Ok(Ok(match (first >> 6, first) {
            (0, _) => low,
            (1, _) => low << 8 | u64::from(self.byte()?),
            (_, 0x80) => u32::from_be_bytes(self.fixed()?).into(),
            (_, 0x81) => u64::from_be_bytes(self.fixed()?),
            (3, _) => return Ok(Err(first & 0x3f)),
            _ => return Err(broken("a length is none")),
        }))
    }

    /// A string in whatever form; where it is, form included.
    fn text(&mut self) -> Result<Range<usize>> {
        let start = self.at;
        let length = match self.number_or_form()? {
            Ok(length) => self.bytes(length).map(|_| length)?,
            Err(form @ 0..=2) => self.bytes(1 << form).map(|_| 0)?,
            Err(3) => {
                let (packed, length) = (self.number()?, self.number()?);
                self.bytes(packed)?;
                length
            }
            Err(_) => return Err(broken("a string has no known form")),
        };
        self.take_room(length);
        Ok(start..self.at)
    }

    /// Counts what a string of this length takes: what a server allocates is rounded up.
    fn take_room(&mut self, length: u64) {
        let taken = length.saturating_add(length / 4).saturating_add(BESIDE);
        self.room = self.room.saturating_add(taken);
    }

    fn byte(&mut self) -> Result<u8> {
        self.fixed().map(|[byte]| byte)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        loop {
            if let Some(fixed) = self.window.held().get(self.at..).and_then(<[u8]>::first_chunk) {
                self.at += N;
                return Ok(*fixed);
            }
            self.more()?;
        }
    }

    /// The next `count` bytes; where they are.
    fn bytes(&mut self, count: u64) -> Result<Range<usize>> {
        let start = self.at;
        let end = usize::try_from(count).ok().and_then(|count| start.checked_add(count));
        let Some(end) = end.filter(|end| *end <= MAX_VALUE) else {
            return Err(Error::new(ErrorKind::TooLarge, "a value is larger than 512 MiB")
                .with_hint("`database` can name another one"));
        };
        while self.window.held().len() < end {
            self.more()?;
        }
        self.at = end;
        Ok(start..end)
    }

    fn more(&mut self) -> Result<()> {
        match self.window.more().map_err(crate::wire::lost)? {
            true => Ok(()),
            false => Err(broken("it ends too early")),
        }
    }

    fn held(&self, range: Range<usize>) -> &[u8] {
        &self.window.held()[range]
    }

    /// What was read is not looked at any more.
    fn done(&mut self) {
        self.window.consume(self.at);
        self.length += std::mem::take(&mut self.at) as u64;
    }
}

/// What a string in the form of a file says.
///
/// # Errors
/// When it is none.
pub fn plain(encoded: &[u8]) -> Result<Vec<u8>> {
    let window = Window::holding(encoded.to_vec(), std::io::empty());
    let mut rdb = Rdb { window, at: 0, last: Last::default(), room: 0, version: 0, length: 0 };
    match rdb.number_or_form()? {
        Ok(length) => Ok(rdb.bytes(length).map(|at| rdb.held(at).to_vec())?),
        Err(form @ 0..=2) => Ok(rdb.bytes(1 << form).map(|at| number(rdb.held(at)))?),
        Err(_) => {
            let (packed, length) = (rdb.number()?, rdb.number()?);
            let at = rdb.bytes(packed)?;
            decompress(rdb.held(at), length).ok_or_else(|| broken("a string is packed wrongly"))
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

    /// Everything in a file: what it is, key, expiry and value.
    type Found = (Item, Vec<u8>, Option<u64>, Vec<u8>);

    fn items(bytes: &[u8]) -> Result<Vec<Found>> {
        let mut rdb = Rdb::new(Window::new(bytes))?;
        let mut items = Vec::new();
        while let Some(item) = rdb.next()? {
            let is_entry = item == Item::Entry;
            let Entry { key, expires, value, .. } = rdb.entry();
            items.push(match is_entry {
                true => (item, key.to_vec(), expires, value.to_vec()),
                false => (item, Vec::new(), None, Vec::new()),
            });
        }
        assert_eq!(rdb.length, bytes.len() as u64);
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
        assert_eq!(found[0].0, Item::Database(3));
        assert_eq!(found[1], (Item::Entry, b"k".to_vec(), Some(513), vec![0xc1, 0xff, 0]));
        assert_eq!(found[2], (Item::Entry, b"aaaaaaaa".to_vec(), None, b"\x01v".to_vec()));
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
        let mut rdb = Rdb::new(Window::new(&bytes[..])).unwrap();
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
