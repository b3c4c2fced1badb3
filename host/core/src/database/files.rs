//! The files at the path of a database, as the file system has them.
//!
//! Links are not followed. What is neither a file nor a link is the tree's, not a database's:
//! a directory, a fifo.

use crate::backend::Cancel;
use crate::disk::Dir;
use crate::error::{Error, Kind, Result, show};
use crate::object::Key;
use crate::store::{Lane, content};
use crate::tree::node::{Entry, Node};
use crate::tree::scan::Stat;
use crate::tree::statcache::identity;
use crate::tree::xattr;
use rustix::fs::FileType;

/// How often a file that changes while it is read is tried.
const TRIES: usize = 3;

/// Whether what is of this kind may be a database's: a file or a link. All else is the tree's.
pub fn may_be_database(kind: FileType) -> bool {
    matches!(kind, FileType::RegularFile | FileType::Symlink)
}

/// Stores the file or link `name` of `dir`; none when neither is there.
///
/// # Errors
/// `Busy` when it changes each time it is read; what kept it from being read or stored.
pub fn capture_file(lane: &mut Lane<'_>, dir: &Dir, name: &[u8], cancel: &Cancel) -> Result<Option<Entry>> {
    for _ in 0..TRIES {
        let Some(held) = dir.hold(name)? else { return Ok(None) };
        let looked = |e| Error::io(e, "could not look at", dir.join(name));
        let before = Stat::of_open(&held).map_err(looked)?;
        let node = match before.kind() {
            FileType::Symlink => Node::Symlink(dir.read_link(name)?),
            FileType::RegularFile => {
                let file = dir.open_file(name)?;
                let (content, size) = content::store_file(lane, &file, before.size, false, cancel)?;
                if identity(&Stat::of_open(&file).map_err(looked)?) != identity(&before)
                    || size != before.size
                {
                    continue;
                }
                Node::File { content, size, sparse: false }
            }
            _ => return Ok(None),
        };
        return Ok(Some(entry(name, &before, xattrs(&held, &before), node)));
    }
    let shown = show(&dir.join(name));
    Err(Error::new(Kind::Busy, format!("{shown} changes while it is read"))
        .hint("it is not a database that can be read under a lock; wait until it is written"))
}

/// The file `name` of `dir` as an entry whose content is `content` of `size` bytes.
///
/// # Errors
/// `NotFound` when it is not there.
pub fn file_entry(dir: &Dir, name: &[u8], content: Key, size: u64) -> Result<Entry> {
    let looked = |e| Error::io(e, "could not look at", dir.join(name));
    let held = dir.hold(name)?.ok_or_else(|| looked(rustix::io::Errno::NOENT))?;
    let stat = Stat::of_open(&held).map_err(looked)?;
    Ok(entry(name, &stat, xattrs(&held, &stat), Node::File { content, size, sparse: false }))
}

fn xattrs(held: &crate::disk::Held, stat: &Stat) -> Vec<crate::tree::node::Xattr> {
    if stat.is_file() { xattr::of_held(held) } else { Vec::new() }
}

fn entry(name: &[u8], stat: &Stat, xattrs: Vec<crate::tree::node::Xattr>, node: Node) -> Entry {
    let mode = stat.permissions();
    Entry { name: name.to_vec(), mode, uid: stat.uid, gid: stat.gid, xattrs, link: None, node }
}
