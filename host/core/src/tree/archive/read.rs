//! Reading an archive: one member after the other, each with its bytes as they arrive.
//!
//! What it says of lengths is believed only as far as the bytes come. Refuses archives that
//! are cut short, checksums that are wrong, and kinds of members that no file system has.

use super::pax::Records;
use super::{BLOCK, Member, What};
use crate::error::{Error, Kind, Result};
use crate::tree::node::Time;
use std::io::{ErrorKind, Read};

/// The most that the records of one member, or a long name, may take in bytes.
const LONGEST: u64 = 4 << 20;

/// An archive that is read.
pub(crate) struct Reader<R> {
    input: R,
    /// Bytes of the present member that were not read, and those that fill its last block.
    left: u64,
    padding: u64,
}

impl<R: Read> Reader<R> {
    /// One that comes out of `input`.
    pub fn new(input: R) -> Self {
        Self { input, left: 0, padding: 0 }
    }

    /// The next member; none at the end.
    ///
    /// # Errors
    /// `Corrupt` when it is no archive or ends too early.
    pub fn next(&mut self) -> Result<Option<Member>> {
        let (mut records, mut long_path, mut long_link) = (Records::default(), None, None);
        loop {
            self.skip()?;
            let mut head = [0; BLOCK];
            self.fill(&mut head)?;
            if head.iter().all(|&b| b == 0) {
                return Ok(None);
            }
            check(&head)?;
            let size = number(&head[124..136])?;
            match head[156] {
                b'x' | b'g' => records.read(&self.whole(size)?)?,
                b'L' => long_path = Some(text(&self.whole(size)?).to_vec()),
                b'K' => long_link = Some(text(&self.whole(size)?).to_vec()),
                kind => {
                    let path = records.path.take().or(long_path).unwrap_or_else(|| path(&head));
                    let linked = records.linkpath.take().or(long_link);
                    let linked = linked.unwrap_or_else(|| text(&head[157..257]).to_vec());
                    return self.member(&head, kind, (path, linked), size, records).map(Some);
                }
            }
        }
    }

    fn member(
        &mut self,
        head: &[u8; BLOCK],
        kind: u8,
        (path, linked): (Vec<u8>, Vec<u8>),
        size: u64,
        records: Records,
    ) -> Result<Member> {
        let size = records.size.unwrap_or(size);
        let device = || Ok((part(&head[329..337])?, part(&head[337..345])?));
        let what = match kind {
            // Very old ones have a directory as a file with a slash at its end.
            b'0' | 0 | b'7' if path.ends_with(b"/") => What::Dir,
            b'0' | 0 | b'7' => What::File(size),
            b'1' => What::Link(linked),
            b'2' => What::Symlink(linked),
            b'3' => device().map(|(major, minor)| What::CharDevice(major, minor))?,
            b'4' => device().map(|(major, minor)| What::BlockDevice(major, minor))?,
            b'5' => What::Dir,
            b'6' => What::Fifo,
            other => {
                let why = format!("the archive has a member of a kind that is not known ({other})");
                return Err(Error::new(Kind::Incompatible, why));
            }
        };
        // Of others no bytes follow, whatever is said of their size.
        self.expect(if matches!(what, What::File(_)) { size } else { 0 });
        let mut xattrs = records.xattrs;
        xattrs.sort();
        xattrs.dedup_by(|a, b| a.0 == b.0);
        xattrs.retain(|(name, _)| !name.contains(&0));
        Ok(Member {
            path,
            mode: small(number(&head[100..108])? & 0o7777)?,
            uid: small(records.uid.map_or_else(|| number(&head[108..116]), Ok)?)?,
            gid: small(records.gid.map_or_else(|| number(&head[116..124]), Ok)?)?,
            mtime: records.mtime.map_or_else(|| seconds(&head[136..148]), Ok)?,
            xattrs,
            what,
        })
    }

    fn expect(&mut self, size: u64) {
        self.left = size;
        self.padding = (BLOCK as u64 - size % BLOCK as u64) % BLOCK as u64;
    }

    /// The bytes of a member that only says something about the next.
    fn whole(&mut self, size: u64) -> Result<Vec<u8>> {
        if size > LONGEST {
            return Err(Error::corrupt("the archive has a name or a record that is too long"));
        }
        self.expect(size);
        let mut bytes = Vec::new();
        self.read_to_end(&mut bytes).map_err(cut)?;
        Ok(bytes)
    }

    /// Passes over what was not read of the present member.
    fn skip(&mut self) -> Result<()> {
        std::io::copy(self, &mut std::io::sink()).map_err(cut)?;
        let mut padding = [0; BLOCK];
        let padded = std::mem::take(&mut self.padding) as usize;
        self.fill(&mut padding[..padded])
    }

    fn fill(&mut self, buffer: &mut [u8]) -> Result<()> {
        self.input.read_exact(buffer).map_err(cut)
    }
}

/// The bytes of the present member.
impl<R: Read> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        if most == 0 {
            return Ok(0);
        }
        let n = self.input.read(&mut buffer[..most])?;
        if n == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        self.left -= n as u64;
        Ok(n)
    }
}

fn cut(error: std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::UnexpectedEof => Error::corrupt("the archive ended too early"),
        _ => Error::io(error, "could not read", "the archive"),
    }
}

fn wrong() -> Error {
    Error::corrupt("what came is no archive")
}

/// Whether the checksum is right: the sum of all bytes, with spaces for itself.
fn check(head: &[u8; BLOCK]) -> Result<()> {
    let (before, after) = (&head[..148], &head[156..]);
    let sum: u64 = before.iter().chain(after).map(|&b| u64::from(b)).sum::<u64>() + 8 * u64::from(b' ');
    if number(&head[148..156])? == sum { Ok(()) } else { Err(wrong()) }
}

/// A field up to its first NUL.
fn text(field: &[u8]) -> &[u8] {
    field.split(|&b| b == 0).next().unwrap_or_default()
}

/// The path as the fixed fields have it.
fn path(head: &[u8; BLOCK]) -> Vec<u8> {
    let (name, prefix) = (text(&head[..100]), text(&head[345..500]));
    if &head[257..263] == b"ustar\0" && !prefix.is_empty() {
        return [prefix, b"/", name].concat();
    }
    name.to_vec()
}

/// A number: octal digits, or bytes where the first has its highest bit set.
fn number(field: &[u8]) -> Result<u64> {
    u64::try_from(signed(field)?).map_err(|_| wrong())
}

fn signed(field: &[u8]) -> Result<i128> {
    if field[0] & 0x80 != 0 {
        let mut bytes = field.iter();
        let first = i128::from(bytes.next().map_or(0, |b| b & 0x7f));
        let start = if first & 0x40 != 0 { first - 0x80 } else { first };
        return Ok(bytes.fold(start, |n, &b| n << 8 | i128::from(b)));
    }
    let digits = std::str::from_utf8(text(field)).map_err(|_| wrong())?.trim_matches(' ');
    if digits.is_empty() {
        return Ok(0);
    }
    i128::from_str_radix(digits, 8).map_err(|_| wrong())
}

fn seconds(field: &[u8]) -> Result<Time> {
    Ok(Time { sec: i64::try_from(signed(field)?).map_err(|_| wrong())?, nsec: 0 })
}

/// A part of the number of a device.
fn part(field: &[u8]) -> Result<u32> {
    small(number(field)?).ok().filter(|part| *part <= super::DEVICE).ok_or_else(wrong)
}

fn small(number: u64) -> Result<u32> {
    u32::try_from(number).map_err(|_| wrong())
}
