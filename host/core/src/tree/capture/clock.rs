//! When the capture began, by the file system's own clock, and which entries changed
//! so shortly before that another change may leave no trace in their times. Where the
//! store cannot be written there is no such clock, and all may have changed just now.

use crate::disk::Dir;
use crate::error::{Error, Result};
use crate::store::Store;
use crate::tree::node::Time;
use crate::tree::scan::Stat;

/// Where caches lie in a store.
const CACHE: &[u8] = b"cache";
/// A file whose time is asked for.
const TICK: &[u8] = b"tick";
/// Longer than a tick of any kernel's clock (10 ms at 100 Hz), in nanoseconds.
const FINE: i128 = 20_000_000;
/// For file systems that keep whole or even seconds, and for those whose clock is
/// not the store's, in nanoseconds.
const COARSE: i128 = 2_000_000_000;

/// When the capture began.
pub(crate) struct Clock {
    start: i128,
    margin: i128,
}

impl Clock {
    /// Now, by the clock of the file system that `store` lies on; `device` is that of
    /// what is captured.
    pub fn now(store: &Store, device: u64) -> Self {
        Self::tick(store, device).unwrap_or(Self { start: i128::MIN, margin: COARSE })
    }

    fn tick(store: &Store, device: u64) -> Result<Self> {
        let dir = cache_dir(store)?;
        // Written in place: captures side by side may do so at the same moment, and each
        // sees a time at which its own walk had not begun.
        let open = store.disk().open_or_create(&dir, TICK, 0o600)?;
        store.disk().write_all(&open, 0, b"\n")?;
        let stat = Stat::of_open(open.file());
        let stat = stat.map_err(|e| Error::io(e, "could not look at", dir.join(TICK)))?;
        let same = stat.dev == device && stat.mtime.nsec != 0;
        Ok(Self { start: nanoseconds(stat.mtime), margin: if same { FINE } else { COARSE } })
    }

    /// Whether the entry may change again, or has, without its times saying so.
    pub fn is_racy(&self, stat: &Stat) -> bool {
        [stat.mtime, stat.ctime].into_iter().any(|time| {
            // A time without a fraction may be one that the file system cut.
            let margin = if time.nsec == 0 { COARSE } else { self.margin };
            nanoseconds(time) + margin >= self.start
        })
    }
}

fn nanoseconds(time: Time) -> i128 {
    i128::from(time.sec) * 1_000_000_000 + i128::from(time.nsec)
}

/// The directory for caches in `store`, made if it is not there.
pub(crate) fn cache_dir(store: &Store) -> Result<Dir> {
    if store.dir().stat(CACHE)?.is_none() {
        // Another capture may have made it in the meantime: opening tells.
        let made = store.disk().mkdir(store.dir(), CACHE, 0o700);
        return store.dir().child(CACHE).map_err(|error| made.err().unwrap_or(error));
    }
    store.dir().child(CACHE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_clearly_older_than_the_start_is_racy() {
        let start = Time { sec: 1000, nsec: 500_000_000 };
        let clock = Clock { start: nanoseconds(start), margin: FINE };
        let directory =
            rustix::fs::open(std::env::temp_dir(), rustix::fs::OFlags::RDONLY, rustix::fs::Mode::empty());
        let stat = Stat::of_open(directory.unwrap()).unwrap();
        let racy = |mtime: (i64, u32), ctime: (i64, u32)| {
            let time = |(sec, nsec)| Time { sec, nsec };
            clock.is_racy(&Stat { mtime: time(mtime), ctime: time(ctime), ..stat })
        };
        assert!(!racy((1000, 479_999_999), (1000, 479_999_999)));
        assert!(racy((1000, 479_999_999), (1000, 480_000_000)));
        assert!(racy((1000, 480_000_000), (5, 1)));
        assert!(racy((5, 1), (2000, 1)), "from the future");
        // Whole seconds: the fraction was cut.
        assert!(racy((5, 1), (999, 0)) && !racy((5, 0), (998, 0)));
    }
}
