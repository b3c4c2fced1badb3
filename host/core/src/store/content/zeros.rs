//! Zeros: content that is known without reading it.

use super::list::{FAN_OUT, MAX_LEVEL, encode, span};
use crate::error::Result;
use crate::object::{Key, ObjectKind};
use crate::store::{BLOCK, Lane};
use std::sync::OnceLock;

static BLOCK_OF_ZEROS: [u8; BLOCK] = [0; BLOCK];

/// The key of a block of zeros (level 0), or of a full list of `level`, below the highest, over
/// nothing but zeros.
pub fn key(level: u8) -> Key {
    keys()[usize::from(level)]
}

/// Whether `key` is that of zeros of `level`, which may be any.
pub fn is(key: &Key, level: u8) -> bool {
    keys().get(usize::from(level)) == Some(key)
}

fn keys() -> &'static [Key] {
    static KEYS: OnceLock<Vec<Key>> = OnceLock::new();
    KEYS.get_or_init(|| {
        let mut keys = vec![Key::of(ObjectKind::Blob, &BLOCK_OF_ZEROS)];
        // The full list of the highest level would be longer than 64 bits can say.
        for level in 1..MAX_LEVEL {
            keys.push(Key::of(ObjectKind::List, &list(level, keys[usize::from(level) - 1].hash())));
        }
        keys
    })
}

fn list(level: u8, child: &[u8; 32]) -> Vec<u8> {
    encode(level, span(level + 1), &[*child; FAN_OUT])
}

/// Stores zeros of `level`, with all that they stand on.
pub fn put(lane: &mut Lane<'_>, level: u8) -> Result<Key> {
    let top = key(level);
    if lane.contains(&top)? {
        return Ok(top);
    }
    lane.put_named(key(0), &BLOCK_OF_ZEROS)?;
    for level in 1..=level {
        lane.put_named(key(level), &list(level, key(level - 1).hash()))?;
    }
    Ok(top)
}

/// Whether all of `bytes` are zero.
pub fn is_zero(bytes: &[u8]) -> bool {
    match bytes {
        [0, rest @ ..] => bytes[..rest.len()] == *rest,
        [] => true,
        _ => false,
    }
}
