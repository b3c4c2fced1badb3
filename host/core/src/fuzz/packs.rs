//! Packs: a table that is taken is written as it was, and nothing in it is larger than what
//! a reader must be ready for.

use super::file;
use crate::store::pack::{
    Encoding, Frame, FrameTable, HEAD, MAX_OBJECT, MAX_RATIO, PackName, Table, decode_frame, read_frame,
    read_stored,
};
use sha2::{Digest, Sha256};

/// Where the frames of a table end that lies in no file.
const END: u64 = 1 << 20;

/// A table.
pub fn table(bytes: &[u8]) {
    let Ok(table) = Table::decode(bytes, END) else { return };
    let (written, _) = Table::encode(&table.frames, END);
    assert_eq!(&written[..bytes.len()], bytes);
    assert!(table.frames.iter().all(|t| fits(t, END)));
}

fn fits(FrameTable { frame, objects }: &FrameTable, end: u64) -> bool {
    u64::from(frame.offset) + u64::from(frame.stored) <= end
        && frame.raw as usize <= 2 * MAX_OBJECT
        && objects.iter().map(|(_, len)| u64::from(*len)).sum::<u64>() == u64::from(frame.raw)
}

/// A pack: two bytes say how long its table is, which ends the bytes; the rest are its
/// frames. As it is, and with a trailer that fits.
pub fn pack(bytes: &[u8]) {
    let any = PackName([7; 16]);
    assert!(Table::read(&file(bytes), any).is_err(), "no pack has this name");
    let Some((length, rest)) = bytes.split_first_chunk::<2>() else { return };
    let at = rest.len().saturating_sub(usize::from(u16::from_le_bytes(*length)));
    let (frames, table) = rest.split_at(at);
    let offset = (HEAD.len() + frames.len()) as u64;
    let hash = Sha256::digest(table);
    let name = PackName(hash[..16].try_into().expect("a hash has 32 bytes"));
    let (trailer, _) = Table::encode(&[], offset);
    let magic = &trailer[trailer.len() - 16..];
    let places = [offset.to_le_bytes(), (table.len() as u64).to_le_bytes()].concat();
    let file = file(&[&HEAD[..], frames, table, &places, &hash, magic].concat());
    let read = Table::read(&file, name);
    assert_eq!(read.is_ok(), Table::decode(table, offset).is_ok());
    let mut out = Vec::new();
    for FrameTable { frame, .. } in read.iter().flat_map(|table| &table.frames) {
        assert!(read_stored(&file, frame).is_ok_and(|stored| stored.len() == frame.stored as usize));
        // Larger ones are true as well, and only slow.
        if frame.raw <= 1 << 20 && read_frame(&file, frame, &mut out).is_ok() {
            assert_eq!(out.len(), frame.raw as usize);
        }
    }
}

/// A frame: a byte of its encoding, four of the length that it should have, its bytes.
pub fn frame(bytes: &[u8]) {
    let Some((head, stored)) = bytes.split_first_chunk::<5>() else { return };
    let Some(encoding) = Encoding::from_number(head[0]) else { return };
    let raw = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
    // What can become large may: that much is what a reader must hold.
    if encoding == Encoding::Zstd && (1 << 20..=stored.len() as u64 * MAX_RATIO).contains(&raw.into()) {
        return;
    }
    let mut out = Vec::new();
    let frame = Frame { offset: 16, stored: stored.len() as u32, raw, encoding };
    if decode_frame(stored, &frame, &mut out).is_ok() {
        assert_eq!(out.len(), raw as usize);
    }
}
