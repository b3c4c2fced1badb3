//! Writing content into a file that was just made: a long one by all threads together.
//!
//! Invariant: each block is checked against its hash as it is read, before it is written.

use super::Run;
use crate::disk::Handle;
use crate::error::Result;
use crate::object::Key;
use crate::store::content::{self, Leaf, Piece};

/// Zero runs of whole pages become holes again.
const GRAIN: usize = 4096;

impl Run<'_> {
    /// Writes the content `key` of `size` bytes; with `sparse`, zeros are left out.
    pub(super) fn fill(&self, file: &Handle, (key, size, sparse): (&Key, u64, bool)) -> Result<()> {
        if sparse {
            self.disk.truncate(file, size)?;
        }
        content::spread(self.source, key, size, &|leaves| {
            leaves.iter().try_for_each(|leaf| self.write(file, leaf, sparse))
        })
    }

    fn write(&self, file: &Handle, leaf: &Leaf, sparse: bool) -> Result<()> {
        content::view(self.source, leaf, &mut |at, piece| {
            self.cancel.check()?;
            if !sparse {
                self.report.advance(piece.length());
            }
            match piece {
                Piece::Bytes(bytes) if !sparse => self.disk.write_all(file, at, bytes),
                Piece::Bytes(bytes) => {
                    content::pieces(bytes, GRAIN).try_for_each(|(start, piece)| match piece {
                        Piece::Bytes(bytes) => self.disk.write_all(file, at + start, bytes),
                        Piece::Zeros(_) => Ok(()),
                    })
                }
                Piece::Zeros(_) if sparse => Ok(()),
                Piece::Zeros(length) => self.zeros(file, at, length),
            }
        })
    }

    fn zeros(&self, file: &Handle, at: u64, length: u64) -> Result<()> {
        let zeros = [0; 64 * 1024];
        let mut done = 0;
        while done < length {
            self.cancel.check()?;
            let part = (length - done).min(zeros.len() as u64);
            self.disk.write_all(file, at + done, &zeros[..part as usize])?;
            done += part;
        }
        Ok(())
    }
}
