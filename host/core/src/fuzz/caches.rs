//! Caches: nothing in them is trusted, and whatever stands in them is survived.

use super::file;
use crate::database::seen;
use crate::object::Key;
use crate::store::index::Index;
use crate::store::pack::MAX_OBJECT;
use crate::tree::capture::git::memo::Memo;
use crate::tree::node::{decode_tree, encode_tree};
use crate::tree::statcache::StatCache;
use sha2::{Digest, Sha256};

/// Bytes of a page of the index, and of what in it is not its checksum.
const PAGE: usize = 4096;
const BODY: usize = PAGE - 8;

/// The index: as it is, and as pages (the first byte says how many) and a tail, with
/// checksums that fit.
pub fn index(bytes: &[u8]) {
    if let Ok(index) = Index::read(file(bytes)) {
        look_up(&index);
    }
    let Some((&pages, mut rest)) = bytes.split_first() else { return };
    let (mut whole, pages) = (Vec::new(), usize::from(pages % 4));
    for _ in 0..pages {
        let (body, after) = rest.split_at(rest.len().min(BODY));
        let mut page = body.to_vec();
        page.resize(BODY, 0);
        page.extend_from_slice(&Sha256::digest(&page)[..8]);
        whole.extend(page);
        rest = after;
    }
    whole.extend_from_slice(rest);
    whole.extend_from_slice(&(pages as u64).to_le_bytes());
    whole.extend_from_slice(&Sha256::digest(rest)[..24]);
    whole.extend_from_slice(b"snapback index 1");
    if let Ok(index) = Index::read(file(&whole)) {
        look_up(&index);
    }
}

fn look_up(index: &Index) {
    let mut keys: Vec<Key> = Vec::new();
    let _ = index.each(|key, place| {
        let size = index.packs()[place.pack as usize].1;
        let frame = place.frame;
        assert!(u64::from(frame.offset) + u64::from(frame.stored) <= size, "{place:?} of {size}");
        assert!(frame.raw as usize <= 2 * MAX_OBJECT, "{place:?}");
        assert!(u64::from(place.start) + u64::from(place.len) <= u64::from(frame.raw), "{place:?}");
        keys.push(key);
        Ok(())
    });
    for key in keys {
        let _ = index.find(&key, |_| false);
    }
}

/// A stat cache: as it is, and with checksums that fit. What it says of an entry can
/// stand in a directory.
pub fn statcache(bytes: &[u8]) {
    let rows = rows(bytes);
    look_at(bytes.to_vec(), &rows);
    let mut bytes = bytes.to_vec();
    let Some(header) = bytes.get(20..StatCache::HEADER) else { return };
    let sum = crc32fast::hash(header).to_le_bytes();
    bytes[16..20].copy_from_slice(&sum);
    for [_, _, start, len] in &rows {
        let place = usize::try_from(*start).ok().zip(usize::try_from(start.saturating_add(*len)).ok());
        let record = place.and_then(|(start, end)| bytes.get_mut(start..end));
        if let Some((sum, rest)) = record.and_then(<[u8]>::split_first_chunk_mut::<4>) {
            *sum = crc32fast::hash(rest).to_le_bytes();
        }
    }
    look_at(bytes, &rows);
}

/// The table of a cache, as far as it lies in it: device, inode, where a record begins, how
/// long it is.
fn rows(bytes: &[u8]) -> Vec<[u64; 4]> {
    let words = |at: usize| -> Option<[u64; 4]> {
        let row = bytes.get(at..at.checked_add(32)?)?;
        let mut words = row.chunks(8).map(|word| u64::from_le_bytes(word.try_into().expect("eight bytes")));
        Some([words.next()?, words.next()?, words.next()?, words.next()?])
    };
    let Some([.., table, count]) = words(StatCache::HEADER - 32) else { return Vec::new() };
    let at = |row: u64| usize::try_from(table.checked_add(row * 32)?).ok();
    (0..count.min(64)).map_while(|row| words(at(row)?)).collect()
}

fn look_at(bytes: Vec<u8>, rows: &[[u64; 4]]) {
    let Some(cache) = StatCache::read(bytes) else { return };
    for [dev, ino, ..] in rows {
        let Some(record) = cache.dir(*dev, *ino) else { continue };
        for cached in (0..record.len().min(64)).map_while(|at| record.at(at)) {
            let _ = (cached.link(), cached.content(), cached.directory(), cached.xattrs());
            let _ = record.entry(cached.name());
            if let Some((entry, time)) = cached.to_entry() {
                let form = encode_tree(std::slice::from_ref(&entry));
                assert_eq!(decode_tree(&form).unwrap(), [entry]);
                assert!(time.mtime.nsec < 1_000_000_000);
            }
        }
    }
}

/// What a database was seen like: as it is, and with a checksum that fits.
pub fn seen(bytes: &[u8]) {
    let mut whole = bytes.to_vec();
    if let Some((sum, rest)) = whole.get_mut(16..).and_then(<[u8]>::split_first_chunk_mut::<4>) {
        *sum = crc32fast::hash(rest).to_le_bytes();
    }
    for bytes in [bytes, &whole] {
        let Some((identities, key)) = seen::decode(bytes) else { continue };
        assert_eq!(seen::encode(identities, &key), bytes);
    }
}

/// The memo of git's record: as it is, and with a checksum that fits.
pub fn memo(bytes: &[u8]) {
    let mut whole = bytes.to_vec();
    if let Some((rest, sum)) = whole.split_last_chunk_mut::<4>() {
        *sum = crc32fast::hash(rest).to_le_bytes();
    }
    for bytes in [bytes, &whole] {
        let Some(memo) = Memo::decode(bytes) else { continue };
        assert_eq!(Memo::decode(&memo.encode()), Some(memo));
    }
}
