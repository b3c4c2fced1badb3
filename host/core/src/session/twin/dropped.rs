//! What was dropped on purpose does not come back from a twin that nobody told of it: that of
//! another home directory, whose snapback was not there.
//!
//! The store counts how often something was dropped, and each twin up to where it followed. A
//! twin that is behind may have what was forgotten: the store is right then, as long as it is
//! whole, and the twin follows with the next command that writes. Where the twins of others
//! are is written in the store, so that what is forgotten goes from there as well, as far as
//! this user may write there.

use super::super::Session;
use super::place_in;
use crate::disk::{Dir, Disk};
use crate::error::{Kind, Result};
use crate::store::Store;
use crate::text::Bytes;
use std::path::Path;

/// How often something was dropped.
const DROPS: &[u8] = b"drops";
/// The state directories that have a twin: a cache.
pub(in crate::session) const TWINS: &[u8] = b"twins";
/// A larger number was never counted to.
const MOST: u64 = 1 << 48;
/// Bytes of such a list, at most.
const MOST_BYTES: u64 = 64 << 10;

/// How often something was dropped from the store or twin `dir`, as far as it knows.
fn drops(dir: &Dir) -> u64 {
    dir.read(DROPS, 20).ok().and_then(|text| decode_drops(&text)).unwrap_or(0)
}

/// The number that such a file says.
pub(crate) fn decode_drops(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok().filter(|drops| *drops <= MOST)
}

/// The state directories that such a file lists; none of one that makes no sense.
pub(crate) fn decode_states(text: &[u8]) -> Vec<Bytes> {
    serde_json::from_slice(text).unwrap_or_default()
}

/// Lets the store `to` know what its twin `from` followed.
///
/// # Errors
/// When the disk refuses.
pub(super) fn take_over(disk: &Disk, from: &Dir, to: &Dir) -> Result<()> {
    let theirs = drops(from);
    if theirs <= drops(to) {
        Ok(())
    } else {
        disk.write_sealed(to, DROPS, theirs.to_string().as_bytes(), 0o600)
    }
}

/// Whether the store at `path`, which is whole, was dropped from without `twin`.
pub(super) fn is_behind(twin: &Path, path: &Path) -> bool {
    let is_whole = || ["packs", "snapshots"].iter().all(|sub| path.join(sub).is_dir());
    let (Ok(theirs), Ok(ours)) = (Dir::open(twin), Dir::open(path)) else { return false };
    drops(&theirs) < drops(&ours) && Store::is_finished(path) && is_whole()
}

impl Session {
    /// Counts one more, before anything is dropped.
    ///
    /// # Errors
    /// When the disk refuses; nothing that frees space fails because there is none.
    pub(in crate::session) fn count_drop(&self) -> Result<()> {
        let twins = self.twins();
        let most = twins.iter().chain([&self.dir]).map(drops).max().unwrap_or(0);
        let text = (most + 1).min(MOST).to_string();
        match self.env().disk.write_sealed(&self.dir, DROPS, text.as_bytes(), 0o600) {
            Err(error) if error.kind() == Kind::NoSpace => Ok(()),
            done => done,
        }
    }

    /// Whether `twin` has not followed yet.
    pub(super) fn is_ahead_of(&self, twin: &Dir) -> bool {
        drops(twin) < drops(&self.dir)
    }

    /// Notes that `twin`, which is `own` when it is in this user's state directory, has
    /// followed: it has nothing that was dropped.
    pub(super) fn followed(&self, twin: &Dir, own: bool) -> Result<()> {
        let (disk, ours) = (&self.env().disk, drops(&self.dir));
        if drops(twin) != ours {
            disk.write_sealed(twin, DROPS, ours.to_string().as_bytes(), 0o600)?;
        }
        let state = Bytes::from(&*self.env().state);
        let mut known = self.states();
        if !own || known.contains(&state) {
            return Ok(());
        }
        known.push(state);
        let text = serde_json::to_vec(&known).expect("paths can be written as JSON");
        disk.write_cache(&self.dir, TWINS, &text, 0o600)
    }

    /// The state directories that are known to have a twin.
    fn states(&self) -> Vec<Bytes> {
        decode_states(&self.dir.read(TWINS, MOST_BYTES).unwrap_or_default())
    }

    /// All twins of the store that are this user's, besides what this session works on.
    pub(in crate::session) fn twins(&self) -> Vec<Dir> {
        let own = Bytes::from(&*self.env().state);
        let others = self.states().into_iter().filter(|state| *state != own);
        let others: Vec<Dir> = others.filter_map(|state| self.twin_in(state.path())).collect();
        self.twin_dir().into_iter().chain(others).collect()
    }

    /// The twin in the state directory `state`: what says so, belongs to this user, and has
    /// the identity of this store.
    fn twin_in(&self, state: &Path) -> Option<Dir> {
        let id = self.opened().id().ok()?;
        let twin = Dir::open(&place_in(state, &id)?).ok()?;
        let is_own = twin.stat_self().is_ok_and(|stat| stat.st_uid == rustix::process::geteuid().as_raw());
        let is_its = twin.read(b"id", 64).is_ok_and(|text| text.trim_ascii_end() == id.as_bytes());
        (state.is_absolute() && is_own && is_its && !self.is_twin(&twin)).then_some(twin)
    }
}
