//! What is said between this program and itself in a container: frames of a kind and
//! bytes, one after the other, both ways.
//!
//! The one in the container asks, for objects and whether there are some, and sends what it
//! captured; the one outside gives the order, answers, and keeps. Neither trusts lengths.

use serde::{Deserialize, Serialize};
use snapback_core::error::{Error, Kind, Result};
use snapback_core::object::Key;
use std::io::{ErrorKind, Read};

/// Longest frame, in bytes: an object with its key.
const LONGEST: usize = (256 << 20) + 1024;
/// Bytes before a frame's own: its kind, and their number.
pub const HEAD: usize = 5;

/// What a frame is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum What {
    /// To the container: what is to be done.
    Order = 1,
    /// Both ways: what is known of files that did not change.
    Cache,
    /// To the container: an object, or its absence as no bytes at all.
    Object,
    /// To the container: whether there is an object, as one byte.
    Whether,
    /// To the container: stop.
    Cancel,
    /// From the container: an object's key and bytes.
    Put,
    /// From the container: the key of an object that is wanted.
    Get,
    /// From the container: the key of an object of which is asked whether it is there.
    Has,
    /// From the container: something for the user.
    Tell,
    /// From the container: how it ended; nothing comes after that.
    Done,
}

impl What {
    fn of(number: u8) -> Option<Self> {
        use What::{Cache, Cancel, Done, Get, Has, Object, Order, Put, Tell, Whether};
        let all = [Order, Cache, Object, Whether, Cancel, Put, Get, Has, Tell, Done];
        all.into_iter().find(|what| *what as u8 == number)
    }
}

/// One frame.
#[derive(Debug, PartialEq, Eq)]
pub struct Frame {
    /// What it is.
    pub what: What,
    /// Its bytes.
    pub bytes: Vec<u8>,
}

/// The bytes before a frame's own.
pub fn head(what: What, length: usize) -> [u8; HEAD] {
    let mut head = [what as u8, 0, 0, 0, 0];
    head[1..].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    head
}

/// A whole frame.
pub fn frame(what: What, bytes: &[u8]) -> Vec<u8> {
    [&head(what, bytes.len())[..], bytes].concat()
}

/// What a head says.
///
/// # Errors
/// `Corrupt` when it is none.
pub fn parse(head: [u8; HEAD]) -> Result<(What, usize)> {
    let length = u32::from_le_bytes(head[1..].try_into().expect("four bytes")) as usize;
    match What::of(head[0]) {
        Some(what) if length <= LONGEST => Ok((what, length)),
        _ => Err(Error::corrupt("what came out of the container makes no sense")),
    }
}

/// The next frame of `input`; none at its end.
///
/// # Errors
/// When it cannot be read, or is cut short.
pub fn next(input: &mut impl Read) -> Result<Option<Frame>> {
    let mut bytes = [0; HEAD];
    match input.read_exact(&mut bytes) {
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => return Ok(None),
        done => done.map_err(|e| Error::io(e, "could not read from", "the other end"))?,
    }
    let (what, length) = parse(bytes)?;
    let mut bytes = vec![0; length];
    input.read_exact(&mut bytes).map_err(|e| Error::io(e, "could not read from", "the other end"))?;
    Ok(Some(Frame { what, bytes }))
}

/// A key at the begin of a frame, and what follows it.
///
/// # Errors
/// `Corrupt` when there is none.
pub fn key(bytes: &[u8]) -> Result<(Key, &[u8])> {
    let wrong = || Error::corrupt("what came out of the container has no key");
    let (key, rest) = bytes.split_at_checked(Key::LEN).ok_or_else(wrong)?;
    Ok((Key::from_bytes(key).ok_or_else(wrong)?, rest))
}

/// What is to be done in a container.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Order {
    /// The target's name.
    pub target: String,
    /// The setting that names the volume.
    pub setting: String,
    /// Where the volume is.
    pub path: String,
    /// For a capture: the one before.
    pub previous: Option<String>,
    /// For a restore: what is to be there, and what is.
    pub restore: Option<(String, String)>,
    /// For a restore: what it is narrowed to.
    pub only: Vec<Vec<u8>>,
    /// For a restore: what cannot be done is left out.
    pub partial: bool,
    /// For a capture: more files or bytes than these are refused.
    pub huge: Option<(u64, u64)>,
    /// Directories that are in no capture, by device and inode.
    pub own: Vec<(u64, u64)>,
}

/// Something for the user.
#[derive(Debug, Serialize, Deserialize)]
pub enum Told {
    /// A level and a message.
    Log(String, String),
    /// What is not in the snapshot, and why.
    Omitted(Vec<u8>, String),
    /// What was not restored, and why.
    Refused(Vec<u8>, String),
    /// Work began.
    Begin(String, Option<u64>, String),
    /// It went on.
    Advance(u64),
    /// It ended.
    End,
}

/// How it ended.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Done {
    /// The key of what was captured.
    Captured(String),
    /// How many paths were left as they are.
    Restored(usize),
    /// What went wrong: kind, sentence, hint.
    Failed(Kind, String, Option<String>),
}

impl From<&Error> for Done {
    fn from(error: &Error) -> Self {
        Self::Failed(error.kind(), error.message().to_owned(), error.hint_text().map(str::to_owned))
    }
}

/// The error that came out of a container.
pub fn error(kind: Kind, message: &str, hint: Option<&str>) -> Error {
    let error = Error::new(kind, crate::component::one_line(message));
    match hint {
        Some(hint) => error.hint(crate::component::one_line(hint)),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_come_as_they_went() {
        let sent = [frame(What::Put, b"abc"), frame(What::Done, b"")].concat();
        let mut input = &sent[..];
        assert_eq!(next(&mut input).unwrap(), Some(Frame { what: What::Put, bytes: b"abc".to_vec() }));
        assert_eq!(next(&mut input).unwrap(), Some(Frame { what: What::Done, bytes: Vec::new() }));
        assert_eq!(next(&mut input).unwrap(), None);
        assert!(next(&mut &sent[..7]).is_err(), "cut short");
        assert!(next(&mut &[99, 0, 0, 0, 0][..]).is_err(), "no kind");
        assert!(next(&mut &[What::Put as u8, 255, 255, 255, 255][..]).is_err(), "too long");
    }

    #[test]
    fn an_error_comes_out_as_it_was() {
        let done = Done::from(&Error::new(Kind::NoSpace, "so").hint("do"));
        let came: Done = serde_json::from_str(&serde_json::to_string(&done).unwrap()).unwrap();
        let Done::Failed(kind, message, hint) = came else { panic!("an error is a failure") };
        let back = error(kind, &message, hint.as_deref());
        assert_eq!((back.kind(), back.message(), back.hint_text()), (Kind::NoSpace, "so", Some("do")));
        let odd = serde_json::from_str::<Done>(r#"{"Failed":["odd","so",null]}"#);
        assert!(odd.is_err(), "no kind");
    }
}
