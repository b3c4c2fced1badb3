//! A copy of the data at one point in time, taken as a replica takes it: the server goes
//! on answering and writing meanwhile.
//!
//! Keys are sorted and what has no order is put in one, so that equal data has equal
//! bytes, however it came about. What has expired by the server's own clock is no data.
//! When a key was last used, which some servers write into their copies, is left out.

use crate::rdb::{DATABASE, END, Entry, Item, Rdb, broken, plain};
use crate::replica::{self, Begun, End};
use crate::scope::Scope;
use crate::sorted::Sorted;
use crate::text::{length, string};
use crate::wire::Wire;
use snapback_sdk::{Error, ErrorKind, Object, Part, Result, Writer, report};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};

/// Bytes of keys and values that are sorted in memory, of which a component has 512 MiB.
const MAX_BYTES: usize = 320 << 20;
/// What an entry needs beside its bytes.
const OVERHEAD: usize = 64;
/// The part that holds the functions.
pub const FUNCTIONS: &str = "functions";
/// What marks a database that a restore fills.
pub const MARKER: &[u8] = b"snapback:staging";

/// The value of that key in `database`: in another one it marks nothing.
pub fn mark(database: u64) -> Vec<u8> {
    format!("database {database}").into_bytes()
}

/// The data.
#[derive(Default)]
pub struct Copy {
    /// The databases that have keys, sorted by key.
    pub databases: BTreeMap<u64, Sorted>,
    /// The sources of the libraries of functions, sorted.
    pub functions: Vec<Vec<u8>>,
    /// Bytes that its entries take in a server's memory: rather more than they do.
    pub room: u64,
    /// The version of the format that values are in.
    version: u16,
}

impl Copy {
    /// Takes it of `scope` through the connection `replica`, which from then on carries what is
    /// written after it; returns it with that connection and the position where that starts.
    /// `now`: the server's time in milliseconds; `major`: its version.
    ///
    /// # Errors
    /// When the server gives none, or it is more than can be sorted.
    pub fn take(
        wire: &mut Wire,
        mut replica: Wire,
        (scope, now, major): (Scope, u64, u32),
    ) -> Result<(Self, Wire, u64)> {
        let Begun { position, end } = replica::begin(wire, &mut replica, major)?;
        let size = match &end {
            End::After(size) => Some(*size),
            End::Mark(_) => None,
        };
        let _task = report::Task::new("copying from Redis", size, "bytes");
        let mut rdb = Rdb::new(replica.stream)?;
        let copy = Self::read(&mut rdb, scope, now)?;
        let length = rdb.length;
        let mut stream = rdb.into_window();
        let is_whole = match end {
            End::After(size) => length == size,
            End::Mark(mark) => {
                let mut found = vec![0; mark.len()];
                stream.read_exact(&mut found).map_err(crate::wire::lost)?;
                found == mark
            }
        };
        match is_whole {
            true => Ok((copy, Wire { stream }, position)),
            false => Err(broken("something follows its end")),
        }
    }

    fn read(rdb: &mut Rdb<impl Read>, scope: Scope, now: u64) -> Result<Self> {
        let mut copy = Self { version: rdb.version, ..Self::default() };
        let (mut database, mut bytes, mut modules) = (0, 0, false);
        let mut staging = BTreeSet::new();
        while let Some(item) = rdb.next()? {
            match item {
                Item::Database(number) => database = number,
                Item::Function(source) if scope == Scope::All => copy.functions.push(source),
                Item::ModuleData => modules = true,
                Item::Entry if scope.has(database) => {
                    let entry = rdb.entry();
                    if expired(&entry, now) {
                        continue;
                    }
                    bytes += entry.key.len() + entry.value.len() + OVERHEAD;
                    copy.room = copy.room.saturating_add(rdb.room);
                    if bytes > MAX_BYTES {
                        return Err(Error::new(
                            ErrorKind::TooLarge,
                            format!("Redis holds more than {} MiB", MAX_BYTES >> 20),
                        )
                        .with_hint("`database` can name one that matters and holds less; `--skip` goes on without it"));
                    }
                    if marks(&entry, database) {
                        staging.insert(database);
                    }
                    copy.databases.entry(database).or_default().push(&entry);
                }
                Item::Function(_) | Item::Entry => {}
            }
        }
        if modules {
            report::omitted(b"", "what modules keep outside of keys");
        }
        copy.functions.sort();
        copy.databases.retain(|number, _| !staging.contains(number));
        copy.databases.values_mut().for_each(Sorted::sort);
        Ok(copy)
    }

    /// Stores it: a part for each database that has keys, and one for the functions, each
    /// an RDB file.
    ///
    /// # Errors
    /// When it cannot be stored.
    pub fn store(&self) -> Result<Vec<Part>> {
        let mut parts = Vec::new();
        if !self.functions.is_empty() {
            let write = |out: &mut dyn FnMut(&[u8]) -> Result<()>| {
                self.functions.iter().try_for_each(|source| {
                    let mut piece = vec![crate::rdb::FUNCTION];
                    string(&mut piece, source);
                    out(&piece)
                })
            };
            parts.push(Part { name: FUNCTIONS.into(), content: self.file(write)? });
        }
        for (number, entries) in &self.databases {
            let write = |out: &mut dyn FnMut(&[u8]) -> Result<()>| {
                let mut piece = vec![DATABASE];
                length(&mut piece, *number);
                out(&piece)?;
                entries.stored().try_for_each(out)
            };
            parts.push(Part { name: part_of(*number), content: self.file(write)? });
        }
        Ok(parts)
    }

    fn file(&self, body: impl FnOnce(&mut dyn FnMut(&[u8]) -> Result<()>) -> Result<()>) -> Result<Object> {
        let mut writer = Writer::new()?;
        let mut pending = format!("REDIS{:04}", self.version).into_bytes();
        body(&mut |piece| {
            pending.extend_from_slice(piece);
            if pending.len() > 128 * 1024 {
                writer.write_all(&pending)?;
                pending.clear();
            }
            Ok(())
        })?;
        // Without a checksum: the store checks what it gives back.
        pending.push(END);
        pending.extend_from_slice(&[0; 8]);
        writer.write_all(&pending)?;
        writer.finish()
    }
}

/// The name of the part for a database.
pub fn part_of(database: u64) -> String {
    format!("database {database}")
}

/// The database that a part is for.
pub fn database_of(part: &str) -> Option<u64> {
    part.strip_prefix("database ")?.parse().ok()
}

/// Whether nobody sees it any more.
pub fn expired(entry: &Entry, now: u64) -> bool {
    entry.expires.is_some_and(|at| at <= now)
}

/// Whether it marks `database` as one that a restore fills.
fn marks(entry: &Entry, database: u64) -> bool {
    entry.key == MARKER && entry.kind == 0 && plain(entry.value).is_ok_and(|value| value == mark(database))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::EXPIRES_MS;
    use crate::window::Window;

    #[test]
    fn what_is_written_is_read() {
        let long = vec![7; 70_000];
        for (key, expires) in
            [(&b"k"[..], None), (&b""[..], Some(77)), (&[9; 100][..], None), (&long[..], Some(1))]
        {
            let entry = Entry { key, expires, kind: 0, value: b"\x01v" };
            let mut sorted = Sorted::default();
            sorted.push(&entry);
            sorted.sort();
            let stored: Vec<u8> = sorted.stored().flatten().copied().collect();
            let file = [&b"REDIS0010"[..], &stored, &[END], &[0; 8]].concat();
            let mut rdb = Rdb::new(Window::new(&file[..])).unwrap();
            assert_eq!(rdb.next().unwrap(), Some(Item::Entry));
            assert_eq!((rdb.entry(), sorted.entry(0)), (entry, entry));
            assert_eq!(rdb.next().unwrap(), None);
        }
    }

    #[test]
    fn of_a_copy_there_is_what_is_asked_for_and_has_not_expired() {
        let file = |body: &[u8]| [b"REDIS0010", body, &[END], &[0; 8]].concat();
        let body = [
            &[DATABASE, 0, 0, 1, b'b', 1, b'v', 0, 1, b'a', 1, b'v'][..],
            &[EXPIRES_MS, 50, 0, 0, 0, 0, 0, 0, 0, 0, 1, b'c', 1, b'v'],
            &[DATABASE, 1, 0, 1, b'd', 1, b'v'],
            &[DATABASE, 2, 0, 16],
            MARKER,
            b"\x0adatabase 2",
            // It names another one: it is somebody's key.
            &[DATABASE, 3, 0, 16],
            MARKER,
            b"\x0adatabase 2",
        ]
        .concat();
        let read = |scope, now| {
            let file = file(&body);
            let mut rdb = Rdb::new(Window::new(&file[..])).unwrap();
            let copy = Copy::read(&mut rdb, scope, now).unwrap();
            let keys = |entries: &Sorted| {
                (0..entries.len()).flat_map(|place| entries.entry(place).key.to_vec()).collect::<Vec<_>>()
            };
            copy.databases.iter().map(|(n, entries)| (*n, keys(entries))).collect::<Vec<_>>()
        };
        assert_eq!(read(Scope::All, 49), [(0, b"abc".to_vec()), (1, b"d".to_vec()), (3, MARKER.to_vec())]);
        assert_eq!(read(Scope::All, 50), [(0, b"ab".to_vec()), (1, b"d".to_vec()), (3, MARKER.to_vec())]);
        assert_eq!(read(Scope::One(1), 50), [(1, b"d".to_vec())]);
    }
}
