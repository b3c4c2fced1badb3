//! What a database and the files beside it looked like when they were captured, so
//! that one that nobody wrote to is not read again.
//!
//! Believed only if all that `stat` says of the database, its log and its journal (of the
//! log, without when its inode changed) is as it was, and was clearly past when the
//! capture began. It is a cache in the store
//! (`cache/`, a file for each target): it can be thrown away at any time.
//!
//! ```text
//! magic [16], checksum u32 of the rest, for each of the three files its stat [72] or
//! zeros, key [33]
//! ```

use super::{SIDES, is_side, side};
use crate::backend::Call;
use crate::disk::Dir;
use crate::error::Result;
use crate::object::Key;
use crate::store::Store;
use crate::tree::capture::clock::{Clock, cache_dir};
use crate::tree::scan::{Stat, stat_in};
use crate::tree::statcache::{cache_name, identity};

const MAGIC: &[u8; 16] = b"snapback seen 1\n";
/// Longer than any of them, in bytes.
const LONGEST: u64 = 4096;

/// A database and the files beside it at one moment.
#[derive(Clone)]
pub struct Seen {
    database: Option<Stat>,
    journal: Option<Stat>,
    log: Option<Stat>,
    settled: bool,
}

impl Seen {
    /// Looks at the database `name` in `dir`; `store` is asked for the time.
    ///
    /// # Errors
    /// When they cannot be looked at.
    pub fn look(store: &Store, dir: &Dir, name: &[u8]) -> Result<Self> {
        let device = dir.stat_self()?.st_dev;
        let clock = Clock::now(store, device);
        let database = stat_in(dir, name)?;
        let beside = |suffix| -> Result<Option<Stat>> {
            let Some(stat) = stat_in(dir, &side(name, suffix))? else { return Ok(None) };
            // Another name of the database is not opened: closing it lets go of locks.
            let is_it = database.as_ref().is_some_and(|database| database.id() == stat.id());
            Ok((!is_it && is_side(dir, name, suffix) == Some(true)).then_some(stat))
        };
        let journal = beside(SIDES[0])?;
        // A log without a byte says nothing: whoever looks at a database may make one.
        let log = beside(SIDES[1])?.filter(|log| log.size > 0);
        // SQLite gives a log its owner again whenever root opens it, also to read.
        let log = log.map(|log| Stat { ctime: log.mtime, ..log });
        let racy = [&database, &journal, &log].into_iter().flatten().any(|stat| clock.is_racy(stat));
        Ok(Self { database, journal, log, settled: !racy })
    }

    /// The database's file; none when it is not there.
    pub fn database(&self) -> Option<&Stat> {
        self.database.as_ref()
    }

    /// The rollback journal beside it.
    pub fn journal(&self) -> Option<&Stat> {
        self.journal.as_ref()
    }

    /// The write-ahead log beside it, when there is anything in it.
    pub fn log(&self) -> Option<&Stat> {
        self.log.as_ref()
    }

    /// Whether no change from now on could go unseen.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// Whether nothing was written between `self` and `later`.
    pub fn still(&self, later: &Self) -> bool {
        self.settled && self.identities() == later.identities()
    }

    /// What was captured when the target of `call` looked exactly like this.
    pub fn recall(&self, call: &Call, setting: &str) -> Option<Key> {
        let dir = cache_dir(call.store().ok()?).ok()?;
        let bytes = dir.read(&file_name(call, setting), LONGEST).ok()?;
        let (identities, key) = decode(&bytes)?;
        (identities == self.identities()).then_some(key)
    }

    /// Remembers that `key` is what was captured; not if a change since could go unseen.
    pub fn remember(&self, call: &Call, setting: &str, key: &Key) {
        if !self.settled {
            return;
        }
        let bytes = encode(&self.identities(), key);
        // A cache that cannot be written costs time the next time, nothing else.
        let _ = call.store().and_then(|store| {
            store.disk().write_cache(&cache_dir(store)?, &file_name(call, setting), &bytes, 0o600)
        });
    }

    fn identities(&self) -> Vec<u8> {
        let all = [&self.database, &self.journal, &self.log];
        all.iter().flat_map(|stat| stat.as_ref().map_or([0; 72], identity)).collect()
    }
}

/// The file that says that what looked like `identities` was captured as `key`.
pub(crate) fn encode(identities: &[u8], key: &Key) -> Vec<u8> {
    let rest = [identities, &key.to_bytes()].concat();
    let sum = crc32fast::hash(&rest).to_le_bytes();
    [&MAGIC[..], &sum, &rest].concat()
}

/// What such a file says; none when it is not whole.
pub(crate) fn decode(bytes: &[u8]) -> Option<(&[u8], Key)> {
    let (sum, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(4)?;
    let (identities, key) = rest.split_at_checked(rest.len().checked_sub(Key::LEN)?)?;
    let whole = crc32fast::hash(rest).to_le_bytes() == sum;
    Some((identities, Key::from_bytes(key).filter(|_| whole)?))
}

fn file_name(call: &Call, setting: &str) -> Vec<u8> {
    cache_name(&call.target.name, setting, "seen").into_bytes()
}
