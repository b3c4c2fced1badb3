//! Recording where git stands: `HEAD`, refs and reflogs of the repository that the
//! captured directory is a work tree of, or lies in one of, when that is not captured itself;
//! what it is in the middle of, and what is staged.
//!
//! What is recorded is only ever read. Names and attributes are looked at each time
//! (`tree::git::look`); content is read and stored (`store`) only when one of them is not as it was
//! the last time, which is remembered beside the stat cache (`memo`). The index is looked at apart:
//! git writes it often, and seldom with another content. The repository may
//! be a stranger's, and may lie anywhere: nothing but directories and regular files is
//! opened, none through a link, and there is a limit to everything; what is beyond it is
//! left out, and the record says that it is not whole.

pub(crate) mod memo;
mod store;

use super::{Capture, clock};
use crate::error::Result;
use crate::object::{Key, ObjectKind};
use crate::tree::git::locate_around;
use crate::tree::git::look::Found;
use crate::tree::root::{GitRecord, LeftOut};
use crate::tree::scan::Stat;
use crate::tree::statcache::identity;
use memo::Memo;

/// A record, and what is to be remembered of it.
pub(super) struct Recorded {
    pub record: GitRecord,
    /// What all of it looks like but the index; none when something in it may yet change
    /// without a trace.
    seen: Option<[u8; 32]>,
    /// What the index looks like; the same.
    index: Option<[u8; 32]>,
    /// The memo that it was taken from, when nothing had changed.
    memo: Option<Memo>,
}

impl Capture<'_> {
    /// Records where git stands, beside a tree that left out `left_out` (sorted by path).
    /// `previous` is a captured directory that is known to be stored.
    ///
    /// # Errors
    /// `Cancelled`, and what keeps the store from being written: what cannot be read is
    /// not in the record.
    pub(super) fn record_git(
        &self,
        left_out: &[LeftOut],
        previous: Option<&Key>,
    ) -> Result<Option<Recorded>> {
        let directory = self.walk.directory;
        let Some(located) = locate_around(directory.handle(), directory.path()) else { return Ok(None) };
        let left_out = |path: &[u8]| left_out.binary_search_by(|item| item.path.as_slice().cmp(path)).is_ok();
        if located.is_inside() && !left_out(b".git") && !left_out(b".git/HEAD") {
            return Ok(None);
        }
        let found = Found::look(&located);
        let index = Stat::of(located.own(), c"index").ok();
        let (seen, index_seen) = (found.digest(), look(index.as_ref()));
        let memo = Memo::load(self.writer.store().path(), &self.memo_name());
        let memo = memo.filter(|memo| memo.is_stored(previous));
        let same = memo.as_ref().is_some_and(|memo| memo.seen == Some(seen));
        let same_index = memo.as_ref().is_some_and(|memo| memo.index == Some(index_seen));
        let is_racy = |stat: &Stat| self.clock.is_racy(stat);
        let seen = Some(seen).filter(|_| !found.files.iter().any(|file| is_racy(&file.stat)));
        let index_seen = Some(index_seen).filter(|_| !index.as_ref().is_some_and(is_racy));
        let (record, memo) = match memo {
            Some(memo) if same && same_index => (memo.record, Some(memo)),
            memo => {
                let mut lane = self.writer.lane();
                let old = memo.map(|memo| memo.record);
                let staged = match old.filter(|_| same_index) {
                    Some(old) => self.staged_of(&old)?,
                    None => Some(self.store_staged(&located, index.is_some(), &mut lane)?),
                };
                let record = match old.filter(|_| same) {
                    Some(old) => self.restaged(&old, staged, &mut lane)?,
                    None => self.store_git(found, staged, &mut lane)?,
                };
                lane.publish()?;
                (record, None)
            }
        };
        Ok(Some(Recorded { record, seen, index: index_seen, memo }))
    }

    /// Remembers `recorded`, which is part of the capture that came to `root`.
    pub(super) fn remember_git(&self, recorded: &Recorded, root: &Key, previous: Option<&Key>) {
        let Recorded { record, seen, index, .. } = *recorded;
        if seen.is_none() && index.is_none() {
            return;
        }
        let base = previous.filter(|_| recorded.memo.is_some()).copied();
        let memo = Memo { seen, index, record, base, root: *root };
        if recorded.memo.as_ref() != Some(&memo) {
            let store = self.writer.store();
            // A cache that cannot be written costs time the next time, nothing else.
            let _ = clock::cache_dir(store).and_then(|dir| {
                store.disk().write_cache(&dir, self.memo_name().as_bytes(), &memo.encode(), 0o600)
            });
        }
    }

    fn memo_name(&self) -> String {
        memo::file_name(&self.call.target.name, self.walk.directory.setting())
    }
}

/// What the index looks like, be there one or none.
fn look(index: Option<&Stat>) -> [u8; 32] {
    let seen = index.map(identity);
    *Key::of(ObjectKind::Opaque, seen.as_ref().map_or(&[], |seen| &seen[..])).hash()
}
