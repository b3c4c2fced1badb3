//! Where a file has data: holes are known without being read.

use crate::error::{Error, Result};
use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::ops::Range;

/// The first data in `within`, at its end when there is none; all before it in `within`
/// reads as zeros. Where holes cannot be told, there is data everywhere. Moves the
/// place from which `file` is read next.
pub fn data(file: &File, within: Range<u64>) -> Range<u64> {
    let end = within.end;
    match rustix::fs::seek(file, SeekFrom::Data(within.start)) {
        Ok(start) if start < end => {
            start..rustix::fs::seek(file, SeekFrom::Hole(start)).unwrap_or(end).min(end)
        }
        // Nothing but a hole up to there, or up to the end of the file.
        Ok(_) | Err(Errno::NXIO) => end..end,
        Err(_) => within,
    }
}

/// The length of the file in bytes.
///
/// # Errors
/// When it cannot be looked at.
pub fn length(file: &File) -> Result<u64> {
    file.metadata().map(|meta| meta.len()).map_err(|e| Error::io(e, "could not read", "a file with holes"))
}
