//! Comparing data with data: both sorted by key, what has expired left out.

use crate::copy::expired;
use crate::rdb::{Entry, Item, Rdb};
use crate::sorted::Sorted;
use crate::window::Window;
use snapback_sdk::{Object, Reader, Result};
use std::cmp::Ordering;

/// How a key differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Added,
    Modified,
    Deleted,
}

/// Entries, one after the other.
pub trait Entries {
    /// Goes to the next one; whether there is one.
    ///
    /// # Errors
    /// When it cannot be read.
    fn next(&mut self) -> Result<bool>;

    /// The one that it went to.
    fn entry(&self) -> Entry<'_>;
}

/// Those of a part.
pub struct Stored {
    rdb: Option<Rdb<Reader>>,
    is_over: bool,
}

/// Those that are there.
pub struct Present<'a> {
    entries: Option<&'a Sorted>,
    next: usize,
}

impl Stored {
    /// Of `part`; without one, none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(part: Option<&Object>) -> Result<Self> {
        let rdb = part.map(|part| Rdb::new(Window::new(Reader::new(part)?))).transpose()?;
        Ok(Self { is_over: rdb.is_none(), rdb })
    }

    /// The version of the format that its values are in.
    pub fn version(&self) -> u16 {
        self.rdb.as_ref().map_or(0, |rdb| rdb.version)
    }

    /// Bytes that the last one takes in a server's memory: rather more than it does.
    pub fn room(&self) -> u64 {
        self.rdb.as_ref().map_or(0, |rdb| rdb.room)
    }
}

impl Entries for Stored {
    fn next(&mut self) -> Result<bool> {
        let Some(rdb) = self.rdb.as_mut().filter(|_| !self.is_over) else { return Ok(false) };
        while let Some(item) = rdb.next()? {
            if item == Item::Entry {
                return Ok(true);
            }
        }
        self.is_over = true;
        Ok(false)
    }

    fn entry(&self) -> Entry<'_> {
        self.rdb.as_ref().map(Rdb::entry).unwrap_or_default()
    }
}

impl<'a> Present<'a> {
    /// Those of `entries`; without any, none.
    pub fn of(entries: Option<&'a Sorted>) -> Self {
        Self { entries, next: 0 }
    }
}

impl Entries for Present<'_> {
    fn next(&mut self) -> Result<bool> {
        self.next += 1;
        Ok(self.entries.is_some_and(|entries| self.next <= entries.len()))
    }

    fn entry(&self) -> Entry<'_> {
        self.entries.map(|entries| entries.entry(self.next - 1)).unwrap_or_default()
    }
}

/// The sources of the functions in a part.
///
/// # Errors
/// When it cannot be read.
pub fn functions(part: Option<&Object>) -> Result<Vec<Vec<u8>>> {
    let mut sources = Vec::new();
    if let Some(mut rdb) = Stored::of(part)?.rdb {
        while let Some(item) = rdb.next()? {
            if let Item::Function(source) = item {
                sources.push(source);
            }
        }
    }
    Ok(sources)
}

/// Calls `found` for each key that differs, from `before` to `after`, in order. What has
/// expired at `now` is not there.
///
/// # Errors
/// When one of the two fails.
pub fn differences(
    before: &mut dyn Entries,
    after: &mut dyn Entries,
    now: u64,
    found: &mut dyn FnMut(How, &[u8]),
) -> Result<()> {
    fn alive(entries: &mut dyn Entries, now: u64) -> Result<bool> {
        while entries.next()? {
            if !expired(&entries.entry(), now) {
                return Ok(true);
            }
        }
        Ok(false)
    }
    let (mut old, mut new) = (alive(before, now)?, alive(after, now)?);
    loop {
        let order = match (old, new) {
            (false, false) => return Ok(()),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            (true, true) => before.entry().key.cmp(after.entry().key),
        };
        match order {
            Ordering::Less => found(How::Deleted, before.entry().key),
            Ordering::Greater => found(How::Added, after.entry().key),
            Ordering::Equal if before.entry() != after.entry() => found(How::Modified, after.entry().key),
            Ordering::Equal => {}
        }
        if order.is_le() {
            old = alive(before, now)?;
        }
        if order.is_ge() {
            new = alive(after, now)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Row = (&'static str, &'static str, Option<u64>);

    fn told(before: &[Row], after: &[Row]) -> Vec<(How, String)> {
        let sorted = |rows: &[Row]| {
            let mut sorted = Sorted::default();
            for (key, value, expires) in rows {
                let (key, value) = (key.as_bytes(), value.as_bytes());
                sorted.push(&Entry { key, expires: *expires, kind: 0, value });
            }
            sorted.sort();
            sorted
        };
        let (before, after) = (sorted(before), sorted(after));
        let mut all = Vec::new();
        let mut found = |how, key: &[u8]| all.push((how, String::from_utf8_lossy(key).into_owned()));
        let [mut before, mut after] = [&before, &after].map(|entries| Present::of(Some(entries)));
        differences(&mut before, &mut after, 100, &mut found).unwrap();
        all
    }

    #[test]
    fn each_key_that_differs_is_told() {
        let before = [("a", "1", None), ("b", "1", None), ("d", "1", Some(200))];
        let after = [("b", "2", None), ("c", "1", None), ("d", "1", Some(300))];
        let expected = [(How::Deleted, "a"), (How::Modified, "b"), (How::Added, "c"), (How::Modified, "d")];
        assert_eq!(told(&before, &after), expected.map(|(how, key)| (how, key.to_owned())));
        assert_eq!(told(&before, &before), []);
    }

    #[test]
    fn what_has_expired_is_not_there() {
        assert_eq!(told(&[("a", "1", Some(100))], &[]), []);
        assert_eq!(told(&[], &[("a", "1", Some(99))]), []);
    }
}
