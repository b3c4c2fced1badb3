//! The files that SQLite makes beside a database: a rollback journal, a log, the log's index.
//!
//! Their names alone say nothing: a name that ends like theirs may be that of notes, of another
//! database, of a link. A side file is a file that is empty or begins as SQLite begins it. All
//! else is the tree's; SQLite, let at the database, would take it for its own and overwrite it.

use crate::error::Result;
use crate::store::Source;
use crate::store::content::read_begin;
use crate::tree::node::Node;
use crate::tree::scan::Stat;
use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

/// What SQLite appends to the name of a database for the files beside it: those that
/// hold content, then the index of the log, which is made again at any time.
pub const SIDES: [&[u8]; 3] = [b"-journal", b"-wal", b"-shm"];

/// Bytes that tell what a file beside a database is.
const BEGIN: usize = 8;
const JOURNAL: [u8; BEGIN] = [0xd9, 0xd5, 0x05, 0xf9, 0x20, 0xa1, 0x63, 0xd7];
/// The last bit says in which order of bytes its sums are.
const LOG: [u8; 4] = [0x37, 0x7f, 0x06, 0x82];
/// The version of the index, in the machine's own order of bytes.
const INDEX: u32 = 3_007_000;

/// The name of a file beside the database `name`.
pub fn side(name: &[u8], suffix: &[u8]) -> Vec<u8> {
    [name, suffix].concat()
}

/// The names of databases that `path` would lie beside, by its name.
pub fn bases(path: &[u8]) -> impl Iterator<Item = (&[u8], &'static [u8])> {
    SIDES.into_iter().filter_map(|suffix| Some((path.strip_suffix(suffix)?, suffix)))
}

/// Whether what lies in `dir` beside the database `name`, called so with `suffix`, was made by
/// SQLite; none when nothing is there. One that may not be read is taken for such a file.
pub fn is_side(dir: impl AsFd, name: &[u8], suffix: &[u8]) -> Option<bool> {
    let name = CString::new(side(name, suffix)).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = match rustix::fs::openat(&dir, &name, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::NOENT) => return None,
        Err(Errno::ACCESS) => {
            let stat = rustix::fs::statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW);
            return Some(stat.is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode).is_file()));
        }
        // A link, a socket.
        Err(_) => return Some(false),
    };
    let is_file = Stat::of_open(&file).is_ok_and(|stat| stat.is_file());
    let mut begin = [0; BEGIN];
    Some(is_file && file.read_at(&mut begin, 0).is_ok_and(|read| begins_one(suffix, &begin[..read])))
}

/// Whether the stored `node`, called like a database with `suffix`, was made by SQLite.
///
/// # Errors
/// When its content cannot be read.
pub fn is_stored_side(source: &(impl Source + ?Sized), node: &Node, suffix: &[u8]) -> Result<bool> {
    let Node::File { content, size, .. } = node else { return Ok(false) };
    let begin = read_begin(source, content, *size, BEGIN as u64)?;
    Ok(begins_one(suffix, &begin))
}

/// A journal without a header is one that is being written, or was used up; an index is zeros
/// until it is filled.
fn begins_one(suffix: &[u8], begin: &[u8]) -> bool {
    let zeros = begin.iter().all(|&byte| byte == 0);
    match suffix {
        b"-journal" => zeros || begin == JOURNAL,
        b"-wal" => {
            begin.is_empty() || begin.len() > 3 && begin[..3] == LOG[..3] && begin[3] | 1 == LOG[3] | 1
        }
        _ => zeros || begin.starts_with(&INDEX.to_ne_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::Dir;
    use crate::testing::TempDir;

    #[test]
    fn a_side_file_is_known_by_its_first_bytes_and_no_link_is_followed() {
        let scratch = TempDir::new();
        let dir = Dir::open(scratch.path()).unwrap();
        let is = |suffix: &[u8], bytes: &[u8]| {
            let name = String::from_utf8(side(b"a", suffix)).unwrap();
            std::fs::write(scratch.path().join(name), bytes).unwrap();
            is_side(&dir, b"a", suffix).unwrap()
        };
        let [journal, log, index] = SIDES;
        let began = |magic: &[u8]| [magic, &[7; 500]].concat();
        for suffix in SIDES {
            assert_eq!(is_side(&dir, b"a", suffix), None);
            assert!(is(suffix, b"") && !is(suffix, b"notes\n") && !is(suffix, b"SQLite format 3\0"));
        }
        assert!(is(journal, &began(&JOURNAL)) && is(journal, &[0; 512]) && !is(journal, &began(&LOG)));
        assert!(is(log, &began(&LOG)) && is(log, &began(&[0x37, 0x7f, 0x06, 0x83])));
        assert!(!is(log, &LOG[..3]) && !is(log, &began(&[0x37, 0x7f, 0x06, 0x84])) && !is(log, &[0; 32]));
        assert!(is(index, &[0; 32768]) && is(index, &[0; 3]) && is(index, &began(&INDEX.to_ne_bytes())));
        std::fs::remove_file(scratch.path().join("a-wal")).unwrap();
        std::os::unix::fs::symlink("a-journal", scratch.path().join("a-wal")).unwrap();
        assert_eq!(is_side(&dir, b"a", log), Some(false));
        std::fs::remove_file(scratch.path().join("a-shm")).unwrap();
        std::fs::create_dir(scratch.path().join("a-shm")).unwrap();
        assert_eq!(is_side(&dir, b"a", index), Some(false));
        assert_eq!(bases(b"d/a.db-wal").collect::<Vec<_>>(), [(&b"d/a.db"[..], log)]);
    }
}
