//! Where the value of an entry ends, for every kind of value.

use super::{BESIDE, Rdb, broken};
use snapback_sdk::{Error, ErrorKind, Result};
use std::io::Read;

impl<R: Read> Rdb<R> {
    /// Reads a value of this kind.
    ///
    /// # Errors
    /// When it cannot be read, or is of an unknown kind.
    pub(super) fn value(&mut self, kind: u8) -> Result<()> {
        match kind {
            // A string, or what Redis keeps in one piece.
            0 | 9..=13 | 16 | 17 | 20 => self.text().map(drop),
            // Lists, as strings or in pieces; ordered sets.
            1 | 14 => self.many(|rdb| rdb.text().map(drop)),
            18 => self.many(|rdb| rdb.number().and_then(|_| rdb.text()).map(drop)),
            3 => self.many(|rdb| {
                rdb.text()?;
                // Not a number, infinite: these have no digits.
                let digits = rdb.byte()?;
                rdb.bytes(if digits >= 253 { 0 } else { digits.into() }).map(drop)
            }),
            5 => self.many(|rdb| rdb.text().and_then(|_| rdb.bytes(8)).map(drop)),
            // Sets and hashes.
            2 => self.sorted(|rdb| rdb.text().map(drop)),
            4 => self.sorted(|rdb| rdb.text().and_then(|_| rdb.text()).map(drop)),
            // Hashes in which fields expire: the first time at which one does, and how long after it
            // each of them, if at all.
            24 => self.fixed::<8>().map(drop).and_then(|()| {
                self.sorted(|rdb| rdb.number().and_then(|_| rdb.text()).and_then(|_| rdb.text()).map(drop))
            }),
            25 => self.fixed::<8>().and_then(|_| self.text()).map(drop),
            7 => self.number().and_then(|_| self.module()),
            15 | 19 | 21 => self.stream(kind),
            _ => Err(Error::new(
                ErrorKind::Incompatible,
                format!("the server has a kind of value that is not known here (number {kind})"),
            )
            .with_hint("Redis 6.0 to 8.2 is known, without what modules of before Redis 4 made")),
        }
    }

    fn many(&mut self, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        for _ in 0..self.number()? {
            each(self)?;
        }
        Ok(())
    }

    /// As many, which are put in the order of their bytes.
    fn sorted(&mut self, mut each: impl FnMut(&mut Self) -> Result<()>) -> Result<()> {
        let count = self.number()?;
        let start = self.at;
        let mut ranges = Vec::new();
        for _ in 0..count {
            let from = self.at;
            each(self)?;
            ranges.push(from..self.at);
        }
        let held = self.window.held_mut();
        ranges.sort_unstable_by(|a, b| held[a.clone()].cmp(&held[b.clone()]));
        let sorted: Vec<u8> = ranges.into_iter().flat_map(|range| &held[range]).copied().collect();
        held[start..self.at].copy_from_slice(&sorted);
        Ok(())
    }

    fn stream(&mut self, kind: u8) -> Result<()> {
        self.many(|rdb| rdb.text().and_then(|_| rdb.text()).map(drop))?;
        // How many, the last ID; later also the first, the highest deleted, how many there were.
        for _ in 0..if kind == 15 { 3 } else { 8 } {
            self.number()?;
        }
        self.many(|rdb| {
            rdb.text()?;
            for _ in 0..if kind == 15 { 2 } else { 3 } {
                rdb.number()?;
            }
            // Who has not acknowledged what, and since when.
            rdb.many(|rdb| {
                rdb.room = rdb.room.saturating_add(BESIDE);
                rdb.bytes(16 + 8).and_then(|_| rdb.number()).map(drop)
            })?;
            rdb.many(|rdb| {
                rdb.text()?;
                rdb.bytes(if kind == 21 { 16 } else { 8 })?;
                rdb.many(|rdb| rdb.bytes(16).map(drop))
            })
        })
    }

    pub(super) fn module(&mut self) -> Result<()> {
        loop {
            match self.number()? {
                0 => return Ok(()),
                1 | 2 => self.number().map(drop)?,
                3 => self.bytes(4).map(drop)?,
                4 => self.bytes(8).map(drop)?,
                5 => self.text().map(drop)?,
                _ => return Err(broken("what a module wrote has no known form")),
            }
        }
    }
}
