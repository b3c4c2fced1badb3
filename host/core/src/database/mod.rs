//! Databases at rest: the object that is captured of what stands at the path of one.
//!
//! A database is one file, its pages in order as a checkpoint would leave them, and so
//! the same content as a plain copy of a file that nobody uses. What is there may also
//! be no database (overwritten, encrypted, a link): then the file and the ones that
//! belong to it are kept as they are. Nothing at all is no object.
//!
//! Core knows the form and how to store it, never how to open a database: that is the
//! runtime's. Identity (is it the same state?) is the image without the bytes in which
//! SQLite counts commits: every restore goes on counting.

mod barred;
mod files;
pub mod header;
mod left;
mod put;
pub(crate) mod seen;
mod setting;
mod sides;
mod state;

pub use barred::{Barred, Deed, barred};
pub use files::{capture_file, file_entry, may_be_database};
pub use header::Header;
pub use left::recover;
pub use put::{Stage, fill_file, settle};
pub use seen::Seen;
pub use setting::{of_setting, to_setting};
pub use sides::{SIDES, bases, is_side, is_stored_side, side};
pub use state::{state, state_like};

use crate::error::{Error, Kind, Result};
use crate::object::codec::{Put, Reader};
use crate::object::{Key, ObjectKind};
use crate::store::Source;
use crate::tree::node::{Entry, Node, is_name, put_entry, take_entry};

/// Bytes of the longest path that SQLite opens: 512 of its own, less what it adds to that
/// of a database for a file beside it.
pub const LONGEST: usize = 504;

/// The first byte of the stored form.
const VERSION: u8 = 1;
const IMAGE: u8 = 1;
const FILES: u8 = 2;

/// A captured database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Database {
    /// Its path in the project, `/` between names.
    pub path: Vec<u8>,
    /// What stood there.
    pub found: Found,
}

/// What stands at the path of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    /// A database.
    Image {
        /// Its file: name, mode, owner, attributes; the content is the image. Where it is one inode
        /// with others, and all its names are databases that were captured, `link` is made from these.
        file: Entry,
        /// The hash that the image's key would have without what counts commits.
        state: [u8; 32],
    },
    /// No database: files and links as they are, sorted by name.
    Files(Vec<Entry>),
}

impl Found {
    /// Whether `other` is the same state.
    pub fn same_state(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Image { file, state }, Self::Image { file: other, state: theirs }) => {
                state == theirs && Attributes::of(file) == Attributes::of(other)
            }
            (Self::Files(entries), Self::Files(others)) => entries == others,
            _ => false,
        }
    }

    /// All that it consists of.
    pub fn entries(&self) -> &[Entry] {
        match self {
            Self::Image { file, .. } => std::slice::from_ref(file),
            Self::Files(entries) => entries,
        }
    }
}

impl Database {
    /// Whether `other` is the same state.
    pub fn same_state(&self, other: &Self) -> bool {
        self.path == other.path && self.found.same_state(&other.found)
    }

    /// The file at its path, as far as there is one.
    pub fn file(&self) -> Option<&Entry> {
        let name = self.path.rsplit(|&b| b == b'/').next();
        self.found.entries().iter().find(|entry| Some(&entry.name[..]) == name)
    }

    /// Whether a file of this name belongs to it and holds content.
    fn is_own(&self, name: &[u8]) -> bool {
        let own = self.path.rsplit(|&b| b == b'/').next().unwrap_or_default();
        name.strip_prefix(own).is_some_and(|suffix| suffix.is_empty() || SIDES[..2].contains(&suffix))
    }

    /// Bytes of its content.
    pub fn bytes(&self) -> u64 {
        self.found.entries().iter().map(size).sum()
    }

    /// The stored form.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION];
        out.put_bytes(&self.path);
        match &self.found {
            Found::Image { state, .. } => {
                out.put_u8(IMAGE);
                out.extend_from_slice(state);
            }
            Found::Files(entries) => {
                out.put_u8(FILES);
                out.put_uint(entries.len() as u64);
            }
        }
        self.found.entries().iter().for_each(|entry| put_entry(&mut out, entry));
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// `Corrupt` when the bytes are not that.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        let mut r = Reader::new(bytes, "a captured database");
        if r.u8()? != VERSION {
            return Err(r.damaged("an unknown version"));
        }
        let path = r.bytes()?.to_vec();
        if !path.split(|&b| b == b'/').all(is_name) {
            return Err(r.damaged("a path that leads out of the project"));
        }
        let found = match r.u8()? {
            IMAGE => {
                let state = r.take(32)?.try_into().expect("32 bytes were taken");
                Found::Image { file: entry(&mut r)?, state }
            }
            FILES => {
                let mut entries: Vec<Entry> = Vec::new();
                for _ in 0..r.uint()? {
                    let entry = entry(&mut r)?;
                    if entry.link.is_some() {
                        return Err(r.damaged("a link of what is no database"));
                    }
                    if entries.last().is_some_and(|last| last.name >= entry.name) {
                        return Err(r.damaged("names out of order"));
                    }
                    entries.push(entry);
                }
                Found::Files(entries)
            }
            _ => return Err(r.damaged("an unknown form")),
        };
        r.end()?;
        let database = Self { path, found };
        if let Found::Image { file, .. } = &database.found
            && !(matches!(file.node, Node::File { .. }) && database.file().is_some())
        {
            return Err(r.damaged("an image that is not the file at its path"));
        }
        if !database.found.entries().iter().all(|entry| database.is_own(&entry.name)) {
            return Err(r.damaged("a file that is not one of the database's"));
        }
        Ok(database)
    }

    /// Reads the object `key`.
    ///
    /// # Errors
    /// `Incompatible` when it is no captured database; `NotFound` and `Corrupt` when it
    /// cannot be read.
    pub fn load(source: &(impl Source + ?Sized), key: &Key) -> Result<Self> {
        if key.kind() != ObjectKind::Database {
            return Err(Error::new(Kind::Incompatible, "it is not a captured database"));
        }
        Self::decode(&source.read(key)?)
    }
}

/// What an entry is beside its content.
#[derive(PartialEq, Eq)]
struct Attributes<'a>(&'a [u8], u32, u32, u32, &'a [(Vec<u8>, Vec<u8>)]);

impl<'a> Attributes<'a> {
    fn of(entry: &'a Entry) -> Self {
        Self(&entry.name, entry.mode, entry.uid, entry.gid, &entry.xattrs)
    }
}

fn size(entry: &Entry) -> u64 {
    match entry.node {
        Node::File { size, .. } => size,
        _ => 0,
    }
}

fn entry(r: &mut Reader<'_>) -> Result<Entry> {
    let entry = take_entry(r)?;
    if !is_name(&entry.name) {
        return Err(r.damaged("a name that cannot stand in a directory"));
    }
    if !matches!(entry.node, Node::File { .. } | Node::Symlink(_)) {
        return Err(r.damaged("an entry that is no file of a database"));
    }
    Ok(entry)
}

#[cfg(test)]
mod tests;
