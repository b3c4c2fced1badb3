//! Where two contents differ, without reading what they share: equal parts have equal
//! lists.

use super::list::{List, expect, top_level};
use crate::error::Result;
use crate::object::Key;
use crate::store::Source;

/// What is told of each range that differs: where it begins, how many bytes.
pub type EachRange<'a> = &'a mut dyn FnMut(u64, u64) -> Result<()>;

/// A part of content: its key, its length, the level of its list.
type Part = (Key, u64, u8);

/// Calls `each` for the blocks of `new` that are not at the same place in `old`, in
/// order. Reads lists only, and only those that differ.
///
/// # Errors
/// `NotFound` and `Corrupt` when a list is not whole; what `each` returns.
pub fn differing(
    source: &(impl Source + ?Sized),
    old: (&Key, u64),
    new: (&Key, u64),
    each: EachRange<'_>,
) -> Result<()> {
    let part = |(key, size): (&Key, u64)| (*key, size, top_level(size));
    let (old, new) = (part(old), part(new));
    walk(source, old.2.max(new.2), Some(old), new, 0, each)
}

fn walk(
    source: &(impl Source + ?Sized),
    level: u8,
    old: Option<Part>,
    new: Part,
    start: u64,
    each: EachRange<'_>,
) -> Result<()> {
    let Some(old) = old.filter(|old| (old.0, old.1) != (new.0, new.1)) else {
        return if old.is_some() || new.1 == 0 { Ok(()) } else { each(start, new.1) };
    };
    if level == 0 {
        return if new.1 == 0 { Ok(()) } else { each(start, new.1) };
    }
    let old = beneath(source, level, old)?;
    for (i, (at, part)) in beneath(source, level, new)?.into_iter().enumerate() {
        walk(source, level - 1, old.get(i).map(|old| old.1), part, start + at, each)?;
    }
    Ok(())
}

/// The parts that stand under one of `level`: content that is shorter stands there itself.
fn beneath(source: &(impl Source + ?Sized), level: u8, part: Part) -> Result<Vec<(u64, Part)>> {
    if part.2 < level {
        return Ok(vec![(0, part)]);
    }
    let mut parts = Vec::new();
    source.view(&part.0, &mut |bytes| {
        let list: List = expect(bytes, level, part.1)?;
        parts = list.parts().map(|(at, length, key)| (at, (key, length, level - 1))).collect();
        Ok(())
    })?;
    Ok(parts)
}
