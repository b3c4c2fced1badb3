//! One work at a time on one database in this process, whatever it is called: closing
//! what one work opened would let go of the other's locks.

use std::collections::HashSet;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Device and inode of databases that are being worked on.
static CLAIMED: Mutex<Option<HashSet<(u64, u64)>>> = Mutex::new(None);
static LET_GO: Condvar = Condvar::new();

/// A database that this process works on; others wait until it is dropped.
#[derive(Debug)]
pub struct Claim((u64, u64));

fn claimed() -> MutexGuard<'static, Option<HashSet<(u64, u64)>>> {
    CLAIMED.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Claim {
    /// The file.
    pub fn id(&self) -> (u64, u64) {
        self.0
    }

    /// Waits until nobody else works on the file with this device and inode.
    pub fn of(id: (u64, u64)) -> Self {
        let mut all = claimed();
        while !all.get_or_insert_default().insert(id) {
            all = LET_GO.wait(all).unwrap_or_else(PoisonError::into_inner);
        }
        Self(id)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        claimed().get_or_insert_default().remove(&self.0);
        LET_GO.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn two_works_on_one_file_come_one_after_the_other() {
        let (inside, most) = (AtomicU32::new(0), AtomicU32::new(0));
        std::thread::scope(|scope| {
            for at in 0..8 {
                let (inside, most) = (&inside, &most);
                scope.spawn(move || {
                    let _other = Claim::of((u64::MAX, 100 + at));
                    for _ in 0..50 {
                        let _claim = Claim::of((u64::MAX, 1));
                        most.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                        std::thread::yield_now();
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                });
            }
        });
        assert_eq!(most.into_inner(), 1);
    }
}
