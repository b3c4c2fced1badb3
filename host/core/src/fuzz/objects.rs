//! Objects: each has one form, so what is taken is written as it was.

use crate::database::Database;
use crate::object::{Key, ObjectKind};
use crate::store::content::{List, children};
use crate::store::opaque::Opaque;
use crate::tree::archive::{Reader, Writer};
use crate::tree::node::{decode_times, decode_tree, encode_times, encode_tree, is_name};
use crate::tree::root::Root;
use crate::volume::Volume;

/// A directory.
pub fn tree(bytes: &[u8]) {
    let Ok(entries) = decode_tree(bytes) else { return };
    assert_eq!(encode_tree(&entries), bytes);
    assert!(entries.iter().all(|entry| is_name(&entry.name) && entry.mode <= 0o7777));
    assert!(entries.is_sorted_by(|a, b| a.name < b.name));
}

/// A directory's times.
pub fn times(bytes: &[u8]) {
    let Ok(times) = decode_times(bytes) else { return };
    assert_eq!(encode_times(&times), bytes);
    assert!(times.iter().all(|time| time.mtime.nsec < 1_000_000_000));
}

/// A list of blocks: its children stand for all of its length, one after the other.
pub fn list(bytes: &[u8]) {
    let Ok(list) = List::decode(bytes) else { return };
    assert_eq!(list.encode(), bytes);
    let mut end = 0;
    for (start, length, key) in list.parts() {
        assert!(start == end && length > 0 && key.kind() == list.child_kind());
        end += length;
    }
    assert_eq!(end, list.length);
    assert_eq!(children(bytes).unwrap().len(), list.children.len());
}

/// A captured directory, which is written anew in the newest of its forms.
pub fn root(bytes: &[u8]) {
    let Ok(root) = Root::decode(bytes) else { return };
    let again = root.encode();
    assert!(again == bytes || again[0] > bytes[0]);
    assert_eq!(Root::decode(&again).unwrap(), root);
    assert!(root.left_out.iter().all(|item| item.path.split(|&b| b == b'/').all(is_name)));
}

/// What a component stored.
pub fn opaque(bytes: &[u8]) {
    let Ok(opaque) = Opaque::decode(bytes) else { return };
    assert_eq!(opaque.encode(), bytes);
    assert_eq!(opaque.pieces.iter().map(|piece| piece.len).sum::<u64>(), opaque.size);
}

/// A captured database: what it consists of stands in one directory.
pub fn database(bytes: &[u8]) {
    let Ok(database) = Database::decode(bytes) else { return };
    assert_eq!(database.encode(), bytes);
    assert!(database.path.split(|&b| b == b'/').all(is_name));
    assert!(database.found.entries().iter().all(|entry| is_name(&entry.name)));
}

/// A captured volume.
pub fn volume(bytes: &[u8]) {
    let Ok(volume) = Volume::decode(bytes) else { return };
    assert_eq!(volume.encode(), bytes);
    assert_eq!(volume.root.kind(), ObjectKind::Root);
}

/// A key, as bytes and as text.
pub fn key(bytes: &[u8]) {
    if let Some(key) = Key::from_bytes(bytes) {
        assert_eq!(key.to_bytes(), bytes);
    }
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(key) = Key::parse(text) {
        assert_eq!(key.to_string(), text);
        assert!(ObjectKind::from_number(key.kind() as u8).is_some());
    }
}

/// An archive, once as it is and once with the checksums that its blocks would have as heads.
/// What a member says is said again when it is written.
pub fn archive(bytes: &[u8]) {
    const BLOCK: usize = 512;
    let mut summed = bytes.to_vec();
    for head in summed.chunks_exact_mut(BLOCK).filter(|head| head.iter().any(|&b| b != 0)) {
        head[148..156].fill(b' ');
        let sum: u64 = head.iter().map(|&b| u64::from(b)).sum();
        head[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    for bytes in [bytes, &summed] {
        let mut archive = Reader::new(bytes);
        while let Ok(Some(member)) = archive.next() {
            let mut written = Vec::new();
            Writer::new(&mut written).add(&member).expect("memory takes all");
            assert_eq!(Reader::new(&written[..]).next().expect("it is one"), Some(member));
        }
    }
}
