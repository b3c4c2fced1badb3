//! The key that content would have with another first block: two contents that differ
//! only there can be told to be the same otherwise, without storing either again.

use super::list::{List, expect, top_level};
use crate::error::Result;
use crate::object::{Key, ObjectKind};
use crate::store::Source;

/// The key of the content `key` of `size` bytes after `change` of its first block. Reads
/// that block and one list of each level; nothing is stored.
///
/// # Errors
/// `NotFound` and `Corrupt` when one of them is not whole.
pub fn with_first_block(
    source: &(impl Source + ?Sized),
    key: &Key,
    size: u64,
    change: &mut dyn FnMut(&mut [u8]),
) -> Result<Key> {
    let level = top_level(size);
    if level == 0 {
        let mut block = source.read(key)?;
        change(&mut block);
        return Ok(Key::of(ObjectKind::Blob, &block));
    }
    let mut list: List = expect(&source.read(key)?, level, size)?;
    let (_, length, child) = list.parts().next().expect("a list has a child");
    list.children[0] = *with_first_block(source, &child, length, change)?.hash();
    Ok(Key::of(ObjectKind::List, &list.encode()))
}
