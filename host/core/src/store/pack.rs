//! The stored form of a pack: frames, then a table of what is in them, then a trailer.
//!
//! A frame holds one or more objects, one after the other, encoded together. The
//! table is authoritative: it says where each frame lies and which objects it holds.
//! A pack is named by the hash of its table, so two packs of one name hold the same.
//!
//! Invariant: a `Table` that was decoded has frames in ascending order, apart from
//! each other and inside the file; the lengths of a frame's objects add up to its
//! raw length; nothing in it is larger than the limits below. What breaks that is
//! refused as damaged: table bytes may come from a stranger.

use crate::error::{Error, Kind, Result};
use crate::object::codec::{Put, Reader, from_hex};
use crate::object::{Key, ObjectKind};
use sha2::{Digest, Sha256};
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// What a pack begins with.
pub const HEAD: &[u8; 16] = b"snapback pack 1\n";
/// What a pack ends with.
const MAGIC: &[u8; 16] = b"snapbackpack-end";
/// The first byte of a table: the version of this form.
const VERSION: u8 = 1;
/// Bytes of the trailer.
const TRAILER: u64 = 64;
/// Largest object, and with it the largest frame, in bytes: what a reader must be
/// ready to hold in memory. A directory of two million files stays below it.
pub const MAX_OBJECT: usize = 256 << 20;
/// Largest offset in a pack that a place can name.
const MAX_PACK: u64 = u32::MAX as u64;
/// Largest table, in bytes: far above what a writer makes.
const MAX_TABLE: u64 = 256 << 20;

/// The name of a pack: the first half of the SHA-256 of its table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PackName(pub [u8; 16]);

impl PackName {
    /// The name that a file's name spells; none when it is not a pack's.
    pub fn parse(name: &[u8]) -> Option<Self> {
        from_hex(name).map(Self)
    }
}

impl fmt::Display for PackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|b| write!(f, "{b:02x}"))
    }
}

impl fmt::Debug for PackName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// How a frame's bytes are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Encoding {
    /// As they are.
    Raw = 0,
    /// One zstd frame.
    Zstd = 1,
    /// As they are, at a multiple of 4096: blocks of content that files can share.
    Aligned = 2,
}

impl Encoding {
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Raw, Self::Zstd, Self::Aligned].into_iter().find(|e| *e as u8 == number)
    }
}

/// No byte of a zstd frame stands for more than this many: a block is at most 128 KiB, and
/// takes at least four bytes.
pub(crate) const MAX_RATIO: u64 = 32 << 10;

/// Where a frame lies in its pack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame {
    /// Where its stored bytes begin.
    pub offset: u32,
    /// How many there are.
    pub stored: u32,
    /// How many they become.
    pub raw: u32,
    /// How they are stored.
    pub encoding: Encoding,
}

impl Frame {
    /// Whether there can be such a frame in a pack whose frames end at `end`.
    pub(super) fn can_be(&self, end: u64) -> bool {
        let Self { offset, stored, raw, encoding } = *self;
        let fits = match encoding {
            Encoding::Raw => stored == raw,
            // What does not become shorter is stored as it is.
            Encoding::Zstd => stored > 0 && stored <= raw && u64::from(raw) <= u64::from(stored) * MAX_RATIO,
            Encoding::Aligned => stored == raw && offset % 4096 == 0,
        };
        fits && raw as usize <= 2 * MAX_OBJECT
            && offset as usize >= HEAD.len()
            && u64::from(offset) + u64::from(stored) <= end
    }
}

/// A frame and the objects in it, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameTable {
    /// Where it lies.
    pub frame: Frame,
    /// Each object with its length.
    pub objects: Vec<(Key, u32)>,
}

/// What is in a pack.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Table {
    /// Its frames, in the order of their offsets.
    pub frames: Vec<FrameTable>,
}

impl Table {
    /// The table and the trailer as they follow the frames, which end at `offset`;
    /// and the name that this gives the pack.
    pub fn encode(frames: &[FrameTable], offset: u64) -> (Vec<u8>, PackName) {
        let objects: usize = frames.iter().map(|f| f.objects.len()).sum();
        let mut out = Vec::with_capacity(objects * 36 + frames.len() * 20 + TRAILER as usize);
        out.put_u8(VERSION);
        out.put_uint(frames.len() as u64);
        for table in frames {
            out.put_uint(u64::from(table.frame.offset));
            out.put_uint(u64::from(table.frame.stored));
            out.put_uint(u64::from(table.frame.raw));
            out.put_u8(table.frame.encoding as u8);
            out.put_uint(table.objects.len() as u64);
            for (key, len) in &table.objects {
                out.put_u8(key.kind() as u8);
                out.put_uint(u64::from(*len));
                out.extend_from_slice(key.hash());
            }
        }
        let hash: [u8; 32] = Sha256::digest(&out).into();
        let length = out.len() as u64;
        out.extend_from_slice(&offset.to_le_bytes());
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&hash);
        out.extend_from_slice(MAGIC);
        (out, name_of(&hash))
    }

    /// Reads the table of the pack `name`.
    ///
    /// # Errors
    /// `Corrupt` when it is damaged, `Incompatible` when it is of a newer version.
    pub fn read(file: &File, name: PackName) -> Result<Self> {
        let told = |e: std::io::Error| Error::io(e, "could not read pack", name.to_string());
        let damaged = |how: &str| Error::corrupt(format!("pack {name} is damaged: {how}"));
        let size = file.metadata().map_err(told)?.len();
        let mut trailer = [0; TRAILER as usize];
        let at = size.checked_sub(TRAILER).ok_or_else(|| damaged("it is cut off"))?;
        file.read_exact_at(&mut trailer, at).map_err(told)?;
        let (places, rest) = trailer.split_at(16);
        let (hash, magic) = rest.split_at(32);
        let word = |bytes: &[u8]| u64::from_le_bytes(bytes.try_into().expect("eight bytes"));
        let (offset, length) = (word(&places[..8]), word(&places[8..]));
        if magic != MAGIC {
            return Err(damaged("its end is missing or overwritten"));
        }
        if offset.checked_add(length) != Some(at)
            || offset > MAX_PACK
            || length > MAX_TABLE
            || offset < HEAD.len() as u64
        {
            return Err(damaged("its table lies outside"));
        }
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(length as usize).map_err(|_| damaged("its table is too large"))?;
        bytes.resize(length as usize, 0);
        file.read_exact_at(&mut bytes, offset).map_err(told)?;
        if Sha256::digest(&bytes)[..] != *hash {
            return Err(damaged("its table is not what was written"));
        }
        if name_of(hash) != name {
            return Err(damaged("it stands under another pack's name"));
        }
        Self::decode(&bytes, offset).map_err(|e| e.context(format_args!("pack {name}")))
    }

    /// Reads the bytes of a table whose frames end at `end`.
    pub(crate) fn decode(bytes: &[u8], end: u64) -> Result<Self> {
        let mut r = Reader::new(bytes, "a pack's table");
        if r.u8()? != VERSION {
            return Err(Error::new(Kind::Incompatible, "it is of a newer version")
                .hint("use the snapback that wrote it, or a newer one"));
        }
        let count = r.uint()?;
        let mut frames = Vec::new();
        let mut last_end = HEAD.len() as u64;
        for _ in 0..count {
            let (offset, stored, raw) = (r.u32()?, r.u32()?, r.u32()?);
            let encoding = Encoding::from_number(r.u8()?).ok_or_else(|| r.damaged("an unknown encoding"))?;
            let frame = Frame { offset, stored, raw, encoding };
            if !frame.can_be(end) || u64::from(offset) < last_end {
                return Err(r.damaged("a frame that cannot be"));
            }
            last_end = u64::from(offset) + u64::from(stored);
            let mut objects = Vec::new();
            let mut sum = 0u64;
            for _ in 0..r.uint()? {
                let kind = ObjectKind::from_number(r.u8()?)
                    .ok_or_else(|| r.damaged("an object of an unknown kind"))?;
                let len = r.u32()?;
                let hash = r.take(32)?.try_into().expect("32 bytes were taken");
                objects.push((Key::from_parts(kind, hash), len));
                sum += u64::from(len);
            }
            if sum != u64::from(raw) || objects.is_empty() {
                return Err(r.damaged("a frame that does not hold what it says"));
            }
            frames.push(FrameTable { frame, objects });
        }
        r.end()?;
        Ok(Self { frames })
    }
}

fn name_of(hash: &[u8]) -> PackName {
    PackName(hash[..16].try_into().expect("a SHA-256 has 32 bytes"))
}

/// Reads and decodes one frame into `out`, replacing what was there.
///
/// # Errors
/// `Corrupt` when the bytes are not there or do not decode to their length.
pub fn read_frame(file: &File, frame: &Frame, out: &mut Vec<u8>) -> Result<()> {
    if frame.encoding != Encoding::Zstd {
        room(out, frame)?.resize(frame.raw as usize, 0);
        return read_at(file, frame, out);
    }
    STORED.with_borrow_mut(|stored| {
        if stored.len() < frame.stored as usize {
            stored.resize(frame.stored as usize, 0);
        }
        let stored = &mut stored[..frame.stored as usize];
        read_at(file, frame, stored)?;
        decode_frame(stored, frame, out)
    })
}

/// Shows `len` bytes from `start` of a frame that is stored as it is.
///
/// # Errors
/// `Corrupt` when the bytes are not there.
pub fn read_part<T>(
    file: &File,
    frame: &Frame,
    start: usize,
    len: usize,
    show: &mut dyn FnMut(&[u8]) -> T,
) -> Result<T> {
    if start + len > frame.stored as usize {
        return Err(Error::corrupt("it lies outside of its frame"));
    }
    let mut part = STORED.take();
    if part.len() < len {
        part.resize(len, 0);
    }
    let offset = u64::from(frame.offset) + start as u64;
    let read = read_exact(file, offset, &mut part[..len]).map(|()| show(&part[..len]));
    STORED.set(part);
    read
}

/// Reads the stored bytes of one frame.
pub fn read_stored(file: &File, frame: &Frame) -> Result<Vec<u8>> {
    let mut stored = vec![0; frame.stored as usize];
    read_at(file, frame, &mut stored)?;
    Ok(stored)
}

/// Decodes the stored bytes of one frame into `out`, replacing what was there.
pub fn decode_frame(stored: &[u8], frame: &Frame, out: &mut Vec<u8>) -> Result<()> {
    let wrong = || Error::corrupt("a frame does not decode");
    if frame.encoding != Encoding::Zstd {
        out.clear();
        out.extend_from_slice(stored);
        return if stored.len() == frame.raw as usize { Ok(()) } else { Err(wrong()) };
    }
    if u64::from(frame.raw) > stored.len() as u64 * MAX_RATIO {
        return Err(wrong());
    }
    room(out, frame)?;
    // The buffer's capacity bounds what is decoded, whatever the bytes say.
    match DECODER.with_borrow_mut(|decoder| decoder.decompress_to_buffer(stored, out)) {
        Ok(n) if n == frame.raw as usize => Ok(()),
        _ => Err(wrong()),
    }
}

/// What one zstd frame becomes, which must say how much that is: at most `most` bytes.
pub(crate) fn decompress(packed: &[u8], most: usize) -> Option<Vec<u8>> {
    let size = zstd::bulk::Decompressor::upper_bound(packed)?;
    let true_size = size <= most && size as u64 <= packed.len() as u64 * MAX_RATIO;
    true_size.then(|| zstd::bulk::decompress(packed, size).ok())?
}

fn room<'a>(out: &'a mut Vec<u8>, frame: &Frame) -> Result<&'a mut Vec<u8>> {
    out.clear();
    out.try_reserve_exact(frame.raw as usize)
        .map_err(|_| Error::corrupt("a frame is too large for the memory"))?;
    Ok(out)
}

fn read_at(file: &File, frame: &Frame, out: &mut [u8]) -> Result<()> {
    read_exact(file, u64::from(frame.offset), out)
}

fn read_exact(file: &File, offset: u64, out: &mut [u8]) -> Result<()> {
    file.read_exact_at(out, offset).map_err(|e| match e.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::corrupt("it is cut off"),
        _ => Error::new(Kind::Corrupt, format!("a frame cannot be read ({})", e.kind())),
    })
}

thread_local! {
    /// Each thread's buffer for stored bytes: zeroed once, not for each frame.
    static STORED: std::cell::RefCell<Vec<u8>> = const { std::cell::RefCell::new(Vec::new()) };
    static DECODER: std::cell::RefCell<zstd::bulk::Decompressor<'static>> =
        std::cell::RefCell::new(zstd::bulk::Decompressor::default());
}
