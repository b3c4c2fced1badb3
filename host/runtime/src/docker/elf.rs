//! This program as it can run anywhere: the part of its file that is loaded, and the
//! libraries that it runs with here.
//!
//! What is only looked at by debuggers is most of the file, and stays away.

use snapback_core::error::{Error, Kind, Result};
use std::collections::BTreeSet;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Kinds of parts: what is loaded, and what names the loader.
const LOAD: u32 = 1;
const INTERPRETER: u32 = 3;
/// As much of a program as names what loads it, in bytes.
const BEGIN: u64 = 64 * 1024;
/// Bytes of the head, and of the description of a part.
const HEAD: usize = 64;
const PART: usize = 56;

/// A program that is loaded by another, or by the system itself.
pub struct Program {
    /// The part of its file that is loaded.
    pub bytes: Vec<u8>,
    /// What loads it; none where nothing is needed for that.
    pub loader: Option<PathBuf>,
}

/// The program in `bytes` without what is not loaded.
///
/// # Errors
/// `Incompatible` when it is none of 64 bits.
pub fn loaded(mut bytes: Vec<u8>) -> Result<Program> {
    let odd =
        || Error::new(Kind::Incompatible, "this program is of a form that cannot be started in a container");
    if bytes.len() < HEAD || !bytes.starts_with(b"\x7fELF\x02\x01") {
        return Err(odd());
    }
    let at = |start: usize, length: usize| bytes.get(start..start.checked_add(length)?);
    let number = |start: usize, length: usize| {
        let mut number = [0; 8];
        number[..length].copy_from_slice(at(start, length)?);
        usize::try_from(u64::from_le_bytes(number)).ok()
    };
    let (first, parts) = (number(32, 8).ok_or_else(odd)?, number(56, 2).ok_or_else(odd)?);
    let (mut end, mut loader) = (first + parts * PART, None);
    for part in (0..parts).map(|index| first + index * PART) {
        let kind = number(part, 4).ok_or_else(odd)? as u32;
        let (offset, length) = (number(part + 8, 8).ok_or_else(odd)?, number(part + 32, 8).ok_or_else(odd)?);
        match kind {
            LOAD => end = end.max(offset.saturating_add(length)),
            INTERPRETER => {
                let name = at(offset, length).ok_or_else(odd)?;
                let name = std::str::from_utf8(name).map_err(|_| odd())?;
                loader = Some(PathBuf::from(name.trim_end_matches('\0')));
            }
            _ => {}
        }
    }
    bytes.truncate(end);
    // Where the names of its sections would be, nothing is any more.
    for (start, length) in [(40, 8), (60, 2), (62, 2)] {
        bytes[start..start + length].fill(0);
    }
    Ok(Program { bytes, loader })
}

/// What loads the program in `file`, of which only the begin is read.
///
/// # Errors
/// As [`loaded`] has them.
pub fn loader_of(file: &Path) -> Result<Option<PathBuf>> {
    let mut begin = Vec::new();
    let read = fs::File::open(file).and_then(|file| file.take(BEGIN).read_to_end(&mut begin));
    read.map_err(|e| Error::io(e, "could not read", file))?;
    Ok(loaded(begin)?.loader)
}

/// The libraries that this process has loaded, without `loader`.
///
/// # Errors
/// When the system does not tell.
pub fn libraries(loader: &Path) -> Result<Vec<PathBuf>> {
    let maps = fs::read_to_string("/proc/self/maps")
        .map_err(|e| Error::io(e, "could not read", "/proc/self/maps"))?;
    let loader = loader.canonicalize().unwrap_or_else(|_| loader.to_owned());
    let executable = fs::read_link("/proc/self/exe").unwrap_or_default();
    let mapped = maps.lines().filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        let rights = fields.nth(1)?;
        let path = Path::new(fields.nth(3)?);
        (rights.contains('x') && path.is_absolute() && path != loader && path != executable)
            .then(|| path.to_owned())
    });
    Ok(mapped.collect::<BTreeSet<_>>().into_iter().filter(|path| path.is_file()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_loaded_of_this_program_is_less_than_all_of_it_and_begins_like_it() {
        let whole = fs::read("/proc/self/exe").unwrap();
        let length = whole.len();
        let program = loaded(whole.clone()).unwrap();
        assert!(program.bytes.len() < length && program.bytes[64..4096] == whole[64..4096]);
        if let Some(loader) = program.loader {
            let libraries = libraries(&loader).unwrap();
            assert!(libraries.iter().any(|path| path.to_string_lossy().contains("libc")), "{libraries:?}");
        }
    }

    #[test]
    fn what_is_no_program_is_refused() {
        for bytes in [&b""[..], b"#!/bin/sh\n", &[0x7f, b'E', b'L', b'F', 2, 1]] {
            assert!(loaded(bytes.to_vec()).is_err());
        }
        let mut cut = fs::read("/proc/self/exe").unwrap();
        cut.truncate(70);
        assert!(loaded(cut).is_err());
    }
}
