//! Comparing data with data: both sorted by key, what has expired left out.

use crate::copy::expired;
use crate::rdb::{Entry, Item, Rdb};
use snapback_sdk::{Object, Reader, Result};
use std::io::BufReader;

/// How a key differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    Added,
    Modified,
    Deleted,
}

/// Entries of a part, one after the other.
pub struct Stored(Option<Rdb<BufReader<Reader>>>);

impl Stored {
    /// Of `part`; without one, none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn of(part: Option<&Object>) -> Result<Self> {
        let open = |part| Rdb::new(BufReader::with_capacity(256 * 1024, Reader::new(part)?));
        Ok(Self(part.map(open).transpose()?))
    }

    /// The version of the format that its values are in.
    pub fn version(&self) -> u16 {
        self.0.as_ref().map_or(0, |rdb| rdb.version)
    }

    /// Bytes that the last one takes in a server's memory: rather more than it does.
    pub fn room(&self) -> u64 {
        self.0.as_ref().map_or(0, |rdb| rdb.room)
    }

    /// The next one.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn next(&mut self) -> Result<Option<Entry>> {
        let Some(rdb) = &mut self.0 else { return Ok(None) };
        while let Some(item) = rdb.next()? {
            if let Item::Entry(entry) = item {
                return Ok(Some(entry));
            }
        }
        self.0 = None;
        Ok(None)
    }
}

/// The sources of the functions in a part.
///
/// # Errors
/// When it cannot be read.
pub fn functions(part: Option<&Object>) -> Result<Vec<Vec<u8>>> {
    let mut sources = Vec::new();
    if let Stored(Some(mut rdb)) = Stored::of(part)? {
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
    mut before: impl FnMut() -> Result<Option<Entry>>,
    mut after: impl FnMut() -> Result<Option<Entry>>,
    now: u64,
    found: &mut dyn FnMut(How, &[u8]),
) -> Result<()> {
    fn alive(next: &mut impl FnMut() -> Result<Option<Entry>>, now: u64) -> Result<Option<Entry>> {
        loop {
            match next()? {
                Some(entry) if expired(&entry, now) => {}
                entry => return Ok(entry),
            }
        }
    }
    let (mut old, mut new) = (alive(&mut before, now)?, alive(&mut after, now)?);
    loop {
        let order = match (&old, &new) {
            (None, None) => return Ok(()),
            (Some(_), None) => std::cmp::Ordering::Less,
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (Some(old), Some(new)) => old.key.cmp(&new.key),
        };
        match (&old, &new) {
            (Some(old), _) if order.is_lt() => found(How::Deleted, &old.key),
            (_, Some(new)) if order.is_gt() => found(How::Added, &new.key),
            (Some(old), Some(new)) if old != new => found(How::Modified, &new.key),
            _ => {}
        }
        if order.is_le() {
            old = alive(&mut before, now)?;
        }
        if order.is_ge() {
            new = alive(&mut after, now)?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(key: &str, value: &str, expires: Option<u64>) -> Entry {
        Entry { key: key.as_bytes().into(), expires, kind: 0, value: value.as_bytes().into() }
    }

    fn told(before: &[Entry], after: &[Entry]) -> Vec<(How, String)> {
        let (mut a, mut b) = (before.iter().cloned(), after.iter().cloned());
        let mut all = Vec::new();
        let mut found = |how, key: &[u8]| all.push((how, String::from_utf8_lossy(key).into_owned()));
        differences(|| Ok(a.next()), || Ok(b.next()), 100, &mut found).unwrap();
        all
    }

    #[test]
    fn each_key_that_differs_is_told() {
        let before = [entry("a", "1", None), entry("b", "1", None), entry("d", "1", Some(200))];
        let after = [entry("b", "2", None), entry("c", "1", None), entry("d", "1", Some(300))];
        let expected = [(How::Deleted, "a"), (How::Modified, "b"), (How::Added, "c"), (How::Modified, "d")];
        assert_eq!(told(&before, &after), expected.map(|(how, key)| (how, key.to_owned())));
        assert_eq!(told(&before, &before), []);
    }

    #[test]
    fn what_has_expired_is_not_there() {
        assert_eq!(told(&[entry("a", "1", Some(100))], &[]), []);
        assert_eq!(told(&[], &[entry("a", "1", Some(99))]), []);
    }
}
