//! One thread's way into a writer: hashing, dropping what is stored, encoding frames.
//!
//! What a lane gathered outlives it (the next lane goes on with it), so lanes can
//! come and go without making small frames.

use super::BLOCK;
use super::content::zeros;
use super::pack::{Encoding, MAX_OBJECT};
use super::write::Writer;
use crate::error::{Error, Kind, Result};
use crate::object::{Key, ObjectKind};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A frame is ended when it holds this many bytes: large enough to compress well
/// and to write in long runs, small enough to decode for one small object.
pub const FRAME: usize = 256 * 1024;
/// How much is compressed: fast, since it stands in the user's way.
const LEVEL: i32 = 1;
/// A frame of few objects is tried before it is compressed: so many bytes of it. Most of
/// what does not become smaller is found by that for a small part of the time.
const SAMPLE: usize = 16 * 1024;
const FEW: usize = 8;

/// One thread's way into a `Writer`.
pub struct Lane<'a> {
    writer: &'a Writer,
    gather: Option<Gather>,
}

/// Objects that share frames: who reads directories and lists does not decode content
/// with them, and each class is compressed as it is worth it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    /// Blobs: small files, parts of files and streams.
    Content,
    /// Blocks of large files. What compressing takes is more than all else together
    /// takes, so it must save two thirds.
    Large,
    /// Everything else.
    Other,
}

impl Class {
    fn of(kind: ObjectKind) -> Self {
        if kind == ObjectKind::Blob { Self::Content } else { Self::Other }
    }

    /// Whether `raw` bytes that became `stored` are stored so.
    fn accepts(self, raw: usize, stored: usize) -> bool {
        match self {
            Self::Large => stored < raw / 3,
            Self::Content | Self::Other => stored + stored / 32 < raw,
        }
    }
}

/// What one lane gathers.
pub(super) struct Gather {
    /// A frame for each class.
    buffers: [Buffer; 3],
    encoded: Vec<u8>,
    encoder: zstd::bulk::Compressor<'static>,
}

/// A frame that is being gathered.
#[derive(Default)]
struct Buffer {
    /// `used` bytes of objects; the rest is room that was zeroed once.
    raw: Vec<u8>,
    used: usize,
    objects: Vec<(Key, u32)>,
}

impl Default for Gather {
    fn default() -> Self {
        let encoder = zstd::bulk::Compressor::new(LEVEL).unwrap_or_default();
        Self { buffers: Default::default(), encoded: Vec::new(), encoder }
    }
}

impl Buffer {
    fn room(&mut self, len: usize) -> &mut [u8] {
        if self.raw.len() < self.used + len {
            self.raw.resize((self.used + len).max(FRAME + BLOCK), 0);
        }
        &mut self.raw[self.used..self.used + len]
    }

    /// Empties it; what one large object needed is given back.
    fn clear(&mut self) {
        self.used = 0;
        if self.raw.len() > FRAME + BLOCK {
            self.raw = Vec::new();
        }
    }
}

impl Gather {
    fn buffer(&mut self, class: Class) -> &mut Buffer {
        &mut self.buffers[class as usize]
    }

    /// Keeps the next `len` bytes of the room as the object `key`.
    fn keep(&mut self, class: Class, key: Key, len: usize, writer: &Writer) -> Result<()> {
        let buffer = self.buffer(class);
        buffer.used += len;
        buffer.objects.push((key, len as u32));
        if buffer.used >= FRAME { self.cut(class, writer) } else { Ok(()) }
    }

    /// Hands all that was gathered to the writer.
    pub(super) fn cut_all(&mut self, writer: &Writer) -> Result<()> {
        [Class::Content, Class::Large, Class::Other].into_iter().try_for_each(|class| self.cut(class, writer))
    }

    /// Ends the frame of `class` and hands it to the writer.
    fn cut(&mut self, class: Class, writer: &Writer) -> Result<()> {
        let buffer = &mut self.buffers[class as usize];
        if buffer.objects.is_empty() {
            return Ok(());
        }
        let raw = &buffer.raw[..buffer.used];
        let objects = std::mem::take(&mut buffer.objects);
        if writer.send(&objects, raw).map_err(|e| writer.fail(e))? {
            buffer.clear();
            return Ok(());
        }
        let encoder = &mut self.encoder;
        let encoded = &mut self.encoded;
        let mut compress = |bytes: &[u8]| {
            encoded.clear();
            encoded.reserve(zstd::zstd_safe::compress_bound(bytes.len()));
            let done = encoder.compress_to_buffer(bytes, encoded);
            done.is_ok_and(|stored| class.accepts(bytes.len(), stored))
        };
        let sample = raw.len() > 4 * SAMPLE && objects.len() <= FEW;
        let middle = raw.len() / 2;
        // What is gone soon is not worth compressing.
        let tried = !writer.is_scratch() && (!sample || compress(&raw[middle..middle + SAMPLE]));
        let done = if tried && compress(raw) {
            writer.append(Encoding::Zstd, &self.encoded, raw.len(), objects)
        } else {
            writer.append(Encoding::Raw, raw, raw.len(), objects)
        };
        buffer.clear();
        if self.encoded.capacity() > 4 * FRAME {
            self.encoded = Vec::new();
        }
        done.map_err(|e| writer.fail(e))
    }
}

impl<'a> Lane<'a> {
    pub(super) fn new(writer: &'a Writer, gather: Gather) -> Self {
        Self { writer, gather: Some(gather) }
    }

    pub(super) fn writer(&self) -> &'a Writer {
        self.writer
    }

    fn gather(&mut self) -> &mut Gather {
        self.gather.get_or_insert_default()
    }

    /// Stores `bytes` unless they are stored; returns their key.
    pub fn put(&mut self, kind: ObjectKind, bytes: &[u8]) -> Result<Key> {
        let key = Key::of(kind, bytes);
        self.put_named(key, bytes)?;
        Ok(key)
    }

    /// Stores `bytes`, whose key is known to be `key`, unless they are stored.
    pub(super) fn put_named(&mut self, key: Key, bytes: &[u8]) -> Result<()> {
        if bytes.len() > MAX_OBJECT {
            let size = crate::disk::size_text(bytes.len() as u64);
            return Err(Error::new(Kind::Invalid, format!("an object of {size} is too large to be stored")));
        }
        self.put_in(Class::of(key.kind()), key, bytes)
    }

    /// Stores a block of content; returns its key.
    pub(super) fn put_block(&mut self, class: Class, bytes: &[u8]) -> Result<Key> {
        if bytes.len() == BLOCK && zeros::is_zero(bytes) {
            return zeros::put(self, 0);
        }
        let key = Key::of(ObjectKind::Blob, bytes);
        self.put_in(class, key, bytes)?;
        Ok(key)
    }

    fn put_in(&mut self, class: Class, key: Key, bytes: &[u8]) -> Result<()> {
        if self.writer.claim(&key)? { self.gather_bytes(class, key, bytes) } else { Ok(()) }
    }

    /// Stores `bytes`, whose key is `key`, although the store has them.
    pub(super) fn put_again(&mut self, key: Key, bytes: &[u8]) -> Result<()> {
        let class = Class::of(key.kind());
        if self.writer.claim_again(&key) { self.gather_bytes(class, key, bytes) } else { Ok(()) }
    }

    fn gather_bytes(&mut self, class: Class, key: Key, bytes: &[u8]) -> Result<()> {
        let writer = self.writer;
        let gather = self.gather();
        gather.buffer(class).room(bytes.len()).copy_from_slice(bytes);
        gather.keep(class, key, bytes.len(), writer)
    }

    /// Stores up to `len` bytes of `file` from `offset` (at most a block) as one blob;
    /// returns its key and how many there were. They are read to where they are
    /// encoded from, without a copy between.
    pub(super) fn put_from(
        &mut self,
        class: Class,
        file: &File,
        offset: u64,
        len: usize,
    ) -> Result<(Key, usize)> {
        let writer = self.writer;
        let room = self.gather().buffer(class).room(len);
        let (key, n) = read_named(file, offset, room)?;
        if key == zeros::key(0) {
            return Ok((zeros::put(self, 0)?, n));
        }
        if writer.claim(&key)? {
            self.gather().keep(class, key, n, writer)?;
        }
        Ok((key, n))
    }

    /// What [`Self::put_from`] would return, without storing anything.
    pub(super) fn name_from(&mut self, file: &File, offset: u64, len: usize) -> Result<(Key, usize)> {
        read_named(file, offset, self.gather().buffer(Class::Large).room(len))
    }

    /// Whether `key` is stored, or was put into this lane's writer.
    pub fn contains(&self, key: &Key) -> Result<bool> {
        self.writer.contains(key)
    }

    /// Ends the lane with what it gathered where everybody can read it: another lane may
    /// go on with what a lane that was only dropped had gathered, and keep it for a while.
    pub fn publish(mut self) -> Result<()> {
        let writer = self.writer;
        self.gather().cut_all(writer)?;
        writer.check()
    }

    /// Hands what is gathered to the writer, and says whether the writer is still
    /// good. A lane that is dropped hands it over as well.
    pub fn flush(self) -> Result<()> {
        self.writer.check()
    }
}

impl Drop for Lane<'_> {
    fn drop(&mut self) {
        self.writer.lane_ended(self.gather.take().unwrap_or_default());
    }
}

/// Reads from `offset` until `room` is full or the file ends; returns the key of what was
/// read, and how much it was.
fn read_named(file: &File, offset: u64, room: &mut [u8]) -> Result<(Key, usize)> {
    let n = read_up_to(file, offset, room)?;
    let is_zero = n == BLOCK && zeros::is_zero(room);
    Ok((if is_zero { zeros::key(0) } else { Key::of(ObjectKind::Blob, &room[..n]) }, n))
}

/// Reads from `offset` until `room` is full or the file ends; returns how much was read.
fn read_up_to(file: &File, offset: u64, room: &mut [u8]) -> Result<usize> {
    let mut n = 0;
    while n < room.len() {
        match file.read_at(&mut room[n..], offset + n as u64) {
            Ok(0) => break,
            Ok(more) => n += more,
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(Error::io(e, "could not read", path_of(file))),
        }
    }
    Ok(n)
}

/// The path of an open file, for messages.
fn path_of(file: &File) -> std::path::PathBuf {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or_else(|_| "a file".into())
}
