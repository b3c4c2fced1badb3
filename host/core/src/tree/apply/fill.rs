//! Writing content into a file that was just made: a long one by all threads together,
//! and what lies in the store as a file has it is shared, where the file system does that.
//!
//! Invariant: each block is checked against its hash: as it is read, before it is
//! written; what is shared in the new file itself.

use super::Run;
use crate::disk::Handle;
use crate::error::Result;
use crate::object::{Key, ObjectKind};
use crate::store::Extent;
use crate::store::content::{self, LARGE, Leaf, Piece};
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// Zero runs of whole pages become holes again.
const GRAIN: usize = 4096;

impl Run<'_> {
    /// Writes the content `key` of `size` bytes; with `sparse`, zeros are left out.
    pub(super) fn fill(&self, file: &Handle, (key, size, sparse): (&Key, u64, bool)) -> Result<()> {
        let shares = size > LARGE && !self.options.copy;
        if sparse || shares {
            self.disk.truncate(file, size)?;
        }
        content::spread(self.source, key, size, &|leaves| {
            let mut rest = leaves;
            while !rest.is_empty() {
                self.cancel.check()?;
                let shared = if shares { self.share(file, rest)? } else { 0 };
                if shared == 0 {
                    self.write(file, &rest[0], sparse)?;
                }
                for leaf in &rest[..shared] {
                    match self.is_as_stored(file, leaf) {
                        true => self.report.advance(leaf.length),
                        false => self.write(file, leaf, sparse)?,
                    }
                }
                rest = &rest[shared.max(1)..];
            }
            Ok(())
        })
    }

    /// Shares with `file` as many of the first leaves as lie one after the other in one
    /// file of the store; returns how many.
    fn share(&self, file: &Handle, leaves: &[Leaf]) -> Result<usize> {
        let extent = |leaf: &Leaf| leaf.key.as_ref().and_then(|key| self.source.extent(key));
        let Some(first) = leaves.first().and_then(extent) else { return Ok(0) };
        let start = leaves[0].at;
        let follows = |leaf: &&Leaf| {
            extent(leaf).is_some_and(|Extent { file, offset }| {
                Arc::ptr_eq(&file, &first.file) && offset == first.offset + (leaf.at - start)
            })
        };
        let run = 1 + leaves[1..].iter().take_while(follows).count();
        let length = leaves[run - 1].at + leaves[run - 1].length - start;
        self.disk.copy_all(&first.file, first.offset, file, start, length)?;
        Ok(run)
    }

    /// Whether `file` has the block that `leaf` is. What cannot be read has not.
    fn is_as_stored(&self, file: &Handle, leaf: &Leaf) -> bool {
        let mut bytes = vec![0; leaf.length as usize];
        let read = file.file().read_exact_at(&mut bytes, leaf.at);
        read.is_ok() && leaf.key == Some(Key::of(ObjectKind::Blob, &bytes))
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
